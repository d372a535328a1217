#!/usr/bin/python3
"""Drills against SQLite."""

import sqlite3
import subprocess

from drill_case import PAWL, DrillCase, ExercisesTheTable, Matrix, OwnResource, ShutsNobodyOut
from pawltest import harness


def make_file(folder):
    path = folder / "shop.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        db.execute("INSERT INTO orders VALUES (1, 0)")
    db.close()
    subprocess.run(
        [PAWL, "guard", "install", "sqlite", "--file", path], check=True, stdout=subprocess.DEVNULL
    )
    return path


class SqliteDrillTest(Matrix, OwnResource, ExercisesTheTable, ShutsNobodyOut, DrillCase):
    kind = "sqlite"

    @classmethod
    def open_database(cls):
        cls.path = make_file(cls.pawld.dir)
        cls.where = ("--file", str(cls.path))

    @classmethod
    def leftovers(cls):
        with sqlite3.connect(cls.path) as db:
            tables = db.execute(
                "SELECT name FROM sqlite_schema WHERE name LIKE '%conformance%'"
            ).fetchall()
            guards = db.execute(
                "SELECT name FROM pawl_guard WHERE name LIKE '%conformance%'"
            ).fetchall()
        db.close()
        return tables + guards

    def protect(self):
        self.pawl("guard", "protect", "sqlite", "orders")
        return "orders"

    def protect_new(self, table):
        self.sql(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        self.sql(f"INSERT INTO {table} VALUES (1, 0)")
        self.pawl("guard", "protect", "sqlite", table)
        return table

    def count(self):
        return self.value("orders")

    def value(self, table):
        with sqlite3.connect(self.path) as db:
            ((n,),) = db.execute(f"SELECT n FROM {table}").fetchall()
        db.close()
        return n

    def sql(self, statement):
        with sqlite3.connect(self.path) as db:
            db.execute(statement)
        db.close()

    def table(self, name):
        return name

    def carried(self, guard):
        return r"pawl_use\(\), going on after its error"

    def remove_trigger(self, table):
        with sqlite3.connect(self.path) as db:
            ((name,),) = db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? "
                "AND sql LIKE '%UPDATE%' AND name LIKE '%update%'",
                (table,),
            ).fetchall()
        db.close()
        self.sql(f"DROP TRIGGER {name}")

    def committing(self, name):
        return [f"UPDATE {name} SET n = n + 1; COMMIT", "ROLLBACK"]


if __name__ == "__main__":
    harness.main()
