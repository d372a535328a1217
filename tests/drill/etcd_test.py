#!/usr/bin/python3
"""Drills against etcd."""

from drill_case import DrillCase, StoreMatrix
from pawltest import harness
from pawltest.etcd_guard import Server


class EtcdDrillTest(StoreMatrix, DrillCase):
    kind = "etcd"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()
        cls.where = ("--guard-dsn", cls.server.dsn)

    @classmethod
    def leftovers(cls):
        keys = cls.server.etcdctl("get", "--prefix", "", "--keys-only").stdout.split()
        return [key for key in keys if "conformance" in key]

    def test_own_guard_is_judged_and_nothing_is_written(self):
        self.server.protect("orders/*")
        record = self.drill_own(code=0)
        self.assertGreater(record["verdict"]["refused"], 0)
        self.assertIsNone(self.server.value("orders/7"))
        with self.subTest("a guard in shadow"):
            self.server.pawl("mode", "etcd", "orders", "shadow")
            self.drill_own(code=1)


harness.main()
