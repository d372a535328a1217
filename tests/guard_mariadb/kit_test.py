#!/usr/bin/python3
"""The conformance kit against the MariaDB guard, in each of its forms, on a real server. Races at every isolation level are in it.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import pathlib
import subprocess
import unittest

from maria_cluster import Server

PAWL = os.environ["PAWL"]
ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
SUBJECT = pathlib.Path(__file__).with_name("kit_subject.py")


class KitTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()

    def run_form(self, form):
        done = subprocess.run([PAWL, "guard", "conformance", "--exec", f"/usr/bin/python3 {SUBJECT} {form} {self.server.port}", "--json", "--rounds", ROUNDS],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, check=False)
        found = json.loads(done.stdout)["reports"][0]
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, done.returncode, done.stderr)
        ends = [(each["case"], each["end"]) for each in found["cases"]]
        for level in ("read-committed", "repeatable-read", "serializable"):
            self.assertIn((f"race-{level}", "passed"), ends)
        self.assertGreaterEqual(found["passed"], 67)

    def test_a_table_keeps_the_contract(self):
        self.run_form("table")

    def test_rows_that_share_a_column_keep_the_contract(self):
        self.run_form("by")

    def test_a_guard_without_a_table_keeps_the_contract(self):
        self.run_form("admit")

    def test_keys_without_a_table_keep_the_contract(self):
        self.run_form("keyed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
