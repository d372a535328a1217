#!/usr/bin/python3
"""The guard in SQLite, statement by statement."""
import json
import sqlite3

from pawltest import sqlite
from pawltest.sqlite import one, write

INSERT = "INSERT INTO orders (state) VALUES ('{}')"


class Tokens(sqlite.GuardedFile):
    def test_stale_token_is_refused_and_counted(self):
        self.assertEqual(write(self.db, "orders", 34, INSERT.format("new")), "admitted")
        refused = self.refuses("PAWL_STALE", write, self.db, "orders", 33, INSERT.format("old"))
        self.assertIsInstance(refused, sqlite3.IntegrityError)
        for part in (
            "a retry cannot succeed",
            "a holder of another lock writes here",
            "pawl raise 34",
        ):
            self.assertIn(part, str(refused))
        self.assertEqual(refused.sqlite_errorname, "SQLITE_CONSTRAINT_TRIGGER")
        self.assertEqual(self.states(), ["new"])
        self.assertEqual(self.counted("orders", "stale"), 1)
        self.assertEqual(one(self.db, "SELECT pawl_fence('orders')"), 34)
        self.assertEqual(
            self.db.execute("SELECT resource, verdict, token, max FROM pawl_refusal").fetchall(),
            [("orders", "stale", 33, 34)],
        )

    def test_refusal_is_counted_when_the_connection_closes(self):
        write(self.db, "orders", 34)
        hasty = sqlite.connect(self.path)
        hasty.execute("BEGIN")
        self.refuses("PAWL_STALE", hasty.execute, "SELECT pawl_use('orders', 33)")
        hasty.close()
        self.assertEqual(self.counted("orders", "stale"), 1)

    def test_write_after_a_refusal_is_refused_again(self):
        write(self.db, "orders", 34)
        for token, word in ((33, "PAWL_STALE"), ("34x", "PAWL_MALFORMED")):
            self.db.execute("BEGIN")
            self.refuses(word, self.db.execute, "SELECT pawl_use('orders', ?)", (token,))
            self.refuses(word, self.db.execute, INSERT.format("x"))
            self.db.execute("COMMIT")
        self.assertEqual(self.states(), [])
        self.assertEqual(self.counted("orders", "stale"), 2)

    def test_a_connection_without_the_extension_cannot_write_at_all(self):
        plain = self.connect(extension=False)
        for sql in (
            INSERT.format("x"),
            "UPDATE orders SET state = 'x'",
            "DELETE FROM orders",
            "REPLACE INTO orders VALUES (1, 'x')",
        ):
            with self.assertRaisesRegex(sqlite3.OperationalError, "no such function: pawl_judge"):
                plain.execute(sql)

    def test_only_integers_from_1_to_2_to_the_53_are_tokens(self):
        for n, token in enumerate((1, "34", 34.0, 2**53 - 1, "9007199254740991")):
            self.db.execute("SELECT pawl_create_guard(?)", (f"g{n}",))
            self.assertEqual(write(self.db, f"g{n}", token), "admitted", token)
        for token in (
            0,
            -1,
            None,
            "",
            "34abc",
            "034",
            "+34",
            " 34",
            "3e1",
            34.5,
            float("inf"),
            2**53,
            float(2**53),
            2**63 - 1,
            b"34",
        ):
            self.refuses("PAWL_MALFORMED", write, self.db, "orders", token, INSERT.format("x"))
        self.assertEqual(self.states(), [])
        self.assertEqual(self.counted("orders", "malformed"), 15)

    def test_a_token_ends_with_its_transaction(self):
        self.db.execute("SELECT pawl_set_policy('orders', 'require_token', 1)")
        write(self.db, "orders", 34, INSERT.format("a"))
        self.refuses("PAWL_MISSING", self.db.execute, INSERT.format("b"))
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('orders', 34)")
        self.db.execute("ROLLBACK")
        self.refuses("PAWL_MISSING", self.db.execute, INSERT.format("b"))
        self.assertEqual(self.counted("orders", "missing"), 2)

    def test_use_needs_a_transaction_and_advance_refuses_one(self):
        self.refuses("PAWL_TRANSACTION", self.db.execute, "SELECT pawl_use('orders', 34)")
        self.db.execute("BEGIN")
        self.refuses("PAWL_TRANSACTION", self.db.execute, "SELECT pawl_advance('orders', 34)")
        self.db.execute("ROLLBACK")
        self.assertIsNone(one(self.db, "SELECT pawl_advance('orders', 34)"))
        self.assertEqual(one(self.db, "SELECT pawl_advance('orders', '35')"), 34)
        self.refuses("PAWL_STALE", self.db.execute, "SELECT pawl_advance('orders', 34)")

    def test_operation_takes_effect_once(self):
        self.assertEqual(write(self.db, "orders", 34, INSERT.format("a"), operation=7), "admitted")
        self.assertEqual(write(self.db, "orders", 34, operation=7), "replayed")
        self.refuses(
            "PAWL_REPLAYED", write, self.db, "orders", 34, INSERT.format("again"), operation=7
        )
        self.assertEqual(write(self.db, "orders", 34, INSERT.format("b"), operation=3), "admitted")
        self.assertEqual(self.states(), ["a", "b"])
        for operation in (0, -1, None, "x"):
            with self.assertRaisesRegex(sqlite3.Error, "^PAWL_MALFORMED"):
                self.db.execute("BEGIN")
                try:
                    self.db.execute("SELECT pawl_use('orders', 34, ?)", (operation,))
                finally:
                    self.db.execute("ROLLBACK")

    def test_savepoint_rollback_keeps_the_token(self):
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("SAVEPOINT a")
        self.db.execute("SELECT pawl_use('orders', 34, 1)")
        self.db.execute("ROLLBACK TO a")
        self.db.execute(INSERT.format("a"))
        self.db.execute("COMMIT")
        self.assertEqual(one(self.db, "SELECT pawl_fence('orders')"), 34)
        self.assertEqual(write(self.db, "orders", 34, operation=1), "replayed")

    def test_fence_is_read_again_after_a_savepoint_rollback(self):
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("SAVEPOINT a")
        for _ in range(2):  # The second one reads what the first one wrote.
            self.db.execute("SELECT pawl_use('orders', 34)")
        self.db.execute("ROLLBACK TO a")
        self.db.execute(INSERT.format("a"))
        self.db.execute("COMMIT")
        self.assertEqual(one(self.db, "SELECT pawl_fence('orders')"), 34)

    def test_fence_is_read_again_after_a_failed_statement(self):
        # The first row raises the fence, the second one reads it, the third one takes it back with
        # the whole statement.
        self.db.execute("CREATE TABLE parts (id INTEGER PRIMARY KEY, n INT CHECK (n > 0))")
        self.db.execute("SELECT pawl_protect('parts', '1', 'enforce')")
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("SAVEPOINT a")
        self.db.execute("SELECT pawl_use('parts:1', 34)")
        self.db.execute("ROLLBACK TO a")
        with self.assertRaises(sqlite3.IntegrityError):
            self.db.execute("INSERT INTO parts (n) VALUES (1), (2), (0)")
        self.db.execute("INSERT INTO parts (n) VALUES (1), (2)")
        self.db.execute("COMMIT")
        self.assertEqual(one(self.db, "SELECT pawl_fence('parts:1')"), 34)

    def test_own_changes_to_the_fence_are_read_again(self):
        for change in ("UPDATE pawl_fence SET token = 40", "UPDATE pawl_guard SET floor = 40"):
            self.db.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                self.db.execute("SELECT pawl_use('orders', 34)")
            self.db.execute(change)
            self.refuses("PAWL_STALE", self.db.execute, INSERT.format("a"))
            self.db.execute("ROLLBACK")

    def test_last_insert_rowid_is_unchanged(self):
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('orders', 34)")
        self.db.execute("INSERT INTO orders VALUES (77, 'a')")
        self.assertEqual(one(self.db, "SELECT last_insert_rowid()"), 77)
        self.assertEqual(one(self.db, "SELECT changes()"), 1)
        self.db.execute("COMMIT")

    def test_loading_the_extension_twice_keeps_the_token(self):
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('orders', 34)")
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite.EXTENSION)
        self.db.execute("SELECT pawl_set_policy('orders', 'require_token', 1)")
        self.db.execute(INSERT.format("a"))
        self.db.execute("COMMIT")
        self.assertEqual(self.states(), ["a"])

    def test_views_and_triggers_cannot_call_use(self):
        self.db.execute("CREATE TABLE notes (n)")
        self.db.execute(
            "CREATE TRIGGER sly AFTER INSERT ON notes BEGIN SELECT pawl_use('orders', 99); END"
        )
        self.db.execute("BEGIN")
        with self.assertRaisesRegex(sqlite3.OperationalError, "unsafe use of pawl_use"):
            self.db.execute("INSERT INTO notes VALUES (1)")
        self.db.execute("ROLLBACK")


class Snapshots(sqlite.GuardedFile):
    def test_old_snapshot_cannot_write_with_an_old_token(self):
        write(self.db, "orders", 33, INSERT.format("a"))
        old = self.connect(timeout=0.1)
        old.execute("BEGIN")
        old.execute("SELECT * FROM orders").fetchall()
        if self.JOURNAL == "wal":
            self.connect().execute("SELECT pawl_advance('orders', 34)")
            refused = self.refuses("PAWL_BUSY", old.execute, "SELECT pawl_use('orders', 33)")
            self.assertEqual(refused.sqlite_errorname, "SQLITE_BUSY_SNAPSHOT")
            with self.assertRaises(sqlite3.OperationalError):
                old.execute(INSERT.format("b"))
        # A reader keeps every writer from committing: nothing is promised before it has ended.
        else:
            self.refuses(
                "PAWL_BUSY",
                self.connect(timeout=0).execute,
                "SELECT pawl_advance('orders', 34, 50)",
            )
            self.assertEqual(one(old, "SELECT pawl_use('orders', 33)"), "admitted")
        old.execute("ROLLBACK")
        self.connect().execute("SELECT pawl_advance('orders', 34)")
        self.refuses("PAWL_STALE", write, old, "orders", 33, INSERT.format("b"))
        self.assertEqual(self.states(), ["a"])

    def test_advance_waits_for_an_open_write_then_is_busy(self):
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('orders', 33)")
        other = self.connect(timeout=0)
        self.refuses("PAWL_BUSY", other.execute, "SELECT pawl_advance('orders', 34, 30)")
        self.assertFalse(other.in_transaction)
        self.db.execute(INSERT.format("a"))
        self.db.execute("COMMIT")
        self.assertEqual(one(other, "SELECT pawl_advance('orders', 34)"), 33)


class SnapshotsWithRollbackJournal(Snapshots):
    JOURNAL = "delete"


class Keys(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.db.execute(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, email TEXT UNIQUE COLLATE NOCASE, n "
            "INT)"
        )
        self.db.execute("SELECT pawl_protect('accounts', 'id', 'enforce')")
        write(self.db, "accounts:1", 50, "INSERT INTO accounts (email, n) VALUES ('one@x', 1)")
        self.db.execute("SELECT pawl_set_policy('accounts', 'require_token', 1)")
        write(self.db, "accounts:2", 20, "INSERT INTO accounts (email, n) VALUES ('two@x', 2)")

    def rows(self):
        return self.db.execute("SELECT id, email, n FROM accounts ORDER BY id").fetchall()

    def test_each_row_has_a_fence_of_its_own(self):
        self.assertEqual(one(self.db, "SELECT pawl_fence('accounts:1')"), 50)
        self.refuses(
            "PAWL_STALE", write, self.db, "accounts:1", 20, "UPDATE accounts SET n = 9 WHERE id = 1"
        )
        write(self.db, "accounts:2", 20, "UPDATE accounts SET n = 3 WHERE id = 2")
        self.refuses("PAWL_UNGUARDED", write, self.db, "accounts", 60)
        self.refuses("PAWL_UNGUARDED", write, self.db, "orders:1", 60)

    def test_replace_is_checked_for_the_row_it_deletes(self):
        before = self.rows()
        for sql in (
            "INSERT OR REPLACE INTO accounts VALUES (2, 'ONE@x', 9)",
            "REPLACE INTO accounts VALUES (2, 'one@x', 9)",
            "UPDATE OR REPLACE accounts SET email = 'one@X' WHERE id = 2",
        ):
            self.refuses("PAWL_MISSING", write, self.db, "accounts:2", 20, sql)
            self.assertEqual(self.rows(), before)
        write(self.db, "accounts:2", 20, "REPLACE INTO accounts VALUES (2, 'new@x', 9)")
        self.assertEqual(self.rows()[1], (2, "new@x", 9))

    def test_changing_the_key_is_checked_for_both_keys(self):
        self.refuses(
            "PAWL_MISSING",
            write,
            self.db,
            "accounts:2",
            20,
            "UPDATE accounts SET id = 3 WHERE id = 2",
        )
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('accounts:2', 20), pawl_use('accounts:3', 20)")
        self.db.execute("UPDATE accounts SET id = 3 WHERE id = 2")
        self.db.execute("COMMIT")
        self.assertEqual(one(self.db, "SELECT pawl_fence('accounts:3')"), 20)

    def test_refusal_of_one_row_undoes_the_statement(self):
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('accounts:1', 60)")
        self.refuses("PAWL_MISSING", self.db.execute, "UPDATE accounts SET n = n + 100")
        self.refuses("PAWL_MISSING", self.db.execute, "INSERT INTO accounts VALUES (10, 'x', 0)")
        self.refuses("PAWL_MISSING", self.db.execute, "DELETE FROM accounts")
        self.db.execute("COMMIT")  # What is left of the transaction is nothing.
        self.assertEqual(self.rows(), [(1, "one@x", 1), (2, "two@x", 2)])
        self.assertEqual(self.counted("accounts", "missing"), 3)

    def test_refusal_undoes_the_statement_without_constraints(self):
        self.db.execute("CREATE TABLE bare (k INT, n)")
        self.db.execute("INSERT INTO bare VALUES (1, 1), (2, 2)")
        self.db.execute("SELECT pawl_protect('bare', 'k', 'enforce')")
        self.db.execute("SELECT pawl_set_policy('bare', 'require_token', 1)")
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_use('bare:1', 60)")
        for sql in (
            "UPDATE bare SET n = 9",
            "DELETE FROM bare",
            "INSERT INTO bare VALUES (1, 3), (2, 3)",
        ):
            self.refuses("PAWL_MISSING", self.db.execute, sql)
        self.db.execute("COMMIT")
        self.assertEqual(self.db.execute("SELECT * FROM bare").fetchall(), [(1, 1), (2, 2)])

    def test_a_deleted_row_keeps_its_fence(self):
        write(self.db, "accounts:1", 51, "DELETE FROM accounts WHERE id = 1")
        self.refuses(
            "PAWL_STALE",
            write,
            self.db,
            "accounts:1",
            50,
            "INSERT INTO accounts VALUES (1, 'x', 0)",
        )

    def test_compact_forgets_only_what_the_floor_refuses(self):
        self.assertEqual(one(self.db, "SELECT pawl_compact('accounts', 40)"), 1)
        self.refuses("PAWL_STALE", write, self.db, "accounts:2", 39)
        self.refuses("PAWL_STALE", write, self.db, "accounts:1", 49)
        self.assertEqual(write(self.db, "accounts:2", 41), "admitted")

    def test_an_expression_and_a_table_without_rowid(self):
        self.db.execute(
            'CREATE TABLE "order lines" (o INT, "no" INT, t TEXT, PRIMARY KEY (o, "no")) WITHOUT '
            "ROWID"
        )
        self.db.execute("SELECT pawl_protect('order lines', 'o / 10', 'enforce', 'lines')")
        self.db.execute("SELECT pawl_set_policy('lines', 'require_token', 1)")
        write(
            self.db, "lines:1", 7, "INSERT INTO \"order lines\" VALUES (11, 1, 'a'), (12, 1, 'b')"
        )
        self.refuses(
            "PAWL_MISSING",
            write,
            self.db,
            "lines:1",
            7,
            "INSERT INTO \"order lines\" VALUES (21, 1, 'a')",
        )
        self.refuses(
            "PAWL_MISSING", write, self.db, "lines:1", 7, 'UPDATE "order lines" SET o = 29'
        )
        self.refuses("PAWL_STALE", write, self.db, "lines:1", 6, 'DELETE FROM "order lines"')

    def test_cascade_is_checked_in_its_target_table(self):
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
        self.db.execute("CREATE TABLE visits (c INT REFERENCES customers ON DELETE CASCADE)")
        self.db.execute("SELECT pawl_protect('visits', NULL, 'enforce')")
        self.db.execute("INSERT INTO customers VALUES (1)")
        write(self.db, "visits", 5, "INSERT INTO visits VALUES (1)")
        self.db.execute("SELECT pawl_set_policy('visits', 'require_token', 1)")
        self.refuses("PAWL_MISSING", self.db.execute, "DELETE FROM customers")
        self.assertEqual(one(self.db, "SELECT count(*) FROM visits"), 1)
        write(self.db, "visits", 5, "DELETE FROM customers")
        self.assertEqual(one(self.db, "SELECT count(*) FROM visits"), 0)


class KeysWithRecursiveTriggers(Keys):
    def setUp(self):
        super().setUp()
        self.db.execute("PRAGMA recursive_triggers = ON")


class SeveralFiles(sqlite.GuardedFile):
    def test_attached_file_has_its_own_fences(self):
        write(self.db, "orders", 50, INSERT.format("a"))
        other = sqlite.connect(self.path + "2")
        other.execute("CREATE TABLE parts (n)")
        other.execute("SELECT pawl_install()")
        other.execute("SELECT pawl_protect('parts', NULL, 'enforce')")
        write(other, "parts", 7)
        other.close()
        self.db.execute("ATTACH ? AS store", (self.path + "2",))
        write(self.db, "parts", 7, "INSERT INTO parts VALUES (1)")
        self.refuses("PAWL_STALE", write, self.db, "parts", 6, "INSERT INTO parts VALUES (2)")
        self.assertEqual(one(self.db, "SELECT n FROM store.pawl_count WHERE verdict = 'stale'"), 1)
        self.db.execute("DETACH store")
        self.refuses("PAWL_UNGUARDED", write, self.db, "parts", 8)

    def test_guards_of_one_name_are_told_apart_by_their_schema(self):
        write(self.db, "orders", 50, INSERT.format("a"))
        other = sqlite.connect(self.path + "2")
        other.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
        other.execute("SELECT pawl_install()")
        other.execute("SELECT pawl_protect('orders', NULL, 'enforce')")
        other.close()
        self.db.execute("ATTACH ? AS store", (self.path + "2",))
        error = self.refuses("PAWL_INVALID", write, self.db, "orders", 51)
        self.assertIn("main.orders or store.orders", str(error))
        insert = "INSERT INTO {}.orders (state) VALUES ('b')"
        write(self.db, "store.orders", 7, insert.format("store"))
        self.refuses("PAWL_STALE", write, self.db, "store.orders", 6, insert.format("store"))
        write(self.db, "main.orders", 51, insert.format("main"))
        self.refuses("PAWL_STALE", write, self.db, "main.orders", 50, insert.format("main"))
        self.refuses("PAWL_MISSING", write, self.db, "main.orders", 52, insert.format("store"))
        self.refuses("PAWL_UNGUARDED", write, self.db, "elsewhere.orders", 52)
        self.assertEqual(one(self.db, "SELECT pawl_fence('main.orders')"), 51)
        self.assertEqual(one(self.db, "SELECT pawl_fence('store.orders')"), 7)
        (problem,) = json.loads(one(self.db, "SELECT pawl_problems()"))
        self.assertEqual((problem["severity"], problem["guard"]), ("warning", "orders"))
        self.assertIn("pawl_use('store.orders', …)", problem["fix"])
        self.db.execute("DETACH store")
        self.assertEqual(one(self.db, "SELECT pawl_problems()"), "[]")
        write(self.db, "orders", 51, INSERT.format("c"))

    def test_two_copies_of_one_file_are_not_mixed_up(self):
        copy = sqlite3.connect(self.path + ".copy")
        self.db.backup(copy)
        copy.close()
        self.db.execute("ATTACH ? AS copy", (self.path + ".copy",))
        self.refuses(
            "PAWL_INVALID", self.db.execute, "INSERT INTO copy.orders (state) VALUES ('x')"
        )
        self.refuses("PAWL_INVALID", write, self.db, "orders", 9)

    def test_vacuum_backup_and_dump_keep_the_guard(self):
        write(self.db, "orders", 34, INSERT.format("a"))
        self.db.execute("VACUUM")
        self.refuses("PAWL_STALE", write, self.db, "orders", 33)
        restored = self.path + ".restored"
        plain = sqlite3.connect(restored)
        plain.executescript("\n".join(self.db.iterdump()))
        plain.close()
        again = sqlite.connect(restored)
        self.addCleanup(again.close)
        self.refuses("PAWL_STALE", write, again, "orders", 33)
        self.assertEqual(write(again, "orders", 34, INSERT.format("b")), "admitted")


class Modes(sqlite.GuardedFile):
    def test_observe_and_shadow_let_through_and_count(self):
        write(self.db, "orders", 34, INSERT.format("a"))
        for mode, would in (("observe", 0), ("shadow", 1)):
            self.db.execute("SELECT pawl_set_mode('orders', ?)", (mode,))
            self.assertEqual(write(self.db, "orders", 33, INSERT.format(mode)), "stale")
            self.assertEqual(self.counted("orders", "would_refuse"), would)
        self.db.execute(INSERT.format("tokenless"))
        self.assertEqual(self.counted("orders", "missing"), 1)
        self.assertEqual(
            one(self.db, "SELECT count(*) FROM pawl_sighting WHERE what = 'tokenless'"), 1
        )
        self.assertEqual(one(self.db, "SELECT pawl_fence('orders')"), 34)

    def test_emergency_does_not_wait_for_a_writer(self):
        write(self.db, "orders", 34, INSERT.format("a"))
        stuck = self.connect()
        stuck.execute("BEGIN IMMEDIATE")
        impatient = self.connect(timeout=0)
        self.assertEqual(one(impatient, "SELECT pawl_emergency('pager')"), 1)
        stuck.execute("ROLLBACK")
        self.assertEqual(write(self.db, "orders", 33, INSERT.format("b")), "stale")
        self.db.execute("SELECT pawl_set_mode('orders', 'enforce')")
        self.refuses("PAWL_STALE", write, self.db, "orders", 33)
        self.assertIn(
            ("shadow (emergency) -> enforce",),
            self.db.execute("SELECT detail FROM pawl_audit").fetchall(),
        )

    def emergencies(self):
        return self.db.execute(
            "SELECT guard, reason FROM pawl_audit WHERE what = 'emergency' ORDER BY id"
        ).fetchall()

    def test_emergency_during_a_write_is_audited_later(self):
        stuck = self.connect()
        stuck.execute("BEGIN IMMEDIATE")
        one(self.connect(timeout=0), "SELECT pawl_emergency('pager 7:\nthe new shop is refused')")
        # Behind the same writer: it prints what there is, without waiting.
        one(self.db, "SELECT pawl_status()")
        self.assertEqual(self.emergencies(), [])
        stuck.execute("ROLLBACK")
        for _ in range(2):
            one(self.db, "SELECT pawl_status()")
            self.assertEqual(self.emergencies(), [("orders", "pager 7: the new shop is refused")])

    def test_emergency_is_audited_before_the_next_mode(self):
        stuck = self.connect()
        stuck.execute("BEGIN IMMEDIATE")
        one(self.connect(timeout=0), "SELECT pawl_emergency('first')")
        stuck.execute("ROLLBACK")
        self.db.execute("SELECT pawl_set_mode('orders', 'enforce')")
        one(self.db, "SELECT pawl_emergency('second')")
        self.db.execute("SELECT pawl_set_mode('orders', 'enforce')")
        self.assertEqual(self.emergencies(), [("orders", "first"), ("orders", "second")])
        audited = [what for what, in self.db.execute("SELECT what FROM pawl_audit ORDER BY id")]
        self.assertEqual(audited[-4:], ["emergency", "mode", "emergency", "mode"])

    def test_rolled_back_emergency_stays_on_and_is_audited(self):
        self.db.execute("BEGIN IMMEDIATE")
        one(self.db, "SELECT pawl_emergency('in between')")
        self.db.execute("ROLLBACK")
        self.assertEqual(self.emergencies(), [])
        self.assertEqual(
            json.loads(one(self.db, "SELECT pawl_status('orders')"))[0]["mode"], "shadow"
        )
        self.assertEqual(self.emergencies(), [("orders", "in between")])

    def test_a_rolled_back_change_of_mode_changes_nothing(self):
        write(self.db, "orders", 34)
        self.db.execute("BEGIN")
        self.db.execute("SELECT pawl_set_mode('orders', 'shadow')")
        self.db.execute("ROLLBACK")
        self.refuses("PAWL_STALE", write, self.db, "orders", 33)

    def test_synchronous_below_full_is_recorded(
        self,
    ):
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("SELECT pawl_advance('orders', 3)")
        self.assertEqual(one(self.db, "PRAGMA synchronous"), 0)
        write(self.db, "orders", 34)
        self.assertEqual(one(self.db, "SELECT n FROM pawl_sighting WHERE what = 'synchronous'"), 1)

    def test_unsupported_tables_are_refused(self):
        self.db.execute("CREATE VIEW v AS SELECT 1")
        self.db.execute("CREATE TABLE e (a, b)")
        self.db.execute("CREATE UNIQUE INDEX odd ON e (lower(b))")
        for arguments in (
            ("v",),
            ("nothing",),
            ("orders",),
            ("e", "a"),
            ("e", "no_such_function(a)"),
        ):
            marks = ", ".join("?" * len(arguments))
            with self.assertRaises(sqlite3.Error, msg=arguments):
                self.db.execute(f"SELECT pawl_protect({marks})", arguments)
            self.assertFalse(self.db.in_transaction)

    def test_uninstall_restores_the_file(self):
        self.db.execute("SELECT pawl_uninstall()")
        self.connect(extension=False).execute(INSERT.format("free"))
        self.assertEqual(
            one(self.db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'pawl%'"), 0
        )


if __name__ == "__main__":
    sqlite.main()
