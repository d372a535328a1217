#!/usr/bin/python3
"""The extension in Node.js, whose SQLite is another than Debian's: the file is one, and so is what
may be written to it."""
import pathlib
import subprocess

from pawltest import node_clients, sqlite
from pawltest.sqlite import one

HERE = pathlib.Path(__file__).resolve().parent

MOST = 2**53 - 1


class Node(sqlite.GuardedFile):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sqlite = node_clients.sqlite_module()

    def setUp(self):
        super().setUp()
        self.db.execute("ALTER TABLE orders ADD COLUMN n INT")
        self.db.execute("INSERT INTO orders (id, n) VALUES (1, 0)")
        self.db.execute("SELECT pawl_set_policy('orders', 'require_token', 1)")

    def node(self, token, value, extension=sqlite.EXTENSION):
        """Its error; empty when it has written."""
        done = subprocess.run(
            [
                "node",
                HERE / "clients/write.cjs",
                self.sqlite,
                self.path,
                extension,
                str(token),
                str(value),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode != 0, "Error: " in done.stdout, done.stdout)
        return done.stdout if done.returncode else ""

    def n(self):
        return one(self.db, "SELECT n FROM orders")

    def test_newer_token_in_one_language_fences_the_other(self):
        self.assertEqual(self.node(34, 1), "")
        self.refuses("PAWL_STALE", sqlite.write, self.db, "orders", 33, "UPDATE orders SET n = 666")
        self.assertEqual(self.n(), 1)
        sqlite.write(self.db, "orders", 35, "UPDATE orders SET n = 2")
        self.assertIn(
            "PAWL_STALE: stale token 34 for orders: token 35 has been here", self.node(34, 666)
        )
        self.assertEqual(self.n(), 2)
        # It ended without closing the file: the next status() records its refusal.
        one(self.db, "SELECT pawl_status('orders')")
        self.assertEqual(
            self.db.execute(
                "SELECT verdict, token FROM pawl_refusal WHERE application = 'node'"
            ).fetchall(),
            [("stale", 34)],
        )

    def test_a_write_without_a_token_is_refused(self):
        self.assertIn("PAWL_MISSING: write to orders without a token", self.node("none", 666))
        self.assertEqual(self.n(), 0)

    def test_a_write_without_the_extension_is_refused(self):
        self.assertIn("no such function: pawl_judge", self.node("none", 666, extension="none"))
        self.assertEqual(self.n(), 0)

    def test_greatest_token_is_exact(self):
        self.db.execute("SELECT pawl_set_policy('orders', 'max_step', ?)", (MOST,))
        self.assertEqual(self.node(MOST, 1), "")
        self.assertEqual(one(self.db, "SELECT pawl_fence('orders')"), MOST)
        self.assertIn(f"PAWL_STALE: stale token {MOST - 1} ", self.node(MOST - 1, 666))
        self.assertIn("PAWL_MALFORMED", self.node(MOST + 1, 666))
        self.assertEqual(self.n(), 1)


if __name__ == "__main__":
    sqlite.main()
