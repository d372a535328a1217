#!/usr/bin/python3
"""OBSERVE and UNOBSERVE on the real binary: both protocols, restarts, observers that do not
read."""

from pawltest import harness
from pawltest.harness import Error, fields, wait_until
from pawltest.resp import Push


class Event:
    def __init__(self, frame):
        word, self.kind, self.id, self.lock, pairs = frame
        assert word == "pawl", frame
        self.fields = fields(pairs)
        incarnation, _, n = self.id.partition("-")
        self.incarnation, self.n = incarnation, int(n)

    def __repr__(self):
        return f"{self.kind} {self.lock} {self.fields.get('token')}"

    @property
    def brief(self):
        return self.kind, self.lock, self.fields.get("token")


def read_events(client, count):
    return [Event(client.read()) for _ in range(count)]


class ObserveTest(harness.PawldCase):
    def cycle(self, client, lock):
        grant = self.acquire(client, lock, "OWNER", "me@host:1")
        self.assertEqual(client.call("RELEASE", grant["lease"]), 1)
        return grant["token"]

    def test_events_arrive_in_both_protocols(self):
        worker, prefix = self.client(3), self.lock("/")
        observers = {protocol: self.client(protocol) for protocol in (2, 3)}
        for observer in observers.values():
            self.assertRegex(observer.call("OBSERVE", prefix), r"^[0-9a-f]{16}-[0-9]+$")
        self.cycle(worker, self.lock("/elsewhere"))
        token = self.cycle(worker, prefix + "a")
        broken = self.acquire(worker, prefix + "b")["token"]
        self.assertEqual(
            worker.call("BREAK", prefix + "b", "TOKEN", broken, "NOW", "REASON", "gone"), 1
        )
        expiring = self.acquire(worker, prefix + "c", ttl=100)["token"]
        seen = {}
        for protocol, observer in observers.items():
            events = read_events(observer, 6)
            self.assertEqual(
                [event.brief for event in events],
                [
                    ("granted", prefix + "a", token),
                    ("released", prefix + "a", token),
                    ("granted", prefix + "b", broken),
                    ("broken", prefix + "b", broken),
                    ("granted", prefix + "c", expiring),
                    ("expired", prefix + "c", expiring),
                ],
            )
            self.assertEqual(events[0].fields["owner"], "me@host:1")
            self.assertEqual(events[3].fields["reason"], "gone")
            self.assertEqual(sorted(event.n for event in events), [event.n for event in events])
            self.assertEqual(observer.raw[:1], b">" if protocol == 3 else b"*")
            seen[protocol] = [event.id for event in events]
            self.assertEqual(observer.call("UNOBSERVE", prefix), 1)
            self.assertEqual(observer.call("UNOBSERVE", prefix), 0)
        self.assertEqual(seen[2], seen[3])

    def test_resp2_observer_is_restricted_and_resp3_is_not(self):
        prefix = self.lock("/")
        old = self.client(2)
        old.call("OBSERVE", prefix)
        self.assertError(old.call("INSPECT", prefix), "ERR", "OBSERVE, UNOBSERVE, PING and QUIT")
        self.assertEqual(old.call("PING"), "PONG")
        self.assertEqual(old.call("QUIT"), "OK")
        new = self.client(3)
        new.call("OBSERVE", prefix)
        token = self.acquire(new, prefix + "x")["token"]
        self.assertEqual(Event(new.read()).brief, ("granted", prefix + "x", token))
        self.assertEqual(self.inspect(new, prefix + "x")["token"], token)
        self.assertEqual(new.call("RESET"), "RESET")
        self.cycle(self.client(), prefix + "y")
        self.assertEqual(new.call("PING"), "PONG", "RESET has ended the observing")

    def test_from_an_event_replays_exactly_what_followed(self):
        worker, observer, prefix = self.client(3), self.client(3), self.lock("/")
        ids = [observer.call("OBSERVE", prefix)]
        for n in range(10):
            self.cycle(worker, f"{prefix}{n}")
        events = read_events(observer, 20)
        ids += [event.id for event in events]
        for place, origin in enumerate(ids):
            with self.pawld.client(3) as again:
                self.assertEqual(again.call("OBSERVE", prefix, "FROM", origin), origin)
                self.assertEqual(
                    [event.id for event in read_events(again, 20 - place)], ids[place + 1 :]
                )
                self.assertEqual(again.call("PING"), "PONG", "and nothing more")
        self.assertError(observer.call("OBSERVE", prefix, "FROM", "yesterday"), "ERR", "FROM")

    def test_ids_grow_over_a_restart_and_an_old_one_gives_a_reset(self):
        for stop in ("kill", "terminate"):
            with self.subTest(stop):
                server = self.own_pawld()
                observer, worker = self.client(3, server), self.client(3, server)
                observer.call("OBSERVE", "")
                for n in range(5):
                    self.cycle(worker, f"before/{n}")
                before = read_events(observer, 10)
                getattr(server, stop)()
                server.start()
                again, worker = self.client(2, server), self.client(3, server)
                start = again.call("OBSERVE", "", "FROM", before[-1].id)
                reset = Event(again.read())
                self.assertEqual((reset.kind, reset.lock, reset.id), ("reset", "", start))
                self.cycle(worker, "after")
                after = read_events(again, 2)
                self.assertEqual([event.kind for event in after], ["granted", "released"])
                numbers = [event.n for event in before + [reset] + after]
                self.assertEqual(numbers, sorted(set(numbers)))
                self.assertEqual(
                    {event.incarnation for event in before + after}, {reset.incarnation}
                )

    def test_stopped_observer_is_cut_off_with_a_reason(self):
        # Hard case 25. The ring holds 65,536 events; far more happen while one observer reads
        # nothing.
        server = self.own_pawld()
        slow, quick = self.client(3, server, receive_buffer=4096), self.client(3, server)
        worker = self.client(3, server)
        slow.call("OBSERVE", "slow/")
        quick.call("OBSERVE", "quick/")
        before = server.rss_bytes()
        names = ["slow/" + "x" * 200 + f"/{n}" for n in range(500)]
        for _ in range(90):
            grants = worker.pipeline([["ACQUIRE", name, "TTL", 60000] for name in names])
            self.assertEqual(
                worker.pipeline([["RELEASE", grant["lease"]] for grant in grants]), [1] * len(names)
            )
        self.cycle(worker, "quick/1")
        self.assertEqual([event.kind for event in read_events(quick, 2)], ["granted", "released"])
        wait_until(lambda: "reads its events too slowly" in server.log(), "the cut is logged")
        self.assertGrewLess(
            before, 64 << 20, "an observer that reads nothing costs bounded memory", server
        )
        frames = []
        try:
            while True:
                frames.append(slow.read())
        except harness.Closed as closed:
            self.assertEqual(closed.unread, b"")
        self.assertIsInstance(frames[-1], Error)
        self.assertTrue(frames[-1].startswith("BUSY events"), frames[-1])
        numbers = [Event(frame).n for frame in frames[:-1]]
        self.assertGreater(len(numbers), 0)
        self.assertTrue(all(isinstance(frame, Push) for frame in frames[:-1]))
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_long_replay_reaches_its_reader(self):
        server = self.own_pawld()
        observer, worker = self.client(3, server), self.client(3, server)
        origin = observer.call("OBSERVE", "none/")
        names = ["replay/" + "x" * 100 + f"/{n}" for n in range(500)]
        for _ in range(20):
            grants = worker.pipeline([["ACQUIRE", name, "TTL", 60000] for name in names])
            worker.pipeline([["RELEASE", grant["lease"]] for grant in grants])
        observer.call("OBSERVE", "replay/", "FROM", origin)
        events = read_events(observer, 20 * 500 * 2)
        numbers = [event.n for event in events]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(observer.call("PING"), "PONG")


if __name__ == "__main__":
    harness.main()
