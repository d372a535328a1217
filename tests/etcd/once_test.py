#!/usr/bin/python3
"""Transactions whose outcome was unknown apply exactly once, because the same bytes are sent again.

The witness is etcd's own: `version` of the key counts its puts."""

import os
import random
import threading
import unittest

from pawltest import etcd
from pawltest.etcd import Cluster, Probe
from pawltest.tcp_proxy import Proxy

STEPS = int(os.environ.get("PAWL_ETCD_STEPS", "300"))  # Each unknown outcome costs a pause of 50 ms.


class OnceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def puts(self, key):
        (kv,) = self.cluster.json("get", key)["kvs"]
        return kv["version"]

    def assertExactlyOnce(self, key, result, steps):
        self.assertNotIn("failed", result)
        self.assertEqual(result["counted"], steps)
        self.assertEqual(self.puts(key), steps)

    def test_transactions_with_deadlines_that_are_too_short_apply_exactly_once(self):
        # An attempt is given up after three times attempt_ms, or its own time if that is longer.
        with Probe(self.cluster.addresses, resend_ms=2, attempt_ms=1) as probe:
            probe.wait_usable(1)
            result = probe.count("deadlines", STEPS, micros=3000, seed=7)
        print(result)
        self.assertExactlyOnce("deadlines", result, STEPS)
        self.assertGreater(result["unknown"], STEPS // 20)
        # What had timed out had been applied, more often than not: that is why it is unknown.
        self.assertGreater(result["earlier_send_applied"], 0)

    def test_transactions_whose_connection_is_reset_apply_exactly_once(self):
        proxy = Proxy(self.cluster.nodes[0].client_port)
        self.addCleanup(proxy.close)
        ended = threading.Event()

        def reset_now_and_then():
            dice = random.Random(11)
            while not ended.wait(dice.uniform(0.001, 0.02)):
                proxy.reset()

        with Probe([proxy.address], resend_ms=1, reconnect_ms=1) as probe:
            probe.wait_usable(1)
            resets = threading.Thread(target=reset_now_and_then)
            resets.start()
            try:
                result = probe.count("resets", STEPS)
            finally:
                ended.set()
                resets.join()
        print(result)
        self.assertExactlyOnce("resets", result, STEPS)
        self.assertGreater(result["unknown"], 10)


if __name__ == "__main__":
    etcd.main()
