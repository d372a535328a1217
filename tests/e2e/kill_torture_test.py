"""kill -9 under load, again and again, with an outside record of every acknowledgement. Hard cases
34, 38.

Workers (torture.py) work and record the replies. After every kill pawld is started
again, each lock is inspected, and each worker asks again for what it holds and for what was never
answered. `record.Checker` judges.

Environment: PAWL_TORTURE_KILLS (200) and PAWL_TORTURE_SEED.
"""

import concurrent.futures
import os
import random
import time

from pawltest import harness, record, torture
from pawltest.harness import wait_until

KILLS = int(os.environ.get("PAWL_TORTURE_KILLS", "200"))
SEED = int(os.environ.get("PAWL_TORTURE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS = 6
ACKS_PER_KILL_MIN = 20
ACKS_PER_KILL_MAX = 1000


class KillTortureTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.pawld = None

    def test_acknowledged_grants_and_releases_survive_kill_9(self):
        # Hard cases 34, 38: what was acknowledged is there, what was not is all or nothing, tokens
        # only grow.
        print(f"seed {SEED}")
        server = self.own_pawld(start=False)
        ledger = torture.Record(server.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [torture.Worker(n, ledger, SEED) for n in range(WORKERS)]
        dice = random.Random(SEED)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _ in range(KILLS):
                server.start()
                self.assertEqual(torture.look(server, ledger, workers), [])
                self.one_round(
                    server,
                    ledger,
                    workers,
                    pool,
                    ledger.acks + dice.randint(ACKS_PER_KILL_MIN, ACKS_PER_KILL_MAX),
                )
                self.assertEqual(ledger.checker.faults, [])
        server.start()
        self.assertEqual(torture.look(server, ledger, workers), [])
        self.judge(server, ledger, workers, time.monotonic() - began)

    def one_round(self, server, ledger, workers, pool, goal):
        """Lets them work until `goal` acknowledgements are recorded, then kills pawld in the middle
        of it."""
        running = [pool.submit(worker.run, server.port) for worker in workers]
        wait_until(
            lambda: ledger.acks >= goal or any(work.done() for work in running),
            "enough was acknowledged",
        )
        server.kill()
        for work in running:
            work.result(timeout=harness.PATIENCE)

    def judge(self, server, ledger, workers, seconds):
        counts = ledger.checker.counts
        segments = [
            int(path.name.split("-")[1].split(".")[0]) for path in server.data.glob("segment-*.log")
        ]
        checkpoints = [path.name for path in server.data.glob("checkpoint-*")]
        print(
            f"{KILLS} kills, {counts.get('granted', 0)} grants, {counts.get('released', 0)} "
            f"releases, "
            f"{sum(worker.renewals for worker in workers)} renewals, "
            f"{len(ledger.checker.owner_of)} tokens up to "
            f"{ledger.checker.greatest}, segments up to {max(segments)}, {checkpoints}, "
            f"{seconds:.0f} s"
        )
        self.assertEqual(
            record.check(ledger.read_back()), [], "the record as it stands in its file"
        )
        self.assertGreaterEqual(
            ledger.acks, KILLS * ACKS_PER_KILL_MIN, "too little load to mean anything"
        )
        if KILLS >= 200:
            self.assertGreater(max(segments), 10, "no segment was ever switched")
            self.assertTrue(checkpoints, "no checkpoint was ever written")


if __name__ == "__main__":
    harness.main()
