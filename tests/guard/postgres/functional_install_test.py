"""Installing, upgrading, repairing and removing the guard; partitions; and roles with fewer rights
than a superuser."""

import re
import subprocess

from later import Later
from orders_case import OrdersCase
from pawltest import ROOT, postgres
from pawltest.postgres import BIN, GUARD, install_script, rows

UNINSTALL = GUARD.with_name("uninstall.sql")
TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class Installation(OrdersCase):
    def test_version_equals_the_project_version(self):
        (version,) = re.findall(
            r"project\(pawl VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()
        )
        self.assertEqual(self.sql("SELECT pawl.version(), pawl.contract()"), [(version, 1)])

    def test_each_script_is_one_transaction(self):
        for script in (install_script(), UNINSTALL.read_text(encoding="utf-8")):
            lines = script.splitlines()
            self.assertEqual((lines.count("BEGIN;"), lines.count("COMMIT;")), (1, 1))
            self.assertLessEqual(
                {line for line in lines if line.startswith("\\")}, {"\\set ON_ERROR_STOP on"}
            )
        self.assertNotIn("\n\\", install_script())

    def schema(self, dbname):
        """What pg_dump prints, but for a random word in newer versions of it."""
        dump = self.cluster.tool("pg_dump", "--schema-only", dbname).stdout
        return [line for line in dump.splitlines() if "restrict " not in line]

    def test_psql_installs_the_file_with_its_parts(self):
        self.cluster.psql("CREATE DATABASE from_file")
        psql = [BIN / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", GUARD]
        subprocess.run([*psql, "-d", self.cluster.dsn("from_file")], check=True)
        self.assertEqual(self.schema("from_file"), self.schema("guarded"))

    def test_psql_fails_when_the_installation_fails(self):
        self.cluster.psql("CREATE DATABASE refuses")
        self.cluster.psql("CREATE TABLE guard (n int); CREATE SCHEMA pawl", "refuses")
        self.cluster.psql("CREATE TABLE pawl.guard (n int)", "refuses")
        for script in (GUARD, UNINSTALL):
            psql = [BIN / "psql", "-X", "-q", "-f", script, "-d", self.cluster.dsn("refuses")]
            done = subprocess.run(psql, stderr=subprocess.DEVNULL, check=False)
            self.assertNotEqual(done.returncode, 0, script)

    def test_a_guard_of_an_older_version_is_upgraded_in_place(self):
        """As versions before the columns that this one adds, with a guard of every kind."""
        self.cluster.psql(
            """
            CREATE TABLE acc (id int PRIMARY KEY); CREATE TABLE lines (id int PRIMARY KEY, c numeric);
            SELECT pawl.protect('orders', mode => 'enforce');
            SELECT pawl.protect('acc', key => 'id', mode => 'enforce');
            SELECT pawl.protect('lines', by => 'c', mode => 'enforce');
            SELECT pawl.advance('orders', 34), pawl.advance('acc:1', 34), pawl.advance('lines:7', 34);
            SELECT pawl.emergency('before', 'acc');
            DROP EVENT TRIGGER pawl_partitions;
            ALTER TABLE pawl.guard DROP COLUMN answered CASCADE, DROP COLUMN key_type CASCADE;
            ALTER TABLE pawl.protected DROP COLUMN named;
            DROP TABLE pawl.acknowledged;
            DROP SEQUENCE pawl.used_1, pawl.used_2, pawl.used_3;""",
            self.db,
        )
        self.cluster.install(self.db)
        self.assertTrue(self.status("acc")["emergency"])
        self.sql("SELECT pawl.set_mode('acc', 'enforce')")
        self.assertEqual(self.problems(), [])
        for resource in ("orders", "acc:1", "acc:01", "lines:7.0"):
            self.assertRefused("PW002", self.under, 33, resource=resource)
            self.under(34, resource=resource)

    def test_installing_again_keeps_everything(self):
        self.protect()
        self.under(34, TOUCH, op=1)
        self.assertRefused("PW002", self.under, 33)
        self.cluster.psql(
            "CREATE ROLE watch; GRANT SELECT ON pawl.refusals TO watch; GRANT EXECUTE ON FUNCTION "
            "pawl.emergency TO watch",
            self.db,
        )
        before = self.status()
        self.cluster.install(self.db)
        self.assertEqual(self.status(), before)
        self.assertEqual(self.under(34, op=1), "replayed")
        self.assertEqual(self.problems(), [])
        self.assertEqual(
            self.sql(
                "SELECT has_table_privilege('watch', 'pawl.refusals', 'SELECT'), "
                "has_function_privilege('watch', 'pawl.emergency(text, text)', 'EXECUTE'),"
                " has_function_privilege('watch', 'pawl.set_mode(text, text, int, text)', "
                "'EXECUTE')"
            ),
            [(True, True, False)],
        )
        self.cluster.psql("DROP OWNED BY watch; DROP ROLE watch", self.db)

    def test_an_older_file_does_not_replace_a_newer_guard(self):
        self.sql(
            "CREATE OR REPLACE FUNCTION pawl.version() RETURNS text LANGUAGE sql IMMUTABLE AS $$ "
            "SELECT '99.10.0' $$"
        )
        self.assertIn(
            "version 99.10.0 is installed",
            self.cluster.psql(install_script(), self.db, check=False).stderr,
        )
        self.assertEqual(self.value("SELECT pawl.version()"), "99.10.0")

    def test_a_newer_file_replaces_an_older_guard(self):
        self.sql(
            "CREATE OR REPLACE FUNCTION pawl.version() RETURNS text LANGUAGE sql IMMUTABLE AS $$ "
            "SELECT '0.0.9' $$"
        )
        self.cluster.install(self.db)
        self.assertNotEqual(self.value("SELECT pawl.version()"), "0.0.9")

    def test_uninstall_leaves_only_the_tables(self):
        self.protect()
        self.sql("CREATE TABLE acct (id int PRIMARY KEY)")
        self.protect(table="acct", key="id")
        self.cluster.psql(UNINSTALL.read_text(), self.db)
        self.write()
        self.write("INSERT INTO acct VALUES (1)")
        self.assertEqual(self.sql("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"), [(0,)])
        self.assertEqual(self.sql("SELECT count(*) FROM pg_event_trigger"), [(0,)])
        self.assertEqual(self.value("SELECT to_regnamespace('pawl')"), None)
        self.assertIn(
            "no guard is installed",
            self.cluster.psql(UNINSTALL.read_text(), self.db, check=False).stderr,
        )
        self.cluster.install(self.db)
        self.protect()

    def test_owner_without_superuser_can_install_and_protect(self):
        self.cluster.psql(
            f"CREATE ROLE landlord LOGIN; ALTER DATABASE {self.db} OWNER TO landlord; ALTER TABLE "
            f"orders OWNER TO landlord;" + UNINSTALL.read_text(),
            self.db,
        )
        self.cluster.psql(install_script(), self.db, user="landlord")
        owner = self.connect("landlord", autocommit=True)
        rows(owner, "SELECT pawl.protect('orders', mode => 'enforce')")
        rows(owner, "SELECT pawl.set_policy('orders', require_token => true)")
        self.assertRefused("PW001", rows, owner, TOUCH)
        rows(owner, "SELECT pawl.advance('orders', 34)")
        self.assertEqual(rows(owner, "SELECT * FROM pawl.problems()"), [])
        rows(owner, "CREATE TABLE parts (id int) PARTITION BY RANGE (id)")
        rows(owner, "SELECT pawl.protect('parts')")
        ((warning,),) = rows(owner, "SELECT problem FROM pawl.problems()")
        self.assertIn("the event trigger is missing", warning)
        rows(owner, "CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9)")
        self.assertIn(
            ("error", "parts", "public.part"),
            rows(owner, "SELECT severity, guard, object FROM pawl.problems()"),
        )
        self.assertEqual(rows(owner, "SELECT pawl.repair()"), [(1,)])
        self.assertNotIn(
            "error", [p[0] for p in rows(owner, "SELECT severity FROM pawl.problems()")]
        )
        self.cluster.psql("DROP OWNED BY landlord CASCADE", self.db)
        self.cluster.psql(f"ALTER DATABASE {self.db} OWNER TO postgres; DROP ROLE landlord")

    def test_token_functions_can_be_limited_to_one_role(self):
        self.cluster.psql(
            "CREATE ROLE app LOGIN; CREATE ROLE legacy LOGIN; GRANT ALL ON orders TO app, legacy",
            self.db,
        )
        self.cluster.psql("SET pawl.writers = 'app';" + install_script(), self.db)
        self.protect(mode="observe", require_token=False)
        for _ in range(2):
            self.assertEqual(self.under(34, TOUCH, user="app"), "admitted")
            self.assertRefused("42501", self.under, 34, user="legacy")
            self.write(user="legacy")  # An observing guard stops nobody.
            self.cluster.install(self.db)  # The choice outlives an upgrade.
        self.cluster.psql("DROP OWNED BY app, legacy; DROP ROLE app, legacy", self.db)


class Tables(OrdersCase):
    def test_protect_is_idempotent(self):
        self.protect()
        self.assertEqual(self.value("SELECT pawl.protect('orders')"), "orders")
        self.assertEqual(self.status()["mode"], "enforce")
        self.assertEqual(
            self.value(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT "
                "tgisinternal"
            ),
            1,
        )

    def test_unsupported_tables_are_refused(self):
        self.cluster.psql(
            "CREATE VIEW v AS SELECT 1 AS n; CREATE SEQUENCE s; CREATE TABLE other (n int)", self.db
        )
        for table in ("v", "s", "pg_class", "pawl.guard"):
            with self.subTest(table=table):
                self.assertRefused("42809", self.sql, "SELECT pawl.protect(%s)", table)
        self.assertRefused(
            "42809", self.sql, "CREATE TEMP TABLE tmp (n int); SELECT pawl.protect('tmp')"
        )
        self.protect()
        for call in (
            "protect('orders', guard => 'another')",
            "protect('other', guard => 'orders', mode => 'shadow')",
            "protect('orders', key => 'id')",
            "create_guard('orders', keyed => true)",
        ):
            with self.subTest(call=call):
                self.assertRefused("42710", self.sql, f"SELECT pawl.{call}")
        for call in (
            "protect('other', key => 'n', by => 'n')",
            "protect('other', mode => 'canary')",
            "protect('other', mode => 'x')",
            "create_guard('a:b')",
            "create_guard('')",
            "create_guard(NULL)",
            "create_guard(repeat('x', 201))",
            "create_guard(E'a\\nb')",
        ):
            with self.subTest(call=call):
                self.assertRefused("22023", self.sql, f"SELECT pawl.{call}")
        self.assertEqual(self.sql("SELECT name FROM pawl.guard"), [("orders",)])

    def test_reports_survive_that_another_session_drops_a_guard(self):
        self.protect(mode="enforce")
        self.sql("SELECT pawl.create_guard('other'), pawl.set_mode('other', 'enforce')")
        dropping = self.connect()
        rows(dropping, "SELECT pawl.drop_guard('other')")
        watch = self.connect(autocommit=True)
        steps = [
            Later(watch, self.connect(autocommit=True), rows, statement)
            for statement in (
                "SELECT * FROM pawl.problems()",
                "SELECT * FROM pawl.status",
                "SELECT pawl.set_mode('orders', 'enforce')",
            )
        ]
        self.assertTrue(any([step.waits() for step in steps]))
        dropping.commit()
        for step in steps:
            step.result()

    def test_unprotect_keeps_the_fence_and_drop_guard_forgets_it(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")
        self.assertRefused("2BP01", self.sql, "SELECT pawl.drop_guard('orders')")
        self.sql("SELECT pawl.unprotect('orders')")
        self.write()
        self.assertEqual(self.fence(), 34)
        self.protect()
        self.assertRefused("PW002", self.under, 33)
        self.sql("SELECT pawl.unprotect('orders')")
        self.sql("SELECT pawl.drop_guard('orders')")
        self.assertRefused("PW004", self.fence)
        self.assertEqual(
            self.value(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'pawl'::regnamespace AND "
                "relname ~ '^(fence|raiser|count|tightened|emergency)_'"
            ),
            0,
        )
        self.protect()
        self.assertEqual(self.fence(), None)
        self.assertRefused("PW004", self.sql, "SELECT pawl.unprotect('pg_class')")

    def test_dropped_table_is_reported_and_can_be_removed(self):
        self.protect()
        self.sql("DROP TABLE orders")
        ((_, guard, object_, problem),) = self.problems()
        self.assertEqual((guard, problem), ("orders", "the table is gone, its entry is not"))
        self.sql(f"SELECT pawl.unprotect({object_})")
        self.assertEqual(self.problems(), [])

    def test_renamed_table_stays_guarded(self):
        self.protect()
        self.sql("ALTER TABLE orders RENAME TO purchases")
        self.assertRefused("PW001", self.write, "DELETE FROM purchases")
        self.assertEqual((self.status()["tables"], self.problems()), (["public.purchases"], []))

    def test_damaged_triggers_are_found_and_repaired(self):
        self.protect()
        for damage, problem in (
            ("DISABLE TRIGGER pawl_guard", "disabled"),
            ("ENABLE TRIGGER pawl_guard", "not ALWAYS"),
            ("ENABLE REPLICA TRIGGER pawl_guard", "not ALWAYS"),
        ):
            with self.subTest(damage=damage):
                self.sql(f"ALTER TABLE orders {damage}")
                ((severity, guard, table, text),) = self.problems()
                self.assertEqual((severity, guard, table), ("error", "orders", "public.orders"))
                self.assertIn(problem, text)
                self.assertEqual(self.value("SELECT pawl.repair()"), 1)
                self.assertEqual(self.problems(), [])
        self.sql("DROP TRIGGER pawl_guard ON orders")
        self.assertIn("missing", self.problems()[0][3])
        self.sql("SELECT pawl.repair()")
        self.assertRefused("PW001", self.write)


class Partitions(OrdersCase):
    def setUp(self):
        super().setUp()
        self.cluster.psql(
            """
            CREATE TABLE parts (id int PRIMARY KEY, n int DEFAULT 0) PARTITION BY RANGE (id);
            CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (10);
            CREATE TABLE part_b PARTITION OF parts FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
            CREATE TABLE part_b1 PARTITION OF part_b FOR VALUES FROM (10) TO (15);""",
            self.db,
        )

    HOWS = ({}, {"key": "id"}, {"by": "id / 100"})

    def test_all_partitions_are_guarded_including_new_ones(self):
        for number, how in enumerate(self.HOWS):
            with self.subTest(how=how):
                if number:
                    self.sql("SELECT pawl.unprotect('parts')")
                    self.sql("DROP TABLE part_c, part_d")
                    self.sql("SELECT pawl.drop_guard('parts')")
                self.protect(table="parts", **how)
                self.sql("CREATE TABLE part_c PARTITION OF parts FOR VALUES FROM (20) TO (30)")
                self.sql("CREATE TABLE part_d (LIKE parts INCLUDING ALL)")
                self.sql("ALTER TABLE parts ATTACH PARTITION part_d FOR VALUES FROM (30) TO (40)")
                for table, row in (
                    ("parts", 1),
                    ("parts", 11),
                    ("part_a", 1),
                    ("part_b", 11),
                    ("part_b1", 11),
                    ("part_c", 21),
                    ("part_d", 31),
                ):
                    self.assertRefused("PW001", self.write, f"INSERT INTO {table} VALUES ({row})")
                with self.connect() as db:
                    rows(db, "SET session_replication_role = replica")
                    self.assertRefused("PW001", rows, db, "INSERT INTO part_c VALUES (22)")
                self.assertEqual(self.problems(), [])

    def test_single_partition_cannot_be_protected(self):
        self.assertRefused("42809", self.sql, "SELECT pawl.protect('part_a')")
        self.sql("CREATE TABLE child () INHERITS (orders)")
        self.assertRefused("42809", self.sql, "SELECT pawl.protect('child')")

    def test_a_child_by_inheritance_is_guarded_with_its_parent(self):
        self.sql("CREATE TABLE child () INHERITS (orders)")
        self.protect()
        self.sql("CREATE TABLE later () INHERITS (orders)")
        for table in ("child", "later"):
            self.assertRefused("PW001", self.write, f"INSERT INTO {table} VALUES (1)")

    def test_detached_partition_stays_guarded_until_unprotect(self):
        self.protect(table="parts")
        self.sql("ALTER TABLE parts DETACH PARTITION part_a")
        self.assertRefused("PW001", self.write, "INSERT INTO part_a VALUES (1)")
        self.assertEqual(self.problems(), [])
        self.sql("SELECT pawl.unprotect('part_a')")
        self.write("INSERT INTO part_a VALUES (1)")
        self.assertEqual(self.problems(), [])

    def test_row_moved_to_another_partition_keeps_its_fence(self):
        self.protect(table="parts", key="id")
        self.carrying(
            34,
            "INSERT INTO parts VALUES (1)",
            "UPDATE parts SET id = 11 WHERE id = 1",
            setting="pawl.token.parts",
        )
        self.assertEqual((self.fence("parts:1"), self.fence("parts:11")), (34, 34))
        self.assertRefused(
            "PW002", self.carrying, 33, "UPDATE parts SET n = 1", setting="pawl.token.parts"
        )

    def test_other_tables_can_change_while_a_guard_is_damaged(self):
        self.protect(table="parts")
        self.sql("ALTER TABLE part_a DISABLE TRIGGER pawl_guard")
        self.sql(
            "CREATE TABLE unrelated (n int); ALTER TABLE unrelated ADD m int; DROP TABLE unrelated"
        )
        # What an owner did on purpose is reported, not undone.
        self.assertEqual([p[2] for p in self.problems()], ["public.part_a"])


if __name__ == "__main__":
    postgres.main()
