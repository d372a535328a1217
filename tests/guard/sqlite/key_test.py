#!/usr/bin/python3
"""When two keys are the same: as the key column says. And which rows a write may touch besides."""
import json
import sqlite3

from pawltest import sqlite
from pawltest.sqlite import one, write


class Collations(sqlite.GuardedFile):
    def guard(self, column, table="acc"):
        self.db.execute(f"CREATE TABLE {table} (k {column}, n INT)")
        self.db.execute(f"SELECT pawl_protect('{table}', 'k', 'enforce')")
        self.db.execute(f"SELECT pawl_set_policy('{table}', 'require_token', 1)")

    def test_row_cannot_move_to_another_spelling_of_a_fenced_key(self):
        self.guard("TEXT PRIMARY KEY COLLATE NOCASE")
        write(self.db, "acc:alice", 33, "INSERT INTO acc VALUES ('alice', 0)")
        self.db.execute("SELECT pawl_advance('acc:ALICE', 40)")
        self.refuses(
            "PAWL_STALE", write, self.db, "acc:alice", 33, "UPDATE acc SET k = 'ALICE'"
        )

    def test_deleted_key_does_not_come_back_in_another_spelling(self):
        for number, (collation, other) in enumerate((("NOCASE", "aLICE"), ("RTRIM", "Alice  "))):
            with self.subTest(collation):
                table = f"acc{number}"
                self.guard(f"TEXT PRIMARY KEY COLLATE {collation}", table)
                insert = f"INSERT INTO {table} VALUES ('Alice', 0)"
                write(self.db, f"{table}:Alice", 40, insert)
                write(self.db, f"{table}:{other}", 40, f"DELETE FROM {table}")
                self.refuses(
                    "PAWL_STALE",
                    write,
                    self.db,
                    f"{table}:{other}",
                    33,
                    f"INSERT INTO {table} VALUES ('{other}', 0)",
                )

    def test_keys_that_differ_have_fences_of_their_own(self):
        self.guard("TEXT PRIMARY KEY")
        write(self.db, "acc:alice", 40, "INSERT INTO acc VALUES ('alice', 0)")
        write(self.db, "acc:ALICE", 33, "INSERT INTO acc VALUES ('ALICE', 0)")

    def test_columns_whose_equality_the_text_does_not_tell_cannot_be_keys(self):
        self.db.create_collation("odd", lambda a, b: 0)
        for number, column in enumerate(("", "REAL", "BLOB", "DOUBLE", "TEXT COLLATE odd")):
            with self.subTest(column):
                self.db.execute(f"CREATE TABLE t{number} (k {column}, n INT)")
                self.refuses(
                    "PAWL_INVALID", self.db.execute, f"SELECT pawl_protect('t{number}', 'k')"
                )
        self.db.execute("CREATE TABLE t (k TEXT, n INT)")
        self.refuses(
            "PAWL_INVALID", self.db.execute, "SELECT pawl_protect('t', 'k COLLATE NOCASE')"
        )

    def test_expression_over_a_column_that_ignores_spelling_cannot_be_a_key(self):
        self.db.create_collation("odd", lambda a, b: 0)
        self.db.execute(
            'CREATE TABLE t (name TEXT COLLATE NOCASE, "the code" TEXT COLLATE RTRIM, '
            "x TEXT COLLATE odd, plain TEXT)"
        )
        for expression in (
            "substr(name, 1, 3)",
            "t.NAME || plain",
            'plain || "name"',
            "[the code] || 1",
            "`the code` || 1",
            "coalesce(lower(plain), name)",
            "hex(x)",
            "plain collate nocase",
        ):
            with self.subTest(expression):
                error = self.refuses(
                    "PAWL_INVALID", self.db.execute, "SELECT pawl_protect('t', ?)", (expression,)
                )
                self.assertRegex(str(error), "write (lower|rtrim)|leave it out|instead of COLLATE")
        for expression in (
            "substr(plain, 1, 3)",
            "substr(lower( name ), 1, 3)",
            "UPPER(name) || plain",
            'rtrim("the code") || 1',
            "plain || 'name'",
        ):
            with self.subTest(expression):
                self.db.execute("SELECT pawl_protect('t', ?)", (expression,))
                self.db.execute("SELECT pawl_unprotect('t')")
                self.db.execute("SELECT pawl_drop_guard('t')")

    def test_problems_names_a_guard_on_a_column_that_can_no_longer_be_a_key(self):
        """As an older version made it, or as a rebuilt table has it."""
        for number, (column, key, other) in enumerate(
            (("TEXT", "k", "REAL"), ("TEXT", "substr(k, 1)", "TEXT COLLATE NOCASE"))
        ):
            with self.subTest(key):
                table = f"t{number}"
                self.db.execute(f"CREATE TABLE {table} (k {column}, n INT)")
                self.db.execute(f"SELECT pawl_protect('{table}', ?)", (key,))
                self.assertEqual(self.problems(table), [])
                self.db.execute(f"DROP TABLE {table}")
                self.db.execute(f"CREATE TABLE {table} (k {other}, n INT)")
                self.db.execute("SELECT pawl_install()")
                (found,) = self.problems(table)
                self.assertEqual((found["severity"], found["object"]), ("error", table))
                self.assertIn("another spelling", found["problem"])
                self.assertIn(f"pawl guard unprotect sqlite {table}", found["fix"])

    def problems(self, guard):
        found = json.loads(one(self.db, "SELECT pawl_problems()"))
        return [each for each in found if each["guard"] == guard]

    def test_fences_of_an_older_version_keep_the_greatest_token_of_equal_keys(self):
        self.guard("TEXT PRIMARY KEY COLLATE NOCASE")
        guard = one(self.db, "SELECT id FROM pawl_guard WHERE name = 'acc'")
        for key, token in (("Alice", 33), ("ALICE", 40), ("bob", 20)):  # As it stored them.
            self.db.execute("INSERT INTO pawl_fence VALUES (?, ?, ?)", (guard, key, token))
        other = self.connect()
        self.refuses("PAWL_INVALID", write, other, "acc:alice", 35)
        self.db.execute("SELECT pawl_install()")
        self.assertEqual(one(other, "SELECT pawl_fence('acc:alice')"), 40)
        self.assertEqual(one(other, "SELECT pawl_fence('acc:Bob')"), 20)


class OtherRows(sqlite.GuardedFile):
    def test_partial_unique_index_concerns_its_rows_only(self):
        self.db.execute("CREATE TABLE acc (id INTEGER PRIMARY KEY, mail TEXT, live INT)")
        self.db.execute("CREATE UNIQUE INDEX one_live ON acc (mail) WHERE live = 1 OR mail = ')'")
        self.db.execute("SELECT pawl_protect('acc', 'id', 'enforce')")
        write(self.db, "acc:7", 40, "INSERT INTO acc VALUES (7, 'x', 0)")
        write(self.db, "acc:8", 20, "INSERT INTO acc VALUES (8, 'x', 1)")
        write(self.db, "acc:8", 20, "UPDATE OR REPLACE acc SET live = 1 WHERE id = 8")
        for sql in (
            "REPLACE INTO acc VALUES (9, 'x', 1)",
            "REPLACE INTO acc VALUES (9, ')', 0), (10, ')', 0)",
        ):
            self.refuses("PAWL_MISSING", write, self.db, "acc:9", 20, sql)
        self.assertEqual(one(self.db, "SELECT count(*) FROM acc"), 2)

    def test_column_named_rowid_does_not_hide_the_row_that_replace_deletes(self):
        self.db.execute("CREATE TABLE acc (k TEXT, rowid TEXT)")
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.db.execute("SELECT pawl_set_policy('acc', 'require_token', 1)")
        write(self.db, "acc:a", 40, "INSERT INTO acc VALUES ('a', 'x')")
        self.refuses(
            "PAWL_MISSING",
            write,
            self.db,
            "acc:b",
            20,
            "REPLACE INTO acc (_rowid_, k, rowid) VALUES (1, 'b', 'y')",
        )
        self.assertEqual(one(self.db, "SELECT k FROM acc"), "a")
        self.db.execute("CREATE TABLE hidden (k TEXT, rowid, oid, _ROWID_)")
        self.refuses("PAWL_INVALID", self.db.execute, "SELECT pawl_protect('hidden', 'k')")


    def test_default_that_replace_puts_in_the_place_of_null_deletes_no_other_key(self):
        for number, (columns, index, replace) in enumerate(
            (
                ("u TEXT NOT NULL DEFAULT 'eight' UNIQUE", "", "(7, NULL)"),
                ("u INT NOT NULL DEFAULT 8 UNIQUE", "", "(7, NULL)"),
                ("u TEXT NOT NULL DEFAULT eight UNIQUE", "", "(7, NULL)"),
                ("u TEXT NOT NULL DEFAULT (lower('EIGHT')) UNIQUE", "", "(7, NULL)"),
                ("u NOT NULL DEFAULT -8, p NOT NULL DEFAULT 8, UNIQUE (u, p)", "", "(7, -8, NULL)"),
                ("u NOT NULL DEFAULT 'x', g AS (lower(u)) UNIQUE", "", "(7, NULL)"),
                ("u, p NOT NULL DEFAULT 1", "(u) WHERE p = 1", "(7, 'eight', NULL)"),
                ("u, p INT NOT NULL DEFAULT 1", "(u) WHERE p = '1'", "(7, 'eight', 1)"),
                (
                    "u, p COLLATE NOCASE NOT NULL DEFAULT 'a'",
                    "(u) WHERE p = 'A'",
                    "(7, 'eight', 'a')",
                ),
                ("u, p NOT NULL DEFAULT 1, g AS (p)", "(u) WHERE g = 1", "(7, 'eight', NULL)"),
            )
        ):
            table = f"t{number}"
            with self.subTest(columns):
                self.db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {columns})")
                if index:
                    self.db.execute(f"CREATE UNIQUE INDEX i{number} ON {table} {index}")
                names = [each[1] for each in self.db.execute(f"PRAGMA table_info({table})")]
                given = ", ".join(names)
                self.db.execute(
                    f"INSERT INTO {table} ({names[0]}) VALUES (8)"
                    if not index
                    else f"INSERT INTO {table} (id, u) VALUES (8, 'eight')"
                )
                self.db.execute(f"SELECT pawl_protect('{table}', 'id', 'enforce')")
                write(self.db, f"{table}:8", 30, f"UPDATE {table} SET id = id")
                self.refuses(
                    "PAWL_MISSING",
                    write,
                    self.db,
                    f"{table}:7",
                    20,
                    f"REPLACE INTO {table} ({given}) VALUES {replace}",
                )
                self.assertEqual(one(self.db, f"SELECT id FROM {table}"), 8)

    def test_update_or_replace_with_a_default_deletes_no_other_key(self):
        self.db.execute("CREATE TABLE acc (id INTEGER PRIMARY KEY, u NOT NULL DEFAULT 8 UNIQUE)")
        self.db.execute("INSERT INTO acc VALUES (7, 7), (8, 8)")
        self.db.execute("SELECT pawl_protect('acc', 'id', 'enforce')")
        write(self.db, "acc:8", 30, "UPDATE acc SET u = 8 WHERE id = 8")
        update = "UPDATE OR REPLACE acc SET u = NULL WHERE id = 7"
        self.refuses("PAWL_MISSING", write, self.db, "acc:7", 20, update)
        self.assertEqual(one(self.db, "SELECT count(*) FROM acc"), 2)
        write(self.db, "acc:8", 30, "UPDATE OR REPLACE acc SET u = NULL WHERE id = 8")


class Journal(sqlite.GuardedFile):
    def test_refused_write_leaves_nothing_without_a_journal(self):
        self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.execute("CREATE TABLE acc (id INTEGER PRIMARY KEY, n INT)")
        self.db.execute("SELECT pawl_protect('acc', 'id', 'enforce')")
        write(self.db, "acc:1", 40, "INSERT INTO acc VALUES (1, 0)")
        self.assertEqual(one(self.db, "PRAGMA journal_mode = OFF"), "off")
        self.db.execute("BEGIN")
        for sql in (
            "INSERT INTO acc VALUES (2, 0)",
            "UPDATE acc SET n = 1",
            "DELETE FROM acc",
        ):
            self.refuses("PAWL_INVALID", self.db.execute, sql)
        self.db.execute("COMMIT")
        self.assertEqual(self.db.execute("SELECT * FROM acc").fetchall(), [(1, 0)])


class Renamed(sqlite.GuardedFile):
    def test_table_that_took_the_name_of_a_guarded_one_is_found_and_covered(self):
        write(self.db, "orders", 34)
        self.db.execute("ALTER TABLE orders RENAME TO old")
        self.db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
        refused = self.refuses(
            "PAWL_INVALID", self.db.execute, "SELECT pawl_set_mode('orders', 'enforce')"
        )
        self.assertIn("pawl guard install sqlite", str(refused))
        self.db.execute("SELECT pawl_install()")
        self.db.execute("SELECT pawl_set_mode('orders', 'enforce')")
        insert = "INSERT INTO orders (state) VALUES ('x')"
        self.refuses("PAWL_STALE", write, self.db, "orders", 33, insert)

    def test_rebuilt_table_is_found_and_covered(self):
        write(self.db, "orders", 34)
        for sql in (
            "CREATE TABLE new (id INTEGER PRIMARY KEY, state TEXT, more INT)",
            "DROP TABLE orders",
            "ALTER TABLE new RENAME TO orders",
        ):
            self.db.execute(sql)
        self.refuses("PAWL_INVALID", self.db.execute, "SELECT pawl_set_mode('orders', 'enforce')")
        self.db.execute("SELECT pawl_install()")
        insert = "INSERT INTO orders (state) VALUES ('x')"
        self.refuses("PAWL_STALE", write, self.db, "orders", 33, insert)


class Sessions(sqlite.GuardedFile):
    """Without require_token a program that knows no tokens may write on. A connection that has used
    one is no such program."""

    INSERT = "INSERT INTO orders (state) VALUES ('x')"

    def test_connection_that_has_used_a_token_owes_one(self):
        self.connect().execute(self.INSERT)
        write(self.db, "orders", 34)
        self.refuses("PAWL_MISSING", self.db.execute, self.INSERT)
        self.connect().execute(self.INSERT)

    def test_token_for_another_key_is_no_token(self):
        self.db.execute("CREATE TABLE lines (customer INT)")
        self.db.execute("SELECT pawl_protect('lines', 'customer', 'enforce')")
        insert = "INSERT INTO lines VALUES (2)"
        self.refuses("PAWL_MISSING", write, self.connect(), "lines:1", 34, insert)
        self.connect().execute(insert)


class Emergencies(sqlite.GuardedFile):
    def test_ended_emergency_does_not_come_back_with_a_backup(self):
        write(self.db, "orders", 34)
        backup = sqlite3.connect(":memory:")
        self.addCleanup(backup.close)
        self.db.backup(backup)
        self.db.execute("SELECT pawl_emergency('pager')")
        self.db.execute("SELECT pawl_set_mode('orders', 'enforce')")
        backup.backup(self.db)  # Restored.
        restored = self.connect()
        self.refuses("PAWL_STALE", write, restored, "orders", 33)


if __name__ == "__main__":
    sqlite.main()
