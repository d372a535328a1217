"""A guarded SQLite file for each test, and connections that have Pawl's extension.

Environment: PAWL_SQLITE is libpawl_sqlite.so.
"""

import os
import sqlite3
import tempfile
import unittest

EXTENSION = os.environ.get("PAWL_SQLITE", "")


def connect(path, timeout=5.0, extension=True):
    """Autocommit: transactions begin where the test says so."""
    connection = sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    if extension:
        connection.enable_load_extension(True)
        connection.load_extension(EXTENSION)
        connection.enable_load_extension(False)
    return connection


def one(connection, sql, *parameters):
    row = connection.execute(sql, parameters).fetchone()
    return None if row is None else row[0]


def write(connection, resource, token, *statements, operation=None):
    """One transaction under a token; rolled back when it is refused. What pawl_use() answered."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        given = (resource, token) if operation is None else (resource, token, operation)
        verdict = one(connection, f"SELECT pawl_use({', '.join('?' * len(given))})", *given)
        for statement in statements:
            connection.execute(statement)
        connection.execute("COMMIT")
        return verdict
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class GuardedFile(unittest.TestCase):
    JOURNAL = "wal"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-sqlite-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "shop.db")
        self.db = self.connect()
        self.assertEqual(one(self.db, f"PRAGMA journal_mode = {self.JOURNAL}"), self.JOURNAL)
        self.db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
        self.db.execute("SELECT pawl_install()")
        self.db.execute("SELECT pawl_protect('orders', NULL, 'enforce')")

    def connect(self, **options):
        connection = connect(self.path, **options)
        self.addCleanup(connection.close)
        return connection

    def refuses(self, word, call, *arguments, **named):
        with self.assertRaises(sqlite3.Error) as caught:
            call(*arguments, **named)
        self.assertTrue(str(caught.exception).startswith(word), str(caught.exception))
        return caught.exception

    def states(self):
        return [
            row[0]
            for row in self.connect(extension=False).execute("SELECT state FROM orders ORDER BY id")
        ]

    def counted(self, guard, verdict):
        return one(
            self.db,
            "SELECT coalesce(sum(n), 0) FROM pawl_count c JOIN pawl_guard g ON g.id = c.guard "
            "WHERE g.name = ? AND verdict = ?",
            guard,
            verdict,
        )


def main():
    unittest.main()
