"""Requests through a network that delays, loses, repeats and reorders them (tcp_proxy.py):
whichever replies a client received, pawld has done each thing once."""

import collections
import random
import threading

from pawltest import harness, tcp_proxy
from pawltest.harness import Closed, Error, fields, request_id
from pawltest.resp import Client

ACQUIRES = 10_000
WORKERS = 16
SEED = 2
SHARED_LOCKS = 6
RENEWING = 0.25  # The share of holders that renew before they release.
TTL = 600_000  # Longer than the test: what ends here was released.
TRIES = 1000  # Of one request, until a test fails instead of going on for ever.


def superseded(reply):
    """The wait was taken over by another sending of the same request, which pawld happened to read
    later."""
    return isinstance(reply, Error) and reply.startswith("CONFLICT superseded")


class Stubborn:
    """A client that asks again, in the same words on a new connection, until it is answered."""

    def __init__(self, port):
        self.port = port
        self.client = None

    def call(self, *words):
        for _ in range(TRIES):
            try:
                self.client = self.client or Client(self.port)
                return self.client.call(*words)
            except (Closed, BrokenPipeError, ConnectionResetError):
                self.close()
        raise AssertionError(f"never answered: {words}")

    def close(self):
        if self.client:
            self.client.close()
        self.client = None


class Worker:
    """Acquires and releases through a proxy of its own; its locks are partly its own, partly
    shared."""

    def __init__(self, port, number, prefix, inside):
        self.dice = random.Random(f"{SEED}/{number}")
        self.proxy = tcp_proxy.RequestProxy(port, tcp_proxy.seeded(f"{SEED}/fates/{number}"))
        self.stubborn = Stubborn(self.proxy.port)
        self.own = f"{prefix}/own/{number}"
        self.shared = [f"{prefix}/shared/{n}" for n in range(SHARED_LOCKS)]
        self.inside = inside  # the holder of each lock, as the holders see it
        self.grants = {}  # request id: grant
        self.fault = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            for _ in range(ACQUIRES // WORKERS):
                self._cycle()
            self.stubborn.close()
            self.proxy.close()
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault

    def _cycle(self):
        lock = self.dice.choice([self.own] * SHARED_LOCKS + self.shared)
        request = f"{self.dice.getrandbits(128):032x}"
        grant = self._acquire(lock, request)
        other = self.inside.setdefault(lock, request)
        assert other == request, f"{lock} is held by {request} and {other}"
        self.grants[request] = grant
        if self.dice.random() < RENEWING:
            renewed = self.stubborn.call("RENEW", grant["lease"])
            assert renewed == TTL, renewed
        del self.inside[lock]
        released = self.stubborn.call("RELEASE", grant["lease"])
        assert released in (0, 1), released

    def _acquire(self, lock, request):
        for _ in range(TRIES):
            reply = self.stubborn.call(
                "ACQUIRE", lock, "TTL", TTL, "WAIT", 600_000, "REQUEST", request
            )
            if not superseded(reply):
                assert isinstance(reply, list), reply
                return fields(reply)
        raise AssertionError(f"never granted: {request}")


class LostRepliesTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.workers = []
        inside = {}
        for number in range(WORKERS):
            cls.workers.append(Worker(cls.pawld.port, number, "chaos", inside))
        for worker in cls.workers:
            worker.thread.start()
        for worker in cls.workers:
            worker.thread.join()
        faults = [
            repr(fault)
            for worker in cls.workers
            for fault in (worker.fault, worker.proxy.fault)
            if fault
        ]
        if faults:
            raise AssertionError("\n".join(faults))
        cls.answers = [answer for worker in cls.workers for answer in worker.proxy.answers]

    def test_one_token_per_request_id(self):
        # Hard case 2.
        grants = {
            request: grant for worker in self.workers for request, grant in worker.grants.items()
        }
        self.assertEqual(len(grants), ACQUIRES)
        tokens = {grant["token"] for grant in grants.values()}
        self.assertEqual(len(tokens), ACQUIRES)
        self.assertEqual(len({grant["lease"] for grant in grants.values()}), ACQUIRES)
        self.assertEqual(
            max(tokens) - min(tokens) + 1, ACQUIRES, "a grant was made without a reply"
        )

    def test_every_answer_to_a_request_id_is_the_same_grant_or_lost(self):
        # Hard cases 2, 4: the answers that were withheld, repeated or late included.
        grants = {
            request: grant for worker in self.workers for request, grant in worker.grants.items()
        }
        for fate, words, reply in self.answers:
            if words[0] == "ACQUIRE" and not superseded(reply):
                if isinstance(reply, Error):
                    self.assertEqual((reply.code, fate), ("LOST", tcp_proxy.LATE), reply)
                else:
                    self.assertEqual(fields(reply), grants[words[-1]])

    def test_no_lease_is_released_twice(self):
        # Hard case 7.
        released = collections.Counter(
            words[1] for _, words, reply in self.answers if words[0] == "RELEASE" and reply == 1
        )
        self.assertEqual([lease for lease, times in released.items() if times > 1], [])

    def test_no_lock_is_left_held(self):
        client = self.client(3)
        self.assertEqual(client.call("STATUS")["leases"], 0)
        for lock in {lock for worker in self.workers for lock in [worker.own, *worker.shared]}:
            seen = self.inspect(client, lock)
            self.assertEqual((seen["state"], seen["waiters"]), ("free", 0), lock)

    def test_every_fate_occurred(self):
        fates = collections.Counter()
        for worker in self.workers:
            fates.update(worker.proxy.fates)
        print("fates:", dict(fates))
        for fate in tcp_proxy.CHAOS:
            self.assertGreater(fates[fate], ACQUIRES // 20, fate)
        withheld = sum(
            isinstance(reply, list) for fate, _, reply in self.answers if fate == tcp_proxy.CUT
        )
        self.assertGreater(
            withheld, ACQUIRES // 20, "grants that were committed, and whose reply was withheld"
        )


class StaleTest(harness.PawldCase):
    """What a former holder sent arrives when the lock has passed on."""

    def setUp(self):
        super().setUp()
        self.late = set()  # the verbs whose first sending is late
        self.proxy = tcp_proxy.RequestProxy(self.pawld.port, self.fate)
        self.proxy.LATE_BY = 1 << 30  # When the test says so.
        self.former = Stubborn(self.proxy.port)
        self.next = self.client(3)

    def tearDown(self):
        self.former.close()
        self.proxy.close()
        super().tearDown()

    def fate(self, words):
        if words[0] in self.late:
            self.late.remove(words[0])
            return tcp_proxy.LATE
        return tcp_proxy.PASS

    def assertUntouched(self, lock, grant):
        """`grant` is the holder, with all of its TTL ahead when it renews."""
        self.assertEqual(
            [holder["token"] for holder in self.holders(self.next, lock)], [grant["token"]]
        )
        self.assertEqual(self.next.call("RENEW", grant["lease"]), grant["ttl_ms"])

    def test_late_release_and_renew_do_not_affect_the_next_holder(self):
        # Hard cases 6, 10.
        lock = self.lock()
        for _ in range(200):
            old = fields(self.former.call("ACQUIRE", lock, "TTL", 60_000, "REQUEST", request_id()))
            self.late = {"RENEW", "RELEASE"}
            self.assertEqual(self.former.call("RENEW", old["lease"]), 60_000)
            self.assertEqual(self.former.call("RELEASE", old["lease"]), 1)
            new = self.acquire(self.next, lock, ttl=60_000)
            renewal, release = self.proxy.deliver()
            self.assertEqual(
                (renewal[0], release[0]), (["RENEW", old["lease"]], ["RELEASE", old["lease"]])
            )
            self.assertError(renewal[1], "LOST", "released")
            self.assertEqual(release[1], 0)
            self.assertUntouched(lock, new)
            self.assertEqual(self.next.call("RELEASE", new["lease"]), 1)

    def test_late_release_and_renew_do_not_affect_a_waiter_after_expiry(self):
        # Hard cases 6, 10.
        lock = self.lock()
        for _ in range(10):
            old = fields(self.former.call("ACQUIRE", lock, "TTL", 100, "REQUEST", request_id()))
            self.former.close()
            # Sent in time, by clients that did not wait for the answer.
            for verb in ("RENEW", "RELEASE"):
                self.late = {verb}
                with Client(self.proxy.port) as client:
                    client.send(verb, old["lease"])
                    with self.assertRaises(Closed):
                        client.read()
            new = self.acquire(self.next, lock, "WAIT", 60_000, ttl=60_000)
            self.assertGreater(new["token"], old["token"])
            (_, renewed), (_, released) = self.proxy.deliver()
            self.assertError(renewed, "LOST", "expired")
            self.assertEqual(released, 0)
            self.assertUntouched(lock, new)
            self.assertEqual(self.next.call("RELEASE", new["lease"]), 1)


if __name__ == "__main__":
    harness.main()
