#!/usr/bin/python3
"""Drills against PostgreSQL."""

from drill_case import DrillCase, Matrix
from pg_cluster import Cluster
import harness


class PostgresDrillTest(Matrix, DrillCase):
    kind = "postgres"

    @classmethod
    def open_database(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        cls.cluster.create_database("shop")
        cls.where = ("--guard-dsn", cls.cluster.dsn("shop"))

    @classmethod
    def leftovers(cls):
        found = cls.cluster.psql("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%conformance%' "
                                 "UNION SELECT name FROM pawl.guard", "shop")
        return found.stdout.split()


harness.main()
