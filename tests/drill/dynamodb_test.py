#!/usr/bin/python3
"""Drills against DynamoDB: dynalite, with transactions added."""

import os

from drill_case import DrillCase, StoreMatrix
from pawltest import harness
from pawltest.dynamodb import Server


class DynamoDrillTest(StoreMatrix, DrillCase):
    kind = "dynamodb"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.server.start()
        cls.addClassCleanup(cls.server.remove)
        os.environ.update(cls.server.environment())
        cls.where = ("--guard-dsn", cls.server.dsn)
        cls.pawl("guard", "install", "dynamodb")

    @classmethod
    def leftovers(cls):
        tables = cls.server.call("ListTables")["TableNames"]
        names = [
            item["name"]["S"]
            for item in cls.server.call("Scan", TableName="pawl_guards")["Items"]
        ]
        return [name for name in tables + names if "conformance" in name]

    def test_own_guard_is_judged_and_nothing_is_written(self):
        self.server.create_table("orders", "id")
        self.pawl("guard", "protect", "dynamodb", "orders", "--key", "*", "--mode", "enforce")
        words = ("delayed-write", "--guard", "dynamodb:orders:7", "--yes")
        (record,) = self.records(*words, code=0)
        self.assertGreater(record["verdict"]["refused"], 0)
        self.assertTrue(self.server.item("orders", id="7")["pawl_gone"]["BOOL"])
        with self.subTest("a guard in shadow"):
            self.pawl("guard", "mode", "dynamodb", "orders", "shadow", "--yes", "--reason", "test")
            self.records(*words, code=1)


harness.main()
