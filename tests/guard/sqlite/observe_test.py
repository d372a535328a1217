#!/usr/bin/python3
"""Observe changes nothing: programs without tokens run the same mixed workload with the guard and
without it. Every single statement ends in the same way, and leaves the same behind."""

import random
import sqlite3
import threading

from pawltest import sqlite
from pawltest.sqlite import connect, one

CONNECTIONS = 4
STEPS = 1500
BEGINS = ("BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE")
WRITES = (
    "INSERT INTO work (k, n) VALUES ({k}, {id})",
    "INSERT INTO work (id, k, n) VALUES ({id}, {k}, 1)",  # Often a duplicate.
    "INSERT OR IGNORE INTO work (id, k, n) VALUES ({id}, {k}, 2)",
    "REPLACE INTO work (id, k, n) VALUES ({id}, {k}, 3)",
    "INSERT INTO work (id, k, n) VALUES ({id}, {k}, 4) ON CONFLICT (id) DO UPDATE SET n = n + 1",
    "UPDATE work SET n = n + 1 WHERE id = {id}",
    "UPDATE OR REPLACE work SET id = {k} WHERE id = {id}",
    "UPDATE work SET n = n / 2 WHERE k = {k}",
    "UPDATE work SET n = NULL WHERE id = {id}",  # Breaks NOT NULL where there is such a row.
    "UPDATE work SET parent = {id} WHERE k = {k}",  # Breaks the foreign key where there is none.
    "DELETE FROM work WHERE id = {id}",
    "DELETE FROM work WHERE k > 8",
    "INSERT INTO work (k, n) SELECT k, n FROM work WHERE id = {id}",
    "INSERT INTO parent (id) VALUES ({id})",
    "DELETE FROM parent WHERE id = {id}",  # Cascades.
)
OTHERS = (
    "SELECT count(*), sum(n) FROM work",
    "SELECT n FROM work WHERE id = {id}",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
)


def steps(seed):
    """(connection, statement); the same ones for the same seed."""
    chosen = random.Random(seed)
    for _ in range(STEPS):
        statements = chosen.choices((BEGINS, WRITES, OTHERS), (1, 5, 4))[0]
        yield (
            chosen.randrange(CONNECTIONS),
            chosen.choice(statements).format(id=chosen.randint(1, 12), k=chosen.randint(1, 10)),
        )


class Observe(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.made = 0

    def make(self, guarded, key):
        """A file with a guard in observe, or without one."""
        self.made += 1
        path = f"{self.path}.{self.made}"
        db = connect(path)
        self.addCleanup(db.close)
        db.execute(f"PRAGMA journal_mode = {self.JOURNAL}")
        db.executescript(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY);"
            "CREATE TABLE work (id INTEGER PRIMARY KEY, k INT, n INT NOT NULL, "
            "parent INT REFERENCES parent ON DELETE CASCADE);"
            "CREATE UNIQUE INDEX one_of_k ON work (k) WHERE n = 3;"
        )
        if guarded:
            db.execute("SELECT pawl_install()")
            db.execute("SELECT pawl_protect('work', ?)", (key,))
            db.execute("SELECT pawl_protect('parent')")
        return path

    def outcomes(self, path, seed):
        """One connection after another, and none waits: then it is no chance who is in whose way."""
        databases = [connect(path, timeout=0) for _ in range(CONNECTIONS)]
        found = []
        for db in databases:
            db.execute("PRAGMA foreign_keys = ON")
        for number, statement in steps(seed):
            db = databases[number]
            try:
                cursor = db.execute(statement)
                outcome = (cursor.fetchall(), cursor.rowcount, cursor.lastrowid)
            except sqlite3.Error as error:
                outcome = str(error)
            found.append((statement, outcome, db.in_transaction))
        for db in databases:
            db.close()
        return found, connect(path).execute("SELECT * FROM work ORDER BY id").fetchall()

    def test_every_statement_ends_as_it_would_without_the_guard(self):
        for key in (None, "k", "id", "k % 3"):
            for seed in (1, 2):
                with self.subTest(key=key, seed=seed):
                    plain, rows = self.outcomes(self.make(False, key), seed)
                    guarded, guarded_rows = self.outcomes(self.make(True, key), seed)
                    failures = {outcome for _, outcome, _ in plain if isinstance(outcome, str)}
                    self.assertGreater(len(failures), 5)
                    for number, (without, with_guard) in enumerate(zip(plain, guarded)):
                        self.assertEqual(without, with_guard, f"step {number}")
                    self.assertEqual(rows, guarded_rows)

    def failures(self, path):
        """Writers at the same time, each with rows of its own, who wait for each other."""
        failed = []

        def write(number):
            chosen = random.Random(number)
            db = connect(path, timeout=120)
            for _ in range(40):
                try:
                    db.execute("BEGIN IMMEDIATE")
                    for statement in chosen.sample(WRITES[3:8], 2):
                        db.execute(statement.format(id=number, k=number))
                    db.execute(chosen.choice(("COMMIT", "COMMIT", "ROLLBACK")))
                except sqlite3.Error as error:
                    failed.append(str(error))
                    if db.in_transaction:
                        db.execute("ROLLBACK")
            db.close()

        threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failed

    def test_no_writer_fails_that_would_not_fail_without_the_guard(self):
        for key in (None, "k"):
            with self.subTest(key=key):
                self.assertEqual([], self.failures(self.make(False, key)))
                path = self.make(True, key)
                self.assertEqual([], self.failures(path))
                self.assertGreater(one(connect(path), "SELECT count(*) FROM pawl_sighting"), 0)


class ObserveWithoutWal(Observe):
    JOURNAL = "delete"


if __name__ == "__main__":
    sqlite.main()
