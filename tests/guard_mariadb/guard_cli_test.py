#!/usr/bin/python3
"""`pawl guard … mariadb` on a real server: from nothing to refused writes, and what goes wrong."""

import json
import os
import subprocess

from maria_cluster import GUARD, ServerCase, call, main, rows

PAWL = os.environ["PAWL"]


class GuardCliTest(ServerCase):
    def pawl(self, *words, code=0, dsn=None):
        done = subprocess.run([PAWL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PAWL_GUARD_DSN": dsn or self.server.dsn(database=self.db)})
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "mariadb", *words, **options)

    def test_from_nothing_to_refused_writes(self):
        self.server.client(GUARD.with_name("uninstall.sql").read_text(encoding="utf-8"))
        self.assertIn("pawl guard install mariadb", self.guard("status", code=64).stderr)
        self.assertIn("would install guard 0.1.0", self.guard("install", "--dry-run").stdout)
        self.assertIn("no guard is installed", self.guard("status", code=64).stderr)
        self.assertIn("installed: guard 0.1.0", self.guard("install").stdout)
        self.assertIn("would put", self.guard("protect", "orders", "--dry-run").stdout)
        self.assertIn(f"under guard {self.orders}, mode observe", self.guard("protect", "orders").stdout)
        self.guard("mode", self.orders, "shadow")
        rows(self.connect(), "UPDATE orders SET n = 4711")
        status = json.loads(self.guard("status", self.orders, "--json").stdout)
        self.assertFalse(status["guards"][0]["ready"])
        self.assertEqual([seen["statement"] for seen in status["tokenless_writers"]], ["UPDATE orders SET n = ?"])
        self.assertIn("no token has been seen yet", self.guard("status").stdout)
        self.assertIn("needs --yes", self.guard("mode", self.orders, "enforce", code=64).stderr)
        self.guard("mode", self.orders, "enforce", "--yes", "--reason", "test")
        self.guard("policy", self.orders, "--require-token", "on")
        self.assertRefused("PW001", rows, self.connect(), "UPDATE orders SET n = 1")
        self.guard("emergency", "--reason", "test")
        rows(self.connect(), "UPDATE orders SET n = 1")
        self.assertIn("healthy", self.guard("check").stdout)

    def test_install_upgrades_in_place_and_keeps_the_fence(self):
        self.protect()
        self.guard("advance", self.orders, "41")
        self.assertIn("there was 0.1.0", self.guard("install").stdout)
        self.assertEqual(self.guard("max", self.orders).stdout, "41\n")
        self.assertIn("41", self.guard("advance", self.orders, "40", code=121).stderr)

    def test_a_rehearsal_changes_nothing(self):
        self.protect()
        self.guard("mode", self.orders, "shadow", "--dry-run")
        self.guard("policy", self.orders, "--require-token", "on", "--dry-run")
        self.guard("unprotect", "orders", "--dry-run")
        self.guard("uninstall", "--dry-run")
        status = json.loads(self.guard("status", self.orders, "--json").stdout)["guards"][0]
        self.assertEqual((status["mode"], status["require_token"], status["tables"]), ("enforce", False, [self.orders]))

    def test_advance_says_that_an_older_write_is_open(self):
        self.protect()
        old = self.connect(isolation="READ COMMITTED")
        rows(old, "START TRANSACTION")
        call(old, "use", self.orders, 33)
        self.assertIn("waits for older transactions", self.guard("advance", self.orders, "34", "--wait", "1s", code=75).stderr)
        self.assertIn("KILL", self.guard("advance", self.orders, "34", "--wait", "1s", "--evict", code=64).stderr)
        rows(old, "COMMIT")
        self.guard("advance", self.orders, "34")

    def test_check_names_accounts_that_may_truncate(self):
        self.protect()
        rows(self.connect(), f"CREATE USER drop_{self.db}@localhost")
        rows(self.connect(), f"GRANT DROP ON {self.db}.* TO drop_{self.db}@localhost")
        self.addCleanup(lambda: rows(self.server.connect(), f"DROP USER drop_{self.db}@localhost"))
        found = json.loads(self.guard("check", "--json", code=1).stdout)
        self.assertTrue(any(f"drop_{self.db}" in problem["problem"] and "REVOKE DROP" in problem["fix"] for problem in found["problems"]), found)

    def test_mistakes_are_named(self):
        self.assertIn("there is no guard", self.guard("status", "nothing", code=64).stderr)
        self.assertIn("unknown resource", self.guard("max", "nothing", code=64).stderr)
        self.assertIn("defaults_file", self.guard("status", code=64, dsn="password=secret7").stderr)
        self.assertNotIn("secret7", self.guard("status", code=64, dsn="password=secret7").stderr)
        self.guard("status", code=69, dsn="host=127.0.0.1 port=1 user=root")
        rows(self.connect(), f"CREATE USER poor_{self.db}@localhost")
        self.guard("mode", self.orders, "shadow", code=77, dsn=self.server.dsn(user=f"poor_{self.db}"))


if __name__ == "__main__":
    main()
