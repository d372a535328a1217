#!/usr/bin/python3
"""`pawl run --guard`, and the verbs of `pawl guard` that change what stands under guard, with a
guard in an SQLite file.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import sqlite3
import subprocess
import unittest

from pawltest import harness
from pawltest.cli_case import CliCase


class GuardedCase(CliCase):
    def setUp(self):
        super().setUp()
        directory = harness.scratch("run-guard")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", directory], check=True))
        self.file = str(directory / "shop.db")
        with sqlite3.connect(self.file) as db:
            db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INT)")
            db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, n INT)")
        db.close()
        self.guard("install")
        self.guard("protect", "orders")

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "sqlite", *words, "--file", self.file, **options)

    def status(self, name="orders"):
        return json.loads(self.guard("status", name, "--json").stdout)["guards"][0]

    def run_guarded(self, *words, **options):
        return self.pawl(
            "run", self.name, *words, "--guard", "sqlite:orders", "--guard-dsn", self.file,
            "--", "sh", "-c", "echo ran $PAWL_TOKEN $PAWL_FLOOR", **options
        )


class RunGuardTest(GuardedCase):
    def test_holders_of_a_limit_cannot_advance_a_guard(self):
        done = self.run_guarded("--limit", "2", expect=64)
        self.assertIn("--limit", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIsNone(self.status()["fence"])
        self.assertIn("ran", self.run_guarded("--limit", "1").stdout)

    def test_reader_advances_to_the_floor(self):
        first = self.take(self.name, "--shared")
        second = self.run_guarded("--shared")
        _, token, floor = second.stdout.split()
        self.assertGreater(int(token), first["token"])
        self.assertEqual(int(floor), first["token"])
        self.assertEqual(self.status()["fence"], first["token"])

    def test_fence_ahead_of_pawld_is_reported_with_its_remedy(self):
        ahead = self.data("status")["last_token"] + 1000
        self.guard("advance", "orders", str(ahead))
        done = self.run_guarded(expect=121)
        self.assertIn("issuer behind", done.stderr)
        self.assertIn(f"pawl raise {ahead} --reason", done.stderr)
        self.assertNotIn("ran", done.stdout)
        self.pawl("raise", str(ahead), "--reason", "test")
        self.assertIn("ran", self.run_guarded().stdout)

    def test_token_of_a_former_holder_is_only_stale(self):
        held = self.take()
        newer = self.take(self.name + "/other")
        self.guard("advance", "orders", str(newer["token"]))
        done = self.guard(
            "advance", "orders", "--held", expect=121, PAWL_TOKEN=str(held["token"])
        )
        self.assertNotIn("issuer behind", done.stderr)

    def test_refusal_of_a_guard_is_a_document(self):
        self.guard("advance", "orders", str(self.data("status")["last_token"] + 1000))
        done = self.run_guarded("--json", expect=121)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "issuer_behind")

    def test_guard_without_a_file_names_the_option_of_run(self):
        done = self.pawl("run", self.name, "--guard", "sqlite:orders", "--", "true", expect=64)
        self.assertIn("--guard-dsn", done.stderr)
        self.assertNotIn("--file", done.stderr)

    def test_unreachable_database_names_the_option_of_run(self):
        words = ["--guard", "postgres:orders", "--guard-dsn", "host=/nonexistent"]
        done = self.pawl("run", self.name, *words, "--", "true", expect=125)
        self.assertIn("--guard-dsn", done.stderr)
        self.assertNotIn("with --dsn", done.stderr)


class GuardVerbsTest(GuardedCase):
    def test_protect_tells_the_mode_of_a_guard_that_exists(self):
        self.guard("mode", "orders", "enforce", "--yes")
        for words in (["--dry-run"], []):
            done = self.guard("protect", "items", "--guard", "orders", *words)
            self.assertIn("mode enforce", done.stdout)
            self.assertNotIn("Nothing is refused", done.stderr)

    def test_mode_that_an_existing_guard_does_not_take_is_reported(self):
        done = self.guard("protect", "items", "--guard", "orders", "--mode", "enforce")
        self.assertIn("mode observe", done.stdout)
        self.assertIn("pawl guard mode sqlite orders enforce", done.stderr)

    def test_guard_is_dropped_after_its_tables(self):
        self.guard("drop", "orders", expect=64)  # It asks first.
        self.assertIn("unprotect", self.guard("drop", "orders", "--yes", expect=64).stderr)
        self.guard("unprotect", "orders", "--yes")
        self.assertIn("would drop", self.guard("drop", "orders", "--dry-run").stdout)
        self.status()
        self.assertEqual(self.guard("drop", "orders", "--yes").stdout, "dropped: orders\n")
        self.guard("status", "orders", expect=64)

    def test_script_is_a_document(self):
        script = self.guard("install", "--script").stdout
        document = json.loads(self.guard("install", "--script", "--json").stdout)
        self.assertEqual(document, {"kind": "sqlite", "script": script})


if __name__ == "__main__":
    unittest.main()
