#!/usr/bin/python3
"""The guard in a Redis Cluster of three nodes: hash tags keep a guard and its keys in one slot, and
`pawl` finds the node that has it."""

import os
import subprocess
import unittest

import redis
from pawltest.process import free_port
from pawltest.redis_server import Server, fcall, main, refusal, write
from pawltest.wait import wait_until

PAWL = os.environ["PAWL"]
NODES = 3
SLOTS = 16384
GUARDS = [f"orders{i}" for i in range(6)]  # They are in slots of different nodes.


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = []
        for _ in range(NODES):
            node = Server({"cluster-enabled": "yes", "cluster-port": free_port()})
            cls.addClassCleanup(node.remove)
            node.start()
            cls.nodes.append(node)
        first = cls.nodes[0].connect()
        for i, node in enumerate(cls.nodes):
            db = node.connect()
            begin, end = SLOTS * i // NODES, SLOTS * (i + 1) // NODES - 1
            db.execute_command("CLUSTER", "ADDSLOTSRANGE", begin, end)
            db.execute_command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            bus = node.settings["cluster-port"]
            first.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        wait_until(cls.all_agree, "every node knows all slots")
        cls.guard("install")

    @classmethod
    def all_agree(cls):
        states = [str(node.connect().execute_command("CLUSTER INFO")) for node in cls.nodes]
        nodes = [str(node.connect().execute_command("CLUSTER NODES")) for node in cls.nodes]
        return all("'cluster_state': 'ok'" in state for state in states) and all(
            text.count("'connected': True") == NODES for text in nodes
        )

    @classmethod
    def guard(cls, verb, *words, code=0):
        done = subprocess.run(
            [PAWL, "guard", verb, "redis", "--dsn", cls.nodes[0].dsn(), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != code:
            raise AssertionError(f"{verb} {words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def node_of(self, guard):
        """A connection to the node that has the slot."""
        for node in self.nodes:
            db = node.connect()
            try:
                db.get("{" + guard + "}")
                return db
            except redis.exceptions.ResponseError as error:
                self.assertEqual(refusal(error), "MOVED")
                db.close()
        raise AssertionError(f"no node has the slot of {guard}")

    def test_guards_in_every_node_refuse_stale_writes(self):
        used = set()
        for guard in GUARDS:
            self.guard("protect", "{" + guard + "}:*", "--mode", "enforce")
            db = self.node_of(guard)
            used.add(db.connection_pool.connection_kwargs["port"])
            key = "{" + guard + "}:7"
            self.assertEqual(write(db, guard, 34, "SET", key, "x"), "admitted")
            with self.assertRaises(redis.exceptions.ResponseError) as stale:
                write(db, guard, 33, "SET", key, "y")
            self.assertEqual(refusal(stale.exception), "PAWLSTALE")
            self.guard("advance", guard, "35")
            self.assertEqual(fcall(db, "pawl_max", guard, guard), "35")
            self.assertEqual(db.get(key), "x")
        self.assertGreater(len(used), 1, "the guards are in several nodes")
        self.assertIn("orders5", self.guard("status").stdout)

    def test_keys_without_the_hash_tag_are_refused(self):
        done = self.guard("protect", "orders:*", code=64)
        self.assertIn("{orders}", done.stderr)

    def test_kit_passes_in_a_cluster(self):
        self.guard("conformance", "--form", "static", "--rounds", "5")


if __name__ == "__main__":
    main()
