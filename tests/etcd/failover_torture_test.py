#!/usr/bin/python3
"""Takeovers under load, again and again, with an outside record of every acknowledgement: three
pawld on three etcd. The active pawld is killed, stopped past the end of its role, or told to stop;
the leader of etcd is killed or stopped. `record.Checker` judges what the clients saw. Hard cases 46
to 48. And a log in etcd that is long enough to be cleaned.

Environment: PAWL_FAILOVER_SECONDS (120) and PAWL_TORTURE_SEED.
"""

import concurrent.futures
import os
import random
import time
import unittest

from pawltest import harness, record, torture
from pawltest.cluster import PawldCluster
from pawltest.harness import Closed
from pawltest.wait import wait_until

SECONDS = float(os.environ.get("PAWL_FAILOVER_SECONDS", "120"))
SEED = int(os.environ.get("PAWL_TORTURE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS = 6
ACKS_MIN, ACKS_MAX = 20, 400


class FailoverTortureTest(unittest.TestCase):
    def test_what_was_acknowledged_survives_every_takeover(self):
        print(f"seed {SEED}")
        self.dice = random.Random(SEED)
        self.cluster = PawldCluster(pawlds=3, etcds=3)
        self.addCleanup(self.cluster.remove)
        self.cluster.start()
        ledger = torture.Record(self.cluster.etcd.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [torture.Worker(number, ledger, SEED) for number in range(WORKERS)]
        self.faults = {}
        began = time.monotonic()
        try:
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                while time.monotonic() < began + SECONDS:
                    self.look(ledger, workers)
                    self.one_round(ledger, workers, pool)
                    self.assertEqual(ledger.checker.faults, [])
                self.look(ledger, workers)
        except BaseException:
            print(self.cluster.logs()[-20000:])
            raise
        print(f"{self.faults}, {ledger.checker.counts}, epoch {self.epoch()}")
        self.assertEqual(record.check(ledger.read_back()), [], "the record as it stands")
        self.assertGreaterEqual(ledger.acks, ACKS_MIN * sum(self.faults.values()))

    def epoch(self):
        return wait_until(lambda: self.cluster.active().status(), "STATUS is answered")["epoch"]

    def look(self, ledger, workers):
        """Inspects every lock at whoever is active."""

        def looked():
            try:
                self.assertEqual(torture.look(self.cluster.active(), ledger, workers), [])
            except (Closed, OSError, TypeError):  # It is not the active one any more.
                return False
            return True

        wait_until(looked, "an active pawld shows every lock", 2 * harness.PATIENCE)

    def one_round(self, ledger, workers, pool):
        server = self.cluster.active()
        goal = ledger.acks + self.dice.randint(ACKS_MIN, ACKS_MAX)
        running = [pool.submit(worker.run, server.port) for worker in workers]
        etcd = self.dice.choice([None, None, "kill_etcd", "stop_etcd"])
        node = self.cluster.etcd.leader() if etcd else None
        if etcd == "kill_etcd":
            node.kill()
        elif etcd == "stop_etcd":
            node.pause()
        wait_until(
            lambda: ledger.acks >= goal or any(work.done() for work in running),
            "enough was acknowledged",
            2 * harness.PATIENCE,
        )
        fault = self.dice.choice([self.kill, self.stop_and_resume, self.terminate])
        fault(server)
        for name in filter(None, (etcd, fault.__name__)):
            self.faults[name] = self.faults.get(name, 0) + 1
        for work in running:
            work.result(timeout=2 * harness.PATIENCE)
        if etcd == "kill_etcd":
            node.start()
        elif etcd == "stop_etcd":
            node.resume()
        if etcd:
            self.cluster.etcd.wait_healthy()

    def kill(self, server):
        server.kill()
        server.start()

    def terminate(self, server):
        self.assertEqual(server.terminate(), 0, server.log()[-3000:])
        server.start()

    def stop_and_resume(self, server):
        """Until another one is active: then what it had in memory is not the truth any more."""
        server.pause()
        try:
            self.cluster.active(self.cluster.others(server))
        finally:
            server.resume()
        # Whoever was connected learns of it, or is told READONLY.
        wait_until(lambda: server.role() == "standby", "the one that was stopped stands by")


class CleaningTest(unittest.TestCase):
    def test_a_log_that_was_cleaned_is_taken_over(self):
        with PawldCluster(role_ttl_ms=10000) as cluster:  # It must not change while this runs.
            server = cluster.active()
            with server.client(3) as client:
                kept = client.call("ACQUIRE", "kept", "TTL", torture.TTL)
                while first_entry(cluster.etcd) == 1:
                    for _ in range(200):
                        grant = client.call("ACQUIRE", "lock", "TTL", torture.TTL)
                        self.assertEqual(client.call("RELEASE", grant["lease"]), 1)
            server.kill()
            with cluster.active(cluster.others(server)).client(3) as client:
                self.assertEqual(client.call("INSPECT", "kept")["token"], kept["token"])
                self.assertEqual(client.call("INSPECT", "lock")["state"], "free")
                newer = client.call("ACQUIRE", "lock", "TTL", torture.TTL)
                self.assertGreater(newer["token"], grant["token"])


def first_entry(etcd):
    """The number of the oldest entry of the log."""
    keys = etcd.etcdctl("get", "--prefix", "pawl/test/log/", "--keys-only", "--limit=1").stdout
    return int(keys.split()[0].rpartition("/")[2], 16)


if __name__ == "__main__":
    harness.main()
