#!/usr/bin/python3
"""The guard in an etcd of three nodes: the conformance kit, and a leader that is frozen and killed.

Environment: PAWL is the binary.
"""

from conformance_test import KitTest as _KitTest
from pawltest.etcd_guard import MODULE, Refused, ServerCase, main


class ThreeNodesKitTest(_KitTest):
    nodes = 3

    # One form is enough: they differ in names only.
    test_the_form_row_keeps_the_contract = None
    test_the_form_by_keeps_the_contract = None
    test_unknown_form_is_a_usage_error = None


class LeaderTest(ServerCase):
    nodes = 3

    def writer_at(self, node):
        return MODULE.Guard("orders", node.url)

    def test_frozen_leader_does_not_admit_an_old_token_when_it_wakes(self):
        self.server.protect("orders/*")
        leader = self.server.leader()
        at_leader = self.writer_at(leader)
        self.assertEqual(at_leader.write(33, {"orders/7": "33"}), "admitted")
        leader.pause()
        self.addCleanup(leader.resume)
        self.server.pawl("advance", "etcd", "orders", "34")
        leader.resume()
        self.assertRaises(Refused, at_leader.write, 33, {"orders/7": "old"})
        self.assertEqual(at_leader.write(34, {"orders/7": "34"}), "admitted")

    def test_fence_survives_the_loss_of_the_leader(self):
        self.server.protect("orders/*")
        self.server.pawl("advance", "etcd", "orders", "34")
        leader = self.server.leader()
        leader.kill()
        self.addCleanup(leader.start)
        self.server.pawl("advance", "etcd", "orders", "35")
        done = self.server.pawl("advance", "etcd", "orders", "34", check=False)
        self.assertEqual(done.returncode, 121, done.stderr)


if __name__ == "__main__":
    main()
