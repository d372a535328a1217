#!/usr/bin/python3
"""A replica of a guarded MariaDB: what arrives there is the primary's, judged there; fences, modes
and counters arrive with it; a guard refuses direct writes to the replica; and a promoted
replica refuses what the primary had fenced.

With row events no trigger runs on a replica. MIXED is MariaDB's default, and sends statements where
it thinks that safe. """

import pymysql

from pawltest.mariadb import Server, ServerCase, call, main, rows, wait_until


class RowEvents(ServerCase):
    binlog_format = "ROW"

    @classmethod
    def setUpClass(cls):
        cls.settings = {"log_bin": "primary", "server_id": 1, "binlog_format": cls.binlog_format}
        super().setUpClass()
        admin = cls.server.connect()
        rows(admin, "CREATE USER app@'127.0.0.1'")
        rows(admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO app@'127.0.0.1'")
        call(admin, "add_writer", "app@127.0.0.1")

    def setUp(self):
        super().setUp()
        self.protect()
        self.protect("lines", key="customer")
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        self.replica = Server(
            {
                "log_bin": "replica",
                "server_id": 2,
                "binlog_format": self.binlog_format,
                "read_only": 1,
            }
        )
        self.addCleanup(self.replica.remove)
        self.replica.start()
        here = self.on_replica(database=None)
        rows(
            here,
            f"CHANGE MASTER TO master_host='127.0.0.1', master_port={self.server.port}, "
            f"master_user='root', master_use_gtid=slave_pos",
        )
        rows(here, "START SLAVE")
        self.catch_up()

    def on_replica(self, user="root", **options):
        connection = self.replica.connect(user, **{"database": self.db, **options})
        self.addCleanup(connection.close)
        return connection

    def catch_up(self):
        """Everything that was committed on the primary is on the replica; fails with the replica's
        own words when it has stopped."""
        position = self.value("SELECT @@gtid_binlog_pos")
        here = self.on_replica(database=None)

        def arrived():
            with here.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute("SHOW SLAVE STATUS")
                status = cursor.fetchone()
            self.assertEqual("", status["Last_SQL_Error"] + status["Last_IO_Error"])
            return rows(here, "SELECT @@gtid_slave_pos")[0][0] == position

        wait_until(arrived, "the replica has caught up")

    def status_there(self, guard):
        with self.on_replica().cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("CALL pawl.status(%s)", (guard,))
            return cursor.fetchone()

    def test_writes_and_fences_arrive_without_another_check(self):
        # MIXED has no choice for the one.
        for level, token in (("READ COMMITTED", 34), ("REPEATABLE READ", 44)):
            with self.subTest(level):
                db = self.connect(isolation=level)
                lines = f"{self.db}.lines:{token}"
                for resource in (self.orders, lines):
                    call(db, "advance", resource, token, 5)
                self.write(token, sql="UPDATE orders SET n = n + 1", on=db)
                self.write(token, sql="INSERT INTO orders (n) VALUES (0)", on=db)
                self.write(token, sql="DELETE FROM orders WHERE n = 0", on=db)
                self.write(token, lines, f"INSERT INTO `lines` (customer) VALUES ({token})", on=db)
                self.write(
                    token, lines, f"UPDATE `lines` SET n = 7 WHERE customer = {token}", on=db
                )
                call(db, "advance", self.orders, token + 1, 5)
                self.assertRefused("PW002", self.write, token, on=db)
                self.catch_up()
        for sql in (
            "SELECT id, n FROM orders ORDER BY id",
            "SELECT customer, n FROM `lines` ORDER BY id",
        ):
            self.assertEqual(rows(self.on_replica(), sql), rows(self.connect(), sql))
        there = self.status_there(self.orders)
        self.assertEqual(
            (there["fence"], there["stale"], there["missing"], there["mode"]), (45, 2, 0, "enforce")
        )

    def test_check_works_on_the_replica_and_modes_arrive(self):
        call(self.connect(), "advance", self.orders, 34, 5)
        call(self.connect(), "advance", f"{self.db}.lines:7", 36, 5)
        self.catch_up()
        for resource, token, verdict in (
            (self.orders, 33, "stale"),
            (self.orders, 34, "admitted"),
            (f"{self.db}.lines:7", 35, "stale"),
        ):
            self.assertEqual(call(self.on_replica("app"), "check", resource, token)[0][0], verdict)
        call(self.connect(), "emergency", self.orders, "test")
        self.catch_up()
        self.assertEqual(call(self.on_replica(), "check", self.orders, 33)[0][2], "shadow")

    def test_direct_write_to_the_replica_is_refused(self):
        self.write(34)
        self.catch_up()
        with self.assertRaises(pymysql.MySQLError) as caught:  # The server refuses.
            rows(self.on_replica("app"), "UPDATE orders SET n = 666")
        self.assertIn("read-only", str(caught.exception))
        rows(self.on_replica(), "SET GLOBAL read_only = 0")  # Now the guard does.
        self.assertRefused("PW001", rows, self.on_replica("app"), "UPDATE orders SET n = 666")
        self.assertRefused(
            "PW002", self.write, 33, on=self.on_replica("app", isolation="READ COMMITTED")
        )

    def test_advance_on_a_read_only_replica_is_refused(self):
        self.write(34)
        self.catch_up()
        for user in ("app", "root"):
            for verb, words in (
                ("advance", (self.orders, 35, 1)),
                ("begin", (self.orders, 35)),
                ("use", (self.orders, 35)),
            ):
                db = self.on_replica(user, isolation="READ COMMITTED", autocommit=verb != "use")
                with self.subTest(user=user, verb=verb), self.assertRaises(
                    pymysql.MySQLError
                ) as caught:
                    call(db, verb, *words)
                    call(db, "finish")
                self.assertIn("read-only", str(caught.exception))
                rows(db, "ROLLBACK")
        self.assertEqual(call(self.on_replica(), "check", self.orders, 34)[0][:2], ("admitted", 34))

    def test_promoted_replica_keeps_the_fences(self):
        self.write(34)
        call(self.connect(), "advance", self.orders, 40, 5)
        call(self.connect(), "advance", f"{self.db}.lines:7", 41, 5)
        self.catch_up()
        here = self.on_replica(isolation="READ COMMITTED")
        for sql in ("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"):
            rows(here, sql)
        self.assertRefused("PW002", self.write, 39, on=here)
        self.assertRefused(
            "PW002",
            self.write,
            40,
            f"{self.db}.lines:7",
            "INSERT INTO `lines` (customer) VALUES (7)",
            on=here,
        )
        self.assertEqual(self.write(40, on=here), "admitted")
        self.assertEqual(self.write(42, on=here), "admitted")
        self.assertEqual(rows(here, "CALL pawl.problems()"), [])


class MixedEvents(RowEvents):
    binlog_format = "MIXED"


if __name__ == "__main__":
    main()
