#!/usr/bin/python3
"""XA transactions. XA PREPARE releases the shared locks that keep a fence from rising, and a crash
releases those of prepared transactions; an advance has to wait for them all the same."""

from pawltest.mariadb import ISOLATIONS, ServerCase, call, main, rows

COLUMN = "UPDATE orders SET n = n + 1, pawl_token = 34 WHERE id = 1"


class PreparedTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.protect()
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        call(self.connect(), "advance", self.orders, 34, 5)

    def start(self, isolation="REPEATABLE READ"):
        db = self.connect(isolation=isolation)
        rows(db, f"XA START '{self.db}'")
        return db

    def prepare(self, db):
        rows(db, f"XA END '{self.db}'")
        rows(db, f"XA PREPARE '{self.db}'")

    def prepared(self, isolation="REPEATABLE READ", sql="UPDATE orders SET n = n + 1 WHERE id = 1"):
        db = self.start(isolation)
        if sql != COLUMN:
            call(db, "use", self.orders, 34)
        rows(db, sql)
        self.prepare(db)
        return db

    def assertWaits(self, resource=None):
        """An advance, and a new token, and a stricter policy wait for the prepared transaction."""
        resource = resource or self.orders
        self.assertRefused("PW007", call, self.connect(), "advance", resource, 35, 1)
        self.assertEqual(self.value("SELECT pawl.fence(%s)", resource), 34)

    def test_advance_waits_for_a_prepared_transaction(self):
        for isolation in ISOLATIONS:
            with self.subTest(isolation):
                db = self.prepared(isolation)
                self.assertWaits()
                rows(db, f"XA COMMIT '{self.db}'")
                self.assertEqual(call(self.connect(), "advance", self.orders, 34, 5), [(34,)])
        self.assertEqual(call(self.connect(), "advance", self.orders, 35, 5), [(34,)])
        self.assertRefused("PW002", self.write, 34)

    def test_new_token_of_use_waits_for_a_prepared_transaction(self):
        db = self.prepared()
        other = self.connect(isolation="READ COMMITTED")
        rows(other, "SET SESSION innodb_lock_wait_timeout = 1")
        other_row = "UPDATE orders SET n = n + 1 WHERE id = 2"
        self.assertRefused("1205", self.write, 35, sql=other_row, on=other)
        rows(db, f"XA ROLLBACK '{self.db}'")
        self.assertEqual(self.write(35), "admitted")

    def test_stricter_policy_waits_for_a_prepared_transaction(self):
        db = self.prepared()
        self.assertRefused(
            "PW007", call, self.connect(), "set_mode", self.orders, "enforce", None, None
        )
        rows(db, f"XA COMMIT '{self.db}'")

    def test_advance_waits_for_a_prepared_write_that_carried_its_token(self):
        call(self.connect(), "token_column", self.orders, True)
        db = self.prepared(sql=COLUMN)
        self.assertWaits()
        rows(db, f"XA COMMIT '{self.db}'")

    def test_advance_waits_for_a_prepared_write_under_a_leftover_token(self):
        db = self.connect()
        self.write(34, on=db)
        rows(db, f"XA START '{self.db}'")
        rows(db, "UPDATE orders SET n = n + 1 WHERE id = 1")
        self.prepare(db)
        self.assertWaits()
        rows(db, f"XA COMMIT '{self.db}'")

    def test_advance_waits_for_a_prepared_admit(self):
        db = self.start()
        call(db, "admit", self.orders, 34)
        rows(db, "INSERT INTO accounts (n) VALUES (1)")
        self.prepare(db)
        self.assertWaits()
        rows(db, f"XA COMMIT '{self.db}'")

    def test_advance_of_a_key_waits_for_that_key_only(self):
        guard = self.protect("lines", key="customer")
        for customer in (1, 2):
            call(self.connect(), "advance", f"{guard}:{customer}", 34, 5)
        db = self.start()
        call(db, "use", f"{guard}:1", 34)
        rows(db, "INSERT INTO `lines` (customer) VALUES (1)")
        self.prepare(db)
        self.assertWaits(f"{guard}:1")
        self.assertEqual(call(self.connect(), "advance", f"{guard}:2", 35, 5), [(34,)])
        rows(db, f"XA COMMIT '{self.db}'")

    def test_prepared_write_that_survived_a_crash_keeps_the_fence(self):
        self.prepared()
        self.server.crash()
        self.server.start()
        self.assertWaits()
        ((_, _, _, _, query),) = [
            each for each in call(self.connect(), "blockers", self.orders) if each[0] == 0
        ]
        self.assertIn("XA RECOVER", query)
        rows(self.connect(), f"XA COMMIT '{self.db}'")
        self.assertEqual(call(self.connect(), "advance", self.orders, 35, 5), [(34,)])
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1)

    def test_writers_of_one_token_do_not_wait_for_each_other_in_xa(self):
        first = self.prepared()
        second = self.connect()
        rows(second, f"XA START '{self.db}b'")
        call(second, "use", self.orders, 34)
        rows(second, "UPDATE orders SET n = n + 1 WHERE id = 2")
        rows(second, f"XA END '{self.db}b'")
        rows(second, f"XA COMMIT '{self.db}b' ONE PHASE")
        rows(first, f"XA COMMIT '{self.db}'")

    def test_stale_token_is_refused_in_xa(self):
        call(self.connect(), "advance", self.orders, 35, 5)
        db = self.start()
        self.assertRefused("PW002", call, db, "use", self.orders, 34)
        self.assertRefused("PW002", rows, db, "UPDATE orders SET n = 9")

    def test_plain_transactions_leave_no_row_behind(self):
        self.write(34)
        left = (
            "SELECT COUNT(*) FROM pawl.xa_write x JOIN pawl.guard g ON g.id = x.guard "
            "WHERE name = %s"
        )
        self.assertEqual(self.value(left, self.orders), 0)


if __name__ == "__main__":
    main()
