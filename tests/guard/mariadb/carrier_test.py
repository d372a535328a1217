#!/usr/bin/python3
"""How a token comes to the write that it is for, and that it goes to no other: pooled connections,
and the token column."""

import pymysql

from pawltest.mariadb import GUARD, ServerCase, call, detail, main, rows

RESET_CONNECTION = 0x1F


def reset(connection):
    """What a pool sends that resets its connections."""
    connection._execute_command(RESET_CONNECTION, b"")
    connection._read_ok_packet()


class PoolTest(ServerCase):
    """MariaDB's user variables outlive a transaction; what they carry must not. A stranger is who
    says no token."""

    def setUp(self):
        super().setUp()
        self.protect()
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        call(self.connect(), "advance", self.orders, 34, 5)

    def pooled(self, *ends):
        """A connection on which a holder has written, and ended its transaction in this way."""
        db = self.connect()
        rows(db, "START TRANSACTION")
        call(db, "use", self.orders, 34)
        rows(db, "UPDATE orders SET n = n + 1 WHERE id = 1")
        for end in ends:
            end(db)
        return db

    def assertStranger(self, db):
        """Whatever a stranger does on the connection is refused for want of a token."""
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
        rows(db, "START TRANSACTION")
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
        rows(db, "ROLLBACK")

    def test_finish_leaves_no_token(self):
        self.assertStranger(self.pooled(lambda db: call(db, "finish")))
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1)

    def test_abandon_leaves_no_token(self):
        self.assertStranger(self.pooled(lambda db: call(db, "abandon")))
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 0)

    def test_connection_reset_leaves_no_token(self):
        for end in ("COMMIT", "ROLLBACK", "DO 0"):
            with self.subTest(end):
                self.assertStranger(self.pooled(lambda db, end=end: rows(db, end), reset))

    def test_single_message_transaction_leaves_no_token(self):
        db = self.connect()
        block = """BEGIN NOT ATOMIC
            DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN CALL pawl.abandon(); RESIGNAL; END;
            CALL pawl.begin(%s, %s);
            UPDATE orders SET n = %s WHERE id = 1;
            CALL pawl.finish();
        END"""
        with db.cursor() as cursor:
            cursor.execute(block, (self.orders, 34, 5))
            while cursor.nextset():
                pass
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 5)
        self.assertStranger(db)
        self.assertRefused("PW002", rows, db, block, self.orders, 33, 6)
        self.assertStranger(db)

    def test_statement_outside_a_transaction_has_no_token(self):
        for end in ("COMMIT", "ROLLBACK"):
            with self.subTest(end):
                self.assertRefused(
                    "PW001",
                    rows,
                    self.pooled(lambda db, end=end: rows(db, end)),
                    "UPDATE orders SET n = 9",
                )

    def test_leftover_token_is_refused_once_the_fence_has_moved(self):
        for end in ("COMMIT", "ROLLBACK"):
            with self.subTest(end):
                db = self.pooled(lambda db, end=end: rows(db, end))
                call(self.connect(), "advance", self.orders, 35, 5)
                rows(db, "START TRANSACTION")
                self.assertRefused("PW002", rows, db, "UPDATE orders SET n = 9")
                self.setUp()

    def test_begin_clears_earlier_tokens_of_the_connection(self):
        self.protect("accounts")
        call(self.connect(), "set_policy", f"{self.db}.accounts", True, None, None, None)
        db = self.pooled(lambda db: rows(db, "COMMIT"))
        call(db, "begin", f"{self.db}.accounts", 34)
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")

    def test_known_gap_tokenless_transaction_right_after_the_holder(self):
        """Nothing that a trigger can read distinguishes one transaction from the next.
        docs/how-to/guard-mariadb.md says so, and what to do."""
        for end in ("COMMIT", "ROLLBACK"):
            with self.subTest(end):
                db = self.pooled(lambda db, end=end: rows(db, end))
                rows(db, "START TRANSACTION")
                rows(db, "UPDATE orders SET n = 9")
                rows(db, "ROLLBACK")

    def test_rolled_back_raise_leaves_no_valid_token(self):
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        rows(db, "SAVEPOINT here")
        call(db, "use", self.orders, 35)
        rows(db, "ROLLBACK TO SAVEPOINT here")
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")

    def test_use_needs_a_transaction(self):
        self.assertRefused("PW006", call, self.connect(), "use", self.orders, 34)
        db = self.connect(autocommit=False)
        self.assertEqual(call(db, "use", self.orders, 34), [("admitted",)])

    def test_many_keys_on_one_connection_are_bounded(self):
        self.protect("lines", key="customer")
        call(self.connect(), "create_guard", f"{self.db}.mail", True)
        db = self.connect(isolation="READ COMMITTED")
        for number in range(1, 60):
            rows(db, "START TRANSACTION")
            call(db, "use", f"{self.db}.mail:{'x' * 500}{number}", 34)
            rows(db, "ROLLBACK")
        self.assertLess(self.value("SELECT LENGTH(@pawl)", on=db), 61000)
        self.assertEqual(
            self.write(
                34, f"{self.db}.lines:7", "INSERT INTO `lines` (customer) VALUES (7)", on=db
            ),
            "admitted",
        )


class LegacyTest(ServerCase):
    """Without require_token a program that knows no tokens may write on. A session that has used
    one is no such program."""

    def setUp(self):
        super().setUp()
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)

    def users(self):
        """Sessions that have used a token, each in another way."""
        db = self.connect()
        self.write(34, on=db)
        rows(db, "SET @pawl = NULL")
        yield "use", db
        db = self.connect()
        call(db, "begin", self.orders, 34)
        call(db, "finish")
        yield "begin", db
        db = self.connect()
        rows(db, "START TRANSACTION")
        call(db, "use_op", self.orders, 34, 1)
        call(db, "abandon")
        yield "use_op", db

    def test_session_that_has_used_a_token_owes_one(self):
        rows(self.connect(), "UPDATE orders SET n = 5")
        for name, db in self.users():
            with self.subTest(name):
                self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
                rows(db, "START TRANSACTION")
                self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
                rows(db, "ROLLBACK")
        call(self.connect(), "token_column", self.orders, True)
        db = self.connect()
        rows(db, "UPDATE orders SET n = n + 1, pawl_token = 34 WHERE id = 1")
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
        rows(self.connect(), "UPDATE orders SET n = 5")

    def test_token_for_another_key_is_no_token(self):
        guard = self.protect("lines", key="customer")
        insert = "INSERT INTO `lines` (customer) VALUES (2)"
        self.assertRefused("PW001", self.write, 34, f"{guard}:1", insert)
        rows(self.connect(), insert)

    def test_write_after_a_raise_was_rolled_back_is_refused(self):
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        rows(db, "SAVEPOINT here")
        call(db, "use", self.orders, 35)
        rows(db, "ROLLBACK TO SAVEPOINT here")
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")

    def test_session_that_has_used_a_token_is_let_through_in_shadow(self):
        call(self.connect(), "set_mode", self.orders, "shadow", None, None)
        db = self.connect()
        self.write(34, on=db)
        rows(db, "UPDATE orders SET n = 9")
        self.assertEqual((self.count("missing"), self.count("would_refuse")), (1, 1))


class ColumnTest(ServerCase):
    """pawl.token_column(): the write carries its token in itself."""

    UPDATE = "UPDATE orders SET n = n + 1, pawl_token = %s WHERE id = 1"

    def setUp(self):
        super().setUp()
        self.protect()
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        call(self.connect(), "advance", self.orders, 34, 5)
        call(self.connect(), "token_column", self.orders, True)

    def test_token_column_works_without_a_transaction(self):
        db = self.connect()
        rows(db, self.UPDATE, 34)
        rows(db, "INSERT INTO orders (n, pawl_token) VALUES (7, 34)")
        self.assertEqual(
            rows(db, "SELECT n, pawl_token FROM orders ORDER BY id"),
            [(1, None), (0, None), (7, None)],
        )
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")
        rows(db, "START TRANSACTION")
        rows(db, self.UPDATE, 34)
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = 9")

    def test_stale_token_is_refused_and_counted(self):
        call(self.connect(), "advance", self.orders, 35, 5)
        error = self.assertRefused("PW002", rows, self.connect(), self.UPDATE, 34)
        self.assertEqual(detail(error), {"token": "34", "max": "35", "mode": "enforce"})
        self.assertEqual(self.count("stale"), 1)
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 0)

    def test_use_does_not_replace_a_missing_token_column(self):
        self.assertRefused("PW001", self.write, 34)

    def test_token_column_needs_an_advance_first(self):
        self.assertRefused("PW006", rows, self.connect(), self.UPDATE, 35)
        call(self.connect(), "advance", self.orders, 35, 5)
        rows(self.connect(), self.UPDATE, 35)

    def test_advance_waits_for_an_open_write(self):
        db = self.connect()
        rows(db, "START TRANSACTION")
        rows(db, self.UPDATE, 34)
        self.assertRefused("PW007", call, self.connect(), "advance", self.orders, 35, 1)

    def test_token_must_be_plain_digits(self):
        for spelled in (
            "0",
            "-1",
            "034",
            "+34",
            " 34",
            "34 ",
            "34\n",
            "3.4",
            "34.0",
            "abc",
            "",
            "%",
            "9007199254740992",
        ):
            with self.subTest(spelled):
                self.assertRefused("PW003", rows, self.connect(), self.UPDATE, spelled)

    def test_delete_and_replace_take_their_token_from_use(self):
        self.assertRefused("PW001", rows, self.connect(), "DELETE FROM orders")
        self.assertRefused(
            "PW001",
            rows,
            self.connect(),
            "REPLACE INTO orders (id, n, pawl_token) VALUES (1, 5, 34)",
        )
        db = self.connect()
        call(db, "begin", self.orders, 34)
        rows(db, "REPLACE INTO orders (id, n, pawl_token) VALUES (1, 5, 34)")
        rows(db, "DELETE FROM orders WHERE id = 2")
        call(db, "finish")
        self.assertEqual(rows(db, "SELECT id, n FROM orders"), [(1, 5)])

    def test_insert_on_duplicate_key_needs_the_token_in_both_parts(self):
        insert = (
            "INSERT INTO orders (id, n, pawl_token) VALUES (1, 5, 34) ON DUPLICATE KEY UPDATE n = 6"
        )
        self.assertRefused("PW001", rows, self.connect(), insert)
        rows(self.connect(), f"{insert}, pawl_token = 34")
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 6)

    def test_token_column_is_invisible(self):
        call(self.connect(), "set_policy", self.orders, False, None, None, None)
        rows(self.connect(), "INSERT INTO orders VALUES (7, 8)")
        self.assertEqual(rows(self.connect(), "SELECT * FROM orders WHERE id = 7"), [(7, 8)])

    def test_refused_statement_leaves_no_rows(self):
        guard = self.protect("lines", key="customer")
        call(self.connect(), "token_column", guard, True)
        for customer, token in ((1, 33), (2, 40)):
            call(self.connect(), "advance", f"{guard}:{customer}", token, 5)
        insert = "INSERT INTO `lines` (customer, pawl_token) VALUES (1, 33), (2, %s)"
        self.assertRefused("PW002", rows, self.connect(), insert, 33)
        self.assertEqual(self.value("SELECT COUNT(*) FROM `lines`"), 0)
        rows(self.connect(), insert, 40)
        self.assertRefused(
            "PW002",
            rows,
            self.connect(),
            "UPDATE `lines` SET customer = 2, pawl_token = 33 WHERE customer = 1",
        )

    def test_token_at_the_floor_needs_a_lockable_fence(self):
        guard = self.protect("accounts", key="id")
        call(self.connect(), "token_column", guard, True)
        call(self.connect(), "compact", guard, 34)
        insert = "INSERT INTO accounts (id, pawl_token) VALUES (7, 34)"
        self.assertRefused("PW006", rows, self.connect(), insert)
        call(self.connect(), "advance", f"{guard}:7", 34, 5)
        rows(self.connect(), insert)

    def test_compact_keeps_the_fence_of_an_open_write(self):
        guard = self.protect("accounts", key="id")
        call(self.connect(), "token_column", guard, True)
        call(self.connect(), "advance", f"{guard}:7", 34, 5)
        writer = self.connect(isolation="READ COMMITTED")
        rows(writer, "START TRANSACTION")
        rows(writer, "INSERT INTO accounts (id, pawl_token) VALUES (7, 34)")
        admin = self.connect()
        rows(admin, "SET SESSION innodb_lock_wait_timeout = 1")
        for before, after in (("DO 0", "DO 0"), ("START TRANSACTION", "COMMIT")):
            rows(admin, before)
            self.assertRefused("PW007", call, admin, "compact", guard, 36)
            rows(admin, after)
            self.assertEqual(self.count("floor", guard), 0)
        rows(writer, "COMMIT")
        call(admin, "compact", guard, 36)
        self.assertRefused(
            "PW002", rows, self.connect(), "UPDATE accounts SET n = 1, pawl_token = 35 WHERE id = 7"
        )

    def test_shadow_refuses_nothing_and_counts_what_it_would_refuse(self):
        call(self.connect(), "advance", self.orders, 35, 5)
        call(self.connect(), "set_mode", self.orders, "shadow", None, None)
        rows(self.connect(), self.UPDATE, 34)
        rows(self.connect(), self.UPDATE, 36)
        rows(self.connect(), "UPDATE orders SET n = 9")
        self.assertEqual(
            (self.count("stale"), self.count("missing"), self.count("would_refuse")), (1, 1, 3)
        )
        self.assertEqual(self.value("SELECT pawl.fence(%s)", self.orders), 35)

    def test_token_column_has_no_operation_number(self):
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "set_policy", self.orders, None, "once", None, None)
        other = self.protect("accounts")
        call(self.connect(), "set_policy", other, None, "once", None, None)
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "token_column", other, True)

    def test_reinstall_keeps_the_token_column(self):
        self.server.install()
        rows(self.connect(), self.UPDATE, 34)
        call(self.connect(), "token_column", self.orders, False)
        self.assertEqual(self.write(34), "admitted")
        self.assertEqual(self.columns(), ["id", "n"])

    def test_unprotect_drops_the_token_column(self):
        call(self.connect(), "unprotect", self.orders)
        self.assertEqual(self.columns(), ["id", "n"])

    def test_uninstall_drops_the_token_column(self):
        self.addCleanup(self.server.install)
        done = self.server.client(GUARD.with_name("uninstall.sql").read_text(encoding="utf-8"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.columns(), ["id", "n"])
        rows(self.connect(), "UPDATE orders SET n = 9")

    def columns(self):
        return [
            name
            for (name,) in rows(
                self.connect(),
                "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND "
                "table_name = 'orders'",
                self.db,
            )
        ]


if __name__ == "__main__":
    main()
