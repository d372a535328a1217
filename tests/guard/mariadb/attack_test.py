#!/usr/bin/python3
"""Ways past the guard: accounts without rights, handlers that swallow a refusal, dumps that are
restored elsewhere, sessions whose first call fails, logs by statement."""

import contextlib
import subprocess

import pymysql

from pawltest.mariadb import ServerCase, call, main, rows

SWALLOWING = """
CREATE FUNCTION swallow(given INT) RETURNS INT MODIFIES SQL DATA
BEGIN
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  {statement};
  RETURN 1;
END
"""


class StrangerTest(ServerCase):
    """An account that may log in, and nothing else."""

    def stranger(self):
        name = f"eve_{self.db}"
        rows(self.connect(), f"CREATE USER {name}@localhost")
        return self.connect(name, database=None)

    def test_stranger_can_neither_raise_nor_hold_a_fence(self):
        guard = self.protect("lines", key="customer")
        eve = self.stranger()
        for words in (
            f"CALL pawl.advance('{guard}:1', 9007199254740991, 1)",
            f"CALL pawl.use('{guard}:1', 1)",
            f"CALL pawl.use_op('{guard}:1', 1, 1)",
            f"CALL pawl.use_all('[\"{guard}:1\"]', 1)",
            f"CALL pawl.admit('{guard}:1', 1)",
            f"CALL pawl.admit_op('{guard}:1', 1, 1)",
            f"CALL pawl.begin('{guard}:1', 1)",
            f"CALL pawl.check('{guard}:1', 1)",
            f"SELECT pawl.fence('{guard}:1')",
        ):
            with self.subTest(words), self.assertRaises(pymysql.MySQLError) as caught:
                rows(eve, words)
            self.assertEqual(caught.exception.args[0], 1370, caught.exception)
        self.assertIsNone(self.value("SELECT pawl.fence(%s)", f"{guard}:1"))

    def test_installing_again_closes_what_an_older_version_opened(self):
        rows(self.connect(), "GRANT EXECUTE ON PROCEDURE pawl.advance TO PUBLIC")
        self.server.install()
        self.test_stranger_can_neither_raise_nor_hold_a_fence()

    def test_writer_that_was_added_writes_with_its_token(self):
        self.protect()
        name = f"app_{self.db}"
        admin = self.connect()
        rows(admin, f"CREATE USER {name}@localhost")
        rows(admin, f"GRANT SELECT, UPDATE ON {self.db}.orders TO {name}@localhost")
        call(admin, "add_writer", f"{name}@localhost")
        app = self.connect(name, isolation="READ COMMITTED")
        call(app, "advance", self.orders, 34, 5)
        self.assertEqual(self.write(34, on=app), "admitted")
        self.server.install()  # An upgrade leaves it so.
        self.assertEqual(self.write(34, on=app), "admitted")
        call(admin, "remove_writer", f"{name}@localhost")
        with self.assertRaises(pymysql.MySQLError):
            self.write(34, on=self.connect(name))

    def test_role_that_was_added_lets_its_accounts_write(self):
        self.protect()
        role, name = f"writers_{self.db}", f"user_{self.db}"
        admin = self.connect()
        rows(admin, f"CREATE ROLE {role}")
        rows(admin, f"CREATE USER {name}@localhost")
        rows(admin, f"GRANT SELECT, UPDATE ON {self.db}.orders TO {role}")
        rows(admin, f"GRANT {role} TO {name}@localhost")
        call(admin, "add_writer", role)
        app = self.connect(name, database=None, isolation="READ COMMITTED")
        rows(app, f"SET ROLE {role}")
        rows(app, f"USE {self.db}")
        self.assertEqual(self.write(34, on=app), "admitted")

    def test_account_that_does_not_exist_cannot_be_added(self):
        with self.assertRaises(pymysql.MySQLError) as caught:
            call(self.connect(), "add_writer", f"nobody_{self.db}")
        self.assertIn(f"no account nobody_{self.db}@%", str(caught.exception))


class SwallowedRefusalTest(ServerCase):
    """A handler in a stored function, whose statements are not undone one by one."""

    settings = {"log_bin_trust_function_creators": 1}

    def setUp(self):
        super().setUp()
        self.guard = self.protect("lines", key="customer")
        self.require(self.guard)
        self.write(40, f"{self.guard}:1", "INSERT INTO `lines` (customer) VALUES (1)")
        self.write(40, f"{self.guard}:2", "INSERT INTO `lines` (customer, n) VALUES (2, 7)")

    def require(self, guard):
        call(self.connect(), "set_policy", guard, True, None, None, None)

    def swallow(self, statement, value=0):
        db = self.connect()
        rows(db, "DROP FUNCTION IF EXISTS swallow")
        rows(db, SWALLOWING.format(statement=statement))
        with contextlib.suppress(pymysql.MySQLError):
            rows(db, f"SELECT swallow({value})")

    def lines(self):
        return rows(self.connect(), "SELECT customer, n FROM `lines` ORDER BY id")

    def test_refused_insert_leaves_no_row(self):
        self.swallow("INSERT INTO `lines` (customer) VALUES (given)", 1)
        self.assertEqual(self.lines(), [(1, 0), (2, 7)])

    def test_refused_change_of_the_key_changes_nothing(self):
        moving = "UPDATE `lines` SET customer = 2 WHERE customer = 1"
        rows(self.connect(), SWALLOWING.format(statement=moving))
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        call(db, "use", f"{self.guard}:1", 40)
        rows(db, "SELECT swallow(0)")
        rows(db, "COMMIT")
        self.assertEqual(self.lines(), [(1, 0), (2, 7)])

    def test_refused_row_that_a_later_trigger_moved_does_not_stay(self):
        rows(
            self.connect(),
            "CREATE TRIGGER sly BEFORE INSERT ON `lines` FOR EACH ROW SET NEW.customer = 2",
        )
        inserting = "INSERT INTO `lines` (customer) VALUES (1)"
        rows(self.connect(), SWALLOWING.format(statement=inserting))
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        call(db, "use", f"{self.guard}:1", 40)
        with self.assertRaises(pymysql.MySQLError) as caught:
            rows(db, "SELECT swallow(0)")
        self.assertEqual(caught.exception.args[0], 1317)
        self.assertIn(f"write to {self.guard}:2", self.value("SELECT @pawl_refusal", on=db))
        rows(db, "COMMIT")
        self.assertEqual(self.lines(), [(1, 0), (2, 7)])

    def test_refused_row_whose_key_auto_increment_chose_does_not_stay(self):
        for column in (False, True):
            with self.subTest(column=column):
                guard = self.protect("accounts", key="id")
                self.require(guard)
                call(self.connect(), "token_column", guard, column)
                self.swallow("INSERT INTO accounts (n) VALUES (1)")
                self.assertEqual(rows(self.connect(), "SELECT * FROM accounts"), [])

    def test_refusal_of_a_generated_key_says_what_to_do(self):
        guard = self.protect("accounts", key="id")
        refused = self.assertRefused(
            "PW001", self.write, 40, f"{guard}:7", "INSERT INTO accounts (n) VALUES (1)"
        )
        self.assertIn("Name the key in the INSERT", str(refused))
        self.write(40, f"{guard}:7", "INSERT INTO accounts (id, n) VALUES (7, 1)")

    def test_program_without_tokens_gets_generated_keys_in_enforce(self):
        self.protect("accounts", key="id")
        rows(self.connect(), "INSERT INTO accounts (n) VALUES (1), (2)")
        self.assertEqual(self.value("SELECT COUNT(*) FROM accounts"), 2)


class RestoredDumpTest(ServerCase):
    def dump(self):
        done = subprocess.run(
            ["mariadb-dump", "--no-defaults", f"--socket={self.server.socket}", "--user=root",
             "--triggers", "--databases", self.db],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout

    def restore(self, dump):
        done = self.server.client(dump)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def problems(self):
        return [row for row in call(self.connect(), "problems") if row[2].startswith(self.db)]

    def guards_made(self, *tables):
        for table in tables:
            self.protect(table)

    def forget(self):
        for table in ("orders", "accounts"):
            call(self.connect(), "unprotect", f"{self.db}.{table}")
            call(self.connect(), "drop_guard", f"{self.db}.{table}")

    def test_restored_table_is_judged_by_the_guard_of_its_name(self):
        self.guards_made("orders", "accounts")
        dump = self.dump()
        self.forget()
        self.guards_made("accounts", "orders")
        self.restore(dump)
        self.assertEqual(self.problems(), [])
        call(self.connect(), "advance", self.orders, 40, 5)
        call(self.connect(), "advance", f"{self.db}.accounts", 10, 5)
        self.assertRefused("PW002", self.write, 33)
        self.write(10, f"{self.db}.accounts", "INSERT INTO accounts (n) VALUES (1)")

    def test_triggers_of_another_guard_are_a_problem_until_they_are_repaired(self):
        self.guards_made("orders", "accounts")
        dump = self.dump()
        self.forget()
        self.guards_made("accounts")
        self.protect("orders", key="id")  # By its rows now: the dump has triggers for the table.
        self.restore(dump)
        ((severity, guard, _, problem, fix),) = self.problems()
        self.assertEqual((severity, guard), ("error", self.orders))
        self.assertIn("trigger", problem)
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        rows(self.connect(), fix)
        self.assertEqual(self.problems(), [])

    def test_trigger_with_another_body_is_a_problem(self):
        self.guards_made("orders")
        ((name, body),) = rows(
            self.connect(),
            "SELECT trigger_name, action_statement FROM information_schema.triggers WHERE "
            "event_object_schema = %s AND event_object_table = 'orders' AND "
            "event_manipulation = 'UPDATE'",
            self.db,
        )
        rows(
            self.connect(),
            f"CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE ON orders FOR EACH ROW "
            + body.replace(self.orders, "elsewhere").replace("%", "%%"),
        )
        self.assertEqual([row[0] for row in self.problems()], ["error"])


class FailedUseTest(ServerCase):
    """A session that has tried to use a token is no program without tokens."""

    def assert_owes(self, db):
        self.assertRefused("PW001", rows, db, "UPDATE orders SET n = n + 1 WHERE id = 1")

    def test_session_owes_a_token_after_use_outside_a_transaction(self):
        self.protect()
        for verb, more in (("use", ()), ("use_op", (1,))):
            with self.subTest(verb):
                db = self.connect()
                self.assertRefused("PW006", call, db, verb, self.orders, 34, *more)
                self.assert_owes(db)
        db = self.connect()
        self.assertRefused("PW006", call, db, "use_all", f'["{self.orders}"]', 34)
        self.assert_owes(db)

    def test_session_owes_a_token_after_a_lock_timeout(self):
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)
        holder = self.connect()
        rows(holder, "START TRANSACTION")
        rows(holder, "SELECT * FROM pawl.guard WHERE name = %s FOR UPDATE", self.orders)
        late = [self.connect(), self.connect()]
        for db in late:
            rows(db, "SET innodb_lock_wait_timeout = 0")
        rows(late[0], "START TRANSACTION")
        self.assertRefused("1205", call, late[0], "use", self.orders, 34)
        self.assertRefused("1205", call, late[1], "begin", self.orders, 34)
        rows(holder, "ROLLBACK")
        for db in late:
            rows(db, "ROLLBACK")
            self.assert_owes(db)

    def test_session_owes_a_token_after_its_token_was_refused(self):
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)
        for verb, more in (("admit", ()), ("admit_op", (1,)), ("advance", (5,))):
            for token, state in ((33, "PW002"), ("x", "PW003")):
                with self.subTest(verb, token=token):
                    db = self.connect()
                    if verb != "advance":
                        rows(db, "START TRANSACTION")
                    self.assertRefused(state, call, db, verb, self.orders, token, *more)
                    self.assert_owes(db)
                    rows(db, "ROLLBACK")

    def test_session_owes_a_token_after_the_one_in_its_column_was_refused(self):
        self.protect()
        call(self.connect(), "token_column", self.orders, True)
        call(self.connect(), "advance", self.orders, 34, 5)
        for token, state in ((33, "PW002"), (35, "PW006"), ("'x'", "PW003")):
            with self.subTest(token=token):
                db = self.connect()
                stale = f"UPDATE orders SET n = n + 1, pawl_token = {token} WHERE id = 1"
                self.assertRefused(state, rows, db, stale)
                self.assert_owes(db)

    def test_session_owes_a_token_after_advance_has_waited_in_vain(self):
        self.protect()
        call(self.connect(), "advance", self.orders, 34, 5)
        holder = self.connect()
        rows(holder, "START TRANSACTION")
        call(holder, "use", self.orders, 34)
        db = self.connect()
        self.assertRefused("PW007", call, db, "advance", self.orders, 35, 1)
        rows(holder, "ROLLBACK")
        self.assert_owes(db)


class StatementLogTest(ServerCase):
    settings = {"log_bin": "binlog", "binlog_format": "STATEMENT"}

    def test_no_table_is_protected_where_that_would_fail_its_writes(self):
        with self.assertRaises(pymysql.MySQLError) as caught:
            self.protect(mode="observe")
        self.assertIn("binlog_format", str(caught.exception))
        rows(self.connect(), "UPDATE orders SET n = 1")

    def test_check_names_the_format_and_enforce_is_refused(self):
        admin = self.connect()
        rows(admin, "SET GLOBAL binlog_format = MIXED")
        self.addCleanup(rows, admin, "SET GLOBAL binlog_format = STATEMENT")
        self.protect(mode="observe")
        rows(self.connect(), "UPDATE orders SET n = 1")
        rows(admin, "SET GLOBAL binlog_format = STATEMENT")
        problems = [(row[0], row[3]) for row in call(self.connect(), "problems")]
        self.assertEqual([severity for severity, _ in problems], ["error"])
        self.assertIn("1665", problems[0][1])
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "set_mode", self.orders, "enforce", None, None)

    def test_check_names_a_token_column_that_does_not_see_snapshots(self):
        """In MIXED, too, a trigger reads the newest fence only, whatever its transaction sees."""
        admin = self.connect()
        self.addCleanup(rows, admin, "SET GLOBAL binlog_format = STATEMENT")
        self.addCleanup(call, admin, "unprotect", self.orders)
        for log, named in (("MIXED", True), ("ROW", False)):
            with self.subTest(log):
                rows(admin, f"SET GLOBAL binlog_format = {log}")
                self.protect()
                call(self.connect(), "token_column", self.orders, True)
                token = (self.value("SELECT pawl.fence(%s)", self.orders) or 33) + 1
                call(self.connect(), "advance", self.orders, token, 5)
                old = self.connect(isolation="REPEATABLE READ")
                rows(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
                call(self.connect(), "advance", self.orders, token + 1, 5)
                update = f"UPDATE orders SET n = 9, pawl_token = {token + 1}"
                if named:
                    rows(old, update)
                else:
                    with self.assertRaises(pymysql.MySQLError) as caught:
                        rows(old, update)
                    self.assertIn("after this snapshot", str(caught.exception))
                rows(old, "ROLLBACK")
                problems = [row for row in call(self.connect(), "problems") if row[1]]
                self.assertEqual("reads the newest fence only" in str(problems), named)


if __name__ == "__main__":
    main()
