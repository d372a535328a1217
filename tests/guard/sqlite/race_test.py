#!/usr/bin/python3
"""Old and new holders in processes of their own, some of them killed in the middle.

Each process writes (token, place) lines under tokens that grow, sometimes old ones. In the order in
which the lines came into the table, which is the order of commits, no token may be smaller than one
before it. """
import multiprocessing
import os
import random
import signal
import sqlite3

from pawltest import sqlite
from pawltest.sqlite import one

ROUNDS = 120
WRITERS = 4


def turn(connection, token, value):
    """One write; True when it was committed."""
    try:
        connection.execute("BEGIN")  # Deferred: taking the lock is left to pawl_use().
        connection.execute("SELECT pawl_use('log', ?)", (token,))
        connection.execute("INSERT INTO log (token, value) VALUES (?, ?)", (token, value))
        connection.execute("COMMIT")
        return True
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if not str(error).startswith(("PAWL_STALE", "PAWL_BUSY", "database is locked")):
            raise
        return False


def writer(path, newest, seed, answers):
    random.seed(seed)
    connection = sqlite.connect(path, timeout=20)
    for number in range(ROUNDS):
        with newest.get_lock():
            if random.random() < 0.2:
                newest.value += 1
            token = max(1, newest.value - random.randrange(3))
        value = f"{seed}-{number}"
        if random.random() < 0.1:
            try:
                connection.execute("SELECT pawl_advance('log', ?, 20000)", (token,))
            except sqlite3.IntegrityError:
                pass
        elif turn(connection, token, value):
            answers.put(value)
    connection.close()
    answers.put(None)


def dying_writer(path, newest, ready):
    """Holds the write lock with lines that must never be seen, until it is killed."""
    connection = sqlite.connect(path, timeout=20)
    with newest.get_lock():
        newest.value += 1
        token = newest.value
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SELECT pawl_use('log', ?)", (token,))
    connection.execute("INSERT INTO log (token, value) VALUES (?, 'never')", (token,))
    ready.put(token)
    signal.pause()


class Races(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.db.execute(
            "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, token INT, value TEXT)"
        )
        self.db.execute("SELECT pawl_protect('log', NULL, 'enforce')")
        self.processes = multiprocessing.get_context("fork")

    def start(self, target, *arguments):
        process = self.processes.Process(target=target, args=arguments)
        process.start()
        self.addCleanup(process.join)
        self.addCleanup(process.kill)
        return process

    def assertInOrder(self):
        tokens = [row[0] for row in self.db.execute("SELECT token FROM log ORDER BY id")]
        self.assertEqual(tokens, sorted(tokens))
        self.assertLessEqual(tokens[-1], one(self.db, "SELECT pawl_fence('log')"))

    def test_no_process_writes_after_a_greater_token(self):
        newest, answers = self.processes.Value("q", 5), self.processes.Queue()
        for seed in range(WRITERS):
            self.start(writer, self.path, newest, seed, answers)
        done = set()
        for _ in range(WRITERS):
            while (value := answers.get(timeout=100)) is not None:
                done.add(value)
        self.assertInOrder()
        self.assertEqual(done, {row[0] for row in self.db.execute("SELECT value FROM log")})
        self.assertGreater(len(done), 0)
        self.assertGreater(self.counted("log", "stale"), 0)

    def test_killed_writer_leaves_no_row_fence_or_lock(self):
        newest, ready = self.processes.Value("q", 5), self.processes.Queue()
        sqlite.write(self.db, "log", 5, "INSERT INTO log (token, value) VALUES (5, 'first')")
        for _ in range(5):
            process = self.start(dying_writer, self.path, newest, ready)
            token = ready.get(timeout=60)
            self.refuses(
                "PAWL_BUSY",
                self.connect(timeout=0).execute,
                "SELECT pawl_advance('log', ?, 20)",
                (token,),
            )
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            self.assertEqual(one(self.db, "SELECT pawl_fence('log')"), 5)
            self.assertTrue(turn(self.db, 5, "again"))
        self.assertEqual(one(self.db, "SELECT count(*) FROM log WHERE value = 'never'"), 0)
        self.assertEqual(one(self.db, "PRAGMA integrity_check"), "ok")
        self.assertInOrder()


class RacesWithRollbackJournal(Races):
    JOURNAL = "delete"


if __name__ == "__main__":
    sqlite.main()
