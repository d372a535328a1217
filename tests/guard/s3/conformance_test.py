#!/usr/bin/python3
"""The conformance kit against Pawl's guard in S3, in both forms of it. The store is the tests' own;
ceph_test.py runs the kit against a real one.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import unittest

from pawltest.conformance import MOVES, assert_lacks
from pawltest.s3_server import ServerCase

ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
LACKS = (
    "became-a-part",
    "advance-unreached",
    "equal-keys",
    "prepared-write",
    "prepared-outlives",
    "another-key",
    *MOVES,
)


class KitTest(ServerCase):
    def run_kit(self, form):
        words = ("guard", "conformance", "s3", "--json", "--form", form, "--rounds", ROUNDS)
        return self.pawl(*words, code=None)

    def run_form(self, form):
        self.guard("install")
        done = self.run_kit(form)
        (found,) = json.loads(done.stdout)["reports"]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(("race", "passed"), [(each["case"], each["end"]) for each in found["cases"]])
        self.assertGreaterEqual(found["passed"], 45)
        assert_lacks(self, found, LACKS)
        self.assertEqual(list(self.shop), [".pawl/installation"])

    def test_direct_form_keeps_the_contract(self):
        self.run_form("direct")

    def test_pointer_form_keeps_the_contract(self):
        self.run_form("pointer")


if __name__ == "__main__":
    unittest.main(verbosity=2)
