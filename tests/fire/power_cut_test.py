"""Power cuts under the real pawld, on a file system that loses, keeps, tears and reorders what was
not synced. Hard case 35.

Environment: PAWL_FIRE_CUTS (100) and PAWL_FIRE_SEED.
"""

import concurrent.futures
import os
import random
import time

from pawltest import disk_faults
from pawltest import harness, torture
from pawltest.disk_faults import EXIT_STORE, SEGMENT_SMALL, FireCase, LossyFs
from pawltest.wait import wait_until

CUTS = int(os.environ.get("PAWL_FIRE_CUTS", "100"))
SEED = int(os.environ.get("PAWL_FIRE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS = 3


class LossyCase(FireCase):
    def on_lossy(self, direct="yes"):
        """A file system, and a pawld that will keep its data there."""
        fs = LossyFs()
        self.addCleanup(fs.close)
        fs.command("direct", direct)
        server = self.own_pawld(start=False, segment_bytes=SEGMENT_SMALL)
        server.data = fs.root
        return fs, server


class PowerCutTest(LossyCase):
    def test_acknowledged_grants_and_releases_survive_power_cuts(self):
        print(f"seed {SEED}")
        self.torture("yes", CUTS)

    def test_buffered_writes_survive_power_cuts_too(self):
        self.torture("no", CUTS // 2)

    def torture(self, direct, cuts):
        fs, server = self.on_lossy(direct)
        ledger = torture.Record(server.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [torture.Worker(n, ledger, SEED) for n in range(WORKERS)]
        dice = random.Random(f"{SEED}/{direct}")
        began, early = time.monotonic(), 0
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _ in range(cuts):
                fs.command("cut-at", dice.randint(1, 12 if dice.random() < 0.3 else 300))
                early += not self.one_life(server, ledger, workers, pool)
                fs.command("on", dice.randrange(1 << 32))
            server.start()
            self.assertEqual(torture.look(server, ledger, workers), [])
            for settling in [pool.submit(worker.settle_again, server.port) for worker in workers]:
                settling.result(timeout=harness.PATIENCE)
        self.assertEqual(ledger.checker.faults, [])
        counts = ledger.checker.counts
        print(
            f"{cuts} power cuts ({early} before pawld served), {counts.get('granted', 0)} grants, "
            f"{counts.get('released', 0)} releases, {fs.command('operations')} disk operations, "
            f"{time.monotonic() - began:.0f} s"
        )
        self.assertGreater(ledger.acks, cuts, "too little load to mean anything")

    def one_life(self, server, ledger, workers, pool):
        """Works until the power goes. Whether pawld ever served."""
        served = self.serves_or_ends(server)
        if served:
            self.look(server, ledger, workers)
            running = [pool.submit(worker.run, server.port) for worker in workers]
            wait_until(lambda: self.ended(server), "the power went, and pawld noticed")
            for work in running:
                work.result(timeout=harness.PATIENCE)
        self.assertEqual(server.wait(), EXIT_STORE)
        self.assertEqual(ledger.checker.faults, [])
        return served


class DirectTest(LossyCase):
    def serves_and_logs(self, server, logged):
        """Every kind of work on that file system, and a restart; whether the log mentions buffered
        writes."""
        server.start()
        with server.client(3) as client:
            leases = [self.acquire(client, f"lock/{n}")["lease"] for n in range(100)]
        server.restart()
        with server.client(3) as client:
            self.assertEqual(client.call("MRENEW", *leases), [60000] * 100)
            # Some file systems refuse only when something is written.
            self.acquire(client, "one more")
        self.assertEqual(server.terminate(), 0)
        self.assertEqual(
            server.log().count("refuses direct writes"), 2 if logged else 0, server.log()
        )

    def test_direct_writes_are_not_logged(self):
        self.serves_and_logs(self.on_lossy("yes")[1], logged=False)

    def test_refused_direct_writes_are_logged_once(self):
        self.serves_and_logs(self.on_lossy("no")[1], logged=True)

    def test_direct_writes_refused_at_the_write_are_logged_once(self):
        self.serves_and_logs(self.on_lossy("open-only")[1], logged=True)

    def test_store_moves_between_direct_and_buffered_file_systems(self):
        fs, server = self.on_lossy("yes")
        lease = None
        for direct in ("yes", "no", "open-only", "yes"):
            fs.command("direct", direct)
            server.start()
            with server.client(3) as client:
                if lease:
                    self.assertEqual(client.call("RENEW", lease), 60000)
                lease = self.acquire(client, f"by/{server.pid}")["lease"]
            server.kill()


if __name__ == "__main__":
    disk_faults.in_mount_namespace()
    disk_faults.needs_fuse()
    harness.main()
