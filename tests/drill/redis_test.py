#!/usr/bin/python3
"""Drills against Redis."""

from drill_case import DrillCase, StoreMatrix
from pawltest import harness
from pawltest.redis_server import Server, fcall, guard_key


class RedisDrillTest(StoreMatrix, DrillCase):
    kind = "redis"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()
        cls.db = cls.server.connect()
        cls.addClassCleanup(cls.db.close)
        cls.where = ("--guard-dsn", cls.server.dsn())

    @classmethod
    def leftovers(cls):
        return cls.db.keys("*conformance*")

    def test_own_guard_is_judged_and_nothing_is_written(self):
        self.pawl("guard", "protect", "redis", "orders:*", "--mode", "enforce")
        self.addCleanup(self.db.delete, guard_key("orders"), "pawl:guards")
        record = self.drill_own(code=0)
        self.assertGreater(record["verdict"]["refused"], 0)
        self.assertEqual(self.db.keys("orders:*"), [])
        with self.subTest("a fence that will expire"):
            self.db.expire(guard_key("orders"), 1000)
            record = self.drill_own(code=1)
            self.assertIn("expiry", "\n".join(record["verdict"]["because"]))
            self.db.persist(guard_key("orders"))
        with self.subTest("a guard in shadow"):
            fcall(self.db, "pawl_mode", "orders", "shadow", "", "", "mode", "change")
            self.drill_own(code=1)


harness.main()
