"""Exactly once: operation numbers under a token, and guards that admit an equal token only once.
Hard case 55."""

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, rows

TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class OperationNumbers(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect()

    def test_each_operation_is_admitted_once_in_any_order(self):
        for op in (8, 7, 1):
            self.assertEqual(self.under(34, TOUCH, op=op), "admitted")
        for op in (7, 8, 1, 7):
            self.assertEqual(self.under(34, op=op), "replayed")
        self.assertEqual((self.n(), self.status()["replayed"]), (3, 4))

    def test_a_write_after_replayed_is_refused(self):
        self.under(34, TOUCH, op=1)
        self.assertRefused("PW008", self.under, 34, TOUCH, op=1)
        self.assertEqual(self.n(), 1)

    def test_the_same_operation_under_a_new_token_is_another_one(self):
        self.under(34, TOUCH, op=1)
        self.assertEqual(self.under(35, TOUCH, op=1), "admitted")
        self.assertRefused("PW002", self.under, 34, op=1)
        self.assertRefused("PW002", self.under, 34, op=2)

    def test_rolled_back_operation_was_not_done(self):
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 34, 1)")
        rows(db, TOUCH)
        db.rollback()
        self.assertEqual(self.under(34, TOUCH, op=1), "admitted")
        self.assertEqual(self.n(), 1)

    def test_concurrent_equal_operations_take_effect_once(self):
        self.sql("SELECT pawl.advance('orders', 34)")
        for op, level in enumerate(ISOLATIONS, 1):
            with self.subTest(level=level):
                one, two = self.connect(isolation=level), self.connect(isolation=level)
                rows(one, "SELECT pawl.use('orders', 34, %s)", op)
                rows(one, TOUCH)
                twin = Later(self.admin, two, rows, "SELECT pawl.use('orders', 34, %s)", op)
                self.assertTrue(twin.waits())
                one.commit()
                if level == "read committed":
                    self.assertEqual(twin.result(), [("replayed",)])
                else:
                    self.assertRefused("40001", twin.result)
                    two.rollback()
                    self.assertEqual(
                        rows(two, "SELECT pawl.use('orders', 34, %s)", op), [("replayed",)]
                    )
                self.assertEqual(self.n(), op)

    def test_invalid_operation_number_is_malformed(self):
        for op in (0, -1, None):
            self.assertRefused("PW003", self.sql, "SELECT pawl.use('orders', 34, %s)", op)
            self.assertRefused("PW003", self.sql, "SELECT pawl.admit('orders', 34, %s)", op)

    def test_admit_takes_operation_numbers_too(self):
        answers = [self.value("SELECT pawl.admit('orders', 34, %s)", op) for op in (1, 1, 2)]
        self.assertEqual(answers, ["admitted", "replayed", "admitted"])

    def test_advance_forgets_the_operations_of_older_tokens(self):
        self.under(34, TOUCH, op=1)
        self.sql("SELECT pawl.advance('orders', 35)")
        self.assertEqual(self.value("SELECT count(*) FROM pawl.done"), 0)

    def test_replayed_write_in_shadow_is_let_through_and_counted(self):
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.under(34, TOUCH, op=1)
        self.under(34, TOUCH, op=1)
        self.assertEqual((self.n(), self.status()["would_refuse"]), (2, 1))


class EqualTokens(OrdersCase):
    def setUp(self):
        super().setUp()
        self.protect()

    def policy(self, equal):
        self.sql("SELECT pawl.set_policy('orders', equal => %s)", equal)

    def test_refuse_admits_a_token_for_one_transaction(self):
        self.policy("refuse")
        self.assertEqual(self.under(34, TOUCH, TOUCH), "admitted")
        self.assertRefused("PW002", self.under, 34, TOUCH)
        self.assertRefused("PW002", self.carrying, 34, TOUCH)
        self.assertEqual(self.under(35, TOUCH), "admitted")
        self.assertEqual(self.n(), 3)

    def test_refuse_returns_the_token_on_rollback(self):
        self.policy("refuse")
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 34)")
        rows(db, TOUCH)
        db.rollback()
        self.assertEqual(self.under(34, TOUCH), "admitted")
        self.assertEqual(self.n(), 1)

    def test_refuse_holds_for_a_token_in_a_setting(self):
        self.policy("refuse")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.carrying(34, TOUCH, TOUCH)
        self.assertRefused("PW002", self.carrying, 34, TOUCH)
        self.assertEqual(self.n(), 2)

    def test_once_needs_an_operation_number_for_an_equal_token(self):
        self.policy("once")
        self.assertEqual(self.under(34, TOUCH), "admitted")
        error = self.assertRefused("PW001", self.under, 34, TOUCH)
        self.assertIn("operation number", error.diag.message_primary)
        self.assertEqual(self.under(34, TOUCH, op=1), "admitted")
        self.assertEqual(self.under(34, op=1), "replayed")
        self.assertRefused("PW001", self.carrying, 34, TOUCH)
        self.assertEqual(self.n(), 2)

    def test_policy_takes_effect_in_existing_sessions(self):
        db = self.connect()
        rows(db, "SELECT pawl.use('orders', 34)")
        rows(db, TOUCH)
        db.commit()
        self.policy("refuse")
        rows(db, "SELECT pawl.use('orders', 34)")  # Its first under the new policy.
        rows(db, TOUCH)
        db.commit()
        self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders', 34)")
        db.rollback()
        self.policy("accept")
        rows(db, "SET LOCAL pawl.token.orders = 34")
        rows(db, TOUCH)
        db.commit()
        self.assertEqual(self.n(), 3)

    def test_old_snapshot_does_not_use_the_old_policy(self):
        self.sql("SELECT pawl.advance('orders', 34)")
        early = self.connect(isolation="repeatable read")
        rows(early, "SELECT 1")
        self.policy("refuse")
        self.assertRefused("40001", rows, early, "SELECT pawl.use('orders', 34)")

    def test_guards_with_a_fence_per_row_admit_an_equal_token(self):
        self.sql("CREATE TABLE acct (id int PRIMARY KEY)")
        self.protect(table="acct", key="id")
        self.assertRefused("0A000", self.sql, "SELECT pawl.set_policy('acct', equal => 'refuse')")


if __name__ == "__main__":
    postgres.main()
