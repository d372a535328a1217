#!/usr/bin/python3
"""Drills against MariaDB."""

from drill_case import DrillCase, Matrix
from maria_cluster import Server, rows
import harness


class MariaDrillTest(Matrix, DrillCase):
    kind = "mariadb"

    @classmethod
    def open_database(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()
        cls.where = ("--guard-dsn", cls.server.dsn())

    @classmethod
    def leftovers(cls):
        db = cls.server.connect()
        found = rows(db, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE '%conformance%'")
        found += rows(db, "SELECT name FROM pawl.guard")
        db.close()
        return list(found)


harness.main()
