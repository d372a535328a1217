#!/usr/bin/python3
"""A guard without transactions, operation numbers and SQL can be run, drilled and tested like the
others.

Environment: PAWL is a pawl that knows the kind `toy`, PAWL_PLAIN the one that is shipped.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from pawltest import ROOT, harness

PAWL = os.environ["PAWL"]
EXIT_STALE = 121
EXIT_USAGE = 64


class ToyTest(harness.PawldCase):
    def setUp(self):
        super().setUp()
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "toy.json")
        self.guard("install")
        self.guard("protect", "orders")

    def pawl(self, *words, expect=0):
        done = subprocess.run(
            [PAWL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def guard(self, verb, *words, expect=0):
        return self.pawl("guard", verb, "toy", *words, "--file", self.file, expect=expect)

    def run_guarded(self, *words, expect=0):
        address = f"127.0.0.1:{self.pawld.port}"
        return self.pawl("run", self.lock(), "--addr", address, *words, expect=expect)

    def drill(self, *words, expect=0):
        address = f"127.0.0.1:{self.pawld.port}"
        done = self.pawl(
            *("drill", "pause", "--addr", address, "--guard", "toy", "--file", self.file),
            *("--ttl", "1s", "--json", *words),
            expect=expect,
        )
        return json.loads(done.stdout)

    def fence(self, resource="orders"):
        return int(self.guard("max", resource).stdout or 0)

    def test_run_advances_it_before_the_command(self):
        print_token = ("--", "sh", "-c", "echo $PAWL_TOKEN")
        done = self.run_guarded("--guard", "toy:orders", "--guard-dsn", self.file, *print_token)
        self.assertEqual(self.fence(), int(done.stdout))

    def test_run_does_not_start_the_command_when_the_token_is_stale(self):
        self.guard("advance", "orders", "1000000")
        words = ("--guard", "toy:orders", "--guard-dsn", self.file, "--", "true")
        self.run_guarded(*words, expect=EXIT_STALE)

    def test_each_guard_of_a_run_has_its_own_place(self):
        database = os.path.join(self.directory.name, "shop.db")
        subprocess.run(["sqlite3", database, "CREATE TABLE orders (id)"], check=True)
        self.pawl("guard", "install", "sqlite", "--file", database)
        self.pawl("guard", "protect", "sqlite", "orders", "--file", database)
        guards = ("--guard", "sqlite:orders", "--guard", "toy:orders")
        for places in (
            ("--guard-dsn", f"toy={self.file}", "--guard-dsn", f"sqlite={database}"),
            ("--guard-dsn", database, "--guard-dsn", self.file),
        ):
            done = self.run_guarded(*guards, *places, "--", "sh", "-c", "echo $PAWL_TOKEN")
            self.assertEqual(self.fence(), int(done.stdout))
            fence = self.pawl("guard", "max", "sqlite", "orders", "--file", database).stdout
            self.assertEqual(fence, done.stdout)
        wrong = ("--guard-dsn", "a", "--guard-dsn", "b", "--guard-dsn", "c")
        self.run_guarded(*guards, *wrong, "--", "true", expect=EXIT_USAGE)

    def test_drill_passes_with_it_and_not_without_it(self):
        self.assertTrue(self.drill()["passed"])
        self.assertFalse(self.drill("--mode", "none", expect=1)["passed"])
        resources = json.loads(pathlib.Path(self.file).read_text())["resources"]
        self.assertEqual(list(resources), ["orders"], "the drill left something behind")

    def test_conformance_kit_passes(self):
        report = json.loads(self.guard("conformance", "--json").stdout)["reports"][0]
        self.assertTrue(report["conforms"], report)
        self.assertGreater(report["passed"], 15, report)

    def test_status_and_check_say_best_effort_and_why(self):
        self.assertIn("best effort: a program that", self.guard("status").stdout)
        status = json.loads(self.guard("status", "--json").stdout)["guards"][0]
        self.assertEqual(status["strength"], "best effort")
        self.assertIn("without comparing", status["strength_because"])
        self.assertIn("orders is best effort", self.guard("check").stdout)

    def test_what_it_cannot_do_is_refused_with_a_reason(self):
        for words in (
            ("mode", "orders", "shadow"),
            ("compact", "orders", "--below", "3", "--yes"),
            ("protect", "more", "--dry-run"),
        ):
            done = self.guard(*words, expect=EXIT_USAGE)
            self.assertIn("a JSON file", done.stderr)

    def test_the_shipped_pawl_does_not_know_it(self):
        done = subprocess.run(
            [os.environ["PAWL_PLAIN"], "guard", "status", "toy", "--file", self.file],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, EXIT_USAGE)


if __name__ == "__main__":
    unittest.main()
