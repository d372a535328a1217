#!/usr/bin/python3
"""Ways past the guard in SQLite: keys that change under it, sessions whose first call fails,
indexes that come later; and the extension in a file that is locked."""

import json
import os
import sqlite3
import subprocess
import sys

from pawltest import sqlite
from pawltest.sqlite import one, write


class KeyCase(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.db.execute("CREATE TABLE acc (k TEXT, other TEXT, n INTEGER)")

    def problems(self, guard="acc"):
        found = json.loads(one(self.db, "SELECT pawl_problems()"))
        return [each for each in found if each["guard"] == guard and each["severity"] == "error"]

    def key(self, guard="acc"):
        return one(self.db, "SELECT key FROM pawl_guard WHERE name = ?", guard)

    def insert(self, token, k, other, on=None):
        sql = f"INSERT INTO acc (k, other) VALUES ('{k}', '{other}')"
        return write(on or self.db, f"acc:{k}", token, sql)


class AnotherKey(KeyCase):
    def test_guard_is_not_protected_again_under_another_key(self):
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.insert(40, "alice", "x")
        self.db.execute("SELECT pawl_unprotect('acc')")
        for key in ("other", None, "lower(k)"):
            refused = self.refuses(
                "PAWL_INVALID",
                self.db.execute,
                "SELECT pawl_protect('acc', ?, 'enforce')",
                (key,),
            )
            self.assertIn("pawl guard drop sqlite acc", str(refused))
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.refuses("PAWL_STALE", self.insert, 33, "alice", "x")

    def test_tables_with_different_key_columns_do_not_share_a_guard(self):
        self.db.execute("CREATE TABLE more (name TEXT)")
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce', 'people')")
        self.refuses(
            "PAWL_INVALID",
            self.db.execute,
            "SELECT pawl_protect('more', 'name', 'enforce', 'people')",
        )

    def test_key_that_is_another_each_time_is_refused(self):
        for key in (
            "random()",
            "k || random()",
            "lower(hex(randomblob(4)))",
            "date('now')",
            "k || CURRENT_TIMESTAMP",
            "(SELECT max(n) FROM acc)",
            '"no such column"',
        ):
            with self.subTest(key):
                refused = self.refuses(
                    "PAWL_INVALID", self.db.execute, "SELECT pawl_protect('acc', ?)", (key,)
                )
                self.assertIn("follow from its columns alone", str(refused))
        self.db.execute("SELECT pawl_protect('acc', 'lower(k) || date(other)', 'enforce')")


class RenamedKey(KeyCase):
    def test_installing_follows_a_key_column_that_was_renamed(self):
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.insert(40, "alice", "x")
        self.db.execute("ALTER TABLE acc RENAME COLUMN k TO owner")
        self.db.execute("ALTER TABLE acc ADD COLUMN k TEXT")  # Another one has the name now.
        ((problem),) = self.problems()
        self.assertIn("the key column k is owner now", problem["problem"])
        self.db.execute("SELECT pawl_install()")
        self.assertEqual((self.problems(), self.key()), ([], "owner"))
        stale = "INSERT INTO acc (owner, k) VALUES ('alice', 'bob')"
        self.refuses("PAWL_STALE", write, self.db, "acc:alice", 33, stale)

    def test_renamed_column_of_an_expression_is_named_and_stays_judged(self):
        self.db.execute("SELECT pawl_protect('acc', 'lower(k)', 'enforce')")
        self.insert(40, "alice", "x")
        self.db.execute("ALTER TABLE acc RENAME COLUMN k TO owner")
        for _ in range(2):
            self.assertIn("no such column: k", self.problems()[0]["problem"])
            stale = "INSERT INTO acc (owner) VALUES ('Alice')"
            self.refuses("PAWL_STALE", write, self.db, "acc:alice", 33, stale)
            self.db.execute("SELECT pawl_install()")


class RebuiltTable(KeyCase):
    """The key column gets another type or collation, as SQLite's own procedure for that does it."""

    CHANGES = (
        ("TEXT COLLATE NOCASE", "TEXT", "Alice"),
        ("TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "Alice"),
        ("TEXT COLLATE RTRIM", "TEXT", "alice "),
        ("TEXT", "TEXT COLLATE NOCASE", "Alice"),
        ("TEXT", "INTEGER", "07"),
        ("INTEGER", "TEXT", "7"),
    )

    def rebuild(self, column, with_triggers):
        find = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'acc'"
        triggers = [sql for (sql,) in self.db.execute(find).fetchall()]
        for sql in (
            f"CREATE TABLE new (k {column}, other TEXT, n INTEGER)",
            "INSERT INTO new SELECT * FROM acc",
            "DROP TABLE acc",
            "ALTER TABLE new RENAME TO acc",
            *(triggers if with_triggers else ()),
        ):
            self.db.execute(sql)

    def guard(self, column, key):
        self.db.execute("DROP TABLE acc")
        self.db.execute(f"CREATE TABLE acc (k {column}, other TEXT, n INTEGER)")
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.insert(33, key, "x")
        self.db.execute("SELECT pawl_advance(?, 40)", (f"acc:{key}",))

    def key_of_the_row(self):
        return one(self.db, "SELECT CAST(k AS TEXT) FROM acc")

    def write(self, db, token):
        return write(db, f"acc:{self.key_of_the_row()}", token, "UPDATE acc SET n = 1")

    def forget(self):
        self.db.execute("SELECT pawl_unprotect('acc')")
        self.db.execute("SELECT pawl_drop_guard('acc')")

    def test_stale_token_is_refused_after_the_install_that_check_asks_for(self):
        for before, after, key in self.CHANGES:
            for with_triggers in (False, True):
                with self.subTest(before, after=after, with_triggers=with_triggers):
                    self.guard(before, key)
                    self.rebuild(after, with_triggers)
                    self.db.execute("SELECT pawl_install()")
                    self.assertEqual(self.problems(), [])
                    self.refuses("PAWL_STALE", self.write, self.db, 33)
                    self.write(self.db, 40)
                    self.forget()

    def test_changed_key_is_named_and_nothing_is_written_until_then(self):
        for before, after, key in self.CHANGES[:3] + self.CHANGES[4:5]:
            with self.subTest(before, after=after):
                self.guard(before, key)
                self.rebuild(after, with_triggers=True)
                self.assertIn("when its fences were stored", str(self.problems()))
                for token in (33, 40):
                    self.refuses("PAWL_INVALID", self.write, self.db, token)
                self.forget()

    def test_key_is_remembered_where_the_table_was_not_under_guard_meanwhile(self):
        self.guard("TEXT COLLATE NOCASE", "Alice")
        self.db.execute("SELECT pawl_unprotect('acc')")
        self.rebuild("TEXT", with_triggers=False)
        self.db.execute("SELECT pawl_protect('acc', 'k')")
        self.refuses("PAWL_STALE", self.write, self.db, 33)

    def test_operation_is_not_done_twice_afterwards(self):
        self.guard("TEXT COLLATE NOCASE", "Alice")
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("SELECT pawl_use('acc:alice', 40, 1)")
        self.db.execute("COMMIT")
        self.rebuild("TEXT", with_triggers=False)
        self.db.execute("SELECT pawl_install()")
        self.refuses("PAWL_STALE", self.write, self.db, 40)
        self.write(self.db, 41)

    def test_open_connection_notices_the_collation_that_a_column_has_now(self):
        self.guard("TEXT", "Alice")
        open_since_then = self.connect()
        self.write(open_since_then, 40)
        self.rebuild("TEXT COLLATE NOCASE", with_triggers=False)
        self.db.execute("SELECT pawl_install()")
        self.db.execute("SELECT pawl_advance('acc:alice', 50)")
        self.refuses("PAWL_STALE", self.write, open_since_then, 45)

    def test_renamed_key_column_is_named_in_the_refusal(self):
        self.guard("TEXT", "alice")
        self.db.execute("ALTER TABLE acc RENAME COLUMN k TO owner")
        update = "UPDATE acc SET n = 1"
        refused = self.refuses("PAWL_INVALID", write, self.db, "acc:alice", 40, update)
        self.assertIn("the key column k was renamed", str(refused))


class LateIndex(KeyCase):
    def test_replace_through_a_later_unique_index_is_refused(self):
        self.db.execute("SELECT pawl_protect('acc', 'k', 'enforce')")
        self.insert(40, "alice", "x")
        writer = self.connect()
        self.insert(20, "carol", "z", on=writer)
        self.db.execute("CREATE UNIQUE INDEX later ON acc (other)")
        replace = "REPLACE INTO acc (k, other) VALUES ('bob', 'x')"
        self.refuses("PAWL_INVALID", write, writer, "acc:bob", 10, replace)
        self.assertEqual(one(self.db, "SELECT count(*) FROM acc WHERE k = 'alice'"), 1)
        self.db.execute("SELECT pawl_install()")
        self.refuses("PAWL_MISSING", write, writer, "acc:bob", 10, replace)
        self.insert(20, "bob", "y", on=writer)

    def test_observe_lets_it_through(self):
        self.db.execute("SELECT pawl_protect('acc', 'k')")
        self.db.execute("CREATE UNIQUE INDEX later ON acc (other)")
        self.insert(10, "bob", "x")


class FailedUse(KeyCase):
    def assert_owes(self, db):
        self.refuses("PAWL_MISSING", db.execute, "INSERT INTO orders (state) VALUES ('x')")

    def test_session_owes_a_token_after_use_outside_a_transaction(self):
        self.refuses("PAWL_TRANSACTION", self.db.execute, "SELECT pawl_use('orders', 34)")
        self.assert_owes(self.db)
        named = self.connect()
        self.refuses("PAWL_TRANSACTION", named.execute, "SELECT pawl_use('main.orders', 34)")
        self.assert_owes(named)

    def test_session_owes_a_token_after_its_file_was_busy(self):
        db = self.connect(timeout=0)
        self.db.execute("BEGIN IMMEDIATE")
        db.execute("BEGIN")
        self.refuses("PAWL_BUSY", db.execute, "SELECT pawl_use('orders', 34)")
        db.execute("ROLLBACK")
        self.db.execute("ROLLBACK")
        self.assert_owes(db)

    def test_session_owes_a_token_after_its_token_was_refused(self):
        self.db.execute("SELECT pawl_advance('orders', 34)")
        for refused in ("pawl_admit('orders', 33)", "pawl_advance('orders', 33)"):
            with self.subTest(refused):
                db = self.connect()
                if "admit" in refused:
                    db.execute("BEGIN IMMEDIATE")
                self.refuses("PAWL_STALE", db.execute, f"SELECT {refused}")
                self.assert_owes(db)
                if db.in_transaction:
                    db.execute("ROLLBACK")


LOADING = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
db.enable_load_extension(True)
try:
    db.load_extension(sys.argv[2])
except sqlite3.Error as error:
    print("not loaded:", error)
try:
    db.execute("SELECT pawl_fence('orders')")
except sqlite3.Error as error:
    print(error)
db.close()
print("closed")
"""


class LockedFile(sqlite.GuardedFile):
    JOURNAL = "delete"

    def test_extension_is_loaded_while_another_process_has_the_file(self):
        self.db.execute("BEGIN EXCLUSIVE")
        done = subprocess.run(
            [sys.executable, "-c", LOADING, self.path, sqlite.EXTENSION],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[-1], "closed")
        self.assertTrue(done.stdout.startswith("PAWL_BUSY"), done.stdout)

    def test_connection_that_was_opened_meanwhile_works_afterwards(self):
        self.db.execute("BEGIN EXCLUSIVE")
        db = self.connect(timeout=0)
        with self.assertRaises(sqlite3.Error):
            db.execute("SELECT pawl_fence('orders')")
        self.db.execute("ROLLBACK")
        self.assertEqual(write(db, "orders", 34), "admitted")
        db.close()
        self.assertFalse(os.path.exists(self.path + "-journal"))


if __name__ == "__main__":
    sqlite.main()
