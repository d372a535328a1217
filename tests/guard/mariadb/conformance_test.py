#!/usr/bin/python3
"""The conformance kit against Pawl's guard in a real MariaDB, in every form of it. Races at every
isolation level are in it.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import subprocess
import unittest

from pawltest.conformance import MOVES, assert_lacks
from pawltest.mariadb import Server, rows

PAWL = os.environ["PAWL"]
ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
FORMS = ("admit", "keyed", "table", "row", "by")
NEVER = ("became-a-part", "advance-unreached")
LACKS = {
    "admit": (*NEVER, *MOVES, "equal-keys", "another-key"),
    "keyed": (*NEVER, *MOVES, "equal-keys", "another-key"),
    "table": (*NEVER, *MOVES, "equal-keys"),
    "row": NEVER,
    "by": NEVER,
}


class KitTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server({"innodb_flush_log_at_trx_commit": 0})  # Nothing here crashes it.
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()

    def pawl(self, *words):
        return subprocess.run(
            [PAWL, "guard", "conformance", "mariadb", *words],
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=500,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": self.server.dsn()},
        )

    def left_behind(self):
        return rows(
            self.server.connect(),
            "SELECT name FROM pawl.guard UNION ALL "
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE "
            "'pawl_conformance%'",
        )

    def run_form(self, form):
        done = self.pawl("--json", "--form", form, "--rounds", ROUNDS)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)["reports"][0]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, done.returncode, done.stderr)
        ends = [(each["case"], each["end"]) for each in found["cases"]]
        for level in ("read-committed", "repeatable-read", "serializable"):
            self.assertIn((f"race-{level}", "passed"), ends)
        self.assertGreaterEqual(found["passed"], 67)
        assert_lacks(self, found, LACKS[form])
        self.assertEqual([], self.left_behind())

    def test_unknown_form_is_a_usage_error(self):
        self.assertEqual(64, self.pawl("--form", "flying").returncode)


def keeps_the_contract(form):
    return lambda self: self.run_form(form)


for _form in FORMS:
    setattr(KitTest, f"test_the_form_{_form}_keeps_the_contract", keeps_the_contract(_form))


if __name__ == "__main__":
    unittest.main(verbosity=2)
