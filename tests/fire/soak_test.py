"""Hours in minutes: connections that come and go in every way, for a while, and afterwards pawld is
as it was: the same descriptors, no more memory, nothing left held or waiting. G10.

Environment: PAWL_FIRE_SOAK_SECONDS (20) and PAWL_FIRE_SEED.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import socket
import struct
import time

from pawltest.disk_faults import FireCase, harness, wait_until
from pawltest.harness import Closed, Error, request_id

SECONDS = int(os.environ.get("PAWL_FIRE_SOAK_SECONDS", "20"))
SEED = int(os.environ.get("PAWL_FIRE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
VISITORS = 4
LOCKS = 50
# More grants than the history and the ring of events keep: from then on nothing may grow.
REMEMBERED = 110_000
GROWTH_MAX = 8 << 20


class Visitor:
    """Connects, does something, and leaves in a way of its own, again and again."""

    def __init__(self, server, number):
        self.server = server
        self.dice = random.Random(f"{SEED}/{number}")
        self.counts = collections.Counter()

    def lock(self):
        return f"soak/{self.dice.randrange(LOCKS)}"

    def run(self, until):
        visits = [
            self.work,
            self.wait_and_vanish,
            self.leave_held,
            self.observe,
            self.nonsense,
            self.half_close,
            self.many_waits,
            self.look_around,
            self.break_one,
        ]
        while time.monotonic() < until:
            visit = self.dice.choice(visits)
            try:
                with self.server.client(self.dice.choice((2, 3))) as self.client:
                    visit()
            except (Closed, ConnectionError):
                self.counts["cut"] += 1
            self.counts[visit.__name__] += 1

    def acquire(self, *more, ttl=200):
        reply = self.client.call("ACQUIRE", self.lock(), "TTL", ttl, *more)
        return None if reply is None or isinstance(reply, Error) else harness.fields(reply)

    def work(self):
        for _ in range(self.dice.randrange(30)):
            grant = self.acquire("META", "k", "v" * self.dice.randrange(900))
            if grant and self.dice.random() < 0.9:
                self.client.call("RENEW", grant["lease"])
                self.client.call("RELEASE", grant["lease"])

    def wait_and_vanish(self):
        self.client.send("ACQUIRE", self.lock(), "TTL", 200, "WAIT", 60000)
        if self.dice.random() < 0.5:  # A reset, not a farewell.
            self.client.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )

    def leave_held(self):
        self.acquire("REQUEST", request_id(), "DELAY", self.dice.randrange(50))

    def observe(self):
        self.client.call("OBSERVE", "soak/")

    def nonsense(self):
        self.client.send_bytes(self.dice.randbytes(self.dice.randrange(1, 200)))

    def half_close(self):
        self.client.send("ACQUIRE", self.lock(), "TTL", 200, "WAIT", 1000)
        self.client.socket.shutdown(socket.SHUT_WR)
        self.client.read_to_end()

    def many_waits(self):
        self.client.call("HELLO", 3)
        lock = self.lock()
        for _ in range(self.dice.randrange(50)):
            self.client.send(
                "ACQUIRE", lock, "TTL", 200, "WAIT", 60000, "ASYNC", "REQUEST", request_id()
            )

    def look_around(self):
        self.client.pipeline(
            [
                ["LOCKS", "COUNT", 100],
                ["INSPECT", self.lock()],
                ["HISTORY", self.lock()],
                ["INFO"],
                ["STATUS"],
            ]
        )

    def break_one(self):
        lock = self.lock()
        token = harness.fields(self.client.call("INSPECT", lock))["token"]
        if token:
            self.client.call("BREAK", lock, "TOKEN", token, "NOW", "REASON", "soak")


class SoakTest(FireCase):
    def churn(self, seconds, pool):
        visitors = [Visitor(self.server, n) for n in range(VISITORS)]
        until = time.monotonic() + seconds
        for work in [pool.submit(visitor.run, until) for visitor in visitors]:
            work.result(timeout=seconds + harness.PATIENCE)
        return sum((visitor.counts for visitor in visitors), collections.Counter())

    def fill_what_is_bounded(self):
        """Grants and releases until what pawld remembers of the past is full."""
        with self.server.client(3) as client:
            for at in range(0, REMEMBERED, 1000):
                grants = client.pipeline(
                    ["ACQUIRE", f"soak/{n % LOCKS}/{n}", "TTL", 60000, "META", "k", "v" * 450]
                    for n in range(at, at + 1000)
                )
                client.pipeline(["RELEASE", grant["lease"]] for grant in grants)

    def descriptors(self):
        """How many pawld has open: sockets, files of the store, and others."""
        kinds = collections.Counter()
        for link in pathlib.Path(f"/proc/{self.server.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # Closed meanwhile.
                target = os.readlink(link)
                kinds[
                    "socket"
                    if target.startswith("socket:")
                    else "store"
                    if str(self.server.data) in target
                    else "other"
                ] += 1
        return kinds["socket"], kinds["store"], kinds["other"]

    def idle(self):
        """The descriptors once nobody is connected, and the journal has all it wants: two listening
        sockets; the lock, the directory, the reserved tokens, a segment, and two ahead."""
        sockets, store, _ = found = self.descriptors()
        written_ahead = len(list(self.server.data.glob("segment-*.log"))) == 3
        return found if written_ahead and (sockets, store) == (2, 6) else None

    def comes_to_rest(self):
        """Waits until nothing is held, waited for or connected."""
        with self.server.client(3) as client:
            wait_until(
                lambda: (seen := client.call("STATUS"))["leases"]
                == seen["waiters"]
                == seen["locks"]
                == 0,
                "nothing is held or waited for",
            )
        wait_until(
            lambda: self.descriptors() == self.least, "as many descriptors as in the beginning"
        )
        return self.server.rss_bytes()

    def test_churn_leaks_nothing(self):
        print(f"seed {SEED}")
        self.server = self.own_pawld()
        self.least = wait_until(self.idle, "the journal is ready")
        self.fill_what_is_bounded()
        with concurrent.futures.ThreadPoolExecutor(VISITORS) as pool:
            self.churn(min(SECONDS / 4, 60), pool)  # Whatever is set up once is set up now.
            before = self.comes_to_rest()
            counts = self.churn(SECONDS, pool)
            after = self.comes_to_rest()
        print(
            f"{SECONDS} s, {sum(counts.values()) - counts['cut']} visits {dict(counts)}; "
            f"descriptors {sum(self.least)} again, "
            f"memory {before >> 10} → {after >> 10} KiB"
        )
        self.assertLess(after - before, GROWTH_MAX, "memory leaks")
        self.assertEqual(self.server.terminate(), 0)


if __name__ == "__main__":
    harness.main()
