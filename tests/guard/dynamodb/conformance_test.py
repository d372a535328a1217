#!/usr/bin/python3
"""The conformance kit against Pawl's guard in DynamoDB, in both forms of it. The server is
dynalite, with transactions added (dynalite/server.js).

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os

from pawltest.conformance import MOVES, assert_lacks
from pawltest.dynamodb import ServerCase, main

ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "10")
LACKS = (
    "became-a-part",
    "advance-unreached",
    "equal-keys",
    "prepared-write",
    "prepared-outlives",
    *MOVES,
)


class KitTest(ServerCase):
    def run_form(self, form, *lacks):
        words = ("guard", "conformance", "dynamodb", "--json", "--form", form, "--rounds", ROUNDS)
        done = self.pawl(*words, code=None)
        (found,) = json.loads(done.stdout)["reports"]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(("race", "passed"), [(each["case"], each["end"]) for each in found["cases"]])
        self.assertGreaterEqual(found["passed"], 40)
        assert_lacks(self, found, (*LACKS, *lacks))
        tables = self.server.call("ListTables")["TableNames"]
        self.assertEqual(sorted(tables), ["orders", "pawl_guards"])
        left = self.server.call("Scan", TableName="pawl_guards")["Items"]
        self.assertEqual([item["name"]["S"] for item in left], ["installation"])

    def test_row_form_keeps_the_contract(self):
        self.run_form("row")

    def test_static_form_keeps_the_contract(self):
        self.run_form("static")


if __name__ == "__main__":
    main()
