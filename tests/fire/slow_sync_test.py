"""Syncs that are slow, or hang, under the real pawld: no lease expires early, and no reply reports
what is not durable yet. Hard cases 27 and 36.

Each hang has a length because that is what is tested; what is decided is what pawld says, never a
stopwatch. """

import time

from pawltest.disk_faults import FireCase, faults, harness, wait_until

TTL = 1000
HANG = 3.0  # Three times the TTL.
LEASES = 200
PAUSE_COUNTED_MS = 250  # At most this much of a pause of pawld counts against leases.


class SlowSyncTest(FireCase):
    def setUp(self):
        super().setUp()
        self.server = self.own_pawld(start=False)
        self.gate = self.server.dir / "gate"
        self.addCleanup(self.gate.unlink, missing_ok=True)
        self.server.environment = faults(self.server, gate=self.gate)
        self.server.start()
        self.holder = self.client(3, self.server)

    def hold(self, ttl=TTL):
        """Takes the leases, one of them with a waiter behind it."""
        grants = self.holder.pipeline(["ACQUIRE", f"held/{n}", "TTL", ttl] for n in range(LEASES))
        waiter = self.client(3, self.server)
        waiter.send("ACQUIRE", "held/0", "TTL", TTL, "WAIT", 60000)
        self.waiting(self.holder, "held/0", 1)
        leases = [grant["lease"] for grant in grants]
        self.assertEqual(self.holder.call("MRENEW", *leases), [ttl] * LEASES)
        return leases, waiter

    def hang(self):
        """Someone's grant is on its way to a disk that does not answer."""
        asking = self.client(3, self.server)
        self.gate.touch()
        asking.send("ACQUIRE", "new", "TTL", 60000)
        wait_until(self.gate.with_suffix(".reached").exists, "a sync hangs")
        return asking

    def test_leases_renewed_during_a_hanging_sync_survive(self):
        leases, waiter = self.hold()
        asking = self.hang()
        reader = self.client(2, self.server)
        reader.send("INSPECT", "new")
        self.holder.send("MRENEW", *leases)
        time.sleep(HANG)
        for client in (asking, reader, self.holder, waiter):
            self.assertTrue(client.silent(), "a reply came while nothing was durable")
        self.gate.unlink()
        self.assertEqual(
            self.holder.read(), [TTL] * LEASES, "a renewal sent during the hang came too late"
        )
        self.assertEqual(harness.fields(reader.read())["token"], asking.read()["token"])
        self.assertTrue(waiter.silent(), "a lock passed on although its holder renewed")
        self.assertEqual(self.holder.call("RELEASE", leases[0]), 1)
        self.assertGranted(waiter.read())

    def test_hang_longer_than_the_ttl_counts_250_ms_at_most(self):
        self.hold(ttl=5 * TTL)
        before = time.monotonic()
        left = self.holders(self.holder, "held/1")[0]["expires_in_ms"]
        self.hang()
        self.holder.send("INSPECT", "held/1")
        hung = time.monotonic()
        time.sleep(2 * HANG)
        went_on = time.monotonic()
        self.gate.unlink()
        seen = self.holder.read()
        outside = 1000 * ((hung - before) + (time.monotonic() - went_on))
        self.assertEqual(seen["state"], "held")
        self.assertGreaterEqual(
            seen["holders"][0]["expires_in_ms"], left - PAUSE_COUNTED_MS - outside - 1
        )

    def test_slow_syncs_cost_no_renewed_lease(self):
        # Each sync is a pause of its own, and longer than what counts of one.
        leases, waiter = self.hold(ttl=2 * TTL)
        other = self.client(3, self.server)
        self.gate.write_text("300")
        for _ in range(8):
            other.send("ACQUIRE", "slow", "TTL", 60000)
            self.assertEqual(self.holder.call("MRENEW", *leases), [2 * TTL] * LEASES)
            other.send("RELEASE", other.read()["lease"])
            self.assertEqual(self.holder.call("MRENEW", *leases), [2 * TTL] * LEASES)
            self.assertEqual(other.read(), 1)
        self.gate.unlink()
        self.assertTrue(waiter.silent())

    def test_kill_during_a_hanging_sync_loses_nothing(self):
        leases, _ = self.hold(ttl=60000)
        asking = self.hang()
        self.server.kill()
        self.assertEqual(asking.read_to_end(), b"", "a reply came before it was durable")
        self.gate.unlink()
        self.server.start()
        client = self.client(3, self.server)
        self.assertEqual(client.call("MRENEW", *leases), [60000] * LEASES)


if __name__ == "__main__":
    harness.main()
