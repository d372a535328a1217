#!/usr/bin/python3
"""`pawl guard … mariadb` on a real server: from nothing to refused writes, and what goes wrong."""

import json
import os
import subprocess

import pymysql

from pawltest.mariadb import GUARD, ServerCase, call, main, rows

PAWL = os.environ["PAWL"]


class GuardCliTest(ServerCase):
    def pawl(self, *words, code=0, dsn=None):
        done = subprocess.run(
            [PAWL, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PAWL_GUARD_DSN": dsn or self.server.dsn(database=self.db)},
        )
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "mariadb", *words, **options)

    def test_install_protect_and_refuse(self):
        self.server.client(GUARD.with_name("uninstall.sql").read_text(encoding="utf-8"))
        self.assertIn("pawl guard install mariadb", self.guard("status", code=64).stderr)
        self.assertIn("would install guard 0.1.0", self.guard("install", "--dry-run").stdout)
        self.assertIn("no guard is installed", self.guard("status", code=64).stderr)
        self.assertIn("installed: guard 0.1.0", self.guard("install").stdout)
        self.assertIn("would put", self.guard("protect", "orders", "--dry-run").stdout)
        self.assertIn(
            f"under guard {self.orders}, mode observe", self.guard("protect", "orders").stdout
        )
        self.guard("mode", self.orders, "shadow")
        rows(self.connect(), "UPDATE orders SET n = 4711")
        status = json.loads(self.guard("status", self.orders, "--json").stdout)
        self.assertFalse(status["guards"][0]["ready"])
        self.assertEqual(
            [seen["statement"] for seen in status["tokenless_writers"]], ["UPDATE orders SET n = ?"]
        )
        self.assertIn("no token has been seen yet", self.guard("status").stdout)
        self.assertIn("--yes is needed", self.guard("mode", self.orders, "enforce", code=64).stderr)
        self.guard("mode", self.orders, "enforce", "--yes", "--reason", "test")
        self.guard("policy", self.orders, "--require-token", "on")
        self.assertRefused("PW001", rows, self.connect(), "UPDATE orders SET n = 1")
        self.guard("emergency", "--reason", "test")
        rows(self.connect(), "UPDATE orders SET n = 1")
        self.assertIn("healthy", self.guard("check").stdout)

    def test_install_upgrades_in_place_and_keeps_the_fence(self):
        self.protect()
        self.guard("advance", self.orders, "41")
        self.assertIn("replaces 0.1.0", self.guard("install").stdout)
        self.assertEqual(self.guard("max", self.orders).stdout, "41\n")
        self.assertIn("41", self.guard("advance", self.orders, "40", code=121).stderr)

    def changed(self):
        """What nearly every change leaves a trace in, and is read at once."""
        with self.server.connect() as db:
            tables = ("guard", "protected", "fence", "done", "audit")
            return [rows(db, f"SELECT * FROM pawl.{table}") for table in tables]

    def remembered(self):
        """All that the guard remembers, and what it tells. It takes a second or more."""
        db = self.connect()
        tables = [
            name
            for (name,) in rows(
                db,
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'pawl' AND "
                "table_type IN ('BASE TABLE', 'SEQUENCE') ORDER BY 1",
            )
        ]
        triggers = "SELECT * FROM information_schema.triggers ORDER BY trigger_schema, trigger_name"
        return (
            {table: rows(db, f"SELECT * FROM pawl.`{table}`") for table in tables},
            rows(db, triggers),
            self.guard("status", "--json").stdout,
        )

    def test_dry_run_leaves_everything_as_it_was(self):
        self.protect()
        self.protect("lines", key="customer")
        call(self.connect(), "set_mode", f"{self.db}.lines", "enforce", None, None)
        self.write(34, op=1)
        call(self.connect(), "advance", f"{self.db}.lines:1", 34, 5)
        verbs = (
            ("mode", self.orders, "shadow"),
            ("mode", self.orders, "enforce"),
            ("mode", f"{self.db}.lines", "canary", "--percent", "10"),
            ("policy", self.orders, "--require-token", "on"),
            ("policy", self.orders, "--equal", "once"),
            ("compact", f"{self.db}.lines", "--below", "5000"),
            ("compact", self.orders, "--below", "5000"),
            ("protect", "accounts"),
            ("protect", "accounts", "--key", "id"),
            ("unprotect", "orders"),
            ("install",),
            ("uninstall",),
        )
        for emergency in (False, True):
            if emergency:
                self.guard("emergency", "--reason", "test")
            before, unchanged = self.remembered(), self.changed()
            for verb in verbs:
                with self.subTest(verb=verb, emergency=emergency):
                    self.guard(*verb, "--dry-run")
                    self.assertEqual(self.changed(), unchanged)
            self.assertEqual(self.remembered(), before)

    def test_dry_run_refuses_what_protect_would_refuse(self):
        rows(self.connect(), "CREATE TABLE times (t TIMESTAMP PRIMARY KEY)")
        refused = self.guard("protect", "times", "--key", "t", "--dry-run", code=64)
        self.assertIn("cannot be a key", refused.stderr)

    def test_check_names_the_account_that_is_gone(self):
        self.protect()
        self.addCleanup(self.guard, "install")
        rows(self.connect(), "DROP USER pawl_definer@localhost")
        self.assertIn("pawl_definer@localhost", self.guard("check", code=1).stdout)
        self.guard("install")
        self.assertEqual(self.write(34), "admitted")

    def test_advance_reports_an_older_open_write(self):
        self.protect()
        old = self.connect(isolation="READ COMMITTED")
        rows(old, "START TRANSACTION")
        call(old, "use", self.orders, 33)
        self.assertIn(
            "waits for older transactions",
            self.guard("advance", self.orders, "34", "--wait", "1s", code=75).stderr,
        )
        rows(old, "COMMIT")
        self.guard("advance", self.orders, "34")

    def open_write(self, token, resource=None, sql="UPDATE orders SET n = 666"):
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        call(db, "use", resource or self.orders, token)
        rows(db, sql)
        return db

    def evict(self, resource, token, **options):
        return self.guard("advance", resource, str(token), "--wait", "1s", "--evict", **options)

    def test_evict_ends_an_older_transaction_without_effect(self):
        self.protect()
        self.protect("lines", key="customer")
        lines = f"{self.db}.lines:7"
        bystander = self.open_write(
            90, f"{self.db}.lines:8", "INSERT INTO `lines` (customer) VALUES (8)"
        )
        for resource, sql in (
            (self.orders, "UPDATE orders SET n = 666"),
            (lines, "INSERT INTO `lines` (customer, n) VALUES (7, 666)"),
        ):
            old = self.open_write(33, resource, sql)
            self.evict(resource, 34)
            self.assertEqual(self.guard("max", resource).stdout, "34\n")
            with self.assertRaises(pymysql.MySQLError):
                rows(old, "COMMIT")
        rows(bystander, "COMMIT")
        self.assertEqual(
            self.value(
                "SELECT (SELECT COUNT(*) FROM orders WHERE n = 666) + (SELECT COUNT(*) FROM "
                "`lines` WHERE n = 666)"
            ),
            0,
        )

    def test_only_older_transactions_are_evicted(self):
        self.protect()
        self.guard("advance", self.orders, "34")
        own = self.open_write(34)
        self.evict(self.orders, 34, code=75)  # The holder's own, perhaps.
        rows(own, "COMMIT")
        newer = self.open_write(50)
        self.evict(self.orders, 40, code=75)
        rows(newer, "COMMIT")
        self.assertEqual(self.guard("max", self.orders).stdout, "50\n")

    def test_evict_without_privileges_is_reported(self):
        self.protect()
        user = f"meek_{self.db}"
        rows(self.connect(), f"CREATE USER {user}@localhost")
        self.addCleanup(lambda: rows(self.server.connect(), f"DROP USER {user}@localhost"))
        refused = self.guard("advance", self.orders, "34", code=77, dsn=self.server.dsn(user=user))
        self.assertIn("pawl.add_writer(", refused.stderr)
        call(self.connect(), "add_writer", f"{user}@localhost")
        old = self.open_write(33)
        self.assertIn(
            "PROCESS", self.evict(self.orders, 34, code=77, dsn=self.server.dsn(user=user)).stderr
        )
        rows(self.connect(), f"GRANT PROCESS ON *.* TO {user}@localhost")
        self.assertIn(
            "CONNECTION ADMIN",
            self.evict(self.orders, 34, code=77, dsn=self.server.dsn(user=user)).stderr,
        )
        rows(old, "COMMIT")

    def test_check_names_accounts_with_truncate(self):
        self.protect()
        rows(self.connect(), f"CREATE USER drop_{self.db}@localhost")
        rows(self.connect(), f"GRANT DROP ON {self.db}.* TO drop_{self.db}@localhost")
        self.addCleanup(lambda: rows(self.server.connect(), f"DROP USER drop_{self.db}@localhost"))
        found = json.loads(self.guard("check", "--json", code=1).stdout)
        self.assertTrue(
            any(
                f"drop_{self.db}" in problem["problem"] and "REVOKE DROP" in problem["fix"]
                for problem in found["problems"]
            ),
            found,
        )

    def test_guard_is_dropped_after_its_tables(self):
        self.guard("protect", "orders")
        self.assertIn("--yes", self.guard("drop", self.orders, code=64).stderr)
        for words in (["--dry-run"], ["--yes"]):
            refused = self.guard("drop", self.orders, *words, code=64)
            self.assertIn("tables are under this guard", refused.stderr)
        self.guard("unprotect", "orders", "--yes")
        self.assertIn("would drop", self.guard("drop", self.orders, "--dry-run").stdout)
        self.guard("status", self.orders)
        self.assertIn("dropped: ", self.guard("drop", self.orders, "--yes").stdout)
        self.guard("status", self.orders, code=64)

    def test_mistakes_are_named(self):
        self.assertIn("there is no guard", self.guard("status", "nothing", code=64).stderr)
        self.assertIn("unknown resource", self.guard("max", "nothing", code=64).stderr)
        self.assertIn("defaults_file", self.guard("status", code=64, dsn="password=secret7").stderr)
        self.assertNotIn("secret7", self.guard("status", code=64, dsn="password=secret7").stderr)
        self.guard("status", code=69, dsn="host=127.0.0.1 port=1 user=root")
        rows(self.connect(), f"CREATE USER poor_{self.db}@localhost")
        self.guard(
            "mode", self.orders, "shadow", code=77, dsn=self.server.dsn(user=f"poor_{self.db}")
        )


if __name__ == "__main__":
    main()
