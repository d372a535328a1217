#!/usr/bin/python3
"""Events on the real binary: server-sent events over HTTP, and `pawl watch`."""

import json
import os
import select
import subprocess
import urllib.parse

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent
from pawltest.web import Events, Web


class EventsCase(harness.PawldCase):
    def events(self, prefix="", server=None, **headers):
        target = "/v1/events?prefix=" + urllib.parse.quote(prefix)
        events = Events(
            (server or self.pawld).http_port,
            target,
            {name.replace("_", "-"): v for name, v in headers.items()},
        )
        self.addCleanup(events.close)
        return events

    def cycle(self, client, lock):
        grant = self.acquire(client, lock, "OWNER", "me@host:1")
        self.assertEqual(client.call("RELEASE", grant["lease"]), 1)
        return grant["token"]


class SseTest(EventsCase):
    def test_events_of_a_prefix_arrive_in_order(self):
        prefix, client = self.lock("/"), self.client(3)
        events = self.events(prefix).begun()
        self.assertEqual(events.response.getheader("Content-Type"), "text/event-stream")
        self.cycle(client, self.lock("/elsewhere"))
        token = self.cycle(client, prefix + "a")
        broken = self.acquire(client, prefix + "b")["token"]
        self.assertEqual(
            client.call("BREAK", prefix + "b", "TOKEN", broken, "NOW", "REASON", "gone"), 1
        )
        received = events.take(4)
        self.assertEqual(
            [(event, data["lock"], data["token"]) for event, _, data in received],
            [
                ("granted", prefix + "a", token),
                ("released", prefix + "a", token),
                ("granted", prefix + "b", broken),
                ("broken", prefix + "b", broken),
            ],
        )
        for event, event_id, data in received:
            self.assertEqual((data["event"], data["id"]), (event, event_id))
        self.assertEqual((received[0][2]["owner"], received[3][2]["reason"]), ("me@host:1", "gone"))

    def test_last_event_id_resumes_after_that_event(self):
        prefix, client = self.lock("/"), self.client(3)
        events = self.events(prefix).begun()
        ids = [events.last_id]
        for n in range(5):
            self.cycle(client, f"{prefix}{n}")
        ids += [event_id for _, event_id, _ in events.take(10)]
        for place, last in enumerate(ids[:-1]):
            again = self.events(prefix, Last_Event_ID=last)
            self.assertEqual(
                [event_id for _, event_id, _ in again.take(10 - place)], ids[place + 1 :]
            )

    def test_old_id_after_a_restart_gives_a_reset(self):
        server = self.own_pawld()
        events = self.events(server=server).begun()
        self.cycle(self.client(3, server), "before")
        last = events.take(2)[-1][1]
        server.restart()
        again = self.events(server=server, Last_Event_ID=last)
        event, event_id, data = again.next()
        self.assertEqual((event, data["lock"]), ("reset", ""))
        self.assertTrue(event_id)
        self.cycle(self.client(3, server), "after")
        self.assertEqual([event for event, _, _ in again.take(2)], ["granted", "released"])

    def test_malformed_id_is_refused_before_the_stream(self):
        reply = Web(self.pawld.http_port).get("/v1/events", **{"Last-Event-ID": "yesterday"})
        self.assertEqual((reply.status, reply.code), (400, "invalid"))
        self.assertIn(
            "Last-Event-ID must be the id of an earlier event, got 'yesterday'",
            reply.json["detail"],
        )
        self.assertEqual(Web(self.pawld.http_port).get("/v1/events?from=1").code, "invalid")

    def test_closed_stream_is_forgotten(self):
        client = self.client(3)

        def connected():
            return len(client.call("CLIENT", "LIST").splitlines())

        wait_until(lambda: connected() == 1, "those of the tests before are gone")
        streams = [self.events(self.lock()).begun() for _ in range(20)]
        self.assertEqual(connected(), 1 + 20)
        for events in streams:
            events.close()
        wait_until(lambda: connected() == 1, "their connections are gone")
        head = Web(self.pawld.http_port).call("HEAD", "/v1/events")
        self.assertEqual(head.status, 200)
        wait_until(lambda: connected() == 1, "and HEAD leaves none")

    def test_slow_reader_is_cut_off_with_a_reason(self):
        # Hard case 25. The ring holds 65,536 events; far more happen while one reader reads
        # nothing.
        server = self.own_pawld()
        worker = self.client(3, server)
        slow = Web(server.http_port).raw(
            b"GET /v1/events?prefix=slow/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        self.addCleanup(slow.close)
        wait_until(lambda: b"id: " in slow.recv(4096), "it observes")
        before = server.rss_bytes()
        names = ["slow/" + "x" * 200 + f"/{n}" for n in range(500)]
        for _ in range(90):
            grants = worker.pipeline([["ACQUIRE", name, "TTL", 60000] for name in names])
            self.assertEqual(
                worker.pipeline([["RELEASE", grant["lease"]] for grant in grants]), [1] * len(names)
            )
        wait_until(lambda: "reads its events too slowly" in server.log(), "the cut is logged")
        self.assertGrewLess(
            before, 64 << 20, "a reader that reads nothing costs bounded memory", server
        )
        text = b""
        while True:
            more = slow.recv(1 << 20)
            if not more:
                break
            text += more
        blocks = text.decode().strip().split("\n\n")
        self.assertTrue(blocks[-1].startswith("event: cut\n"), blocks[-1][:300])
        cut = json.loads(blocks[-1].partition("data: ")[2])
        self.assertEqual(
            (cut["event"], cut["lock"], cut["code"], cut["retryable"]), ("cut", "", "busy", True)
        )
        self.assertIn("too slowly", cut["detail"])


class WatchTest(EventsCase):
    def watch(self, *words, server=None):
        command = [
            os.environ["PAWL"],
            "watch",
            *words,
            "--addr",
            f"127.0.0.1:{(server or self.pawld).port}",
        ]
        process = subprocess.Popen(
            dies_with_parent(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        return process

    def first(self, process, client, lock):
        """Makes things happen until it has begun to watch."""

        def received():
            self.cycle(client, lock)
            return select.select([process.stdout], [], [], 0)[0]

        wait_until(received, "pawl watch prints something")
        return process.stdout.readline()

    def test_watch_json_is_one_line_per_event(self):
        prefix, client = self.lock("/"), self.client(3)
        process = self.watch(prefix, "--json")
        self.first(process, client, prefix + "begin")
        token = self.cycle(client, prefix + "it")
        received = []
        last = {"event": "", "lock": ""}
        while (last["event"], last["lock"]) != ("released", prefix + "it"):
            last = json.loads(process.stdout.readline())
            received.append(last)
        granted, released = received[-2:]
        self.assertEqual(
            (granted["event"], granted["lock"], granted["token"], granted["owner"]),
            ("granted", prefix + "it", token, "me@host:1"),
        )
        self.assertEqual(
            sorted(int(event["id"].partition("-")[2]) for event in received),
            [int(event["id"].partition("-")[2]) for event in received],
        )
        self.assertGreater(released["at"], 0)

    def test_watch_text_shows_time_event_lock_and_owner(self):
        prefix, client = self.lock("/"), self.client(3)
        line = self.first(self.watch(prefix), client, prefix + "x")
        self.assertRegex(
            line,
            rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d  (granted |released)  {prefix}x  token \d+  "
            rf"me@host:1$",
        )

    def test_watch_continues_after_a_restart_and_reports_a_gap(self):
        server = self.own_pawld()
        process = self.watch("--json", server=server)
        self.first(process, self.client(3, server), "before")
        port = server.port
        server.kill()
        server.resp_address = f"127.0.0.1:{port}"
        server.start()
        events = []
        while "reset" not in events:
            events.append(json.loads(process.stdout.readline())["event"])
        self.cycle(self.client(3, server), "after")
        self.assertEqual(json.loads(process.stdout.readline())["lock"], "after")

    def test_watch_resumes_after_a_given_event(self):
        prefix, client = self.lock("/"), self.client(3)
        process = self.watch(prefix, "--json")
        last = json.loads(self.first(process, client, prefix + "before"))
        self.cycle(client, prefix + "meanwhile")
        later = self.watch(prefix, "--json", "--from", last["id"])
        received = [json.loads(later.stdout.readline())]
        while received[-1]["lock"] != prefix + "meanwhile":
            received.append(json.loads(later.stdout.readline()))
        self.assertNotIn("reset", [event["event"] for event in received])
        self.assertNotIn(last["id"], [event["id"] for event in received])

    def test_watch_with_a_malformed_id_is_a_usage_error(self):
        run = subprocess.run(
            [os.environ["PAWL"], "watch", "--from", "yesterday"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(run.returncode, 64, run.stderr)
        self.assertIn("is not the id of an event", run.stderr)

    def test_watch_reports_an_unreachable_pawld(self):
        run = subprocess.run(
            [os.environ["PAWL"], "watch", "--addr", "127.0.0.1:1"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(run.returncode, 69, run.stderr)


if __name__ == "__main__":
    harness.main()
