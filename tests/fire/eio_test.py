"""A disk that fails under the real pawld: each of the first writes, syncs and renames of a life in
turn. Hard case 36.

Each round is a store of its own: one life ends by the fault, in every fifth round the next one,
which recovers it, ends by a fault at the same number, and the last must find everything that was
acknowledged. `record.Checker` judges.

Environment: PAWL_FIRE_FAULTS (200) is how many calls are tried for EIO; of the other faults every
tenth. With PAWL_FIRE_ALL=1 all of them, and two lives in each round. """

import collections
import concurrent.futures
import os
import time

from pawltest.disk_faults import (
    EXIT_STORE,
    SEGMENT_SMALL,
    FireCase,
    faults,
    harness,
    struck,
    torture,
    wait_until,
)

FAULTS = int(os.environ.get("PAWL_FIRE_FAULTS", "200"))
ALL = os.environ.get("PAWL_FIRE_ALL") == "1"
STEP = 1 if ALL else 10
WORKERS = 2
ACKS_AFTER = 60  # Acknowledgements that show that pawld continues after a fault.


class EioTest(FireCase):
    def setUp(self):
        super().setUp()
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.addCleanup(self.pool.shutdown)
        self.hits = collections.Counter()  # (what was hit, how the life ended) -> lives
        self.acks = 0

    def sweep(self, numbers, how, may_go_on):
        began = time.monotonic()
        for at in numbers:
            with self.subTest(at=at, how=how):
                self.one_round(at, how, may_go_on)
        print(
            f"{how}: {len(numbers)} rounds, {sum(self.hits.values())} faults, {self.acks} "
            f"acknowledgements, "
            f"{time.monotonic() - began:.0f} s"
        )
        for (call, kind, end), count in sorted(self.hits.items()):
            print(f"  {call} {kind}: {end} × {count}")

    def one_round(self, at, how, may_go_on):
        server = harness.Pawld(segment_bytes=SEGMENT_SMALL)
        ledger = torture.Record(server.dir / "record")
        workers = [torture.Worker(n, ledger, at) for n in range(WORKERS)]
        try:
            for _ in range(2 if ALL or at % 5 == 0 else 1):
                server.environment = faults(server, at=at, how=how)
                self.one_life(server, ledger, workers, may_go_on)
            server.environment = {}
            server.start()
            self.assertEqual(torture.look(server, ledger, workers), [])
            # At once, because one may wait for what another holds.
            for settling in [
                self.pool.submit(worker.settle_again, server.port) for worker in workers
            ]:
                settling.result(timeout=harness.PATIENCE)
            self.assertEqual(ledger.checker.faults, [])
            self.acks += ledger.acks
        except BaseException:
            print(f"--- log of pawld\n{server.log()[-4000:]}---")
            raise
        finally:
            os.close(ledger.file)
            server.remove()

    def one_life(self, server, ledger, workers, may_go_on):
        if self.serves_or_ends(server):
            self.look(server, ledger, workers)
            running = [self.pool.submit(worker.run, server.port) for worker in workers]
            wait_until(
                lambda: self.ended(server) or (server.dir / "struck").exists(), "the fault struck"
            )
            hit = struck(server)
            goal = ledger.acks + ACKS_AFTER
            wait_until(
                lambda: self.ended(server) or (ledger.acks >= goal and may_go_on(*hit)),
                f"pawld ends after {hit}, or may go on and does",
            )
            end = self.end(server)
            for work in running:
                work.result(timeout=harness.PATIENCE)
        else:
            hit, end = struck(server), self.end(server)
        self.assertIsNotNone(hit, f"it ended ({end}), but not by the fault")
        if end == "went on":
            self.assertTrue(may_go_on(*hit), f"pawld went on after {hit}")
        else:
            self.assertEqual(end, f"exit {EXIT_STORE}", hit)
        self.hits[(hit[0], hit[1].split("-")[0], end)] += 1
        self.assertEqual(ledger.checker.faults, [])

    def end(self, server):
        if self.ended(server):
            return f"exit {server.wait()}"
        server.kill()
        return "went on"

    def test_eio_at_any_write_or_sync_loses_nothing_acknowledged(self):
        # The one write that nobody relies on is the pid in the lock file.
        self.sweep(range(1, FAULTS + 1), "EIO", lambda call, name: name == "lock")

    def test_eio_after_the_write_doubles_no_token(self):
        self.sweep(range(1, FAULTS + 1, STEP), "EIO-done", lambda call, name: name == "lock")

    def test_eio_in_a_torn_write_loses_nothing(self):
        self.sweep(range(2, FAULTS + 1, STEP), "EIO-torn", lambda call, name: name == "lock")

    def test_enospc_at_any_write_loses_nothing(self):
        # Hard case 37. What is done ahead may wait for space; a batch that does not fit after all
        # ends pawld.
        self.sweep(
            range(3, FAULTS + 1, STEP),
            "ENOSPC",
            lambda call, name: call != "pwrite" or not name.endswith(".log"),
        )

    def test_short_writes_are_completed(self):
        server = self.own_pawld(start=False, segment_bytes=SEGMENT_SMALL)
        ledger = torture.Record(server.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [torture.Worker(n, ledger, 1) for n in range(WORKERS)]
        server.environment = faults(server, at=1, how="short")
        for _ in range(3):
            server.start()
            self.assertEqual(torture.look(server, ledger, workers), [])
            running = [self.pool.submit(worker.run, server.port) for worker in workers]
            goal = ledger.acks + 100
            wait_until(lambda: ledger.acks >= goal or self.ended(server), "it works on")
            server.kill()
            for work in running:
                work.result(timeout=harness.PATIENCE)
        server.environment = {}
        server.start()
        self.assertEqual(torture.look(server, ledger, workers), [])


if __name__ == "__main__":
    harness.main()
