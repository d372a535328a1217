#!/usr/bin/python3
"""The conformance kit against Pawl's guard in a real etcd, in every form of it.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import unittest

from pawltest.conformance import MOVES, assert_lacks
from pawltest.etcd_guard import Server

ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "5")
NEVER = ("became-a-part", "advance-unreached", "equal-keys", "prepared-write", "prepared-outlives")
LACKS = {"static": (*NEVER, *MOVES), "row": NEVER, "by": NEVER}


class KitTest(unittest.TestCase):
    maxDiff = None
    nodes = 1

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.nodes)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()

    def run_form(self, form):
        done = self.server.pawl(
            *("conformance", "etcd", "--json", "--form", form, "--rounds", ROUNDS), check=False
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)["reports"][0]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(("race", "passed"), [(each["case"], each["end"]) for each in found["cases"]])
        self.assertGreaterEqual(found["passed"], 55)
        assert_lacks(self, found, LACKS[form])
        left = self.server.etcdctl("get", "--prefix", "", "--keys-only").stdout.split()
        self.assertEqual(["pawl-guard-version"], left)

    def test_unknown_form_is_a_usage_error(self):
        done = self.server.pawl("conformance", "etcd", "--form", "flying", check=False)
        self.assertEqual(64, done.returncode)


def keeps_the_contract(form):
    return lambda self: self.run_form(form)


for _form in LACKS:
    setattr(KitTest, f"test_the_form_{_form}_keeps_the_contract", keeps_the_contract(_form))


if __name__ == "__main__":
    unittest.main(verbosity=2)
