"""Replicas and logical replication: where the guard answers, where it refuses by name, and what it
does not see.

A physical replica is read only: check() works there, use() is refused. A logical subscriber has
fences of its own: sequences are not replicated, and changes that arrive by replication are the
publisher's, judged there. """

import psycopg2

from pawltest import postgres
from pawltest.postgres import Cluster, rows, wait_until

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);"
ITEM = "CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);"
ENFORCE = """
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
"""


class PhysicalReplica(postgres.ClusterCase):
    settings = {"wal_level": "replica"}

    def setUp(self):
        super().setUp()
        self.cluster.psql(
            TABLE + ENFORCE + "SELECT pawl.create_guard('k', keyed => true);", self.db
        )
        self.sql("SELECT pawl.advance('orders', 34)")
        self.sql("SELECT pawl.advance('k:1', 34)")
        self.replica = Cluster(self.settings, data_from=self.base_backup)
        self.addCleanup(self.replica.remove)
        self.replica.start()
        target = self.value("SELECT pg_current_wal_flush_lsn()")
        here = self.on_replica()
        wait_until(
            lambda: rows(here, "SELECT pg_last_wal_replay_lsn() >= %s", target)[0][0],
            "the replica has caught up",
        )

    def base_backup(self, directory):
        self.cluster.run(
            postgres.BIN / "pg_basebackup",
            "-h",
            "127.0.0.1",
            "-p",
            self.cluster.port,
            "-U",
            "postgres",
            "-D",
            directory,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )

    def on_replica(self, **options):
        session = self.replica.connect(self.db, autocommit=True, **options)
        self.addCleanup(session.close)
        return session

    def test_check_works_on_a_replica(self):
        here = self.on_replica()
        for resource in ("orders", "k:1"):
            for token, verdict in ((33, "stale"), (34, "admitted"), (35, "admitted")):
                with self.subTest(resource=resource, token=token):
                    self.assertEqual(
                        rows(here, "SELECT verdict, max FROM pawl.check(%s, %s)", resource, token),
                        [(verdict, 34)],
                    )
            self.assertEqual(rows(here, "SELECT pawl.fence(%s)", resource), [(34,)])

    def test_changes_are_refused_on_a_replica(self):
        here = self.on_replica()
        for sql in (
            "SELECT pawl.use('orders', 34)",
            "SELECT pawl.use('orders', 35)",
            "SELECT pawl.use('orders', 33)",
            "SELECT pawl.admit('orders', 34)",
            "SELECT pawl.use('k:1', 34)",
            "SELECT pawl.advance('orders', 35)",
            "SELECT pawl.set_mode('orders', 'observe')",
        ):
            with self.subTest(sql):
                with self.assertRaises(psycopg2.Error) as caught:
                    rows(here, sql)
                self.assertIn(caught.exception.pgcode, ("25006", "PW002"), caught.exception)
                self.assertRegex(str(caught.exception), "read.only|replica|recovery|stale")

    def test_status_and_problems_work_on_a_replica(self):
        here = self.on_replica()
        self.assertEqual(
            rows(here, "SELECT fence FROM pawl.status WHERE guard = 'orders'"), [(34,)]
        )
        rows(here, "SELECT * FROM pawl.problems()")
        rows(here, "SELECT * FROM pawl.readiness('orders')")

    def test_promoted_replica_keeps_the_fences(self):
        self.cluster.stop()
        try:
            here = self.on_replica()
            rows(here, "SELECT pg_promote()")
            for resource in ("orders", "k:1"):
                rows(here, "SELECT pawl.set_mode(%s, 'enforce')", resource.partition(":")[0])
                self.assertRefused("PW002", rows, here, "SELECT pawl.use(%s, 33)", resource)
                rows(here, "SELECT pawl.admit(%s, 34)", resource)
        finally:
            self.cluster.start()


class LogicalReplication(postgres.ClusterCase):
    settings = {
        "wal_level": "logical",
        "max_logical_replication_workers": 8,
        "max_sync_workers_per_subscription": 1,
        "wal_retrieve_retry_interval": "100ms",
    }

    def setUp(self):
        super().setUp()
        self.publisher = self.db
        self.cluster.psql(
            TABLE
            + ITEM
            + "CREATE PUBLICATION shop FOR TABLE orders, item; INSERT INTO orders VALUES (1, 0);"
            "INSERT INTO item VALUES (7, 0);",
            self.db,
        )
        self.subscriber = self.cluster.create_database(f"{self.db}_copy")
        self.cluster.psql(TABLE + ITEM, self.subscriber)

    def tearDown(self):
        self.cluster.psql(
            f"ALTER SUBSCRIPTION shop DISABLE; ALTER SUBSCRIPTION shop SET (slot_name = NONE); "
            f"DROP SUBSCRIPTION shop;",
            self.subscriber,
            check=False,
        )
        self.cluster.psql(
            f"SELECT pg_drop_replication_slot('{self.publisher}') FROM pg_replication_slots WHERE "
            f"NOT active",
            self.publisher,
            check=False,
        )

    def subscribe(self):
        # In one cluster the slot cannot be made by CREATE SUBSCRIPTION: it would wait for its own
        # transaction.
        self.cluster.psql(
            f"SELECT pg_create_logical_replication_slot('{self.publisher}', 'pgoutput')",
            self.publisher,
        )
        self.cluster.psql(
            f"CREATE SUBSCRIPTION shop CONNECTION '{self.cluster.dsn(self.publisher)}' PUBLICATION "
            f"shop "
            f"WITH (create_slot = false, slot_name = '{self.publisher}')",
            self.subscriber,
        )

    def copied(self, table="orders"):
        return self.cluster.psql(
            f"SELECT count(*), coalesce(sum(n), 0) FROM {table}", self.subscriber
        ).stdout.strip()

    def test_subscriber_gets_copy_and_changes(
        self,
    ):
        self.cluster.psql(
            "SELECT pawl.protect('orders'); SELECT pawl.protect('item', key => 'id')",
            self.subscriber,
        )
        self.subscribe()
        wait_until(
            lambda: self.copied() == "1|0" and self.copied("item") == "1|0",
            "the initial copy is there",
        )
        self.cluster.psql(
            "SELECT pawl.set_mode('orders', 'enforce'); SELECT pawl.set_policy('orders', "
            "require_token => true)",
            self.subscriber,
        )
        self.sql("UPDATE orders SET n = 5")
        wait_until(lambda: self.copied() == "1|5", "the change is applied")
        self.db = self.subscriber
        self.assertRefused("PW001", self.sql, "UPDATE orders SET n = 6")

    def test_subscriber_gets_changes_of_row_guards(self):
        self.cluster.psql("SELECT pawl.protect('item', key => 'id')", self.subscriber)
        self.subscribe()
        wait_until(lambda: self.copied("item") == "1|0", "the initial copy is there")
        self.cluster.psql(
            "SELECT pawl.set_mode('item', 'enforce'); SELECT pawl.set_policy('item', "
            "require_token => true)",
            self.subscriber,
        )
        self.sql("UPDATE item SET n = 5")
        self.sql("INSERT INTO item VALUES (8, 1)")
        wait_until(lambda: self.copied("item") == "2|6", "the changes are applied")
        self.db = self.subscriber
        self.assertRefused("PW001", self.sql, "UPDATE item SET n = 6")

    def test_subscriber_gets_changes_under_a_guard_that_no_superuser_installed(self):
        self.cluster.psql(
            f"CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE {self.subscriber} TO tenant;"
            "DROP SCHEMA pawl CASCADE; DROP EVENT TRIGGER IF EXISTS pawl_partitions;"
            "ALTER TABLE item OWNER TO tenant; ALTER TABLE orders OWNER TO tenant;",
            self.subscriber,
        )
        self.cluster.psql(postgres.install_script(), self.subscriber, user="tenant")
        self.cluster.psql("SELECT pawl.protect('item', key => 'id')", self.subscriber, user="tenant")
        self.subscribe()
        wait_until(lambda: self.copied("item") == "1|0", "the initial copy is there")
        self.cluster.psql(
            "SELECT pawl.set_mode('item', 'enforce'); SELECT pawl.set_policy('item', "
            "require_token => true)",
            self.subscriber,
            user="tenant",
        )
        self.sql("UPDATE item SET n = 5")
        wait_until(lambda: self.copied("item") == "1|5", "the change is applied")

    def test_the_fences_of_a_subscriber_are_its_own(self):
        self.cluster.psql("SELECT pawl.protect('orders')", self.publisher)
        self.cluster.psql("SELECT pawl.protect('orders')", self.subscriber)
        self.subscribe()
        wait_until(lambda: self.copied() == "1|0", "the initial copy is there")
        self.cluster.psql(
            "BEGIN; SELECT pawl.use('orders', 34); UPDATE orders SET n = 7; COMMIT", self.publisher
        )
        wait_until(lambda: self.copied() == "1|7", "the change is applied")
        self.db = self.subscriber
        self.assertIsNone(self.value("SELECT pawl.fence('orders')"))


if __name__ == "__main__":
    postgres.main()
