#!/usr/bin/python3
"""The guard in a real etcd, as a program without libpawl uses it: the module of
docs/how-to/guard-etcd.md, which sends the transaction that the page describes.

Environment: PAWL is the binary.
"""

from pawltest.etcd_guard import Refused, ServerCase, main, writer

TOKEN_MAX = 2**53 - 1


class WriteTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.server.protect("orders/*")
        self.guard = writer(self.server)

    def assertRefused(self, verdict, work, *values, **more):
        with self.assertRaises(Refused) as caught:
            work(*values, **more)
        self.assertTrue(str(caught.exception).startswith(verdict), caught.exception)

    def fence(self):
        return self.server.value("pawl-guard/orders/fence")

    def test_stale_write_changes_nothing(self):
        self.assertEqual(self.guard.write(34, {"orders/7": "new"}), "admitted")
        others = {"orders/8": "x", "orders/9": "y"}
        for changes in ({"orders/7": "old"}, {"orders/7": None}, others):
            with self.subTest(changes=changes):
                self.assertRefused("stale", self.guard.write, 33, changes)
                self.assertRefused("stale", writer(self.server).write, 33, changes)
        found = self.server.etcdctl("get", "--prefix", "orders/").stdout
        self.assertEqual(found, "orders/7\nnew\n")
        self.assertEqual(self.server.counted("orders", "stale"), 6)

    def test_fence_outlives_the_deletion_of_its_key(self):
        self.guard.write(34, {"orders/7": "x"})
        self.guard.write(35, {"orders/7": None})
        self.assertRefused("stale", self.guard.write, 34, {"orders/7": "y"})
        self.assertIsNone(self.server.value("orders/7"))

    def test_advance_fences_out_before_the_new_holder_writes(self):
        self.guard.write(33, {"orders/7": "x"})
        writer(self.server).advance(34)
        self.assertRefused("stale", self.guard.write, 33, {"orders/7": "y"})
        self.assertRefused("stale", self.guard.advance, 33)
        self.assertEqual(self.fence(), f"{34:016}")

    def test_operation_takes_effect_once(self):
        for wanted in ("admitted", "replayed", "replayed"):
            self.assertEqual(self.guard.write(34, {"orders/7": wanted}, operation=1), wanted)
        self.assertEqual(self.guard.write(34, {"orders/7": "5"}, operation=5), "admitted")
        self.assertRefused("stale", self.guard.write, 34, {"orders/7": "4"}, operation=4)
        self.assertEqual(self.guard.write(34, {"orders/7": "none"}), "admitted")
        self.assertEqual(self.guard.write(34, {"orders/7": "5"}, operation=5), "replayed")
        self.assertEqual(self.server.value("orders/7"), "none")

    def test_numbers_are_exact_to_the_greatest_token(self):
        self.guard.write(TOKEN_MAX, {"orders/7": "x"})
        self.assertRefused("stale", self.guard.write, TOKEN_MAX - 1, {"orders/7": "y"})
        self.assertEqual(self.guard.write(TOKEN_MAX, {"orders/7": "z"}), "admitted")

    def test_token_far_ahead_is_refused(self):
        self.guard.write(34, {"orders/7": "x"})
        self.assertRefused("ahead", self.guard.write, 35 + 2**44, {"orders/7": "y"})
        self.assertEqual(self.server.value("orders/7"), "x")

    def test_mode_is_obeyed_by_a_writer_that_has_read_another_one(self):
        self.guard.write(34, {"orders/7": "x"})
        self.server.pawl("mode", "etcd", "orders", "shadow")
        self.assertEqual(self.guard.write(33, {"orders/7": "old"}), "let through")
        self.assertEqual(self.server.value("orders/7"), "old")
        self.assertEqual(self.server.counted("orders", "would_refuse"), 1)
        self.assertTrue(self.fence().startswith(f"{34:016}"))
        self.server.pawl("mode", "etcd", "orders", "enforce", "--yes")
        self.assertRefused("stale", self.guard.write, 33, {"orders/7": "older"})

    def test_lost_guard_refuses_every_write(self):
        self.guard.write(34, {"orders/7": "x"})
        for lost in ("fence", "policy"):
            self.server.etcdctl("del", f"pawl-guard/orders/{lost}")
            self.assertRefused("orders is not under guard", self.guard.write, 35, {"orders/7": "y"})
            self.guard = writer(self.server)
            self.assertRefused("orders is not under guard", self.guard.write, 35, {"orders/7": "y"})
        self.assertEqual(self.server.value("orders/7"), "x")

    def test_acknowledged_fence_survives_kill_9(self):
        for token in range(30, 50):
            self.guard.write(token, {"orders/7": str(token)})
        (node,) = self.server.nodes
        node.kill()
        node.start()
        self.server.wait_healthy()
        self.assertRefused("stale", self.guard.write, 48, {"orders/7": "old"})
        self.assertEqual(self.guard.write(49, {"orders/7": "49"}), "admitted")


if __name__ == "__main__":
    main()
