#!/usr/bin/python3
"""Drills against PostgreSQL."""

from drill_case import DrillCase, Matrix, OwnResource, ShutsNobodyOut
from pawltest import harness
from pawltest.postgres import Cluster


class PostgresDrillTest(Matrix, OwnResource, ShutsNobodyOut, DrillCase):
    kind = "postgres"

    @classmethod
    def open_database(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        cls.cluster.create_database("shop")
        cls.cluster.psql(
            "CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL); INSERT INTO orders VALUES (1, 0)",
            "shop",
        )
        cls.where = ("--guard-dsn", cls.cluster.dsn("shop"))

    @classmethod
    def leftovers(cls):
        found = cls.cluster.psql(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE '%conformance%' "
            "UNION SELECT name FROM pawl.guard WHERE name LIKE '%conformance%'",
            "shop",
        )
        return found.stdout.split()

    def protect(self):
        self.pawl("guard", "protect", "postgres", "orders")
        return self.cluster.psql(
            "SELECT name FROM pawl.guard WHERE name LIKE '%orders'", "shop"
        ).stdout.strip()

    def protect_new(self, table):
        self.cluster.psql(f"CREATE TABLE {table} (id int PRIMARY KEY, n int NOT NULL)", "shop")
        self.pawl("guard", "protect", "postgres", table, "--guard", table)
        return table

    def count(self):
        return int(self.cluster.psql("SELECT n FROM orders", "shop").stdout)


harness.main()
