#!/usr/bin/python3
"""Takeovers under load, again and again, with an outside record of every acknowledgement: three
pawld on three etcd. The active pawld is killed, stopped past the end of its role, or told to stop;
the leader of etcd is killed or stopped. `record.Checker` judges what the clients saw. Hard cases 46
to 48. And a log in etcd that is long enough to be cleaned.

    make failovers COUNT=1000

ends after so many takeovers, has a short role_ttl, and prints how long nobody served; of the
slowest takeovers also what else happened: elections of etcd, and for how much of the time some
process of the machine waited for a CPU. More kinds of faults, in more places:
tests/nemesis/cluster_world.py.

Environment: PAWL_FAILOVER_SECONDS (25) or PAWL_FAILOVERS, PAWL_TORTURE_SEED, and PAWL_ETCD (the
server).
"""

import collections
import concurrent.futures
import heapq
import os
import pathlib
import random
import time
import unittest

from pawltest import harness, record, torture
from pawltest.cluster import PawldCluster
from pawltest.figures import percentiles
from pawltest.harness import Closed, Error
from pawltest.wait import wait_until

SECONDS = float(os.environ.get("PAWL_FAILOVER_SECONDS", "25"))
FAILOVERS = int(os.environ.get("PAWL_FAILOVERS", "0"))
SEED = int(os.environ.get("PAWL_TORTURE_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS = 6
ACKS_MIN = 20
ACKS_MAX = 60 if FAILOVERS else 400
ROLE_TTL_MS = 1000 if FAILOVERS else 2000
# One round in so many loses the leader of etcd as well.
ETCD_EVERY = 12 if FAILOVERS else 2
PROBE_EVERY = 0.005  # Seconds.
REPORT_EVERY = 50  # Rounds.
SLOWEST = 5  # So many are explained.


class Circumstances:
    """What may delay a takeover beside Pawl, from now on."""

    def __init__(self, etcd):
        self.etcd, self.began = etcd, time.monotonic()
        self.term, self.stalled = self._term(), self._stalled()

    def _term(self):
        """Of etcd's elections: each begins another one. 0: nobody answers."""
        return max((node.raft_term() for node in self.etcd.nodes if node.process), default=0)

    @staticmethod
    def _stalled():
        """Seconds for which some process waited for a CPU since the machine started."""
        try:
            line = pathlib.Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
            return int(line.rpartition("total=")[2]) / 1e6
        except OSError:  # A kernel that does not count it.
            return 0.0

    def text(self):
        share = (self._stalled() - self.stalled) / (time.monotonic() - self.began)
        terms = max(0, self._term() - self.term)
        return f"{terms} elections of etcd, a CPU was waited for {share:.0%} of the time"


class FailoverTortureTest(unittest.TestCase):
    def test_what_was_acknowledged_survives_every_takeover(self):
        print(f"seed {SEED}")
        self.dice = random.Random(SEED)
        self.cluster = PawldCluster(pawlds=3, etcds=3, role_ttl_ms=ROLE_TTL_MS)
        self.addCleanup(self.cluster.remove)
        self.cluster.start()
        ledger = torture.Record(self.cluster.etcd.dir / "record")
        self.addCleanup(os.close, ledger.file)
        workers = [torture.Worker(number, ledger, SEED) for number in range(WORKERS)]
        self.faults = collections.Counter()
        self.unserved = collections.defaultdict(list)  # fault -> seconds until a grant
        self.explained = []  # (seconds, fault, circumstances)
        first = self.epoch()
        self.began = time.monotonic()
        try:
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                while self.goes_on(first):
                    self.look(ledger, workers)
                    self.one_round(ledger, workers, pool)
                    self.assertEqual(ledger.checker.faults, [])
                    if sum(map(len, self.unserved.values())) % REPORT_EVERY == 0:
                        self.report(ledger, first)
                self.look(ledger, workers)
        except BaseException:
            print(self.cluster.logs()[-20000:])
            raise
        self.report(ledger, first)
        self.assertEqual(record.check(ledger.read_back()), [], "the record as it stands")
        self.assertGreaterEqual(ledger.acks, ACKS_MIN * sum(map(len, self.unserved.values())))

    def goes_on(self, first):
        if FAILOVERS:
            return self.epoch() - first < FAILOVERS
        return time.monotonic() < self.began + SECONDS

    def report(self, ledger, first):
        minutes = (time.monotonic() - self.began) / 60
        print(
            f"{self.epoch() - first} takeovers in {minutes:.1f} minutes; {dict(self.faults)}; "
            f"{dict(ledger.checker.counts)}; violations: {len(ledger.checker.faults)}",
            flush=True,
        )
        every = [seconds for some in self.unserved.values() for seconds in some]
        for name, some in [*sorted(self.unserved.items()), ("all", every)]:
            print(f"  until a grant after {name}: {percentiles(some)}", flush=True)
        for seconds, name, text in heapq.nlargest(SLOWEST, self.explained):
            print(f"  {seconds:.2f} s after {name}: {text}", flush=True)

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
        etcd = (
            self.dice.choice(["kill_etcd", "stop_etcd"])
            if self.dice.randrange(ETCD_EVERY) == 0
            else None
        )
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
        self.faults.update(filter(None, (etcd, fault.__name__)))
        name = fault.__name__ + (" without its leader of etcd" if etcd else "")
        circumstances = Circumstances(self.cluster.etcd)
        seconds = fault(server)
        self.unserved[name].append(seconds)
        self.explained.append((seconds, name, circumstances.text()))
        for work in running:
            work.result(timeout=2 * harness.PATIENCE)
        if etcd == "kill_etcd":
            node.start()
        elif etcd == "stop_etcd":
            node.resume()
        if etcd:
            self.cluster.etcd.wait_healthy()

    def served_by(self, pawlds, since):
        """Asks these in turn until one grants; the seconds that took."""
        request = harness.request_id()

        def granted():
            for pawld in pawlds:
                try:
                    with pawld.client(3, timeout=5) as client:
                        grant = client.call(
                            "ACQUIRE", "probe", "TTL", torture.TTL, "REQUEST", request
                        )
                        if isinstance(grant, Error):
                            continue  # It stands by, or is loading.
                        seconds = time.monotonic() - since
                        client.call("RELEASE", grant["lease"])
                        return seconds
                except (Closed, OSError):
                    continue
            time.sleep(PROBE_EVERY)
            return None

        return wait_until(granted, "somebody serves again", 2 * harness.PATIENCE)

    def kill(self, server):
        since = time.monotonic()
        server.kill()
        seconds = self.served_by(self.cluster.others(server), since)
        server.start()
        return seconds

    def terminate(self, server):
        since = time.monotonic()
        server.process.terminate()
        seconds = self.served_by(self.cluster.others(server), since)
        self.assertEqual(server.wait(), 0, server.log()[-3000:])
        server.start()
        return seconds

    def stop_and_resume(self, server):
        """Until another one is active: then what it had in memory is not the truth any more."""
        since = time.monotonic()
        server.pause()
        try:
            seconds = self.served_by(self.cluster.others(server), since)
        finally:
            server.resume()
        # Whoever was connected learns of it, or is told READONLY.
        wait_until(lambda: server.role() == "standby", "the one that was stopped stands by")
        return seconds


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
