#!/usr/bin/python3
"""`pawl guard …` on a real PostgreSQL: what a user with an existing table types, and what goes
wrong."""

import json
import os
import re
import subprocess

import psycopg2

from pawltest.harness import Pawld
from pawltest.postgres import ClusterCase, main

PAWL = os.environ["PAWL"]


class GuardCliTest(ClusterCase):
    def setUp(self):
        super().setUp()
        self.fresh = self.cluster.create_database(f"{self.db}_fresh", guard=False)
        self.dsn = self.cluster.dsn(self.fresh)
        self.db = self.fresh
        self.sql("CREATE TABLE orders (id int PRIMARY KEY, state text)")
        self.sql("INSERT INTO orders VALUES (7, 'new')")

    def pawl(self, *words, code=0, dsn=None, env=None):
        done = subprocess.run(
            [PAWL, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": dsn or self.dsn, **(env or {})},
        )
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "postgres", *words, **options)

    def ready(self):
        self.guard("install")
        self.guard("protect", "orders")

    def test_install_protect_and_refuse(self):
        self.assertIn("installed: guard", self.guard("install").stdout)
        self.assertIn(
            "orders under guard orders, mode observe", self.guard("protect", "orders").stdout
        )
        self.guard("mode", "orders", "shadow")
        old_job = self.cluster.connect(self.db, application_name="old-cron", autocommit=True)
        self.addCleanup(old_job.close)
        self.sql("UPDATE orders SET state = 'old'", on=old_job)
        status = json.loads(self.guard("status", "orders", "--json").stdout)
        self.assertFalse(status["guards"][0]["ready"])
        self.assertTrue(status["guards"][0]["because"])
        self.assertEqual(
            [seen["application"] for seen in status["tokenless_writers"]], ["old-cron"]
        )
        text = self.guard("status").stdout
        self.assertIn("not yet", text)
        self.assertIn("old-cron", text)
        refused = self.guard("mode", "orders", "enforce", code=64)
        self.assertIn("--yes is needed", refused.stderr)
        self.guard("mode", "orders", "enforce", "--yes", "--reason", "test")
        self.guard("policy", "orders", "--require-token", "on")
        self.assertRefused("PW001", self.sql, "UPDATE orders SET state = 'no'", on=old_job)
        self.guard("emergency", "--reason", "test")
        self.sql("UPDATE orders SET state = 'again'", on=old_job)
        self.assertEqual(self.value("SELECT state FROM orders"), "again")

    def test_install_upgrades_in_place_and_has_a_dry_run(self):
        self.assertIn("would install guard", self.guard("install", "--dry-run").stdout)
        self.assertIn("no guard is installed here", self.guard("status", code=64).stderr)
        self.ready()
        self.guard("advance", "orders", "41")
        self.assertIn("replaces", self.guard("install").stdout)
        self.assertEqual(self.guard("max", "orders").stdout, "41\n")

    def test_printed_script_runs_in_psql(self):
        script = self.guard("install", "--script").stdout
        self.cluster.psql(script, self.db)
        self.guard("check")

    def test_advance_names_the_blocker(self):
        self.ready()
        self.guard("mode", "orders", "enforce", "--yes")
        self.assertIn(
            "would advance orders from 0 to 33",
            self.guard("advance", "orders", "33", "--dry-run").stdout,
        )
        self.assertEqual(
            json.loads(self.guard("advance", "orders", "33", "--json").stdout),
            {"resource": "orders", "token": 33, "before": 0},
        )
        self.assertIn("stale", self.guard("advance", "orders", "32", code=121).stderr)
        straggler = self.connect(application_name="straggler")
        self.sql("SELECT pawl.use('orders', 33)", on=straggler)
        self.sql("UPDATE orders SET state = 'late'", on=straggler)
        self.assertIn("straggler", self.guard("advance", "orders", "34", "--dry-run").stderr)
        self.assertIn(
            "straggler", self.guard("advance", "orders", "34", "--wait", "50ms", code=75).stderr
        )
        self.guard("advance", "orders", "34", "--wait", "50ms", "--evict")
        with self.assertRaises(psycopg2.Error):
            straggler.commit()
        self.assertEqual(self.value("SELECT state FROM orders"), "new")

    def test_bad_input_is_named_and_changes_nothing(self):
        self.ready()
        for token in ("0", "-1", "01", "9007199254740992", "34x", ""):
            message = self.guard("advance", "orders", "--", token, code=64).stderr
            self.assertRegex(message, "token|TOKEN")
        self.assertEqual(self.guard("max", "orders").stdout, "")
        self.assertIn("nowhere", self.guard("advance", "nowhere", "1", code=64).stderr)
        self.assertIn("nowhere", self.guard("mode", "nowhere", "shadow", code=64).stderr)
        self.guard("mode", "orders", "canary", code=64)
        self.guard("mode", "orders", "shadow", "--percent", "5", code=64)
        self.assertIn("missing_table", self.guard("protect", "missing_table", code=64).stderr)
        self.assertIn("not in", self.pawl("guard", "status", "oracle", code=64).stderr)

    def test_unreachable_and_forbidden_databases_differ(self):
        secret = "host=127.0.0.1 port=1 dbname=x user=y password=do-not-tell"
        message = self.guard("status", dsn=secret, code=69).stderr
        self.assertNotIn("do-not-tell", message)
        self.assertNotIn("\\x", message, "one readable line")
        self.assertIn("--dsn", message)
        self.ready()
        self.sql("CREATE ROLE clerk LOGIN")
        self.addCleanup(self.sql, "DROP ROLE clerk")
        message = self.guard(
            "mode", "orders", "enforce", "--yes", dsn=self.cluster.dsn(self.db, "clerk"), code=77
        ).stderr
        self.assertIn("permission denied", message)

    def test_check_finds_problems_and_prints_fixes(self):
        self.ready()
        checked = self.guard("check").stdout
        self.assertIn("healthy", checked)
        self.assertRegex(checked, "fast path: (C|PL/pgSQL)\n")
        # It would put the trigger back at once.
        self.sql("ALTER EVENT TRIGGER pawl_partitions DISABLE")
        (trigger,) = self.sql(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal "
            "LIMIT 1"
        )
        self.sql(f'ALTER TABLE orders DISABLE TRIGGER "{trigger[0]}"')
        found = json.loads(self.guard("check", "--json", code=1).stdout)
        self.assertFalse(found["healthy"])
        self.assertEqual({problem["object"] for problem in found["problems"]}, {"public.orders"})
        self.assertTrue(all(problem["fix"] for problem in found["problems"]))

    def test_destructive_changes_ask_first(self):
        self.ready()
        for words in (
            ["uninstall"],
            ["unprotect", "orders"],
            ["compact", "orders", "--below", "5"],
        ):
            self.assertIn("--yes", self.guard(*words, code=64).stderr, words)
            self.guard(*words, "--dry-run")
        self.guard("status", "orders")
        self.guard("unprotect", "orders", "--yes")
        self.guard("uninstall", "--yes")
        self.sql("UPDATE orders SET state = 'free'")
        self.assertIsNone(self.value("SELECT to_regnamespace('pawl')"))

    def test_guard_is_dropped_after_its_tables(self):
        self.ready()
        self.assertIn("--yes", self.guard("drop", "orders", code=64).stderr)
        self.assertIn("tables are under", self.guard("drop", "orders", "--yes", code=64).stderr)
        self.guard("unprotect", "orders", "--yes")
        self.assertIn("would drop orders", self.guard("drop", "orders", "--dry-run").stdout)
        self.guard("status", "orders")
        self.assertEqual(self.guard("drop", "orders", "--yes").stdout, "dropped: orders\n")
        self.guard("status", "orders", code=64)

    def test_run_with_guard_advances_before_the_command_starts(self):
        self.ready()
        self.guard("mode", "orders", "enforce", "--yes")
        pawld = Pawld()
        self.addCleanup(pawld.remove)
        pawld.start()
        env = {"PAWL_ADDR": f"127.0.0.1:{pawld.port}"}
        with self.subTest("fenced"):
            old = self.pawl(
                "run", "a", "--", "sh", "-c", "echo $PAWL_TOKEN", env=env
            ).stdout.strip()
            new = self.pawl(
                "run",
                "a",
                "--guard",
                "postgres:orders",
                "--",
                "sh",
                "-c",
                "echo $PAWL_TOKEN",
                env=env,
            ).stdout.strip()
            self.assertLess(int(old), int(new))
            self.assertEqual(self.guard("max", "orders").stdout.strip(), new)
            self.assertRefused("PW002", self.sql, "SELECT pawl.use('orders', %s)", int(old))
            self.sql("SELECT pawl.advance('orders', %s)", int(new) + 1000)
            done = self.pawl(
                "run", "a", "--guard", "postgres:orders", "--", "echo", "ran", env=env, code=121
            )
            self.assertNotIn("ran", done.stdout)
            straggler = self.connect(application_name="straggler")
            self.sql("SELECT pawl.use('orders', %s)", int(new) + 1000, on=straggler)
            self.pawl("raise", str(int(new) + 2000), "--reason", "test", env=env)
            blocked = self.pawl(
                "run",
                "a",
                "--guard",
                "postgres:orders",
                "--guard-wait",
                "50ms",
                "--",
                "echo",
                "ran",
                env=env,
                code=123,
            )
            self.assertIn("straggler", blocked.stderr)
            self.assertNotIn("ran", blocked.stdout)
            # What a crontab says: -E 0 is for "another machine runs it", and here no machine does.
            self.pawl(
                "run",
                "a",
                "-n",
                "-E",
                "0",
                "--guard",
                "postgres:orders",
                "--guard-wait",
                "50ms",
                "--",
                "true",
                env=env,
                code=123,
            )
            self.assertEqual(
                self.pawl(
                    "run",
                    "a",
                    "--guard",
                    "postgres:orders",
                    "--guard-wait",
                    "50ms",
                    "--guard-evict",
                    "--",
                    "echo",
                    "ran",
                    env=env,
                ).stdout,
                "ran\n",
            )
            self.assertIn(
                "KIND:RESOURCE",
                self.pawl("run", "a", "--guard", "orders", "--", "true", env=env, code=64).stderr,
            )

    def test_every_verb_has_examples(self):
        listed = self.pawl("guard", "--help").stdout
        for verb in re.findall(
            r"^  ([a-z]+) {2,}", listed.split("Subcommands:")[1].split("\n\n")[0], re.M
        ):
            self.assertIn("Examples:", self.pawl("guard", verb, "--help").stdout, verb)


if __name__ == "__main__":
    main()
