#!/usr/bin/python3
"""pawl guard … dynamodb, against dynalite with transactions.

Environment: PAWL is the binary.
"""

import json

from pawltest.dynamodb import Refused, ServerCase, main


class RowTest(ServerCase):
    """A fence for each item."""

    def setUp(self):
        super().setUp()
        self.protect("orders", "--key", "*")

    def state(self, key="7"):
        return (self.server.item("orders", id=key) or {}).get("state", {}).get("S")

    def test_stale_token_is_refused(self):
        self.put("orders:7", 34, {"state": "packed"})
        met = self.put("orders:7", 33, {"state": "late"}, code=121).stderr
        self.assertIn("[resource=orders:7 token=33 max=34 mode=enforce]", met)
        self.assertEqual(self.state(), "packed")
        self.assertEqual(self.counted("orders", "stale"), 1)
        self.put("orders:8", 33, {"state": "other item"})

    def test_advance_refuses_the_former_holder_before_anything_is_written(self):
        self.guard("advance", "orders:7", "35")
        item = self.server.item("orders", id="7")
        self.assertTrue(item["pawl_gone"]["BOOL"])
        self.put("orders:7", 34, {"state": "late"}, code=121)
        self.assertIsNone(self.state())
        self.put("orders:7", 35, {"state": "sent"})
        self.assertEqual(self.state(), "sent")
        self.assertNotIn("pawl_gone", self.server.item("orders", id="7"))

    def test_advance_leaves_the_item_as_it_is(self):
        item = {"id": {"S": "7"}, "state": {"S": "a"}}
        self.server.call("PutItem", TableName="orders", Item=item)
        self.guard("advance", "orders:7", "35")
        item = self.server.item("orders", id="7")
        self.assertEqual((item["state"]["S"], item["pawl_token"]["N"]), ("a", "35"))
        self.assertNotIn("pawl_gone", item)
        self.assertEqual(self.guard("max", "orders:7").stdout.split()[-1], "35")
        self.guard("advance", "orders:7", "34", code=121)

    def test_operation_takes_effect_once(self):
        self.put("orders:7", 34, {"state": "a"}, "--operation", "5")
        done = self.put("orders:7", 34, {"state": "b"}, "--operation", "5")
        self.assertIn("replayed", done.stdout)
        self.assertEqual(self.state(), "a")
        self.put("orders:7", 34, {"state": "c"}, "--operation", "4", code=121)
        self.put("orders:7", 34, {"state": "d"})
        self.assertEqual(self.server.item("orders", id="7")["pawl_op"]["N"], "5")

    def test_get_reads_without_the_attributes_of_the_guard(self):
        self.put("orders:7", 34, {"state": "a"})
        found = json.loads(self.guard("get", "orders:7").stdout)
        self.assertEqual(found, {"id": {"S": "7"}, "state": {"S": "a"}})
        self.guard("get", "orders:8", code=1)

    def test_modes_let_through_and_count(self):
        self.guard("mode", "orders", "shadow", "--yes", "--reason", "test")
        self.put("orders:7", 34, {"state": "a"})
        done = self.put("orders:7", 33, {"state": "b"})
        self.assertIn("stale, and let through", done.stdout)
        self.assertEqual(self.state(), "b")
        self.assertEqual(self.server.item("orders", id="7")["pawl_token"]["N"], "34")
        self.assertEqual(self.counted("orders", "would_refuse"), 1)
        (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
        self.assertEqual((status["mode"], status["would_refuse"]), ("shadow", 1))
        self.guard("mode", "orders", "enforce", "--yes", "--reason", "test")
        self.put("orders:7", 33, {"state": "c"}, code=121)

    def test_numbers_are_exact_to_the_greatest_token(self):
        greatest = 2**53 - 1
        self.put("orders:7", greatest - 2**44, {"state": "a"})
        self.put("orders:7", greatest - 1, {"state": "a"})
        self.put("orders:7", greatest, {"state": "b"})
        self.put("orders:7", greatest - 1, {"state": "c"}, code=121)
        self.assertEqual(self.server.item("orders", id="7")["pawl_token"]["N"], str(greatest))

    def test_policies_that_writers_would_not_notice_are_refused(self):
        self.guard("policy", "orders", "--equal", "once", "--yes", "--reason", "test", code=64)
        met = self.guard("compact", "orders", "--below", "30", "--yes", code=64).stderr
        self.assertIn("cannot be compacted", met)

    def test_keys_of_two_attributes_name_a_resource(self):
        self.server.create_table("shop", "pk", "sk", "SN")
        self.protect("shop/order#*", "--key", "*")
        self.put("order:a%3Ab:7", 34, {"state": "a"})
        key = {"pk": {"S": "order#a:b"}, "sk": {"N": "7"}}
        item = self.server.call("GetItem", TableName="shop", Key=key)["Item"]
        self.assertEqual(item["pawl_token"]["N"], "34")
        self.put("order:a%3Ab:7", 33, {"state": "b"}, code=121)
        self.put("order:a%3Ab:07", 35, {"state": "b"}, code=64)


class StaticTest(ServerCase):
    """One fence for all items of a guard, beside its policy."""

    def test_guard_refuses_and_reports(self):
        self.protect()
        self.guard("advance", "orders", "34")
        self.guard("advance", "orders", "33", code=121)
        self.assertEqual(self.guard("max", "orders").stdout.split()[-1], "34")
        self.guard("compact", "orders", "--below", "40", "--yes")
        self.guard("advance", "orders", "39", code=121)
        (status,) = json.loads(self.guard("status", "orders", "--json").stdout)["guards"]
        self.assertEqual((status["kind"], status["floor"]), ("static", 40))

    def test_guards_of_one_table_may_not_overlap(self):
        self.protect("orders/a*")
        self.guard("protect", "orders", code=64)
        self.protect("orders/b*", "--guard", "b")
        self.guard("protect", "nothing", code=64)
        self.guard("protect", "pawl_guards", code=64)


class PolicyTest(ServerCase):
    def test_policy_that_protect_prints_makes_the_guard_fenced(self):
        for words in (("--key", "*"), ()):
            with self.subTest(words):
                self.setUp()
                shown = self.protect("orders", *words).stderr
                policy = shown[shown.index("{\n") : shown.rindex("}\n") + 2]
                json.loads(policy)
                (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
                self.assertIn("no resource policy", status["strength_because"])
                self.guard("check", code=1)
                self.server.control("policies", {"orders": policy})
                (status,) = json.loads(self.guard("status", "--json").stdout)["guards"]
                self.assertEqual(status["strength"], "fenced")
                self.guard("check")

    def test_table_that_is_gone_is_named(self):
        self.protect("orders", "--key", "*")
        self.server.call("DeleteTable", TableName="orders")
        self.assertIn("the table is gone", self.guard("check", code=None).stdout)

    def test_uninstall_and_drop(self):
        self.protect("orders", "--key", "*")
        self.guard("drop", "orders", "--yes", code=64)
        self.guard("unprotect", "orders", "--yes")
        self.guard("drop", "orders", "--yes")
        self.guard("uninstall", "--yes")
        self.assertEqual(self.server.call("ListTables")["TableNames"], ["orders"])


class PlainTest(ServerCase):
    """dynalite as it is: no transactions, and no item in the answer to a failed condition."""

    plain = True

    def test_fence_for_each_item_works_in_enforce(self):
        self.assertRaises(Refused, self.server.call, "TransactWriteItems", TransactItems=[])
        self.protect("orders", "--key", "*")
        self.put("orders:7", 34, {"state": "a"})
        self.put("orders:7", 33, {"state": "b"}, code=121)
        self.put("orders:7", 34, {"state": "c"})

    def test_what_needs_transactions_is_refused_at_once(self):
        self.guard("protect", "orders", code=64)
        met = self.guard("protect", "orders", "--key", "*", "--mode", "shadow", code=64).stderr
        self.assertIn("TransactWriteItems", met)


if __name__ == "__main__":
    main()
