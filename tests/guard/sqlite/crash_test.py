#!/usr/bin/python3
"""A writer that is killed in its COMMIT does not know whether it has written. Who sends the
operation again finds out, whichever it was.

There is no wire to cut in SQLite, so what is cut is the process: strace kills it as it enters the
n-th system call of a kind, for every n that there is. Both ends must have been met, or the test has
missed the moment it is about. """
import signal
import subprocess

from pawltest import sqlite
from pawltest.sqlite import one

# What a COMMIT is made of, with either journal.
CALLS = ("pwrite64", "fdatasync", "fcntl", "unlink")


class KilledInItsCommit(sqlite.GuardedFile):
    def setUp(self):
        super().setUp()
        self.token = 0
        self.db.execute("CREATE TABLE log (token INT, value TEXT)")
        self.db.execute("SELECT pawl_protect('log', NULL, 'enforce')")

    def killed(self, call, number):
        """One transaction with operation 1 of a new token. Whether it was killed on the way."""
        self.token += 1
        strace = [
            "strace",
            "--quiet=all",
            "--output=/dev/null",
            f"--trace={call}",
            f"--inject={call}:signal=KILL:when={number}",
        ]
        done = subprocess.run(
            [
                *strace,
                "sqlite3",
                "-bail",
                self.path,
                f".load {sqlite.EXTENSION.removesuffix('.so')}",
                "PRAGMA synchronous = FULL",
                f"BEGIN IMMEDIATE; SELECT pawl_use('log', {self.token}, 1); {self.insert()}; "
                f"COMMIT",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertIn(done.returncode, (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stdout)
        return done.returncode != 0

    def insert(self):
        return f"INSERT INTO log VALUES ({self.token}, 'a')"

    def lines(self):
        return one(self.db, "SELECT count(*) FROM log WHERE token = ?", self.token)

    def every_kill(self):
        for call in CALLS:
            number = 1
            while self.killed(call, number):
                yield f"{call} {number}"
                number += 1

    def test_repeated_operation_takes_effect_once(self):
        met = set()
        for moment in self.every_kill():
            with self.subTest(moment):
                before = self.lines()
                self.db.execute("BEGIN IMMEDIATE")
                verdict = one(self.db, "SELECT pawl_use('log', ?, 1)", self.token)
                if verdict == "admitted":
                    self.db.execute(self.insert())
                self.db.execute("COMMIT")
                self.assertEqual((verdict, before), ("replayed", 1) if before else ("admitted", 0))
                self.assertEqual(self.lines(), 1)
                met.add(verdict)
        self.assertEqual(met, {"admitted", "replayed"})
        self.assertEqual(one(self.db, "PRAGMA integrity_check"), "ok")

    def test_advance_settles_a_write_killed_in_its_commit(self):
        met = set()
        for moment in self.every_kill():
            with self.subTest(moment):
                self.db.execute("SELECT pawl_advance('log', ?)", (self.token + 1,))
                settled = self.lines()
                self.refuses(
                    "PAWL_STALE",
                    sqlite.write,
                    *(self.db, "log", self.token, self.insert()),
                    operation=1,
                )
                self.assertEqual(self.lines(), settled)
                met.add(settled)
                self.token += 1
        self.assertEqual(met, {0, 1})


class KilledInItsCommitWithRollbackJournal(KilledInItsCommit):
    JOURNAL = "delete"


if __name__ == "__main__":
    sqlite.main()
