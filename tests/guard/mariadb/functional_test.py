#!/usr/bin/python3
"""The MariaDB guard, one rule at a time, through the mariadb client and PyMySQL."""

import pymysql

from pawltest.mariadb import ServerCase, call, detail, main, rows


class WriteTest(ServerCase):
    def test_a_stale_write_is_refused_in_the_mariadb_client(self):
        self.protect()
        self.assertEqual(self.write(34), "admitted")
        done = self.server.client(
            f"START TRANSACTION; CALL pawl.use('{self.orders}', 33); UPDATE {self.orders} SET n = "
            f"99; COMMIT;"
        )
        self.assertIn("(PW002)", done.stderr)
        for part in (
            "token=33 max=34 mode=enforce]",
            "a retry cannot succeed",
            "a holder of another lock writes here",
            "pawl raise 34",
        ):
            self.assertIn(part, done.stderr)
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1)

    def test_longest_refusal_keeps_its_machine_readable_end(self):
        guard, most = "g" * 60, 2**53 - 1
        self.assertEqual(
            self.server.client(
                f"CALL pawl.create_guard('{guard}', TRUE); CALL pawl.set_mode('{guard}', "
                f"'enforce', NULL, NULL);"
            ).stderr,
            "",
        )
        for key in ("k" * 180, "\N{KEY}" * 100):
            resource = f"{guard}:{key}"
            done = self.server.client(
                f"CALL pawl.advance('{resource}', {most}, 5); CALL pawl.advance('{resource}', "
                f"{most - 1}, 5);"
            )
            self.assertIn(f"max={most} mode=enforce]", done.stderr)

    def test_write_after_a_refusal_is_refused_again(self):
        self.protect()
        self.write(34)
        db = self.connect()
        rows(db, "START TRANSACTION")
        self.assertRefused("PW002", call, db, "use", self.orders, 33)
        error = self.assertRefused("PW002", rows, db, "UPDATE orders SET n = 99")
        self.assertEqual(detail(error), {"token": "33", "max": "34", "mode": "enforce"})
        rows(db, "COMMIT")
        self.assertEqual(self.value("SELECT MAX(n) FROM orders"), 1)

    def test_every_kind_of_statement_is_checked(self):
        self.protect()
        self.write(34)
        for sql in (
            "INSERT INTO orders (n) VALUES (9)",
            "REPLACE INTO orders (id, n) VALUES (1, 9)",
            "INSERT INTO orders (id, n) VALUES (1, 9) ON DUPLICATE KEY UPDATE n = 9",
            "INSERT IGNORE INTO orders (id, n) VALUES (1, 9)",
            "INSERT INTO orders (n) SELECT 9",
            "UPDATE orders SET n = 9",
            "UPDATE IGNORE orders SET n = 9",
            "UPDATE orders, accounts SET orders.n = 9",
            "UPDATE orders o LEFT JOIN accounts a ON FALSE SET o.n = 9",
            "DELETE FROM orders",
            "DELETE IGNORE FROM orders",
            "DELETE o FROM orders o LEFT JOIN accounts a ON FALSE",
            "DELETE FROM orders RETURNING id",
        ):
            with self.subTest(sql):
                rows(admin := self.connect(), "INSERT INTO accounts (n) VALUES (1)")
                before = rows(admin, "SELECT * FROM orders ORDER BY id")
                db = self.connect()
                rows(db, "START TRANSACTION")
                self.assertRefused("PW002", call, db, "use", self.orders, 33)
                try:
                    rows(db, sql)
                except pymysql.MySQLError as error:
                    self.assertIn("stale token 33", str(error))
                rows(db, "COMMIT")
                self.assertEqual(rows(admin, "SELECT * FROM orders ORDER BY id"), before)

    def test_load_data_is_checked(self):
        self.protect()
        self.write(34)
        done = self.server.client(
            f"""START TRANSACTION;
            CALL pawl.use('{self.orders}', 33);
            LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE {self.orders} (@line) SET n = 7;
            COMMIT;""",
            options=("--local-infile=1", "--force"),
        )
        self.assertEqual(done.stderr.count("(PW002)"), 2, done.stderr)
        self.assertEqual(self.value("SELECT COUNT(*) FROM orders"), 2)

    def test_refused_statement_leaves_no_rows(self):
        self.protect("lines", key="customer")
        db = self.connect()
        call(db, "advance", f"{self.db}.lines:1", 33, 5)
        call(db, "advance", f"{self.db}.lines:2", 40, 5)
        rows(db, "START TRANSACTION")
        call(db, "use", f"{self.db}.lines:1", 33)
        self.assertRefused("PW002", call, db, "use", f"{self.db}.lines:2", 33)
        self.assertRefused("PW002", rows, db, "INSERT INTO `lines` (customer) VALUES (1), (2)")
        rows(db, "COMMIT")
        self.assertEqual(self.value("SELECT COUNT(*) FROM `lines`"), 0)

    def test_token_must_be_plain_digits(self):
        self.protect()
        db = self.connect()
        rows(db, "START TRANSACTION")
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
            "1e3",
            "abc",
            "",
            None,
            "9007199254740992",
            "9" * 40,
        ):
            self.assertRefused("PW003", call, db, "use", self.orders, spelled)
        rows(db, "ROLLBACK")
        self.assertEqual(self.write(9007199254740991), "admitted")

    def test_token_equal_to_the_fence_must_be_plain_digits(self):
        """MariaDB's "=" pads with spaces, and compares a number with the beginning of a text."""
        self.protect()
        guard = self.protect("lines", key="customer")
        for resource in (self.orders, f"{guard}:7"):
            call(self.connect(), "advance", resource, 34, 5)
            for spelled in ("34 ", "34\n", "034", "34.0", "34x", "%", "__"):
                with self.subTest((resource, spelled)):
                    self.assertRefused(
                        "PW003", call, self.connect(autocommit=False), "use", resource, spelled
                    )
                    self.assertRefused("PW003", call, self.connect(), "begin", resource, spelled)

    def test_a_token_too_far_ahead_is_refused_and_moves_nothing(self):
        self.protect()
        self.write(34)
        self.assertRefused("PW005", self.write, 34 + 2**44 + 1)
        self.assertEqual(self.value("SELECT pawl.fence(%s)", self.orders), 34)
        self.assertEqual(self.write(34), "admitted")

    def test_only_innodb_tables_that_exist_can_be_protected(self):
        db = self.connect()
        rows(db, "CREATE TABLE old (id INT) ENGINE=Aria")
        for table in (f"{self.db}.old", f"{self.db}.none", "orders", "pawl.guard"):
            with self.assertRaises(pymysql.MySQLError, msg=table):
                call(db, "protect", table, None, None, "observe")

    def test_protecting_twice_and_installing_again_keep_the_fence(self):
        self.protect()
        self.write(34)
        self.protect()
        self.server.install()
        self.assertRefused("PW002", self.write, 33)

    def test_several_tables_share_one_fence(self):
        self.protect()
        self.protect("accounts", guard=self.orders)
        self.write(34)
        self.assertRefused("PW002", self.write, 33, sql="INSERT INTO accounts (n) VALUES (1)")
        self.assertEqual(self.write(34, sql="INSERT INTO accounts (n) VALUES (1)"), "admitted")


class KeyTest(ServerCase):
    def test_each_value_of_a_column_has_a_fence_of_its_own(self):
        guard = self.protect("lines", key="customer")
        insert = "INSERT INTO `lines` (customer) VALUES ({})"
        self.assertEqual(self.write(34, f"{guard}:1", insert.format(1)), "admitted")
        self.assertEqual(self.write(33, f"{guard}:2", insert.format(2)), "admitted")
        self.assertRefused("PW002", self.write, 33, f"{guard}:1", insert.format(1))
        self.assertRefused("PW004", self.write, 34, guard, insert.format(1))

    def test_row_that_changes_its_key_is_checked_for_both_keys(self):
        guard = self.protect("lines", key="customer")
        call(self.connect(), "set_policy", guard, True, None, None, None)
        self.write(34, f"{guard}:1", "INSERT INTO `lines` (customer) VALUES (1)")
        self.assertRefused("PW001", self.write, 34, f"{guard}:1", "UPDATE `lines` SET customer = 2")
        self.assertRefused("PW001", self.write, 34, f"{guard}:2", "UPDATE `lines` SET customer = 2")

    def test_deleted_row_keeps_its_fence(self):
        guard = self.protect("accounts", key="id")
        self.write(34, f"{guard}:7", "INSERT INTO accounts (id) VALUES (7)")
        self.write(34, f"{guard}:7", "DELETE FROM accounts WHERE id = 7")
        self.assertRefused(
            "PW002", self.write, 33, f"{guard}:7", "INSERT INTO accounts (id) VALUES (7)"
        )

    def test_compact_keeps_what_live_tokens_need(self):
        guard = self.protect("accounts", key="id")
        self.write(34, f"{guard}:7", "INSERT INTO accounts (id) VALUES (7)")
        self.write(40, f"{guard}:8", "INSERT INTO accounts (id) VALUES (8)")
        call(self.connect(), "compact", guard, 36)
        self.assertRefused(
            "PW002", self.write, 35, f"{guard}:7", "UPDATE accounts SET n = 1 WHERE id = 7"
        )
        self.assertRefused(
            "PW002", self.write, 39, f"{guard}:8", "UPDATE accounts SET n = 1 WHERE id = 8"
        )
        self.assertEqual(
            self.write(36, f"{guard}:7", "UPDATE accounts SET n = 1 WHERE id = 7"), "admitted"
        )

    def test_several_resources_are_admitted_together_or_not_at_all(self):
        guard = self.protect("lines", key="customer")
        self.write(34, f"{guard}:2", "INSERT INTO `lines` (customer) VALUES (2)")
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        self.assertRefused("PW002", call, db, "use_all", f'["{guard}:1", "{guard}:2"]', 33)
        rows(db, "COMMIT")
        self.assertIsNone(self.value("SELECT pawl.fence(%s)", f"{guard}:1"))
        rows(db, "START TRANSACTION")
        self.assertEqual(call(db, "use_all", f'["{guard}:2", "{guard}:1"]', 35), [("admitted",)])
        rows(db, "INSERT INTO `lines` (customer) VALUES (1), (2)")
        rows(db, "COMMIT")
        self.assertEqual(self.value("SELECT pawl.fence(%s)", f"{guard}:1"), 35)


class OperationTest(ServerCase):
    def test_operation_takes_effect_once_in_any_order(self):
        self.protect()
        answers = [self.write(34, op=op) for op in (2, 1, 2, 1, 3)]
        self.assertEqual(answers, ["admitted", "admitted", "replayed", "replayed", "admitted"])
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 3)

    def test_a_write_after_replayed_is_refused(self):
        self.protect()
        self.write(34, op=1)
        db = self.connect()
        rows(db, "START TRANSACTION")
        self.assertEqual(call(db, "use_op", self.orders, 34, 1), [("replayed",)])
        self.assertRefused("PW008", rows, db, "UPDATE orders SET n = 9")

    def test_rolled_back_operation_was_not_done(self):
        self.protect()
        db = self.connect()
        rows(db, "START TRANSACTION")
        call(db, "use_op", self.orders, 34, 1)
        rows(db, "ROLLBACK")
        self.assertEqual(self.write(34, op=1), "admitted")


if __name__ == "__main__":
    main()
