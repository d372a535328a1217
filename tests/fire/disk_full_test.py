"""A disk that gets full under the real pawld, and has room again. Hard case 37.

On a small tmpfs, with a file that takes the space. What grows the store is refused before anything
is applied; renewals, releases, breaks and expiries go on; nothing acknowledged is lost.

Environment: PAWL_FIRE_ROUNDS (20).
"""

import errno
import os
import re

from pawltest import disk_faults
from pawltest.disk_faults import SEGMENT_SMALL, FireCase, harness, wait_until
from pawltest.harness import Error
from pawltest.web import Web

ROUNDS = int(os.environ.get("PAWL_FIRE_ROUNDS", "20"))
DISK = 16 << 20
RESERVE = 4 << 20
TTL = 600000


class DiskFullTest(FireCase):
    def setUp(self):
        super().setUp()
        self.root = self.enterContext(disk_faults.small_tmpfs(DISK))
        self.server = self.own_pawld(start=False, segment_bytes=SEGMENT_SMALL)
        with open(self.server.config, "a", encoding="utf-8") as config:
            config.write(f"space_reserve_bytes = {RESERVE}\n")
        self.server.data = self.root / "data"
        self.server.start()
        self.ballast = self.root / "ballast"
        self.held = {}  # lock -> grant
        self.greatest = 0

    def fill(self, leave):
        """Takes all space but `leave` bytes."""
        self.ballast.unlink(missing_ok=True)

        def filled():
            facts = os.statvfs(self.root)
            try:
                with open(self.ballast, "wb") as file:
                    os.posix_fallocate(
                        file.fileno(), 0, max(1, facts.f_bavail * facts.f_frsize - leave)
                    )
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return False  # pawld was faster.
            return True

        wait_until(filled, "the disk is full")

    def take(self, client, lock):
        """A grant, or the refusal."""
        reply = client.call("ACQUIRE", lock, "TTL", TTL)
        if isinstance(reply, Error):
            self.assertError(reply, "FULL", "disk")
            return None
        self.assertGranted(reply)
        self.assertGreater(reply["token"], self.greatest)
        self.greatest = reply["token"]
        self.held[lock] = reply
        return reply

    def renew_all(self, client):
        leases = [grant["lease"] for grant in self.held.values()]
        self.assertEqual(client.call("MRENEW", *leases), [TTL] * len(leases))

    def refuses(self, client, lock):
        """Takes and releases until taking is refused."""

        def refused():
            if self.take(client, lock) is None:
                return True
            self.assertEqual(client.call("RELEASE", self.held.pop(lock)["lease"]), 1)
            return False

        wait_until(refused, "new grants are refused")

    def test_full_disk_refuses_grants_until_space_returns(self):
        client = self.client(3, self.server)
        for number in range(ROUNDS):
            # Sometimes there is room for a segment or so, sometimes for nothing at all.
            client = self.one_round(client, number, leave=(0, 40 << 10, 200 << 10, 0)[number % 4])
        self.server.restart()
        client = self.client(3, self.server)
        self.renew_all(client)
        self.assertEqual(client.call("STATUS")["leases"], len(self.held))
        print(
            f"{ROUNDS} rounds, {len(self.held)} leases held over all of them, last token "
            f"{self.greatest}"
        )

    def one_round(self, client, number, leave):
        for n in range(10):
            self.assertIsNotNone(self.take(client, f"before/{number}/{n}"))
        short = self.acquire(client, f"short/{number}", ttl=300)
        self.fill(leave)
        self.refuses(client, f"during/{number}")
        applied = self.inspect(client, f"refused/{number}")
        self.assertError(client.call("ACQUIRE", f"refused/{number}", "TTL", TTL), "FULL")
        self.assertEqual(
            self.inspect(client, f"refused/{number}"), applied, "what was refused was applied"
        )

        # Everything that ends or keeps a lease goes on.
        self.renew_all(client)
        self.assertEqual(client.call("RELEASE", self.held.pop(f"before/{number}/0")["lease"]), 1)
        broken = self.held.pop(f"before/{number}/1")
        self.assertEqual(
            client.call(
                "BREAK", f"before/{number}/1", "TOKEN", broken["token"], "NOW", "REASON", "full"
            ),
            1,
        )
        wait_until(lambda: self.inspect(client, f"short/{number}")["state"] == "free", "it expires")
        self.assertError(client.call("RENEW", short["lease"]), "LOST")
        if number % 4 == 3:
            client = self.stop_and_start(number)

        self.ballast.unlink()
        wait_until(
            lambda: self.take(client, f"after/{number}") is not None, "new grants are given again"
        )
        self.renew_all(client)
        return client

    def stop_and_start(self, number):
        """Ends and starts on the full disk, killed or asked to; then every byte is taken, and it
        starts once more."""
        if number % 8 == 3:
            self.server.kill()
        else:
            self.assertEqual(self.server.terminate(), 0, "a stop on a full disk was no clean one")
        self.fill(0)
        self.server.start()
        client = self.client(3, self.server)
        self.refuses(client, f"restarted/{number}")
        self.renew_all(client)
        return client

    def test_full_disk_is_logged_shown_and_counted(self):
        client, web = self.client(3, self.server), Web(self.server.http_port)
        self.fill(RESERVE - (1 << 20))
        self.refuses(client, "refused")
        wait_until(lambda: "the disk is full" in self.server.log(), "the log says so")
        line = re.search(
            r"the disk is full.* ([0-9]+) bytes are free .* ([0-9]+) are needed", self.server.log()
        )
        self.assertGreaterEqual(int(line[2]), RESERVE)
        self.assertEqual(client.call("STATUS")["state"], "full")
        ready = web.get("/readyz")
        self.assertEqual((ready.status, ready.code), (503, "full"), ready)
        scrape = web.get("/metrics").body.decode()
        for sample in (
            "pawl_store_full 1",
            "pawl_ready 0",
            'pawl_lock_acquires_total{result="refused"} 1',
        ):
            self.assertIn(f"\n{sample}\n", scrape)
        free = float(re.search(r"^pawl_store_free_bytes (.*)$", scrape, re.M)[1])
        needed = float(re.search(r"^pawl_store_free_needed_bytes (.*)$", scrape, re.M)[1])
        self.assertLess(free, needed)
        self.ballast.unlink()
        # Nobody asks for anything: the end is noticed all the same.
        wait_until(
            lambda: "locks are granted again" in self.server.log(), "the log says that it is over"
        )
        self.assertEqual(client.call("STATUS")["state"], "granting")
        self.assertEqual(self.server.log().count("the disk is full"), 1)
        self.assertNotIn("too small", self.server.log())

    def test_too_small_volume_is_named_at_the_start(self):
        small = self.own_pawld(start=False)
        # The reserve alone, 64 MiB, is more than the whole volume.
        small.data = self.root / "small"
        small.start()
        wait_until(lambda: "the volume is too small" in small.log(), "the log says so")
        self.assertRegex(small.log(), r"[0-9]+ MiB are available for the store, 71 MiB are needed")
        self.assertError(self.client(3, small).call("ACQUIRE", "a", "TTL", TTL), "FULL")
        wait_until(lambda: "the disk is full" in small.log(), "and that it grants nothing now")

    def test_releases_continue_within_the_space_reserve(self):
        # Each is a batch of its own, fifteen to a segment: the reserve is there for the segments
        # and checkpoints they need.
        client = self.client(3, self.server)
        leases = [self.take(client, f"storm/{n}")["lease"] for n in range(600)]
        self.fill(RESERVE - (1 << 20))
        self.refuses(client, "refused")
        for lease in leases:
            self.assertEqual(client.call("RELEASE", lease), 1)
        self.assertError(client.call("ACQUIRE", "refused", "TTL", TTL), "FULL")
        self.server.restart()
        self.assertEqual(self.client(3, self.server).call("STATUS")["leases"], 0)


if __name__ == "__main__":
    disk_faults.in_mount_namespace()
    harness.main()
