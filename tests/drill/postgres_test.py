#!/usr/bin/python3
"""Drills against PostgreSQL."""

from drill_case import DrillCase, ExercisesTheTable, Matrix, OwnResource, ShutsNobodyOut
from pawltest import harness
from pawltest.postgres import DISARM_SCRATCH_TABLES, Cluster


class PostgresDrillTest(Matrix, OwnResource, ExercisesTheTable, ShutsNobodyOut, DrillCase):
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
        self.sql(
            f"CREATE TABLE {table} (id int PRIMARY KEY, n int NOT NULL); "
            f"INSERT INTO {table} VALUES (1, 0)"
        )
        self.pawl("guard", "protect", "postgres", table, "--guard", table)
        return table

    def count(self):
        return self.value("orders")

    def value(self, table):
        return int(self.cluster.psql(f"SELECT n FROM {table}", "shop").stdout)

    def sql(self, statement):
        self.cluster.psql(statement, "shop")

    def table(self, name):
        return name

    def carried(self, guard):
        return rf"SET LOCAL pawl\.token\.{guard}"

    def remove_trigger(self, table):
        self.sql(f"DROP TRIGGER pawl_guard ON {table}")

    def committing(self, name):
        return ["COMMIT"]

    def without_event_trigger(self):
        """As where the guard was not installed by a superuser."""
        self.sql("ALTER EVENT TRIGGER pawl_partitions DISABLE")
        self.addCleanup(self.sql, "ALTER EVENT TRIGGER pawl_partitions ENABLE ALWAYS")

    def test_disabled_triggers_fail_the_drill(self):
        guard, name = self.new_guard(require_token="off")
        self.sql(f"ALTER TABLE {name} DISABLE TRIGGER ALL")
        record, ways = self.drill_write(guard, self.add(name), code=1)
        self.assertEqual(ways, {"call": "refused", "carried": "landed", "none": "landed"})
        self.assertRegex(self.because(record), "trigger .* is disabled.*SELECT pawl.repair")

    def test_scratch_table_that_does_not_refuse_fails_the_drill(self):
        self.sql(DISARM_SCRATCH_TABLES)
        self.addCleanup(self.sql, "DROP FUNCTION public.disarm CASCADE")
        (record,) = self.records("delayed-write", code=1)
        self.assertEqual(
            [way["fate"] for way in record["ways"]], ["refused", "landed", "landed"], record["ways"]
        )
        self.assertRegex(self.because(record), "(?s)although require_token is on.*is disabled")

    def test_table_that_became_a_partition_fails_the_drill(self):
        guard, name = self.new_guard()
        self.without_event_trigger()
        self.sql(
            f"ALTER TABLE {name} RENAME TO {name}_old; "
            f"CREATE TABLE {name} (id int NOT NULL, n int NOT NULL) PARTITION BY RANGE (id); "
            f"ALTER TABLE {name} ATTACH PARTITION {name}_old FOR VALUES FROM (0) TO (10)"
        )
        record, ways = self.drill_write(guard, self.add(name), code=1)
        self.assertEqual((ways["carried"], ways["none"]), ("landed", "landed"))
        self.assertIn("is a partition or a child of", self.because(record))

    def test_detached_partition_fails_the_drill_once_nothing_refuses_there(self):
        root = f"parted{next(self._numbers)}"
        self.sql(
            f"CREATE TABLE {root} (id int NOT NULL, n int NOT NULL) PARTITION BY RANGE (id); "
            f"CREATE TABLE {root}_low PARTITION OF {root} FOR VALUES FROM (0) TO (10); "
            f"INSERT INTO {root} VALUES (1, 0)"
        )
        self.pawl("guard", "protect", "postgres", root, "--guard", root)
        self.set_mode(root, "enforce")
        self.without_event_trigger()
        self.sql(f"ALTER TABLE {root} DETACH PARTITION {root}_low")
        record, ways = self.drill_write(root, self.add(f"{root}_low"), code=0)
        self.assertEqual((ways["call"], ways["carried"]), ("refused", "refused"))
        self.assertIn("(detached?) still has its trigger", "\n".join(record["verdict"]["notes"]))
        self.sql(f"SELECT pawl.unprotect('{root}_low')")
        record, ways = self.drill_write(root, self.add(f"{root}_low"), code=1)
        self.assertEqual((ways["call"], ways["carried"]), ("refused", "landed"))
        self.assertIn(f"does not reach the guard {root}", self.because(record))

    def test_keyed_guard_is_exercised_by_its_own_row(self):
        name = f"accounts{next(self._numbers)}"
        self.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, n int); "
            f"INSERT INTO {name} VALUES (1, 0), (2, 0)"
        )
        self.pawl("guard", "protect", "postgres", name, "--guard", name, "--key", "id")
        self.set_mode(name, "enforce")
        _, ways = self.drill_write(f"{name}:1", self.add(name), code=0)
        self.assertEqual((ways["call"], ways["carried"]), ("refused", "refused"))
        with self.subTest("a statement for another row"):
            code, out, error = self.run_drill(
                *("delayed-write", "--guard", f"postgres:{name}:1", "--yes"),
                *("--write", self.add(name).replace("id = 1", "id = 2")),
            )
            self.assertEqual(code, 64, out + error)
            self.assertIn(f"write to {name}:2 without its token", error)


harness.main()
