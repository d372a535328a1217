#!/usr/bin/python3
"""A replica that was promoted has lost a fence: `pawl guard check` names it, and says what mends
it."""

import json
import os
import subprocess

from pawltest.redis_server import Server, ServerCase, main, protect, write
from pawltest.wait import wait_until

PAWL = os.environ["PAWL"]


class FailoverTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.replica = Server({"replicaof": f"127.0.0.1 {self.server.port}"})
        self.addCleanup(self.replica.remove)
        self.replica.start()
        self.other = self.replica.connect()
        self.addCleanup(self.other.close)
        self.follow()

    def follow(self):
        """Waits until the replica has what the master has, and so its replication id."""

        def is_in_step():
            here, there = self.other.info("replication"), self.db.info("replication")
            return (
                here["master_link_status"] == "up"
                and here["master_replid"] == there["master_replid"]
            )

        wait_until(is_in_step, "the replica follows")

    def guard(self, server, verb, *words, code=0):
        done = subprocess.run(
            [PAWL, "guard", verb, "redis", "--dsn", server.dsn(), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, code, f"{verb} {words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def errors(self, server):
        report = json.loads(self.guard(server, "check", "--json", code=1))
        return [each["problem"] for each in report["problems"] if each["severity"] == "error"]

    def lose_a_fence(self):
        """Token 35 is acknowledged by the master, and has not reached the replica when that is
        promoted."""
        protect(self.db, "orders", "orders:*")
        self.db.sadd("pawl:guards", "orders")
        write(self.db, "orders", 34, "SET", "orders:7", "34")
        self.assertEqual(self.db.wait(1, 60_000), 1)
        self.db.config_set("repl-ping-replica-period", 3600)
        self.other.execute_command("REPLICAOF", "NO", "ONE")
        write(self.db, "orders", 35, "SET", "orders:7", "35")

    def test_asynchronous_replica_makes_it_best_effort(self):
        protect(self.db, "orders", "orders:*")
        self.db.sadd("pawl:guards", "orders")
        self.assertIn("asynchronously", self.guard(self.server, "check", code=1))

    def test_promotion_that_may_have_lost_a_fence_is_named_until_it_is_settled(self):
        self.lose_a_fence()
        self.assertEqual(write(self.other, "orders", 34, "SET", "orders:7", "stale"), "admitted")
        (problem,) = self.errors(self.replica)
        self.assertIn("was a replica and was promoted", problem)
        self.guard(self.replica, "compact", "orders", "--below", "35", "--yes")
        self.assertEqual(self.errors(self.replica), [])
        self.assertRefused("PAWLSTALE", write, self.other, "orders", 34, "SET", "orders:7", "x")

    def test_promotion_is_named_also_where_the_master_has_another_id_by_then(self):
        protect(self.db, "orders", "orders:*")
        self.db.sadd("pawl:guards", "orders")
        write(self.db, "orders", 34, "SET", "orders:7", "34")
        before = self.db.info("replication")["master_replid"]
        self.server.crash()
        self.server.start()
        self.follow()
        self.assertNotEqual(self.other.info("replication")["master_replid"], before)
        self.other.execute_command("REPLICAOF", "NO", "ONE")
        (problem,) = self.errors(self.replica)
        self.assertIn("was a replica and was promoted", problem)
        self.guard(self.replica, "compact", "orders", "--below", "35", "--yes")
        self.assertEqual(self.errors(self.replica), [])

    def test_restart_is_no_promotion(self):
        protect(self.db, "orders", "orders:*")
        self.db.sadd("pawl:guards", "orders")
        self.server.stop()
        self.server.start()
        self.assertEqual(self.errors(self.server), [])

    def test_replica_refuses_guarded_writes(self):
        protect(self.db, "orders", "orders:*")
        self.assertEqual(self.db.wait(1, 60_000), 1)
        with self.assertRaisesRegex(Exception, "read only|READONLY"):
            write(self.other, "orders", 34, "SET", "orders:7", "x")


if __name__ == "__main__":
    main()
