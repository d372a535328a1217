"""What a static guard of PostgreSQL answers: every verdict, every way to write, every isolation
level. Hard cases 1, 54, 55, 56."""

import io

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, detail, rows

TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class Verdicts(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect()

    def test_write_without_a_token_is_missing(self):
        error = self.assertRefused("PW001", self.write)
        self.assertEqual(
            detail(error), {"token": "none", "max": "none", "mode": "enforce", "resource": "orders"}
        )
        self.assertEqual(self.n(), 0)

    def test_first_token_is_admitted_however_great(self):
        self.assertEqual(self.under(9007199254740991, TOUCH), "admitted")
        self.assertEqual((self.fence(), self.n()), (9007199254740991, 1))

    def test_a_holder_writes_many_times_under_one_token(self):
        for _ in range(3):
            self.assertEqual(self.under(34, TOUCH, TOUCH), "admitted")
        self.assertEqual((self.fence(), self.n()), (34, 6))

    def test_smaller_token_is_stale_with_details(self):
        self.under(34, TOUCH)
        error = self.assertRefused("PW002", self.under, 33, TOUCH)
        self.assertEqual(
            detail(error), {"token": "33", "max": "34", "mode": "enforce", "resource": "orders"}
        )
        for part in (
            "a retry cannot succeed",
            "a holder of another lock writes here",
            "pawl raise 34",
        ):
            self.assertIn(part, error.diag.message_hint)
        self.assertRefused("PW002", self.carrying, 33, TOUCH)
        self.assertEqual((self.fence(), self.n()), (34, 1))

    def test_a_token_too_far_ahead_is_refused_and_moves_nothing(self):
        self.under(34, TOUCH)
        error = self.assertRefused("PW005", self.under, 35 + 2**44, TOUCH)
        self.assertEqual(detail(error)["max"], "34")
        self.assertEqual((self.fence(), self.n()), (34, 1))
        self.assertEqual(self.under(34 + 2**44, TOUCH), "admitted")

    def test_invalid_token_is_malformed_and_moves_nothing(self):
        for token in (0, -1, 2**53, -(2**63), 2**63 - 1, None):
            with self.subTest(token=token):
                self.assertRefused("PW003", self.under, token, TOUCH)
                self.assertRefused("PW003", self.sql, "SELECT pawl.admit('orders', %s)", token)
                self.assertRefused("PW003", self.sql, "SELECT pawl.advance('orders', %s)", token)
        for spelled in (
            "0",
            "-1",
            "+1",
            " 34",
            "34 ",
            "034",
            "3.0",
            "1e3",
            "abc",
            "9007199254740992",
            "99999999999999999999",
        ):
            with self.subTest(spelled=spelled):
                self.assertRefused("PW003", self.carrying, spelled, TOUCH)
        self.assertEqual((self.fence(), self.n()), (None, 0))

    def test_an_unknown_resource_is_named(self):
        for resource in ("nobody", "orders:7", "", None):
            with self.subTest(resource=resource):
                self.assertRefused("PW004", self.under, 34, resource=resource)
                self.assertRefused("PW004", self.sql, "SELECT pawl.fence(%s)", resource)
                self.assertRefused("PW004", self.sql, "SELECT pawl.advance(%s, 34)", resource)

    def test_admit_checks_without_setting_a_token(self):
        with self.connect() as db:
            self.assertEqual(rows(db, "SELECT pawl.admit('orders', 34)"), [("admitted",)])
            self.assertRefused("PW001", rows, db, TOUCH)
        self.assertEqual(self.fence(), 34)
        self.assertRefused("PW002", self.sql, "SELECT pawl.admit('orders', 33)")

    def test_advance_returns_the_fence_before(self):
        self.assertEqual(
            [self.value("SELECT pawl.advance('orders', %s)", t) for t in (34, 34, 40)],
            [None, 34, 34],
        )
        self.assertEqual(
            detail(self.assertRefused("PW002", self.sql, "SELECT pawl.advance('orders', 39)"))[
                "max"
            ],
            "40",
        )
        self.assertRefused("PW005", self.sql, "SELECT pawl.advance('orders', %s)", 41 + 2**44)

    def test_advance_leaves_the_callers_settings_as_they_were(self):
        with self.connect() as db:
            rows(db, "SET lock_timeout = '7s'")
            rows(db, "SELECT pawl.advance('orders', 34)")
            self.assertEqual(rows(db, "SHOW lock_timeout"), [("7s",)])

    def test_token_ends_with_its_transaction(self):
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 34)")
        rows(db, TOUCH)
        db.commit()
        self.assertRefused("PW001", rows, db, TOUCH)
        db.rollback()
        rows(db, "SET LOCAL pawl.token.orders = 34")
        rows(db, TOUCH)
        db.rollback()
        self.assertRefused("PW001", rows, db, TOUCH)

    def test_rolled_back_savepoint_drops_its_token(self):
        with self.connect() as db:
            rows(db, "SAVEPOINT s")
            rows(db, "SELECT pawl.use('orders', 34)")
            rows(db, "ROLLBACK TO s")
            self.assertRefused("PW001", rows, db, TOUCH)

    def test_released_savepoint_keeps_its_token(self):
        with self.connect() as db:
            rows(db, "SAVEPOINT s")
            rows(db, "SELECT pawl.use('orders', 34)")
            rows(db, "RELEASE s")
            rows(db, TOUCH)
        self.assertEqual(self.n(), 1)

    def test_rolled_back_raise_stays(self):
        with self.connect() as db:
            rows(db, "SELECT pawl.use('orders', 35)")
            db.rollback()
        self.assertRefused("PW002", self.under, 34, TOUCH)

    def test_two_guards_in_one_transaction_have_a_token_each(self):
        self.sql("CREATE TABLE other (n int)")
        self.protect(table="other")
        with self.connect() as db:
            rows(db, "SELECT pawl.use('orders', 34)")
            self.assertRefused("PW001", rows, db, "INSERT INTO other VALUES (1)")
        self.under(34, "SELECT pawl.use('other', 9)", "INSERT INTO other VALUES (1)", TOUCH)
        self.assertEqual((self.fence(), self.fence("other")), (34, 9))

    def test_two_tables_may_share_a_guard(self):
        self.sql("CREATE TABLE lines (n int)")
        error = self.assertRefused("42710", self.sql, "SELECT pawl.protect('lines', 'orders')")
        self.assertIn("would be in that mode at once", error.diag.message_primary)
        self.assertIn("mode => 'enforce'", error.diag.message_hint)
        self.protect(table="lines", guard="orders", require_token=False)
        self.under(34, TOUCH, "INSERT INTO lines VALUES (1)")
        self.assertRefused("PW001", self.write, "INSERT INTO lines VALUES (1)")
        self.assertEqual(self.status()["tables"], ["public.lines", "public.orders"])

    def test_several_resources_are_admitted_together_or_not_at_all(self):
        self.sql("SELECT pawl.create_guard('mail')")
        self.sql("SELECT pawl.set_mode('mail', 'enforce')")
        self.assertEqual(self.under(34, TOUCH, resource=["mail", "orders"]), "admitted")
        self.assertEqual((self.fence("mail"), self.fence()), (34, 34))
        self.sql("SELECT pawl.advance('orders', 36)")
        self.assertRefused("PW002", self.under, 35, resource=["mail", "orders"])
        self.assertRefused("PW004", self.under, 36, resource=[])
        self.assertRefused("PW004", self.under, 36, resource=["mail", "nobody"])
        self.assertRefused("PW003", self.under, 0, resource=["mail", "orders"])

    def test_refusal_of_one_resource_moves_no_fence(self):
        for guard in "ab":
            self.sql("SELECT pawl.create_guard(%s)", guard)
            self.sql("SELECT pawl.set_mode(%s, 'enforce')", guard)
        self.sql("SELECT pawl.create_guard('k', keyed => true)")
        self.sql("SELECT pawl.set_mode('k', 'enforce')")
        for refusing in ("b", "k:1"):
            with self.subTest(refusing=refusing):
                self.sql("SELECT pawl.advance(%s, 50)", refusing)
                self.assertRefused(
                    "PW002", self.under, 49, resource=["a", refusing, "k:2", "orders"]
                )
                self.assertEqual(
                    [self.fence(r) for r in ("a", "k:2", "orders")], [None, None, None]
                )
        self.sql("SELECT pawl.set_policy('b', equal => 'refuse')")
        self.under(50, resource="b")
        self.assertRefused("PW002", self.under, 50, resource=["a", "b"])
        self.assertEqual(self.fence("a"), None)

    def test_the_bare_token_is_ignored_unless_the_policy_accepts_it(self):
        self.assertRefused("PW001", self.carrying, 34, TOUCH, setting="pawl.token")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.sql("SELECT pawl.set_policy('orders', bare_token => 'accept')")
        self.carrying(34, TOUCH, setting="pawl.token")
        self.assertRefused("PW002", self.carrying, 33, TOUCH, setting="pawl.token")
        self.assertEqual(self.n(), 1)

    def test_guard_with_any_name_has_a_setting(self):
        self.sql('CREATE TABLE "Größe 7" (n int)')
        guard = self.protect(table='"Größe 7"')
        self.assertEqual(guard, "Größe 7")
        self.under(34, 'INSERT INTO "Größe 7" VALUES (1)', resource=guard)
        self.carrying(34, 'INSERT INTO "Größe 7" VALUES (1)', setting=self.status(guard)["setting"])
        self.assertRefused("PW001", self.write, 'INSERT INTO "Größe 7" VALUES (1)')

    def test_a_table_outside_public_is_named_with_its_schema(self):
        self.sql("CREATE SCHEMA sales; CREATE TABLE sales.orders (n int)")
        self.assertEqual(self.protect(table="sales.orders"), "sales.orders")
        self.sql("SELECT pawl.advance('sales.orders', 34)")
        self.carrying(34, "INSERT INTO sales.orders VALUES (1)", setting="pawl.token.sales.orders")
        self.assertRefused("PW001", self.write, "INSERT INTO sales.orders VALUES (1)")


class Readers(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")

    def check(self, resource, token, on=None):
        return self.sql(
            "SELECT verdict, token, max, mode, would_refuse FROM pawl.check(%s, %s)",
            resource,
            token,
            on=on or self.admin,
        )[0]

    def test_check_predicts_the_verdict_without_error(self):
        self.assertEqual(self.check("orders", 34), ("admitted", 34, 34, "enforce", False))
        self.assertEqual(self.check("orders", 35), ("admitted", 35, 34, "enforce", False))
        self.assertEqual(self.check("orders", 33), ("stale", 33, 34, "enforce", True))
        self.assertEqual(
            self.check("orders", 35 + 2**44), ("ahead", 35 + 2**44, 34, "enforce", True)
        )
        self.assertEqual(self.check("orders", None), ("missing", None, 34, "enforce", True))
        self.assertEqual(self.check("orders", 0)[0], "malformed")
        self.assertEqual(self.check("nobody", 1), ("unknown", 1, None, None, True))
        self.assertEqual(self.check(None, None)[0], "unknown")
        self.assertEqual(self.fence(), 34)

    def test_read_only_transaction_can_check(self):
        with self.connect() as db:
            rows(db, "SET TRANSACTION READ ONLY")
            self.assertEqual(self.check("orders", 33, on=db)[0], "stale")
            self.assertEqual(rows(db, "SELECT pawl.use('orders', 34)"), [("admitted",)])
            rows(db, "SAVEPOINT s")
            self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders', 33)")
            rows(db, "ROLLBACK TO s")
            self.assertRefused("25006", rows, db, "SELECT pawl.use('orders', 35)")
            rows(db, "ROLLBACK TO s")
            self.assertRefused("25006", rows, db, "SELECT pawl.advance('orders', 35)")
        self.assertEqual(self.fence(), 34)


class EveryWayToWrite(OrdersCase):
    """Each is refused without a token, and passes with one."""

    def setUp(self):
        super().setUp()
        self.cluster.psql(
            """
            CREATE TABLE customers (id int PRIMARY KEY); INSERT INTO customers SELECT generate_series(0, 2);
            ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE;
            CREATE VIEW recent AS SELECT * FROM orders WHERE id > 3;
            CREATE FUNCTION touch() RETURNS void LANGUAGE sql AS 'UPDATE public.orders SET n = n + 1'""",
            self.db,
        )
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")

    WAYS = {
        "insert": "INSERT INTO orders VALUES (10)",
        "update": TOUCH,
        "update of no row": "UPDATE orders SET n = 1 WHERE false",
        "delete": "DELETE FROM orders WHERE id = 1",
        "truncate": "TRUNCATE orders",
        "truncate cascade": "TRUNCATE customers CASCADE",
        "on conflict": "INSERT INTO orders VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 5",
        "on conflict do nothing": "INSERT INTO orders VALUES (1) ON CONFLICT DO NOTHING",
        "merge": "MERGE INTO orders o USING (VALUES (1), (77)) v(id) ON o.id = v.id WHEN MATCHED THEN UPDATE SET n = 9 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)",
        "cte": "WITH gone AS (DELETE FROM orders WHERE id = 2 RETURNING *) SELECT count(*) FROM gone",
        "view": "UPDATE recent SET n = 3",
        "function": "SELECT touch()",
        "cascading delete": "DELETE FROM customers WHERE id = 1",
        "cascading update": "UPDATE customers SET id = 8 WHERE id = 1",
    }

    # From PostgreSQL 17 on.
    MERGE_INTO_VIEW = (
        "MERGE INTO recent o USING (VALUES (4), (77)) v(id) ON o.id = v.id WHEN MATCHED THEN UPDATE SET n = 9 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)"
    )

    def test_every_writing_statement_is_checked(self):
        newer = self.admin.server_version >= 170000
        ways = {**self.WAYS, **({"merge into a view": self.MERGE_INTO_VIEW} if newer else {})}
        for name, sql in ways.items():
            with self.subTest(way=name):
                self.assertRefused("PW001", self.write, sql)
                self.assertRefused("PW002", self.carrying, 33, sql)
                with self.connect() as db:
                    rows(db, "SELECT pawl.use('orders', 34)")
                    rows(db, sql)
                    db.rollback()

    def test_copy_is_checked(self):
        with self.connect() as db, db.cursor() as cursor:
            self.assertRefused("PW001", cursor.copy_from, io.StringIO("20\t1\t0\n"), "orders")
        with self.connect() as db, db.cursor() as cursor:
            cursor.execute("SELECT pawl.use('orders', 34)")
            cursor.copy_from(io.StringIO("20\t1\t0\n"), "orders")
        self.assertEqual(self.n(20), 0)

    def test_prepared_statement_is_checked_each_time(self):
        db = self.connect(autocommit=True)
        rows(db, f"PREPARE touch AS {TOUCH}")
        for _ in range(8):  # Beyond the switch to a generic plan.
            rows(db, "BEGIN")
            rows(db, "SELECT pawl.use('orders', 34)")
            rows(db, "EXECUTE touch")
            rows(db, "COMMIT")
            self.assertRefused("PW001", rows, db, "EXECUTE touch")
        self.assertEqual(self.n(), 8)

    def test_check_and_write_fit_into_one_message(self):
        with self.connect() as db:
            rows(db, f"SELECT pawl.use('orders', 34); {TOUCH}")
        self.assertEqual(self.n(), 1)

    def test_maintenance_needs_no_token_and_moves_no_row(self):
        """What the privilege MAINTAIN allows, from PostgreSQL 17 on; before, the owner."""
        before = self.sql("SELECT * FROM orders ORDER BY id")
        self.sql("CREATE ROLE keeper LOGIN")
        self.addCleanup(self.sql, "DROP OWNED BY keeper; DROP ROLE keeper")
        newer = self.admin.server_version >= 170000
        if newer:
            self.sql("GRANT MAINTAIN ON orders TO keeper")
        db = self.connect(user="keeper" if newer else "postgres", autocommit=True)
        for statement in (
            "VACUUM FULL orders",
            "ANALYZE orders",
            "REINDEX TABLE orders",
            "CLUSTER orders USING orders_pkey",
            "BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE; COMMIT",
        ):
            rows(db, statement)
        self.assertEqual(self.sql("SELECT * FROM orders ORDER BY id"), before)
        if newer:
            self.assertRefused("42501", rows, db, TOUCH)

    def test_reading_and_locking_rows_needs_no_token(self):
        self.assertEqual(len(self.sql("SELECT * FROM orders FOR UPDATE")), 9)


class Snapshots(OrdersCase):
    """Rule 3: what a new holder reads is not older than the last write of the holder before it."""

    SUM = "INSERT INTO orders SELECT 100, 1, sum(n) FROM orders"

    def setUp(self):
        super().setUp()
        self.sql("UPDATE orders SET n = 100 WHERE id = 1")
        self.protect()
        self.sql("SELECT pawl.advance('orders', 33)")
        self.old = self.connect()
        rows(self.old, "SELECT pawl.use('orders', 33)")
        rows(self.old, "UPDATE orders SET n = 7 WHERE id = 2")

    def later(self, session, sql, *values):
        return Later(self.admin, session, rows, sql, *values)

    def assertRetried(self, step):
        self.assertRefused("40001", step.result)

    def test_statement_that_raises_the_fence_fails_with_40001_once(self):
        new = self.connect()
        rows(new, "SET LOCAL pawl.token.orders = 34")
        step = self.later(new, self.SUM)
        self.assertTrue(step.waits())
        self.old.commit()
        self.assertRetried(step)
        self.assertEqual(self.fence(), 34)  # The raise is kept, so the retry passes.
        self.carrying(34, self.SUM)
        self.assertEqual(self.n(100), 107)

    def test_statement_that_waited_for_a_raise_fails_with_40001_once(self):
        sibling, new = self.connect(), self.connect()
        rows(new, "SET LOCAL pawl.token.orders = 34")
        raising = self.later(sibling, "SELECT pawl.use('orders', 34)")
        self.assertTrue(raising.waits())
        step = self.later(new, self.SUM)  # Its snapshot is older than the old holder's commit.
        self.assertTrue(step.waits())
        self.old.commit()
        self.assertEqual(raising.result(), [("admitted",)])
        sibling.commit()
        self.assertRetried(step)
        self.carrying(34, self.SUM)
        self.assertEqual(self.n(100), 107)

    def test_separate_use_statement_needs_no_retry(self):
        new = self.connect()
        step = self.later(new, "SELECT pawl.use('orders', 34)")
        self.assertTrue(step.waits())
        self.old.commit()
        self.assertEqual(step.result(), [("admitted",)])
        rows(new, self.SUM)
        new.commit()
        self.assertEqual(self.n(100), 107)

    def test_snapshot_older_than_the_raise_fails_with_40001(self):
        for level in ISOLATIONS[1:]:
            for carry in ("SELECT pawl.use('orders', 34)", "SET LOCAL pawl.token.orders = 34"):
                with self.subTest(level=level, carry=carry):
                    early = self.connect(isolation=level)
                    rows(early, "SELECT sum(n) FROM orders")
                    self.old.commit()
                    self.sql("SELECT pawl.advance('orders', 34)")
                    with self.assertRaises(Exception) as caught:
                        rows(early, carry)
                        rows(early, self.SUM)
                    self.assertEqual(caught.exception.pgcode, "40001")
                    early.rollback()
                    rows(early, carry)
                    rows(early, self.SUM)
                    early.rollback()
                    self.sql("SELECT setval('pawl.fence_1', 33)")  # For the next round.

    def test_fence_without_a_known_raiser_fails_closed_once(self):
        self.old.commit()
        for mark in (
            "setval('pawl.raiser_1', 4611686018427387999)",
            "setval('pawl.raiser_1', 4611686018427387904)",
            "setval('pawl.raiser_1', 1, false)",
        ):
            with self.subTest(mark=mark):
                self.sql(f"SELECT {mark}")
                db = self.connect(isolation="repeatable read")
                self.assertRefused("40001", rows, db, "SELECT pawl.use('orders', 33)")
                db.rollback()
                rows(db, "SELECT pawl.use('orders', 33)")
                rows(db, TOUCH)
                db.commit()


if __name__ == "__main__":
    postgres.main()
