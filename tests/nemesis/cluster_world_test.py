#!/usr/bin/python3
"""A cluster under faults for most of a minute: three pawld on three etcd, each on a machine of its
own, and every kind of fault that schedule.py has for them. Hard cases 46 to 49 and 51. The long
ones: nemesis.py --pairs cluster:sqlite, `make torture`.

Environment: PAWL_BUILD, as in nemesis.py; PAWL_NEMESIS_SECONDS (50), PAWL_NEMESIS_SEED (5), and
PAWL_ETCD (the server).
"""

import os
import sys
import unittest

import namespaces
import nemesis

SECONDS = float(os.environ.get("PAWL_NEMESIS_SECONDS", "50"))
SEED = int(os.environ.get("PAWL_NEMESIS_SEED", "5"))


class ClusterWorldTest(unittest.TestCase):
    def test_guarantees_hold_while_machines_of_a_cluster_are_lost(self):
        result = nemesis.play(SEED, SECONDS, "cluster", "sqlite")
        tally = nemesis.Tally()
        tally.add(result)
        print(tally.table())
        self.assertEqual(result["faults"], [])
        for what in ("takeovers", "two_actives", "old_actives_asked", "etcd_alarms"):
            self.assertGreater(result["done"].get(what, 0), 0, what)


if __name__ == "__main__":
    if not namespaces.allowed():
        print(
            "skipped: needs root, or unprivileged namespaces; and /dev/fuse",
            file=sys.stderr,
        )
        sys.exit(77)
    unittest.main(verbosity=2)
