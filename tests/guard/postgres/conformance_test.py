#!/usr/bin/python3
"""The conformance kit against Pawl's guard in a real PostgreSQL, in every form of it.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import subprocess
import unittest

from pawltest.conformance import MOVES, assert_lacks
from pawltest.postgres import Cluster

PAWL = os.environ["PAWL"]
ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
FORMS = ("admit", "keyed", "table", "row", "by")
UNWATCHED = (*MOVES, "equal-keys", "another-key", "became-a-part", "advance-unreached")
LACKS = {
    "admit": UNWATCHED,
    "keyed": UNWATCHED,
    "table": (*MOVES, "equal-keys", "advance-unreached"),
    "row": (),
    "by": ("advance-unreached",),
}


class Conformance(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # Commit timestamps are the order in which effects became visible.
        cls.cluster = Cluster({"track_commit_timestamp": "on", "max_prepared_transactions": "10"})
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        cls.cluster.create_database("shop")

    def pawl(self, *words):
        return subprocess.run(
            [PAWL, "guard", "conformance", "postgres", *words],
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=500,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": self.cluster.dsn("shop")},
        )

    def left_behind(self):
        return self.cluster.psql(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pawl_conformance%' "
            "UNION ALL SELECT name FROM pawl.guard",
            "shop",
        ).stdout

    def run_form(self, form):
        done = self.pawl("--json", "--form", form, "--rounds", ROUNDS)
        found = json.loads(done.stdout)["reports"][0]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("in order of commits", found["subject"])
        for level in ("read-committed", "repeatable-read", "serializable"):
            self.assertIn(
                (f"race-{level}", "passed"),
                [(each["case"], each["end"]) for each in found["cases"]],
            )
        assert_lacks(self, found, LACKS[form])
        self.assertEqual("", self.left_behind())

    def test_server_without_prepared_transactions_says_so(self):
        cluster = Cluster()
        self.addCleanup(cluster.remove)
        cluster.start()
        cluster.create_database("shop")
        done = self.pawl(
            "--dsn", cluster.dsn("shop"), "--form", "admit", "--case", "prepared-write"
        )
        self.assertIn(
            "prepared-write: not applicable: the guard has no prepared "
            "(max_prepared_transactions is 0 on this server)",
            done.stdout,
        )

    def test_missing_guard_is_reported_with_advice(self):
        self.cluster.create_database("bare", guard=False)
        done = self.pawl("--dsn", self.cluster.dsn("bare"))
        self.assertEqual(64, done.returncode)
        self.assertIn("pawl guard install postgres", done.stderr)

    def test_unknown_form_is_a_usage_error(self):
        self.assertEqual(64, self.pawl("--form", "flying").returncode)


def keeps_the_contract(form):
    return lambda self: self.run_form(form)


for _form in FORMS:
    setattr(Conformance, f"test_the_form_{_form}_keeps_the_contract", keeps_the_contract(_form))


if __name__ == "__main__":
    unittest.main(verbosity=2)
