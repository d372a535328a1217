#!/usr/bin/python3
"""Drills against MariaDB."""

from drill_case import DrillCase, ExercisesTheTable, Matrix, OwnResource, ShutsNobodyOut
from pawltest import harness
from pawltest.mariadb import Server, rows


class MariaDrillTest(Matrix, OwnResource, ExercisesTheTable, ShutsNobodyOut, DrillCase):
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
        self.sql(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, n INT NOT NULL)")
        self.sql(f"INSERT INTO shop.{table} VALUES (1, 0)")
        self.pawl("guard", "protect", "mariadb", table, "--guard", table)
        return table

    def count(self):
        return self.value("orders")

    def value(self, table):
        ((n,),) = rows(self.db, f"SELECT n FROM shop.{table}")
        return n

    def sql(self, statement):
        rows(self.db, statement)

    def table(self, name):
        return f"shop.{name}"

    def carried(self, guard):
        return r"CALL pawl\.use\(\), going on after its error"

    def remove_trigger(self, table):
        ((name,),) = rows(
            self.db,
            "SELECT trigger_name FROM information_schema.triggers WHERE event_object_table = "
            f"'{table}' AND trigger_name LIKE 'pawl_update_%'",
        )
        self.sql(f"DROP TRIGGER shop.{name}")

    def committing(self, name):
        self.sql(
            f"CREATE PROCEDURE shop.commit_{name}() BEGIN UPDATE shop.{name} SET n = n; COMMIT; END"
        )
        return [f"TRUNCATE TABLE shop.{name}", "COMMIT", f"CALL shop.commit_{name}()"]

    def test_token_column_carries_the_token_of_the_statement(self):
        guard, name = self.new_guard()
        self.sql(f"CALL pawl.token_column('shop.{name}', TRUE)")
        statement = f"UPDATE shop.{name} SET n = n + 1, pawl_token = :token WHERE id = 1"
        record, ways = self.drill_write(guard, statement, code=0)
        self.assertEqual(ways, {"call": "refused", "carried": "refused", "none": "refused"})
        self.assertIn(":token in the statement", {way["with"] for way in record["ways"]})


harness.main()
