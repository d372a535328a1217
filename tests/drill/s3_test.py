#!/usr/bin/python3
"""Drills against S3: a small one of the tests, which keeps conditions as Amazon documents them."""

import os

from drill_case import DrillCase, StoreMatrix
from pawltest import harness
from pawltest.s3_server import Server


class S3DrillTest(StoreMatrix, DrillCase):
    kind = "s3"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.shop = cls.server.create_bucket("shop")
        os.environ.update(cls.server.environment())
        cls.where = ("--guard-dsn", cls.server.dsn("shop"))
        cls.pawl("guard", "install", "s3")

    @classmethod
    def leftovers(cls):
        return [key for key in cls.server.objects("shop") if "conformance" in key]

    def test_own_guard_is_judged_and_nothing_is_written(self):
        self.pawl("guard", "protect", "s3", "orders", "--mode", "enforce")
        record = self.drill_own(code=0)
        self.assertGreater(record["verdict"]["refused"], 0)
        self.assertIn(b"\ncontent none\n", self.shop["orders"])
        with self.subTest("a guard in shadow"):
            self.pawl("guard", "mode", "s3", "orders", "shadow", "--yes", "--reason", "test")
            self.drill_own(code=1)


harness.main()
