#!/usr/bin/python3
"""Small worlds for some seconds each, always with the same schedules: so that the nemesis does not
rot, and what it is for is shown in every run of the tests. Hard cases 1, 26, 27, 28, 34, 35, 36
and 54. The long ones: nemesis.py, `make torture`.

Environment: PAWL_BUILD, as in nemesis.py; PAWL_NEMESIS_SECONDS (9).
"""

import concurrent.futures
import os
import sys
import unittest

import namespaces
import nemesis
import schedule

SECONDS = float(os.environ.get("PAWL_NEMESIS_SECONDS", "9"))


class WorldsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = concurrent.futures.ThreadPoolExecutor(2)
        cls.addClassCleanup(cls.pool.shutdown)
        cls.worlds = {
            disk: cls.pool.submit(nemesis.play, seed, SECONDS, disk, "sqlite")
            for seed, disk in ((2, "lossy"), (3, "failing"))
        }
        # Two more kinds of guards, whose server is killed now and then.
        for guard in ("redis", "etcd"):
            cls.worlds[guard] = cls.pool.submit(nemesis.play, 4, SECONDS, "plain", guard)
        crowds = ["--only", ",".join(schedule.CROWDS)]
        cls.worlds["crowds"] = cls.pool.submit(
            nemesis.play, 6, 2 * SECONDS, "plain", "sqlite", crowds
        )

    def assertFine(self, world):
        result = self.worlds[world].result()
        nemesis.Tally.print_result(result)
        self.assertEqual(result["faults"], [])

    def test_guarantees_hold_under_kills_freezes_partitions_and_power_cuts(
        self,
    ):
        self.assertFine("lossy")

    def test_guarantees_hold_when_writes_and_syncs_fail_or_hang(self):
        self.assertFine("failing")

    def test_guarantees_hold_with_a_guard_in_redis_that_is_killed(self):
        self.assertFine("redis")

    def test_guarantees_hold_with_a_guard_in_etcd_that_is_killed(self):
        self.assertFine("etcd")

    def test_strangers_and_heavy_readers_cost_nobody_a_lease(self):
        self.assertFine("crowds")


if __name__ == "__main__":
    if not namespaces.allowed():
        print(
            "skipped: needs root, or unprivileged namespaces; and /dev/fuse",
            file=sys.stderr,
        )
        sys.exit(77)
    unittest.main(verbosity=2)
