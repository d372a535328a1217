"""A session that has used a token is no old program: what it writes without its token is refused
under enforce, also without require_token. And a transaction that reads old is not admitted."""

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, rows

TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class SessionsThatHaveUsedAToken(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect(require_token=False)
        self.sql("SELECT pawl.advance('orders', 33)")

    def test_use_outside_a_transaction_is_refused_and_says_what_to_write(self):
        db = self.connect(autocommit=True)
        for call in ("SELECT pawl.use('orders', 33)", "select * from pawl.use('orders', 34) ;"):
            error = self.assertRefused("PW006", rows, db, call)
            self.assertIn("BEGIN; SELECT pawl.use('orders', ", error.diag.message_hint)
        self.assertEqual(self.fence(), 33)
        self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders', 32)")

    def test_use_with_its_write_in_one_message_or_function_is_a_transaction(self):
        db = self.connect(autocommit=True)
        rows(db, f"SELECT pawl.use('orders', 34); {TOUCH}")
        rows(db, f"BEGIN; SELECT pawl.use('orders', 34); {TOUCH}; COMMIT")
        rows(db, f"DO $$ BEGIN PERFORM pawl.use('orders', 34); {TOUCH}; END $$")
        self.assertEqual(self.n(), 3)

    def test_a_write_after_use_in_another_transaction_is_refused(self):
        """As programs do in autocommit, over the extended protocol: use() cannot see that."""
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 33)")
        db.commit()
        self.sql("SELECT pawl.advance('orders', 34)")
        error = self.assertRefused("PW001", rows, db, TOUCH)
        self.assertIn("in a session that has used one", error.diag.message_primary)
        self.assertEqual(self.n(), 0)

    def test_a_write_after_a_refused_use_and_rollback_to_is_refused(self):
        self.sql("SELECT pawl.advance('orders', 34)")
        db = self.connect()
        rows(db, "SAVEPOINT s")
        self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders', 33)")
        rows(db, "ROLLBACK TO s")
        self.assertRefused("PW001", rows, db, TOUCH)
        self.assertEqual(self.n(), 0)

    def test_a_write_after_a_token_in_a_setting_is_refused(self):
        db = self.connect()
        rows(db, "SET LOCAL pawl.token.orders = 33")
        rows(db, TOUCH)
        db.commit()
        self.assertRefused("PW001", rows, db, TOUCH)
        db.rollback()
        rows(db, "SET LOCAL pawl.token.orders = ''")
        self.assertRefused("PW001", rows, db, TOUCH)

    def test_a_write_after_a_setting_that_the_guard_never_saw_is_refused(self):
        lost = {
            "in autocommit": ("SET LOCAL pawl.token.orders = 33",),
            "in an earlier transaction": ("BEGIN", "SET LOCAL pawl.token.orders = 33", "COMMIT"),
            "before ROLLBACK TO": (
                *("BEGIN", "SAVEPOINT s", "SET LOCAL pawl.token.orders = 33", "ROLLBACK TO s"),
            ),
            "before ROLLBACK": ("BEGIN", "SET LOCAL pawl.token.orders = 33", "ROLLBACK"),
        }
        for how, statements in lost.items():
            with self.subTest(how):
                db = self.connect(autocommit=True)
                for statement in statements:
                    rows(db, statement)
                error = self.assertRefused("PW001", rows, db, TOUCH)
                self.assertIn("in a session that has used one", error.diag.message_primary)
                rows(db, "ROLLBACK")
                self.assertRefused("PW001", rows, db, TOUCH)
                for forget in ("DISCARD ALL", "SELECT pawl.reset()"):
                    rows(db, forget)
                    rows(db, TOUCH)

    def test_a_write_after_a_setting_of_a_wrong_name_is_refused_and_names_the_right_one(self):
        self.sql('CREATE TABLE "Orders" (n int)')
        self.protect(table='"Orders"', require_token=False)
        self.sql("CREATE SCHEMA shop; CREATE TABLE shop.items (n int)")
        self.protect(table="shop.items", require_token=False)
        setting = self.status("Orders")["setting"]
        for name, table, right in (
            ("pawl.token.item", "shop.items", "pawl.token.shop.items"),
            ("pawl.token.items", "shop.items", "pawl.token.shop.items"),
            ("pawl.items", "shop.items", "pawl.token.shop.items"),
            ("pawl.token", "shop.items", "pawl.token.shop.items"),
            ("pawl.tokens.orders", '"Orders"', setting),
        ):
            with self.subTest(name):
                db = self.connect()
                rows(db, f"SET LOCAL {name} = 33")
                error = self.assertRefused("PW001", rows, db, f"INSERT INTO {table} VALUES (1)")
                self.assertIn(f"has set {name}, which no guard reads", error.diag.message_hint)
                self.assertIn(f" is {right}.", error.diag.message_hint)
        db = self.connect()  # The setting of another guard is no mistake.
        rows(db, "SET LOCAL pawl.token.orders = 33")
        rows(db, 'INSERT INTO "Orders" VALUES (1)')

    def test_protect_prints_a_setting_that_is_not_the_guards_name(self):
        self.sql('CREATE TABLE "Lines" (n int)')
        db = self.connect(autocommit=True)
        rows(db, "SELECT pawl.protect('\"Lines\"')")
        setting = self.status("Lines")["setting"]
        self.assertIn(f"SET LOCAL {setting} = token", "".join(db.notices))

    def test_discard_sequences_does_not_make_it_an_unknown_session(self):
        db = self.connect(autocommit=True)
        rows(db, f"BEGIN; SELECT pawl.use('orders', 33); {TOUCH}; COMMIT")
        rows(db, "DISCARD SEQUENCES")
        self.assertRefused("PW001", rows, db, TOUCH)

    def test_a_token_in_a_setting_does_not_repeat_an_operation_that_was_done(self):
        self.under(33, TOUCH, op=1)
        db = self.connect()
        self.assertEqual(rows(db, "SELECT pawl.use('orders', 33, 1)"), [("replayed",)])
        rows(db, "SET LOCAL pawl.token.orders = 33")
        self.assertRefused("PW008", rows, db, TOUCH)
        db.rollback()
        self.assertEqual(rows(db, "SELECT pawl.use('orders', 33, 1)"), [("replayed",)])
        self.assertEqual(rows(db, "SELECT pawl.use('orders', 33, 2)"), [("admitted",)])
        rows(db, TOUCH)
        db.commit()
        rows(db, "SET LOCAL pawl.token.orders = 33")
        rows(db, TOUCH)
        db.commit()
        self.assertEqual(self.n(), 3)

    def test_a_write_after_admit_or_advance_is_refused(self):
        for call in ("admit", "advance"):
            db = self.connect()
            rows(db, f"SELECT pawl.{call}('orders', 33)")
            self.assertRefused("PW001", rows, db, TOUCH)

    def test_old_programs_may_still_write(self):
        self.write()
        self.assertEqual((self.n(), self.status()["missing"]), (1, 1))

    def test_another_guard_is_another_matter(self):
        self.sql("CREATE TABLE other (n int)")
        self.protect(table="other", require_token=False)
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 33)")
        rows(db, "INSERT INTO other VALUES (1)")

    def test_shadow_counts_it_and_refuses_nothing(self):
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.under(33)
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 33)")
        db.commit()
        rows(db, TOUCH)
        db.commit()
        self.assertEqual((self.n(), self.status()["would_refuse"]), (1, 1))

    def test_discard_all_and_reset_make_it_an_unknown_session_again(self):
        db = self.connect(autocommit=True)
        for forget in ("DISCARD ALL", "SELECT pawl.reset()", "SELECT pawl.reset('orders')"):
            for carry in ("SELECT pawl.use('orders', 33)", "SET LOCAL pawl.token.orders = 33"):
                with self.subTest(forget=forget, carry=carry):
                    rows(db, "BEGIN")
                    rows(db, carry)
                    rows(db, TOUCH)
                    rows(db, "COMMIT")
                    self.assertRefused("PW001", rows, db, TOUCH)
                    rows(db, forget)
                    rows(db, TOUCH)

    def test_a_token_for_another_spelling_or_key_does_not_pass_as_none(self):
        self.sql("CREATE TABLE lines (id int PRIMARY KEY, who text NOT NULL)")
        self.protect(table="lines", by="who", require_token=False)
        db = self.connect()
        rows(db, "SELECT pawl.use('lines:7', 33)")
        self.assertRefused("PW001", rows, db, "INSERT INTO lines VALUES (1, '07')")


class OldViews(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect()

    def test_truncate_under_an_old_snapshot_is_refused(self):
        self.sql("CREATE TABLE lines (id int PRIMARY KEY, customer int NOT NULL)")
        self.sql("CREATE TABLE acct (id int PRIMARY KEY, n int)")
        self.protect(table="lines", by="customer")
        self.protect(table="acct", key="id")
        for table, write in (("lines", "VALUES (9, 9)"), ("acct", "VALUES (9, 9)")):
            for level in ISOLATIONS[1:]:
                with self.subTest(table=table, level=level):
                    self.carrying(40, f"DELETE FROM {table}", setting=f"pawl.token.{table}")
                    old = self.connect(isolation=level)
                    rows(old, "SELECT 1")
                    self.under(40, f"INSERT INTO {table} {write}", resource=f"{table}:9")
                    rows(old, f"SET LOCAL pawl.token.{table} = 40")
                    error = self.assertRefused("PW006", rows, old, f"TRUNCATE {table}")
                    self.assertIn("READ COMMITTED", error.diag.message_hint)
                    self.assertEqual(self.value(f"SELECT count(*) FROM {table}"), 1)
                    self.carrying(41, f"DELETE FROM {table}", setting=f"pawl.token.{table}")
                    self.carrying(41, f"TRUNCATE {table}", setting=f"pawl.token.{table}")
                    self.sql(f"SELECT pawl.unprotect('{table}')")
                    self.sql(f"SELECT pawl.drop_guard('{table}')")
                    self.protect(
                        table=table, **({"by": "customer"} if table == "lines" else {"key": "id"})
                    )

    def test_a_newer_token_waits_although_its_raiser_gave_the_lock_back(self):
        """Two tokens in one transaction, and ROLLBACK TO: the older one is still at work."""
        self.sql("SELECT pawl.advance('orders', 34)")
        two = self.connect()
        rows(two, "SELECT pawl.admit('orders', 34)")
        rows(two, "SAVEPOINT s")
        rows(two, "SELECT pawl.admit('orders', 35)")
        rows(two, "ROLLBACK TO s")
        for verb in ("admit", "use"):
            db = self.connect()
            self.assertRefused("40001", rows, db, f"SELECT pawl.{verb}('orders', 35)")
            db.rollback()
        two.commit()
        self.under(35, TOUCH)

    def test_a_transaction_that_locked_before_its_snapshot_does_not_raise_on_it(self):
        for token, level in ((40, ISOLATIONS[1]), (50, ISOLATIONS[2])):
            with self.subTest(level=level):
                self.sql("SELECT pawl.advance('orders', %s)", token)
                self.sql("CREATE TABLE IF NOT EXISTS spare (n int)")
                new = self.connect(isolation=level)
                rows(new, "LOCK TABLE spare IN ACCESS EXCLUSIVE MODE")  # Before the snapshot.
                rows(new, "SELECT pg_current_xact_id()")
                for _ in range(2):  # So that its own id is not the newest.
                    self.under(token, TOUCH)
                rows(new, "SELECT count(*) FROM orders")
                self.under(token, TOUCH)
                rows(new, "SAVEPOINT s")
                new_token = token + 1
                self.assertRefused("40001", rows, new, f"SELECT pawl.use('orders', {new_token})")
                rows(new, "ROLLBACK TO s")  # Whoever goes on is refused again.
                self.assertRefused("40001", rows, new, f"SELECT pawl.use('orders', {new_token})")
                rows(new, "ROLLBACK TO s")
                rows(new, f"SET LOCAL pawl.token.orders = {new_token}")
                self.assertRefused("40001", rows, new, TOUCH)
                new.rollback()
                rows(new, f"SELECT pawl.use('orders', {new_token})")
                rows(new, TOUCH)
                new.commit()

    def test_use_in_a_statement_does_not_admit_that_statement_on_an_older_view(self):
        self.sql("CREATE TABLE log (what text)")
        self.sql("SELECT pawl.advance('orders', 34)")
        old = self.connect()
        rows(old, "SELECT pawl.use('orders', 34)")
        rows(old, TOUCH)
        new = self.connect()
        rows(new, "INSERT INTO log VALUES ('so that it has an id')")
        self.sql("INSERT INTO log VALUES ('and another a newer one')")
        statement = Later(
            self.admin,
            new,
            rows,
            "WITH first AS (INSERT INTO log SELECT pawl.use('orders', 35) RETURNING 1), "
            "second AS (UPDATE orders SET n = (SELECT n FROM orders WHERE id = 1) + 1 "
            "WHERE id = 2) SELECT * FROM first",
        )
        self.assertTrue(statement.waits())
        old.commit()
        self.assertRefused("40001", statement.result)
        new.rollback()
        self.under(35, TOUCH)

    def test_the_transaction_that_raises_goes_on_writing(self):
        with self.connect() as db:
            rows(db, "SELECT pawl.use('orders', 34)")
            self.sql("SELECT pg_current_xact_id()")
            for _ in range(3):
                rows(db, TOUCH)
            rows(db, "SELECT pawl.use('orders', 34)")
            rows(db, TOUCH)
        self.assertEqual(self.n(), 4)


if __name__ == "__main__":
    postgres.main()
