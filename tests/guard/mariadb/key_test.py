#!/usr/bin/python3
"""When two keys are the same: as the key column says, whatever collations, spellings, settings of
the session and triggers of others do."""

import itertools

import pymysql

from pawltest.mariadb import ServerCase, call, main, rows

COLLATIONS = (
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "utf8mb4_nopad_bin",
    "utf8mb4_general_nopad_ci",
    "utf8mb4_uca1400_ai_ci",
    "latin1_swedish_ci",
    "latin1_bin",
)


UUID = "123e4567-e89b-12d3-a456-426655440000"


class KeyCase(ServerCase):
    def table(self, column, name="acc"):
        rows(self.connect(), f"CREATE TABLE {name} (k {column}, n INT NOT NULL DEFAULT 0)")
        return f"{self.db}.{name}"

    def protect_acc(self, column):
        guard = self.table(column)
        self.protect("acc", key="k")
        call(self.connect(), "set_policy", guard, True, None, None, None)
        return guard

    def text(self, collation, column="VARCHAR(100)"):
        return f"{column} CHARACTER SET {collation.split('_')[0]} COLLATE {collation} PRIMARY KEY"


class CollationTest(KeyCase):
    def test_keys_that_the_column_calls_equal_have_one_fence(self):
        words = ("alice", "ALICE", "Alicé", "alice ", "bob")
        db = self.connect()
        tokens = itertools.count(1)
        for collation in COLLATIONS:
            with self.subTest(collation):
                guard = self.protect_acc(self.text(collation))
                for first in words:
                    for second in words:
                        charset = collation.split("_")[0]
                        equal = self.value(
                            f"SELECT CONVERT(%s USING {charset}) COLLATE {collation} = "
                            f"CONVERT(%s USING {charset}) COLLATE {collation}",
                            first,
                            second,
                            on=db,
                        )
                        token = next(tokens)
                        call(db, "advance", f"{guard}:{first}", token, 5)
                        found = self.value("SELECT pawl.fence(%s)", f"{guard}:{second}", on=db)
                        self.assertEqual(found == token, bool(equal), (first, second))
                call(self.connect(), "unprotect", guard)
                call(self.connect(), "drop_guard", guard)
                rows(self.connect(), "DROP TABLE acc")

    def test_what_has_no_weight_behind_a_space_makes_no_second_fence(self):
        for collation, word, other in (
            ("utf8mb4_unicode_ci", "a", "a \u200b"),
            ("utf8mb4_unicode_ci", "a", "a\u0001 "),
            ("utf8mb4_uca1400_ai_ci", "a", "A \u00ad "),
            ("cp1250_general_ci", "a", "a\u00a0"),
        ):
            with self.subTest(collation, other=other):
                guard = self.protect_acc(self.text(collation))
                call(self.connect(), "advance", f"{guard}:{word}", 40, 5)
                self.assertEqual(self.value("SELECT pawl.fence(%s)", f"{guard}:{other}"), 40)
                insert = f"INSERT INTO acc (k) VALUES ('{other}')"
                self.assertRefused("PW002", self.write, 33, f"{guard}:{other}", insert)
                call(self.connect(), "unprotect", guard)
                call(self.connect(), "drop_guard", guard)
                rows(self.connect(), "DROP TABLE acc")

    def test_collations_that_do_not_tell_which_keys_are_equal_are_refused(self):
        for number, collation in enumerate(
            (
                "utf8mb4_uca1400_ai_cs",
                "utf8mb4_uca1400_nopad_ai_cs",
                "utf8mb4_uca1400_as_ci",
                "utf8mb4_uca1400_vietnamese_nopad_as_ci",
                "utf8mb4_thai_520_w2",
                "cp1250_czech_cs",
                "tis620_thai_nopad_ci",
            )
        ):
            with self.subTest(collation):
                self.table(self.text(collation), f"acc{number}")
                with self.assertRaises(pymysql.MySQLError) as caught:
                    self.protect(f"acc{number}", key="k")
                self.assertIn("generated column with a _bin collation", str(caught.exception))
                self.protect(f"acc{number}", mode="observe")  # As a whole it can be.

    def test_problems_names_a_column_that_got_such_a_collation(self):
        guard = self.protect_acc(self.text("utf8mb4_uca1400_ai_ci"))
        rows(self.connect(), "ALTER TABLE acc MODIFY k VARCHAR(99) COLLATE utf8mb4_uca1400_ai_cs")
        self.server.install()  # An upgrade does not fail because of it.
        problems = [row for row in call(self.connect(), "problems") if row[1] == guard]
        self.assertEqual([row[0] for row in problems], ["error"])

    def test_row_cannot_move_to_another_spelling_of_a_fenced_key(self):
        for collation in COLLATIONS:
            with self.subTest(collation):
                guard = self.protect_acc(self.text(collation))
                insert = "INSERT INTO acc (k) VALUES ('alice')"
                self.write(33, f"{guard}:alice", insert)
                call(self.connect(), "advance", f"{guard}:ALICE", 40, 5)
                with self.assertRaises(pymysql.MySQLError):
                    self.write(33, f"{guard}:alice", "UPDATE acc SET k = 'ALICE'")
                call(self.connect(), "unprotect", guard)
                call(self.connect(), "drop_guard", guard)
                rows(self.connect(), "DROP TABLE acc")

    def test_deleted_key_does_not_come_back_in_another_spelling(self):
        guard = self.protect_acc(self.text("utf8mb4_general_ci"))
        self.write(40, f"{guard}:Alice", "INSERT INTO acc (k) VALUES ('Alice')")
        self.write(40, f"{guard}:Alice", "DELETE FROM acc")
        refused = self.assertRefused(
            "PW002", self.write, 33, f"{guard}:alice", "INSERT INTO acc (k) VALUES ('alice')"
        )
        self.assertIn(f"{guard}:alice", str(refused))

    def test_any_spelling_of_a_key_admits_its_holder(self):
        guard = self.protect_acc(self.text("utf8mb4_general_ci"))
        self.write(40, f"{guard}:alice", "INSERT INTO acc (k) VALUES ('ALICE')")
        self.write(40, f"{guard}:aLICE", "UPDATE acc SET n = 1 WHERE k = 'alice'")
        self.write(40, f"{guard}:Alice", "UPDATE acc SET k = 'Alicé'")


class SpellingTest(KeyCase):
    def test_a_number_has_one_spelling(self):
        guard = self.protect_acc("INT PRIMARY KEY")
        self.assertEqual(
            self.write(34, f"{guard}:7", "INSERT INTO acc (k) VALUES (7)"), "admitted"
        )
        db = self.connect(isolation="READ COMMITTED")
        for spelled in ("07", "7.0", "+7", " 7", "7 ", "0x7", "seven"):
            self.assertRefused("PW004", call, db, "advance", f"{guard}:{spelled}", 40, 5)
            self.assertRefused("PW004", self.write, 34, f"{guard}:{spelled}", on=db)
            self.assertEqual(call(db, "check", f"{guard}:{spelled}", 34)[0][0], "unknown")

    def test_each_type_is_named_as_it_is_printed(self):
        for column, spelled, other in (
            ("DECIMAL(8,2)", "7.00", "7.0"),
            ("BIGINT UNSIGNED", "18446744073709551615", "018"),
            ("DATE", "2025-03-01", "2025-3-1"),
            ("DATETIME(3)", "2025-03-01 12:00:00.000", "2025-03-01 12:00:00"),
            ("UUID", UUID, UUID.upper()),
            ("ENUM('small', 'big')", "small", None),
        ):
            with self.subTest(column):
                guard = self.protect_acc(f"{column} PRIMARY KEY")
                insert = f"INSERT INTO acc (k) VALUES ('{spelled}')"
                self.assertEqual(self.write(34, f"{guard}:{spelled}", insert), "admitted")
                if other:
                    self.assertRefused("PW004", self.write, 34, f"{guard}:{other}", insert)
                call(self.connect(), "unprotect", guard)
                call(self.connect(), "drop_guard", guard)
                rows(self.connect(), "DROP TABLE acc")

    def test_guards_with_different_keys_on_one_connection(self):
        guard = self.protect_acc("INT PRIMARY KEY")
        self.table("DATE PRIMARY KEY", "days")
        days = self.protect("days", key="k")
        call(self.connect(), "create_guard", f"{self.db}.mail", True)
        db = self.connect(isolation="READ COMMITTED")
        for _ in range(2):
            rows(db, "START TRANSACTION")
            for resource in (f"{guard}:7", f"{days}:2025-03-01", f"{self.db}.mail:welcome"):
                self.assertEqual(call(db, "use", resource, 34), [("admitted",)])
            self.assertRefused("PW004", call, db, "use", f"{days}:7", 34)
            self.assertRefused("PW004", call, db, "use", f"{guard}:2025-03-01", 34)
            rows(db, "ROLLBACK")

    def test_types_without_one_spelling_cannot_be_keys(self):
        for number, column in enumerate(
            (
                "TIMESTAMP",
                "DOUBLE",
                "FLOAT",
                "BINARY(16)",
                "VARBINARY(20)",
                "SET('a', 'b')",
                "INT(5) ZEROFILL",
            )
        ):
            with self.subTest(column):
                self.table(f"{column} PRIMARY KEY", f"acc{number}")
                with self.assertRaises(pymysql.MySQLError) as caught:
                    self.protect(f"acc{number}", key="k")
                self.assertIn("cannot be a key", str(caught.exception))

    def test_problems_names_a_key_column_that_changed_its_collation(self):
        guard = self.protect_acc(self.text("utf8mb4_general_ci"))
        rows(self.connect(), "ALTER TABLE acc MODIFY k VARCHAR(100) COLLATE utf8mb4_bin")
        self.assertEqual([row[0] for row in self.problems_of(guard)], ["error"])

    def problems_of(self, guard):
        return [row for row in call(self.connect(), "problems") if row[1] == guard]

    def test_problems_names_a_guard_on_a_column_that_can_no_longer_be_a_key(self):
        """As an older version made it, which noted nothing; or as ALTER TABLE did later."""
        for column in ("FLOAT", "TIMESTAMP", "VARBINARY(20)", "INT(5) ZEROFILL"):
            for noted in (True, False):
                with self.subTest(column, noted=noted):
                    guard = self.protect_acc("INT PRIMARY KEY")
                    self.assertEqual(self.problems_of(guard), [])
                    rows(self.connect(), f"ALTER TABLE acc MODIFY k {column}")
                    if not noted:
                        rows(self.connect(), "UPDATE pawl.guard SET key_pattern = NULL")
                    ((severity, _, table, problem, fix),) = self.problems_of(guard)
                    self.assertEqual((severity, table), ("error", guard))
                    self.assertIn("cannot be told apart", problem)
                    self.assertIn("generated column", fix)
                    call(self.connect(), "repair")
                    self.assertEqual(len(self.problems_of(guard)), 1)
                    call(self.connect(), "unprotect", guard)
                    call(self.connect(), "drop_guard", guard)
                    rows(self.connect(), "DROP TABLE acc")

    def test_key_column_of_another_type_is_named_until_it_is_repaired(self):
        guard = self.protect_acc("DATETIME PRIMARY KEY")
        rows(self.connect(), "ALTER TABLE acc MODIFY k DATETIME(3)")
        ((_, _, _, problem, fix),) = self.problems_of(guard)
        self.assertIn("spelled otherwise", problem)
        rows(self.connect(), fix)
        self.assertEqual(self.problems_of(guard), [])

    def test_key_that_the_character_set_cannot_spell_is_no_key(self):
        """It would become a question mark, and so the key of another row."""
        for collation in ("latin1_swedish_ci", "latin1_bin"):
            with self.subTest(collation):
                guard = self.protect_acc(self.text(collation))
                self.write(34, f"{guard}:?", "INSERT INTO acc (k) VALUES ('?')")
                db = self.connect(isolation="READ COMMITTED")
                for key in ("ł", "\u65e5\u672c", "a\U0001f512"):
                    self.assertRefused("PW004", call, db, "advance", f"{guard}:{key}", 40, 5)
                    self.assertRefused("PW004", self.write, 40, f"{guard}:{key}", on=db)
                    self.assertEqual(call(db, "check", f"{guard}:{key}", 34)[0][0], "unknown")
                self.assertEqual(self.value("SELECT pawl.fence(%s)", f"{guard}:?"), 34)
                insert = "INSERT INTO acc (k) VALUES ('é')"
                self.assertEqual(self.write(34, f"{guard}:é", insert), "admitted")
                call(self.connect(), "unprotect", guard)
                call(self.connect(), "drop_guard", guard)
                rows(self.connect(), "DROP TABLE acc")


class ChangedColumnTest(KeyCase):
    """The key column is changed while fences of its keys are stored."""

    CHANGES = (
        ("INT PRIMARY KEY", "MODIFY k DECIMAL(10,2)", "7", "7.00"),
        ("DATE PRIMARY KEY", "MODIFY k DATETIME", "2025-01-02", "2025-01-02 00:00:00"),
        ("INT PRIMARY KEY", "MODIFY k VARCHAR(20)", "7", "7"),
        (
            "VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY",
            "CONVERT TO CHARACTER SET utf8mb4",
            "ab",
            "AB",
        ),
        (
            "VARCHAR(20) COLLATE utf8mb4_bin",
            "MODIFY k VARCHAR(20) COLLATE utf8mb4_general_ci",
            "AB",
            "ab",
        ),
        (
            "VARCHAR(20) COLLATE utf8mb4_general_ci",
            "MODIFY k VARCHAR(20) COLLATE utf8mb4_bin",
            "AB",
            "AB",
        ),
        ("VARCHAR(20) COLLATE utf8mb4_bin", "MODIFY k INT", "7", "7"),
    )

    def problems_of(self, guard):
        return [row for row in call(self.connect(), "problems") if row[1] == guard]

    def forget(self, guard):
        call(self.connect(), "unprotect", guard)
        call(self.connect(), "drop_guard", guard)
        rows(self.connect(), "DROP TABLE acc")

    def test_stale_token_is_refused_after_the_repair_that_problems_asks_for(self):
        for column, change, old, new in self.CHANGES:
            with self.subTest(column, change=change):
                guard = self.protect_acc(column)
                self.write(33, f"{guard}:{old}", f"INSERT INTO acc (k) VALUES ('{old}')")
                call(self.connect(), "advance", f"{guard}:{old}", 40, 5)
                rows(self.connect(), f"ALTER TABLE acc {change}")
                ((severity, _, _, problem, fix),) = self.problems_of(guard)
                self.assertEqual(severity, "error")
                self.assertIn("spelled otherwise", problem)
                rows(self.connect(), fix)
                self.assertEqual(self.problems_of(guard), [])
                update = "UPDATE acc SET n = n + 1"
                self.assertRefused("PW002", self.write, 33, f"{guard}:{new}", update)
                self.assertEqual(self.write(40, f"{guard}:{new}", update), "admitted")
                self.forget(guard)

    def test_operation_is_not_done_twice_after_such_a_repair(self):
        guard = self.protect_acc("INT PRIMARY KEY")
        insert = "INSERT INTO acc (k) VALUES (7)"
        self.assertEqual(self.write(40, f"{guard}:7", insert, op=1), "admitted")
        rows(self.connect(), "ALTER TABLE acc MODIFY k DECIMAL(10,2)")
        call(self.connect(), "repair")
        update = "UPDATE acc SET n = n + 1"
        self.assertRefused("PW002", self.write, 40, f"{guard}:7.00", update, op=1)
        self.assertEqual(self.write(41, f"{guard}:7.00", update, op=1), "admitted")

    def test_change_of_the_character_set_fails_no_write(self):
        """Not before the repair either: of holders, of programs without tokens, in any mode."""
        for collation in ("latin1_swedish_ci", "latin1_bin", "latin1_swedish_nopad_ci"):
            for change in (
                "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
                "MODIFY k VARBINARY(100)",
            ):
                with self.subTest(collation, change=change):
                    guard = self.protect_acc(self.text(collation))
                    self.write(40, f"{guard}:ab", "INSERT INTO acc (k) VALUES ('ab')")
                    rows(self.connect(), f"ALTER TABLE acc {change}")
                    update = "UPDATE acc SET n = n + 1"
                    self.assertRefused("PW002", self.write, 33, f"{guard}:ab", update)
                    self.assertEqual(self.write(40, f"{guard}:ab", update), "admitted")
                    call(self.connect(), "emergency", guard, "a test")
                    rows(self.connect(), update)
                    self.assertEqual(self.value("SELECT n FROM acc"), 2)
                    self.forget(guard)

    def test_generated_key_that_is_computed_otherwise_is_a_problem_until_it_is_repaired(self):
        admin = self.connect()
        rows(admin, "CREATE TABLE gen (id INT PRIMARY KEY, k INT AS (id) STORED, n INT)")
        rows(admin, "INSERT INTO gen (id, n) VALUES (7, 0)")
        guard = self.protect("gen", key="k")
        call(admin, "advance", f"{guard}:7", 40, 5)
        rows(admin, "ALTER TABLE gen MODIFY k INT AS (id + 1) STORED")
        ((severity, _, _, problem, fix),) = self.problems_of(guard)
        self.assertEqual(severity, "error")
        self.assertIn("computed otherwise", problem)
        rows(admin, fix)
        self.assertEqual(self.problems_of(guard), [])
        self.assertRefused("PW002", self.write, 33, f"{guard}:8", "UPDATE gen SET n = 33")
        self.assertEqual(self.write(40, f"{guard}:8", "UPDATE gen SET n = 40"), "admitted")

    def test_key_has_as_many_characters_as_documented(self):
        guard = self.protect_acc(self.text("utf8mb4_bin", "VARCHAR(600)"))
        key = "\u65e5" * 512
        insert = f"INSERT INTO acc (k) VALUES ('{key}')"
        self.assertEqual(self.write(40, f"{guard}:{key}", insert), "admitted")
        self.assertRefused("PW004", self.write, 40, f"{guard}:{key}x", insert)


class LateTriggerTest(KeyCase):
    """A BEFORE trigger that was made after protect() changes the key when ours has judged."""

    def test_key_that_a_later_trigger_changes_is_judged(self):
        guard = self.protect("lines", key="customer")
        call(self.connect(), "set_policy", guard, True, None, None, None)
        self.write(34, f"{guard}:1", "INSERT INTO `lines` (customer) VALUES (1)")
        call(self.connect(), "advance", f"{guard}:2", 40, 5)
        for event in ("INSERT", "UPDATE"):
            rows(
                self.connect(),
                f"CREATE TRIGGER sly_{event} BEFORE {event} ON `lines` FOR EACH ROW "
                "SET NEW.customer = 2",
            )
        for moving in ("INSERT INTO `lines` (customer) VALUES (1)", "UPDATE `lines` SET n = 1"):
            self.assert_undone(f"write to {guard}:2 without a token", moving, f"{guard}:1")
        self.assertEqual(self.value("SELECT COUNT(*) FROM `lines` WHERE customer = 1"), 1)
        call(self.connect(), "token_column", guard, True)  # Ours come behind those of others again.
        carrying = "UPDATE `lines` SET n = 1, pawl_token = 34"
        self.assertRefused("PW002", rows, self.connect(), carrying)
        self.assertEqual(self.value("SELECT COUNT(*) FROM `lines` WHERE customer = 1"), 1)

    def assert_undone(self, why, sql, resource):
        """The row was written already, so the statement is ended in a way that no handler of the
        user's can catch."""
        db = self.connect(isolation="READ COMMITTED")
        with self.assertRaises(pymysql.MySQLError) as caught:
            self.write(34, resource, sql, on=db)
        self.assertEqual(caught.exception.args[0], 1317, caught.exception)
        self.assertIn(why, self.value("SELECT @pawl_refusal", on=db))

    def test_key_that_auto_increment_chooses_is_judged(self):
        guard = self.protect("accounts", key="id")
        call(self.connect(), "set_policy", guard, True, None, None, None)
        call(self.connect(), "advance", f"{guard}:1", 40, 5)
        insert = "INSERT INTO accounts (n) VALUES (1)"
        for token, key in ((34, 0), (40, 1)):
            self.assertRefused("PW001", self.write, token, f"{guard}:{key}", insert)
        self.write(40, f"{guard}:1", "INSERT INTO accounts (id, n) VALUES (1, 1)")

    def test_key_zero_is_judged_as_zero(self):
        guard = self.protect("accounts", key="id")
        call(self.connect(), "set_policy", guard, True, None, None, None)
        db = self.connect(isolation="READ COMMITTED")
        rows(db, "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        self.assertRefused(
            "PW001", self.write, 40, f"{guard}:0", "INSERT INTO accounts (id) VALUES (0)", on=db
        )


class UpgradeTest(KeyCase):
    def test_fences_of_an_older_version_keep_the_greatest_token_of_equal_keys(self):
        guard = self.protect_acc(self.text("utf8mb4_general_ci"))
        admin = self.connect()
        # As the first version stored them.
        rows(admin, "UPDATE pawl.guard SET key_collation = NULL WHERE name = %s", guard)
        for k, token in (("alice", 33), ("ALICE", 40), ("bob", 20)):
            rows(
                admin,
                "INSERT INTO pawl.fence (guard, k, token) SELECT id, %s, %s FROM pawl.guard "
                "WHERE name = %s",
                k,
                token,
                guard,
            )
        self.server.install()
        self.server.install()
        fences = [self.value("SELECT pawl.fence(%s)", f"{guard}:{k}") for k in ("Alice", "Bob")]
        self.assertEqual(fences, [40, 20])
        insert = "INSERT INTO acc (k) VALUES ('alice')"
        self.assertRefused("PW002", self.write, 33, f"{guard}:alice", insert)


if __name__ == "__main__":
    main()
