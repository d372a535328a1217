#!/usr/bin/python3
"""The conformance kit against Pawl's guard in a real Redis, in every form of it.

Environment: PAWL is the binary; PAWL_CONFORMANCE_ROUNDS how often each racer tries.
"""

import json
import os
import subprocess
import unittest

from pawltest.conformance import MOVES, assert_lacks
from pawltest.redis_server import Server

PAWL = os.environ["PAWL"]
ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
NEVER = ("became-a-part", "advance-unreached", "equal-keys", "prepared-write", "prepared-outlives")
LACKS = {
    "static": (*NEVER, *MOVES),
    "row": NEVER,
    "by": NEVER,
    "script": (*NEVER, *MOVES),
}


class KitTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # Nothing here crashes the server.
        cls.server = Server({"appendonly": "no"})
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()

    def pawl(self, *words, **more):
        return subprocess.run(
            [PAWL, "guard", *words],
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=500,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": self.server.dsn(**more)},
        )

    def run_form(self, form):
        more = {"form": "script"} if form == "script" else {}
        if more:
            installed = self.pawl("install", "redis", **more)
            self.assertEqual(0, installed.returncode, installed.stderr)
        words = ("redis", "--json", "--form", form, "--rounds", ROUNDS)
        done = self.pawl("conformance", *words, **more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)["reports"][0]
        skipped = [each["case"] for each in found["cases"] if each["end"] == "not applicable"]
        print(f"{form}: {found['passed']} passed, not applicable: {' '.join(skipped)}")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(("race", "passed"), [(each["case"], each["end"]) for each in found["cases"]])
        self.assertGreaterEqual(found["passed"], 55)
        assert_lacks(self, found, LACKS[form])
        self.assertEqual([], self.server.connect().keys("*conformance*"))

    def test_unknown_form_is_a_usage_error(self):
        self.assertEqual(64, self.pawl("conformance", "redis", "--form", "flying").returncode)


def keeps_the_contract(form):
    return lambda self: self.run_form(form)


for _form in LACKS:
    setattr(KitTest, f"test_the_form_{_form}_keeps_the_contract", keeps_the_contract(_form))


if __name__ == "__main__":
    unittest.main(verbosity=2)
