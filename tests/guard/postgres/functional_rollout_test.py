"""The modes of a guard, what it counts and reports, and the privileges to change it. Design rule
16: a refused token moves no fence, in any mode."""

import json
import re
import threading

from later import Later
from orders_case import OrdersCase
from pawltest import ROOT, postgres
from pawltest.postgres import rows

EXPORTER = ROOT / "deploy/prometheus/pawl.postgres_exporter.yml"
TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class Modes(OrdersCase):
    def test_observe_refuses_nothing_and_keeps_the_fence_correct(self):
        self.protect(mode="observe", require_token=False)
        self.write()
        self.assertEqual(self.under(34, TOUCH), "admitted")
        self.assertEqual(self.under(33, TOUCH), "stale")
        self.assertEqual(self.under(35 + 2**44, TOUCH), "ahead")
        self.carrying("nonsense", TOUCH)
        self.assertEqual((self.n(), self.fence()), (5, 34))
        status = self.status()
        self.assertEqual(
            [status[c] for c in ("missing", "stale", "ahead", "malformed", "would_refuse")],
            [1, 1, 1, 1, 0],
        )

    def test_shadow_counts_what_enforce_would_refuse(self):
        self.protect(mode="shadow", require_token=False)
        self.write()
        self.under(34, TOUCH)
        self.under(33, TOUCH, TOUCH, TOUCH)  # One transaction, counted once.
        self.carrying(32, TOUCH)
        self.assertEqual((self.n(), self.fence()), (6, 34))
        status = self.status()
        self.assertEqual([status[c] for c in ("missing", "stale", "would_refuse")], [1, 2, 2])
        self.sql("SELECT pawl.set_policy('orders', require_token => true)")
        self.write()
        self.assertEqual(self.status()["would_refuse"], 3)

    def test_exporter_query_counts_each_verdict(self):
        self.protect(mode="enforce")
        self.assertEqual(self.under(34, TOUCH), "admitted")
        self.assertRefused("PW002", self.under, 33, TOUCH)
        self.sql(
            "DO $$ BEGIN IF to_regrole('exporter') IS NULL THEN CREATE ROLE exporter LOGIN; END "
            "IF; END $$",
            on=self.admin,
        )
        query = re.search(r"query: >-\n(.*?)\n  metrics:", EXPORTER.read_text(), re.S)[1]
        with self.connect(user="exporter").cursor() as cursor:
            cursor.execute(query)
            self.assertEqual(
                [column.name for column in cursor.description],
                ["guard", "verdict", "decisions_total"],
            )
            counts = {(guard, verdict): count for guard, verdict, count in cursor.fetchall()}
        self.assertEqual(counts[("orders", "stale")], 1)
        self.assertEqual(counts[("orders", "missing")], 0)

    def test_advance_is_not_refused_in_observe_and_shadow(self):
        self.protect(mode="shadow")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.assertEqual(self.value("SELECT pawl.advance('orders', 33)"), 34)
        self.assertEqual((self.fence(), self.status()["would_refuse"]), (34, 1))

    def test_canary_refuses_a_stable_share_of_resources(self):
        self.sql("SELECT pawl.create_guard('c', keyed => true)")
        keys = [f"c:{i}" for i in range(200)]
        for key in keys:
            self.sql("SELECT pawl.advance(%s, 34)", key, on=self.admin)

        def refused(percent):
            self.sql("SELECT pawl.set_mode('c', 'canary', %s)", percent, on=self.admin)
            return {key for key in keys if self.is_refused(key)}

        ten, again, half = refused(10), refused(10), refused(50)
        self.assertEqual(ten, again)
        self.assertTrue(0 < len(ten) < len(half) < 200, (len(ten), len(half)))
        self.assertLess(ten, half)  # More of them, not others.
        self.assertEqual(refused(100), set(keys))

    def is_refused(self, resource):
        try:
            return self.value("SELECT pawl.admit(%s, 33)", resource, on=self.admin) != "stale"
        except postgres.psycopg2.Error as error:
            self.assertEqual(error.pgcode, "PW002")
            return True

    def test_enforce_without_require_token_lets_tokenless_writers_pass(self):
        self.protect(require_token=False)
        self.write()
        self.under(34, TOUCH)
        self.assertRefused("PW002", self.under, 33, TOUCH)
        self.assertEqual((self.n(), self.status()["missing"]), (2, 1))

    def test_stricter_mode_waits_for_transactions_let_through(self):
        self.protect(mode="shadow", require_token=False)
        self.sql("SELECT pawl.advance('orders', 34)")
        old = self.connect()
        rows(old, "SET LOCAL pawl.token.orders = 33")
        rows(old, TOUCH)
        change = Later(
            self.admin,
            self.connect(autocommit=True),
            rows,
            "SELECT pawl.set_mode('orders', 'enforce')",
        )
        self.assertTrue(change.waits())
        old.commit()
        change.result()
        self.assertRefused("PW002", self.under, 33, TOUCH)

    def test_stricter_mode_does_not_wait_for_admitted_transactions(self):
        self.protect(mode="shadow")
        self.sql("SELECT pawl.advance('orders', 34)")
        holder = self.connect()
        rows(holder, "SELECT pawl.use('orders', 34)")
        rows(holder, TOUCH)
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        holder.commit()
        self.assertEqual(self.n(), 1)

    def test_mode_change_timeout_names_the_blocker(self):
        self.protect(mode="shadow", require_token=False)
        old = self.connect(application_name="legacy")
        rows(old, TOUCH)
        error = self.assertRefused("PW007", self.sql, "SELECT pawl.set_mode('orders', 'enforce')")
        self.assertIn("application_name='legacy'", error.diag.message_detail)
        self.assertEqual(self.status()["mode"], "shadow")

    def test_old_snapshot_does_not_use_the_old_policy(self):
        self.protect(mode="shadow", require_token=False)
        self.sql("SELECT pawl.advance('orders', 34)")
        early = self.connect(isolation="repeatable read")
        rows(early, "SELECT 1")
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        rows(early, "SET LOCAL pawl.token.orders = 33")
        self.assertRefused("40001", rows, early, TOUCH)

    def test_emergency_takes_effect_despite_an_open_mode_change(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")
        early = self.connect(isolation="repeatable read")
        rows(early, "SELECT 1")
        stuck = self.connect()
        rows(stuck, "SELECT pawl.set_policy('orders', max_step => 2199023255552)")
        self.assertEqual(self.value("SELECT pawl.emergency('page 7')"), 1)
        stuck.rollback()
        rows(early, "SET LOCAL pawl.token.orders = 33")
        rows(early, "UPDATE orders SET n = 5 WHERE id = 1")
        early.rollback()
        self.under(33, TOUCH)
        self.assertEqual(
            (self.status()["mode"], self.status()["emergency"], self.n()), ("shadow", True, 1)
        )
        self.assertIn(
            "the emergency switch is on: nothing is refused", [p[3] for p in self.problems()]
        )
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        self.assertRefused("PW002", self.under, 33, TOUCH)
        self.assertEqual(self.problems(), [])

    def test_an_emergency_that_was_rolled_back_is_named_and_audited(self):
        self.protect()
        db = self.connect()
        rows(db, "SELECT pawl.emergency('page 7')")
        db.rollback()
        (problem,) = [p[3] for p in self.problems()]
        self.assertRegex(problem, "emergency switch is on.*by postgres, whose transaction was")
        audited = "SELECT login, reason FROM pawl.audit WHERE what = 'emergency'"
        self.assertEqual(self.sql(audited), [])
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        ((login, reason),) = self.sql(audited)
        self.assertEqual(login, "postgres")
        self.assertIn("rolled back", reason)

    def test_acknowledged_errors_are_warnings(self):
        self.protect(mode="observe", require_token=False)
        self.sql("ALTER TABLE orders DISABLE TRIGGER pawl_guard")
        self.assertEqual([p[0] for p in self.problems()], ["error"])
        self.sql("SELECT pawl.acknowledge('orders', 'for a test')")
        ((severity, _, _, problem),) = self.problems()
        self.assertEqual(severity, "warning")
        self.assertIn("(acknowledged by postgres: for a test)", problem)
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")

    def test_emergency_reaches_every_guard_or_the_one_named(self):
        for name in ("a", "b"):
            self.sql("SELECT pawl.create_guard(%s)", name)
            self.sql("SELECT pawl.set_mode(%s, 'enforce')", name)
        self.assertEqual(self.value("SELECT pawl.emergency('x', 'a')"), 1)
        self.assertEqual([self.status(g)["mode"] for g in "ab"], ["shadow", "enforce"])
        self.assertEqual(self.value("SELECT pawl.emergency('x')"), 1)
        self.assertRefused("PW004", self.sql, "SELECT pawl.emergency('x', 'nobody')")

    def test_modes_and_policies_out_of_range_change_nothing(self):
        self.protect(mode="observe")
        before = self.status()
        for call in (
            "set_mode('orders', 'strict')",
            "set_mode('orders', NULL)",
            "set_mode('orders', 'canary')",
            "set_mode('orders', 'canary', 0)",
            "set_mode('orders', 'canary', 101)",
            "set_mode('orders', 'enforce', 5)",
        ):
            with self.subTest(call=call):
                self.assertRefused("22023", self.sql, f"SELECT pawl.{call}")
        for call in ("max_step => 5", "equal => 'perhaps'", "bare_token => 'maybe'"):
            with self.subTest(call=call):
                self.assertRefused("23514", self.sql, f"SELECT pawl.set_policy('orders', {call})")
        self.assertRefused("PW004", self.sql, "SELECT pawl.set_mode('nobody', 'enforce')")
        self.assertEqual(self.status(), before)

    def test_every_change_is_audited(self):
        self.protect(mode="observe", require_token=False)
        self.sql("SELECT pawl.set_mode('orders', 'canary', 10, 'first week')")
        self.sql(
            "SELECT pawl.set_policy('orders', require_token => true, reason => 'all clients new')"
        )
        self.sql("SELECT pawl.emergency('page 7')")
        self.assertEqual(
            self.sql(
                "SELECT what, before, after, reason, login FROM pawl.audit WHERE what IN ('mode', "
                "'emergency') ORDER BY at"
            ),
            [
                ("mode", "observe", "canary 10", "first week", "postgres"),
                ("emergency", "canary", "shadow", "page 7", "postgres"),
            ],
        )
        ((before, after),) = self.sql("SELECT before, after FROM pawl.audit WHERE what = 'policy'")
        self.assertIn("require_token=f", before)
        self.assertIn("require_token=t", after)


class Telling(OrdersCase):
    """Decisions leave traces although what they refused is rolled back."""

    def test_refusals_are_counted_remembered_and_logged(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")
        self.assertRefused("PW002", self.under, 33, TOUCH, application_name="frozen-worker")
        self.assertRefused("PW001", self.write, application_name="cron")
        status = self.status()
        self.assertEqual((status["stale"], status["missing"]), (1, 1))
        seen = self.sql(
            "SELECT guard, resource, verdict, token, max, mode, login, application_name FROM "
            "pawl.refusals ORDER BY at"
        )
        self.assertEqual(
            seen,
            [
                ("orders", "orders", "stale", 33, 34, "enforce", "postgres", "frozen-worker"),
                ("orders", "orders", "missing", None, 34, "enforce", "postgres", "cron"),
            ],
        )
        self.assertEqual(status["last_refusal"], self.value("SELECT max(at) FROM pawl.refusals"))
        (first, second) = [
            json.loads(line.split("pawl: refused ", 1)[1])
            for line in self.log_lines("pawl: refused ")
        ]
        self.assertEqual(
            (first["verdict"], first["token"], first["max"], first["application_name"]),
            ("stale", 33, 34, "frozen-worker"),
        )
        self.assertEqual(second["query"], TOUCH)

    def log_lines(self, prefix):
        return [
            line
            for line in self.cluster.log_text()[self._log_start :].splitlines()
            if prefix in line and "LOG:" in line
        ]

    def test_last_sixteen_refusals_are_kept(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 100)")
        for token in range(1, 21):
            self.assertRefused("PW002", self.sql, "SELECT pawl.admit('orders', %s)", token)
        self.assertEqual(
            [row[0] for row in self.sql("SELECT token FROM pawl.refusals ORDER BY at")],
            list(range(5, 21)),
        )
        self.assertEqual(self.status()["stale"], 20)

    def test_refusals_keep_unusual_names(self):
        self.sql("SELECT pawl.create_guard('k', keyed => true)")
        self.sql("SELECT pawl.set_mode('k', 'enforce')")
        self.sql("SELECT pawl.advance('k:Größe', 9)")
        db = self.connect(autocommit=True)
        rows(db, "SET application_name = ''")
        self.assertRefused("PW002", rows, db, "SELECT pawl.admit('k:Größe', 8)")
        self.assertEqual(
            self.sql("SELECT resource, application_name FROM pawl.refusals"), [("k:Gr??e", "")]
        )

    def test_shadow_logs_what_it_would_refuse(self):
        self.protect(mode="shadow")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.under(33, TOUCH)
        self.assertEqual(len(self.log_lines("pawl: would refuse ")), 1)
        self.assertEqual(self.sql("SELECT * FROM pawl.refusals"), [])

    def test_tokenless_writers_are_recorded_without_values(self):
        self.protect(mode="observe", require_token=False)
        db = self.connect(autocommit=True, application_name="billing")
        for i in range(5):
            rows(db, f"UPDATE orders SET n = {i} WHERE id = {i}  -- 'note {i}'")
        rows(db, "DELETE FROM orders WHERE id IN (7, 8, 9)")
        self.assertEqual(
            self.sql(
                "SELECT guard, login, application_name, statement, count FROM "
                "pawl.tokenless_writers ORDER BY statement"
            ),
            [
                ("orders", "postgres", "billing", "DELETE FROM orders WHERE id IN (?, …)", 1),
                ("orders", "postgres", "billing", "UPDATE orders SET n = ? WHERE id = ? -- ?", 1),
            ],
        )

    def test_recording_tokenless_writers_never_fails_with_40001(self):
        self.protect(mode="observe", require_token=False)
        start = threading.Barrier(4)
        errors = []

        def write(level, n):
            try:
                with self.cluster.connect(self.db, isolation=level, application_name=f"w{n}") as db:
                    rows(db, "SELECT 1")
                    start.wait()
                    rows(db, f"UPDATE orders SET n = n + 1 WHERE id = {n}")
            except Exception as error:
                errors.append(error)

        threads = [
            threading.Thread(target=write, args=(level, n))
            for n, level in enumerate(
                ("read committed", "repeatable read", "serializable", "repeatable read"), 1
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(
            self.value("SELECT count(DISTINCT application_name) FROM pawl.sightings"), 4
        )

    def test_set_role_and_login_are_recorded_separately(self):
        self.cluster.psql("CREATE ROLE batch; GRANT ALL ON orders TO batch", self.db)
        self.protect(mode="observe", require_token=False)
        db = self.connect(autocommit=True)
        rows(db, "SET ROLE batch")
        rows(db, TOUCH)
        self.assertEqual(
            self.sql("SELECT login, role FROM pawl.tokenless_writers"), [("postgres", "batch")]
        )
        self.cluster.psql("REVOKE ALL ON orders FROM batch; DROP ROLE batch", self.db)


class Readiness(OrdersCase):
    def readiness(self):
        return self.sql("SELECT ready, because FROM pawl.readiness('orders')", on=self.admin)[0]

    def test_readiness_lists_what_is_missing_at_each_step(self):
        self.protect(mode="observe", require_token=False)
        ready, because = self.readiness()
        self.assertFalse(ready)
        self.assertEqual(
            because,
            [
                "the mode is observe, which judges nothing: run in shadow first",
                "no token has been seen yet: nobody writes with one",
            ],
        )
        self.write(application_name="billing")
        self.under(34, TOUCH)
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.write(application_name="billing")
        ((first, *rest),) = [self.readiness()[1]]
        self.assertRegex(
            first,
            "^billing as postgres writes without a token: UPDATE orders SET n = n [+] . WHERE id "
            "= .",
        )
        self.assertEqual(rest, [])
        self.under(33, TOUCH)
        self.assertIn("1 writes would have been refused since", self.readiness()[1][-1])
        # What came before has been dealt with.
        self.sql("SELECT pawl.set_mode('orders', 'canary', 10)")
        self.assertEqual(self.readiness(), (True, []))
        self.sql("ALTER TABLE orders DISABLE TRIGGER pawl_guard")
        self.assertEqual(
            self.readiness(),
            (False, ["public.orders: the trigger pawl_guard is disabled: writes are not judged"]),
        )


if __name__ == "__main__":
    postgres.main()
