#!/usr/bin/python3
"""Drills against MariaDB."""

from drill_case import DrillCase, Matrix, OwnResource, ShutsNobodyOut
from pawltest import harness
from pawltest.mariadb import Server, rows


class MariaDrillTest(Matrix, OwnResource, ShutsNobodyOut, DrillCase):
    kind = "mariadb"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()
        cls.db = cls.server.connect()
        cls.addClassCleanup(cls.db.close)
        rows(cls.db, "CREATE DATABASE shop")
        rows(cls.db, "CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT NOT NULL)")
        rows(cls.db, "INSERT INTO shop.orders VALUES (1, 0)")
        cls.where = ("--guard-dsn", cls.server.dsn(database="shop"))

    @classmethod
    def leftovers(cls):
        found = rows(
            cls.db,
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE '%conformance%'",
        )
        return [
            *found,
            *rows(cls.db, "SELECT name FROM pawl.guard WHERE name LIKE '%conformance%'"),
        ]

    def protect(self):
        self.pawl("guard", "protect", "mariadb", "orders")
        ((name,),) = rows(self.db, "SELECT name FROM pawl.guard WHERE name LIKE '%orders'")
        return name

    def protect_new(self, table):
        rows(self.db, f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, n INT NOT NULL)")
        self.pawl("guard", "protect", "mariadb", table, "--guard", table)
        return table

    def count(self):
        ((n,),) = rows(self.db, "SELECT n FROM shop.orders")
        return n


harness.main()
