#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to a SQLite file, and the table refuses.

Real pawld, real `pawl run`; the worker is a shell script with sqlite3, Python, Node.js, or C++ with
libpawl. See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""
import json
import pathlib

from pawltest import frozen_worker, node_clients, sqlite
from pawltest.sqlite import one

HERE = pathlib.Path(__file__).resolve().parent


# Each: how a worker sets n to $1 under its token.
SHELL = """
write() {
  sqlite3 -bail "$FILE" ".load $EXTENSION" ".timeout 5000" "BEGIN IMMEDIATE" "SELECT pawl_use('orders', $PAWL_TOKEN)" \
    "UPDATE orders SET n = $1" "COMMIT"
}
"""
PYTHON = """
write() {
  /usr/bin/python3 - "$1" <<'END'
import os, sqlite3, sys
db = sqlite3.connect(os.environ["FILE"], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(os.environ["EXTENSION"])
db.execute("BEGIN IMMEDIATE")
db.execute("SELECT pawl_use('orders', ?)", (os.environ["PAWL_TOKEN"],))
db.execute("UPDATE orders SET n = ?", (sys.argv[1],))
db.execute("COMMIT")
END
}
"""
NODE = """
write() { node "$CLIENTS/write.cjs" "$NODE_SQLITE" "$FILE" "$EXTENSION" "$PAWL_TOKEN" "$1"; }
"""


class FrozenWorker(frozen_worker.FrozenWorkerTest, sqlite.GuardedFile):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.db.execute("ALTER TABLE orders ADD COLUMN n INT")
        self.db.execute("INSERT INTO orders (id, n) VALUES (1, 0)")
        self.db.execute("SELECT pawl_set_policy('orders', 'require_token', 1)")
        self.prepare(FILE=self.path, EXTENSION=sqlite.EXTENSION)

    def n(self):
        return one(self.db, "SELECT n FROM orders")

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"stale token {old_token} for orders: token {new_token} has been here", met)
        # The shell ends without closing the file: the next status() records the refusal.
        status = json.loads(one(self.db, "SELECT pawl_status('orders')"))[0]
        self.assertEqual(status["stale"], 1)
        self.assertEqual(
            self.db.execute("SELECT resource, verdict, token, max FROM pawl_refusal").fetchall(),
            [("orders", "stale", old_token, new_token)],
        )

    def test_shell_worker_is_refused(
        self,
    ):
        old_token, new_token, met = self.run_shell_workers(SHELL, "write 2")
        self.assertIn("PAWL_STALE: ", met)
        self.assertRefusedAndCounted(old_token, new_token, met)
        self.assertEqual(self.n(), 2)

    def test_python_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(PYTHON, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_node_worker_is_refused(self):
        self.environment.update(
            CLIENTS=str(HERE / "clients"), NODE_SQLITE=node_clients.sqlite_module()
        )
        self.assertRefusedAndCounted(*self.run_shell_workers(NODE, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(
        self,
    ):
        self.assertRefusedAndCounted(
            *self.run_shell_workers(
                SHELL, "true", "--guard", "sqlite:orders", "--guard-dsn", self.path
            )
        )
        self.assertEqual(self.n(), 1)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_table(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("sqlite", self.path, "orders"))


if __name__ == "__main__":
    sqlite.main()
