"""pg_dump and pg_restore: the guard comes back with its fences, modes and triggers, or says what is
missing."""

import psycopg2

from pawltest import postgres
from pawltest.postgres import Cluster, rows

SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE visit (customer int, at timestamptz DEFAULT now());
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.protect('item', key => 'id', mode => 'enforce');
SELECT pawl.protect('visit', by => 'customer', mode => 'enforce');
SELECT pawl.create_guard('mail', keyed => true);
SELECT pawl.set_policy('orders', require_token => true);
SELECT pawl.set_mode('mail', 'canary', 30, reason => 'trying');
BEGIN; SELECT pawl.use('orders', 34); INSERT INTO orders VALUES (1, 0); COMMIT;
BEGIN; SELECT pawl.use('item:7', 34); INSERT INTO item VALUES (7); COMMIT;
BEGIN; SELECT pawl.use('item:8', 35); INSERT INTO item VALUES (8); DELETE FROM item WHERE id = 8; COMMIT;
BEGIN; SELECT pawl.use('visit:3', 34); INSERT INTO visit VALUES (3); COMMIT;
SELECT pawl.advance('mail:a', 34);
"""
FENCED = ("orders", "item:7", "item:8", "visit:3", "mail:a")
POLICIES = (
    "SELECT guard, mode, percent, require_token, equal, fence FROM pawl.status ORDER BY guard"
)


class DumpCase(postgres.ClusterCase):
    def setUp(self):
        super().setUp()
        self.cluster.psql(SHOP, self.db)
        self.source = self.db

    def at(self, cluster, dbname):
        """From now on this test talks to another database, perhaps of another cluster."""
        type(self).cluster, self.db = cluster, dbname

    def dump(self, *options):
        target = self.cluster.dir / f"{self.db}.dump"
        self.cluster.tool("pg_dump", "-f", target, *options, self.source)
        return target

    def assertSameGuard(self, policies):
        self.assertEqual(self.sql(POLICIES), policies)
        for resource in FENCED:
            with self.subTest(resource):
                fence = self.value("SELECT pawl.fence(%s)", resource)
                self.assertIn(fence, (34, 35))
                if resource != "mail:a":  # A canary that this key may not be part of.
                    self.assertRefused(
                        "PW002",
                        rows,
                        self.connect(),
                        "SELECT pawl.use(%s, %s)",
                        resource,
                        fence - 1,
                    )
        self.assertRefused("PW001", self.sql, "UPDATE orders SET n = 1")
        for level in postgres.ISOLATIONS:
            self.assertHolderWrites(level)

    def assertHolderWrites(self, level):
        """A transaction number remembered from the old cluster may lie in the future of this one. A
        transaction that has its snapshot already may have to retry once."""
        for chance in (1, 2):
            session = self.connect(isolation=level)
            try:
                rows(session, "SELECT pawl.use('orders', 34)")
                rows(session, "UPDATE orders SET n = n + 1")
                rows(session, "SELECT pawl.use('item:7', 34)")
                rows(session, "UPDATE item SET n = n + 1 WHERE id = 7")
                session.commit()
                return
            except psycopg2.errors.SerializationFailure:
                if chance == 2 or level == "read committed":
                    raise

    def serious(self):
        """Problems that are more than a remark."""
        return [
            row
            for row in self.sql("SELECT severity, guard, object, problem, fix FROM pawl.problems()")
            if row[0] != "info"
        ]


class WholeDumps(DumpCase):
    def test_custom_format_restores_everything(self):
        policies = self.sql(POLICIES)
        dump = self.dump("-Fc")
        self.db = self.cluster.create_database("again", guard=False)
        self.cluster.tool("pg_restore", "--exit-on-error", "-d", self.db, dump)
        self.assertSameGuard(policies)

    def test_plain_sql_restores_everything_in_another_cluster(self):
        """A young cluster: its transaction numbers are lower than those the old one had reached."""
        policies = self.sql(POLICIES)
        self.cluster.psql(
            "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END "
            "$$"
        )
        self.sql("SELECT pawl.advance('orders', 34)")
        dump = self.dump().read_text()
        old = self.cluster
        with Cluster() as young:
            self.addCleanup(setattr, type(self), "cluster", old)
            young.create_database("again", guard=False)
            young.psql(dump, "again")
            self.at(young, "again")
            self.assertSameGuard(policies)
        type(self).cluster = old

    def test_installing_over_a_restored_guard_keeps_it(self):
        policies = self.sql(POLICIES)
        dump = self.dump("-Fc")
        self.db = self.cluster.create_database("installed_again", guard=False)
        self.cluster.tool("pg_restore", "--exit-on-error", "-d", self.db, dump)
        self.cluster.install(self.db)
        self.assertSameGuard(policies)

    def test_dump_neither_waits_nor_blocks(self):
        session = self.connect()
        rows(session, "SELECT pawl.use('orders', 34)")
        rows(session, "UPDATE orders SET n = 5")
        self.dump("-Fc", "--lock-wait-timeout=5s")
        session.commit()


class DataOnly(DumpCase):
    def setUp(self):
        super().setUp()
        self.data = self.dump("-Fc", "--data-only", "-t", "orders")
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.sql("DELETE FROM orders")
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")

    def restore(self, *options, check=True):
        return self.cluster.tool(
            "pg_restore", "--data-only", *options, "-d", self.db, self.data, check=check
        )

    def test_restore_into_a_guarded_table_needs_a_token(self):
        done = self.restore("--exit-on-error", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pawl", done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM orders"), 0)

    def test_restore_with_disabled_triggers_is_detected(self):
        self.assertEqual(self.serious(), [])
        self.restore("--disable-triggers", "--exit-on-error")
        self.assertEqual(self.value("SELECT count(*) FROM orders"), 1)
        found = self.serious()
        self.assertTrue(any("orders" in (row[2] or "") for row in found), found)
        # The fix that it names is one that works.
        for fix in {row[4] for row in found}:
            self.sql(fix)
        self.assertEqual(self.serious(), [])


if __name__ == "__main__":
    postgres.main()
