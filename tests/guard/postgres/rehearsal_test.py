"""A rehearsal changes nothing: neither `pawl guard … --dry-run` nor pawl.rehearse_…(), and a mode
that is rolled back was never set."""

import os
import subprocess

from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import rows

LINES = "CREATE TABLE lines (id int PRIMARY KEY, customer int NOT NULL, n int DEFAULT 0)"


class Rehearsal(OrdersCase):
    def setUp(self):
        super().setUp()
        self.sql(LINES)
        self.protect(require_token=False)
        self.protect(table="lines", require_token=False, by="customer")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.sql("SELECT pawl.advance('lines:7', 100)")

    def everything(self):
        """What a rehearsal must leave as it is, with the marks that old snapshots look at."""
        marks = self.sql(
            "SELECT s.sequencename, s.last_value FROM pg_sequences s WHERE s.schemaname = 'pawl' "
            "AND s.sequencename !~ '^guard_id' ORDER BY 1"
        )
        tables = ("guard", "protected", "keyed_fence", "done", "audit", "acknowledged")
        kept = {
            table: self.sql(f"SELECT t::text FROM pawl.{table} t ORDER BY 1") for table in tables
        }
        return self.sql("SELECT s::text FROM pawl.status s ORDER BY 1"), marks, kept

    def assertChangesNothing(self, *words, code=0):
        before = self.everything()
        done = subprocess.run(
            [os.environ["PAWL"], "guard", *words, "--dry-run"],
            env={**os.environ, "PAWL_GUARD_DSN": self.cluster.dsn(self.db)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(self.everything(), before, words)
        return done

    def test_a_dry_run_leaves_the_status_equal_for_every_verb(self):
        self.sql("CREATE TABLE fresh (id int PRIMARY KEY)")
        for words in (
            ("install", "postgres"),
            ("uninstall", "postgres"),
            ("protect", "postgres", "fresh"),
            ("protect", "postgres", "fresh", "--key", "id"),
            ("unprotect", "postgres", "orders"),
            ("mode", "postgres", "orders", "observe"),
            ("mode", "postgres", "orders", "canary", "--percent", "10"),
            ("policy", "postgres", "orders", "--require-token", "on"),
            ("policy", "postgres", "orders", "--equal", "once"),
            ("advance", "postgres", "orders", "50"),
            ("advance", "postgres", "lines:7", "150"),
            ("compact", "postgres", "lines", "--below", "5000"),
            ("compact", "postgres", "orders", "--below", "34"),
        ):
            with self.subTest(words=words):
                self.assertChangesNothing(*words)

    def test_a_rehearsed_compact_leaves_live_holders_alone(self):
        done = self.assertChangesNothing("compact", "postgres", "lines", "--below", "5000")
        self.assertIn("would compact", done.stdout)
        self.under(100, "INSERT INTO lines VALUES (1, 7)", resource="lines:7")

    def test_a_rehearsed_mode_leaves_the_emergency_switch_on(self):
        self.sql("SELECT pawl.emergency('page 7')")
        self.assertChangesNothing("mode", "postgres", "orders", "enforce")
        self.assertTrue(self.status()["emergency"])

    def test_a_mode_that_is_rolled_back_leaves_the_emergency_switch_on(self):
        self.sql("SELECT pawl.emergency('page 7')")
        with self.connect() as db:
            rows(db, "SELECT pawl.set_mode('orders', 'enforce')")
            db.rollback()
        self.assertTrue(self.status()["emergency"])
        self.under(33, "UPDATE orders SET n = 1")
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        self.assertRefused("PW002", self.under, 33, "UPDATE orders SET n = 1")
        self.sql("SELECT pawl.emergency('page 8')")  # And it can be pulled again.
        self.under(33, "UPDATE orders SET n = 1")

    def test_a_rehearsal_that_is_committed_changes_nothing(self):
        before = self.everything()
        for call in (
            "rehearse_mode('orders', 'observe')",
            "rehearse_policy('orders', require_token => true, equal => 'once')",
        ):
            self.sql(f"SELECT pawl.{call}")
        self.assertEqual(self.value("SELECT pawl.rehearse_compact('lines', 5000)"), 1)
        self.assertEqual(self.everything(), before)

    def test_a_rehearsal_fails_as_the_change_would(self):
        for call in (
            "rehearse_mode('orders', 'strict')",
            "rehearse_mode('orders', 'canary')",
        ):
            self.assertRefused("22023", self.sql, f"SELECT pawl.{call}")
        self.assertRefused("PW004", self.sql, "SELECT pawl.rehearse_mode('nobody', 'enforce')")
        self.assertRefused("PW003", self.sql, "SELECT pawl.rehearse_compact('lines', 0)")
        self.assertRefused("PW005", self.sql, f"SELECT pawl.rehearse_compact('lines', {2**50})")


if __name__ == "__main__":
    postgres.main()
