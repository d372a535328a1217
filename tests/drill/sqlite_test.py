#!/usr/bin/python3
"""Drills against SQLite."""

import sqlite3
import subprocess

from drill_case import PAWL, DrillCase, Matrix
import harness


def make_file(folder):
    path = folder / "shop.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    subprocess.run([PAWL, "guard", "install", "sqlite", "--file", path], check=True, stdout=subprocess.DEVNULL)
    return path


class SqliteDrillTest(Matrix, DrillCase):
    kind = "sqlite"

    @classmethod
    def open_database(cls):
        cls.path = make_file(cls.pawld.dir)
        cls.where = ("--file", str(cls.path))

    @classmethod
    def leftovers(cls):
        with sqlite3.connect(cls.path) as db:
            tables = db.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%conformance%'").fetchall()
            guards = db.execute("SELECT name FROM pawl_guard").fetchall()
        db.close()
        return tables + guards


if __name__ == "__main__":
    harness.main()
