#!/usr/bin/python3
"""`pawl guard … sqlite`: a file from nothing to refused writes, and the conformance kit on it."""
import json
import os
import re
import shlex
import subprocess

from pawltest import sqlite
from pawltest.conformance import MOVES, assert_lacks
from pawltest.sqlite import one, write

PAWL = os.environ["PAWL"]
ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "25")
NEVER = ("became-a-part", "advance-unreached", "prepared-write", "prepared-outlives")
LACKS = {
    "admit": (*MOVES, "equal-keys", "another-key"),
    "keyed": (*MOVES, "equal-keys", "another-key"),
    "table": (*MOVES, "equal-keys"),
    "row": (),
    "by": ("equal-keys",),
}


class Cli(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.db.execute("SELECT pawl_uninstall()")
        self.environment = {
            name: value for name, value in os.environ.items() if name != "PAWL_GUARD_DSN"
        }

    def pawl(self, *words, code=0, timeout=60):
        done = subprocess.run(
            [PAWL, "guard", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=self.environment,
        )
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl(verb, "sqlite", "--file", self.path, *words, **options)

    def test_install_protect_refuse_and_uninstall(self):
        self.assertIn(
            f"no guard is installed here. Install it with: "
            f"pawl guard install sqlite --file {self.path}\n",
            self.guard("status", code=64).stderr,
        )
        self.assertIn("would install", self.guard("install", "--dry-run").stdout)
        self.assertEqual(
            one(self.db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'pawl%'"), 0
        )
        self.assertIn("installed: guard", self.guard("install").stdout)
        protected = self.guard("protect", "orders")
        self.assertIn("mode observe", protected.stdout)
        # The commands that it prints work as they are.
        for command in re.findall("^  (pawl .*)$", protected.stderr, re.M):
            self.pawl(*shlex.split(command)[2:])
        self.assertEqual(
            one(self.db, "SELECT mode FROM pawl_guard WHERE name = 'orders'"), "shadow"
        )
        self.guard("mode", "orders", "shadow")
        self.db.execute("INSERT INTO orders (state) VALUES ('tokenless')")
        status = json.loads(self.guard("status", "orders", "--json").stdout)
        self.assertFalse(status["guards"][0]["ready"])
        self.assertEqual(status["tokenless_writers"][0]["count"], 1)
        enforced = self.guard("mode", "orders", "enforce", "--yes", "--reason", "test")
        self.assertIn(
            "writes without a token are still admitted; to refuse them: "
            f"pawl guard policy sqlite orders --require-token on --file {self.path}",
            enforced.stderr,
        )
        self.assertIn("writes without a token are admitted", self.guard("status", "orders").stdout)
        self.assertIn(
            "orders admits writes without a token; to refuse them: "
            f"pawl guard policy sqlite orders --require-token on --file {self.path}",
            self.guard("check").stdout,
        )
        self.guard("policy", "orders", "--require-token", "on")
        self.assertNotIn("are admitted", self.guard("status", "orders").stdout)
        self.assertNotIn("without a token", self.guard("check").stdout)
        self.refuses("PAWL_MISSING", self.db.execute, "INSERT INTO orders (state) VALUES ('no')")
        self.assertEqual(
            json.loads(self.guard("advance", "orders", "34", "--json").stdout),
            {"resource": "orders", "token": 34, "before": 0},
        )
        self.assertEqual(self.guard("max", "orders").stdout, "34\n")
        self.refuses("PAWL_STALE", write, self.db, "orders", 33)
        self.assertIn("stale", self.guard("advance", "orders", "33", code=121).stderr)
        self.guard("emergency", "--reason", "the pager rang")
        self.assertRegex(
            self.guard("check", code=1).stdout,
            r"emergency switch is on: .* \(pawl\): the pager rang",
        )
        self.db.execute("INSERT INTO orders (state) VALUES ('let through')")
        self.guard("mode", "orders", "enforce", "--yes")
        self.guard("check")
        self.guard("unprotect", "orders", "--yes")
        self.db.execute("INSERT INTO orders (state) VALUES ('free')")
        self.guard("uninstall", "--yes")
        self.assertEqual(
            one(self.db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'pawl%'"), 0
        )
        self.assertEqual(
            [name for name in os.listdir(os.path.dirname(self.path)) if "emergency" in name], []
        )

    def test_strength_is_fenced_until_a_problem_weakens_it(self):
        self.guard("install")
        self.guard("protect", "orders")
        self.assertIn("strength fenced under enforce; observe", self.guard("status").stdout)
        self.guard("mode", "orders", "enforce", "--yes")
        self.assertIn("strength fenced\n", self.guard("status").stdout)
        trigger = one(self.db, "SELECT name FROM sqlite_schema WHERE type = 'trigger' LIMIT 1")
        self.db.execute(f'DROP TRIGGER "{trigger}"')
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual(status["strength"], "best effort")
        self.assertIn("orders", status["strength_because"])

    def remembered(self):
        """All that is in the file and beside it, and what the guard tells."""
        plain = self.connect(extension=False)
        status = self.guard("status", "--json").stdout
        folder = os.path.dirname(self.path)
        beside = {}
        for name in sorted(os.listdir(folder)):
            if "-pawl-" in name:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    beside[name] = file.read()
        return list(plain.iterdump()), beside, status

    def test_dry_run_leaves_everything_as_it_was(self):
        self.guard("install")
        self.db.execute("CREATE TABLE lines (customer INT)")
        self.guard("protect", "orders", "--mode", "enforce")
        self.guard("protect", "lines", "--by", "customer", "--mode", "enforce")
        write(self.db, "orders", 34, operation=1)
        write(self.db, "lines:1", 34)
        self.db.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY)")
        verbs = (
            ("mode", "orders", "shadow"),
            ("mode", "orders", "enforce"),
            ("mode", "lines", "canary", "--percent", "10"),
            ("policy", "orders", "--require-token", "on"),
            ("policy", "orders", "--equal", "once"),
            ("compact", "lines", "--below", "5000"),
            ("compact", "orders", "--below", "5000"),
            ("protect", "accounts"),
            ("protect", "accounts", "--key", "id"),
            ("unprotect", "orders"),
            ("install",),
            ("uninstall",),
        )
        for emergency in (False, True):
            if emergency:
                self.guard("emergency", "--reason", "test")
            before = self.remembered()
            for verb in verbs:
                with self.subTest(verb=verb, emergency=emergency):
                    self.guard(*verb, "--dry-run")
                    self.assertEqual(self.remembered(), before)

    def test_a_guard_by_an_expression_is_shown_as_by(self):
        self.guard("install")
        self.guard("protect", "orders", "--by", "substr(state, 1)")
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual(status["kind"], "by")

    def test_advance_during_a_write_is_busy(self):
        self.guard("install")
        self.guard("protect", "orders")
        self.db.execute("BEGIN IMMEDIATE")
        self.assertIn(
            "another connection is writing",
            self.guard("advance", "orders", "34", "--wait", "50ms", code=75).stderr,
        )
        self.db.execute("ROLLBACK")
        self.guard("advance", "orders", "34", "--wait", "50ms")

    def test_check_finds_missing_triggers_and_new_unique_indexes(self):
        self.guard("install")
        self.db.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, email TEXT)")
        self.guard("protect", "accounts", "--key", "id")
        self.guard("protect", "orders")
        self.guard("check")
        self.db.execute("CREATE UNIQUE INDEX by_email ON accounts (email)")
        self.assertIn("unique index", self.guard("check", code=1).stdout)
        self.db.execute("DROP INDEX by_email")
        self.guard("check")
        self.db.execute('DROP TRIGGER "pawl_orders_BEFORE_DELETE"')
        self.assertIn("missing", self.guard("check", code=1).stdout)
        self.db.execute("ALTER TABLE orders RENAME TO requests")
        self.assertIn('no table "orders"', self.guard("check", code=1).stdout)

    def test_printed_script_runs_in_the_shell(self):
        script = self.pawl("install", "sqlite", "--file", self.path, "--script").stdout
        subprocess.run(
            ["sqlite3", "-bail", self.path], input=script, text=True, check=True, timeout=30
        )
        self.guard("protect", "orders", "--mode", "enforce")
        self.guard("check")

    def test_missing_or_invalid_file_is_named(self):
        self.assertIn("--file", self.pawl("status", "sqlite", code=64).stderr)
        missing = self.pawl("status", "sqlite", "--file", self.path + ".none", code=69)
        self.assertIn(".none: there is no such file", missing.stderr)
        self.assertFalse(os.path.exists(self.path + ".none"))
        with open(self.path + ".text", "w", encoding="utf-8") as file:
            file.write("this is not a database\n" * 100)
        self.assertIn(
            "not a database",
            self.pawl("status", "sqlite", "--file", self.path + ".text", code=64).stderr,
        )

    def test_every_form_passes_conformance(self):
        self.guard("install")
        before = one(self.db, "SELECT count(*) FROM sqlite_schema")
        reports = json.loads(
            self.guard("conformance", "--json", "--rounds", ROUNDS, timeout=500).stdout
        )["reports"]
        self.assertEqual(
            [report["subject"] for report in reports],
            [f"sqlite {form}" for form in ("admit", "keyed", "table", "row", "by")],
        )
        for report in reports:
            skipped = [each["case"] for each in report["cases"] if each["end"] == "not applicable"]
            print(
                f"{report['subject']}: {report['passed']} passed, not applicable: {' '.join(skipped)}"
            )
            self.assertEqual([], [each for each in report["cases"] if each["end"] == "failed"])
            self.assertGreaterEqual(report["passed"], 63)
            assert_lacks(self, report, NEVER + LACKS[report["subject"].split()[1]])
            self.assertIn(
                "the guard has no prepared (SQLite has no prepared transactions)",
                [each["why"] for each in report["cases"]],
            )
        self.assertEqual(one(self.db, "SELECT count(*) FROM sqlite_schema"), before)


if __name__ == "__main__":
    sqlite.main()
