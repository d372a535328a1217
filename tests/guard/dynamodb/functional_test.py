#!/usr/bin/python3
"""What the guard asks DynamoDB for, and what it does when DynamoDB fails.

The number of requests is that of the unguarded write: one, without a read before it, once a client
knows the policy of the guard. Lost answers and errors are settled by reading back.

Environment: PAWL is the binary, DYNAMO_WRITER a program that writes.
"""

import json
import os
import subprocess

from pawltest.dynamodb import Refused, ServerCase, main


class FunctionalTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.server.create_table("parts", "id")
        self.protect("orders", "--key", "*")
        self.protect("parts")
        self.server.requests()

    def write(self, *lines):
        """Runs the writer with these lines; its answers."""
        done = subprocess.run(
            [os.environ["DYNAMO_WRITER"], self.dsn],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
            env={**os.environ, **self.server.environment()},
        )
        return done.stdout.splitlines()

    def state(self, table, key):
        return (self.server.item(table, id=key) or {}).get("state", {}).get("S")

    def test_guarded_write_is_one_request(self):
        answers = self.write(
            "put orders:7 orders 7 34 0 a",  # reads the policy, once
            "put orders:7 orders 7 34 0 b",
            "update orders:8 orders 8 34 0 c",
            "delete orders:7 orders 7 34 0 -",
            "put orders:7 orders 7 35 1 d",
        )
        self.assertEqual(answers, ["admitted"] * 5)
        wanted = ["GetItem", "GetItem", "PutItem", "PutItem", "UpdateItem", "PutItem", "PutItem"]
        self.assertEqual(self.server.requests(), wanted)

    def test_guarded_transaction_is_one_request(self):
        answers = self.write(*[f"put parts parts {n} 34 {n} a" for n in (1, 2, 3)])
        self.assertEqual(answers, ["admitted"] * 3)
        self.assertEqual(self.server.requests(), ["GetItem"] + ["TransactWriteItems"] * 3)

    def test_refusal_needs_no_read_of_the_item(self):
        self.write("put orders:7 orders 7 34 0 a")
        self.server.requests()
        answers = self.write("put orders:8 orders 8 33 0 a", "put orders:7 orders 7 33 0 b")
        self.assertEqual(answers[0], "admitted")
        self.assertTrue(answers[1].startswith("stale: "), answers)
        # The first write reads the policy and its item; the refused one the policy, to be sure of
        # the mode, and counts.
        self.assertEqual(
            self.server.requests(),
            ["GetItem", "GetItem", "PutItem", "PutItem", "GetItem", "UpdateItem"],
        )

    def test_error_after_the_write_is_settled_by_reading_back(self):
        for how in ("after", "drop"):
            for line, operation in (
                ("put orders:7 orders 7 34 0 a", "PutItem"),
                ("put parts parts 7 34 0 a", "TransactWriteItems"),
            ):
                with self.subTest(how=how, operation=operation):
                    self.server.fail(operation=operation, how=how)
                    self.assertEqual(self.write(line), ["admitted"])
                    # On a connection that was closed libcurl sends it again by itself; the
                    # condition lets one of the two land.
                    sent = self.server.requests().count(operation)
                    self.assertLessEqual(sent, 2 if how == "drop" else 1)

    def test_error_instead_of_the_write_is_read_back_before_it_is_sent_again(self):
        self.server.fail(operation="PutItem", how="before")
        self.assertEqual(self.write("put orders:7 orders 7 34 0 a"), ["admitted"])
        wanted = ["GetItem", "GetItem", "PutItem", "GetItem", "GetItem", "PutItem"]
        self.assertEqual(self.server.requests(), wanted)

    def test_with_a_number_every_error_is_settled(self):
        for number, how in enumerate(("before", "after", "drop"), 1):
            for resource, table, operation in (
                ("orders:7", "orders", "PutItem"),
                ("parts", "parts", "TransactWriteItems"),
            ):
                with self.subTest(how=how, operation=operation):
                    self.server.fail(operation=operation, how=how)
                    line = f"put {resource} {table} 7 34 {number} {how}"
                    self.assertEqual(self.write(line), ["admitted"])
                    self.assertEqual(self.state(table, "7"), how)

    def test_throttled_and_conflicting_writes_are_tried_again(self):
        self.server.fail(
            {"operation": "PutItem", "how": "throttle"},
            {"operation": "PutItem", "how": "throttle"},
            {"operation": "TransactWriteItems", "how": "throttle"},
            {"operation": "TransactWriteItems", "how": "conflict"},
        )
        answers = self.write("put orders:7 orders 7 34 0 a", "put parts parts 7 34 0 b")
        self.assertEqual(answers, ["admitted", "admitted"])
        self.assertEqual((self.state("orders", "7"), self.state("parts", "7")), ("a", "b"))

    def test_item_that_is_too_large_is_refused_by_dynamodb(self):
        large = "x" * 410_000
        for line in (f"put orders:7 orders 7 34 0 {large}", f"put parts parts 7 34 0 {large}"):
            (answer,) = self.write(line)
            self.assertTrue(answer.startswith("invalid: "), answer[:300])
        self.assertIsNone(self.state("orders", "7"))
        self.assertIsNone(self.state("parts", "7"))

    def test_mode_is_in_effect_for_writers_that_have_seen_another(self):
        writer = subprocess.Popen(
            [os.environ["DYNAMO_WRITER"], self.dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.server.environment()},
        )
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        self.addCleanup(writer.stdin.close)
        self.addCleanup(writer.stdout.close)

        def write(line):
            writer.stdin.write(line + "\n")
            writer.stdin.flush()
            return writer.stdout.readline()

        for guard, resource in (("orders", "orders:7"), ("parts", "parts")):
            with self.subTest(guard):
                late = f"put {resource} {guard} 7 33 0 late"
                self.assertEqual(write(f"put {resource} {guard} 7 34 0 a"), "admitted\n")
                self.assertTrue(write(late).startswith("stale: "))
                self.guard("mode", guard, "shadow", "--yes", "--reason", "test")
                self.assertEqual(write(late), "stale, let through\n")
                self.guard("mode", guard, "enforce", "--yes", "--reason", "test")
                self.assertTrue(write(late).startswith("stale: "))

    def test_guard_that_was_damaged_or_lost_refuses_every_write(self):
        self.server.call(
            "UpdateItem",
            TableName="orders",
            Key={"id": {"S": "7"}},
            UpdateExpression="SET pawl_token = :x",
            ExpressionAttributeValues={":x": {"S": "34"}},
        )
        (answer,) = self.write("put orders:7 orders 7 35 0 a")
        self.assertIn("damaged", answer)
        self.server.call(
            "DeleteItem", TableName="pawl_guards", Key={"name": {"S": "guard parts"}}
        )
        (answer,) = self.write("put parts parts 7 35 0 a")
        self.assertIn("unknown resource", answer)

    def test_signature_is_checked(self):
        done = self.pawl("guard", "status", "dynamodb")
        self.assertIn("orders", done.stdout)
        environment = {**os.environ, **self.server.environment(), "PAWL_GUARD_DSN": self.dsn}
        environment["AWS_SECRET_ACCESS_KEY"] = "wrong"
        done = subprocess.run(
            [os.environ["PAWL"], "guard", "status", "dynamodb", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("InvalidSignatureException", done.stderr)

    def test_unguarded_write_is_as_many_requests(self):
        self.server.call("PutItem", TableName="orders", Item={"id": {"S": "9"}})
        self.assertEqual(self.server.requests(), ["PutItem"])
        with self.assertRaises(Refused) as met:
            self.server.call("PutItem", TableName="nothing", Item=json.loads('{"id":{"S":"9"}}'))
        self.assertEqual(met.exception.name, "ResourceNotFoundException")


if __name__ == "__main__":
    main()
