#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to Redis, and the guard refuses.

Real pawld, real `pawl run`, real Redis; the worker is a shell script with redis-cli, Python, or C++
with libpawl. See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import sys

from pawltest import frozen_worker
from pawltest.redis_server import ServerCase, fcall, guard_key, main, protect

SHELL = """
write() {
  redis-cli -e -p "$PORT" FCALL pawl_write 2 "{orders}:pawl" orders:n \\
    orders "$PAWL_TOKEN" "" SET orders:n "$1"
}
"""
PYTHON = f"""
write() {{ {sys.executable} - "$1" <<'END'
import os, sys, redis
db = redis.Redis(port=int(os.environ["PORT"]))
db.execute_command("FCALL", "pawl_write", 2, "{{orders}}:pawl", "orders:n", "orders",
                   os.environ["PAWL_TOKEN"], "", "SET", "orders:n", sys.argv[1])
END
}}
"""


class FrozenWorkerTest(frozen_worker.FrozenWorkerTest, ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        protect(self.db, "orders", "orders:*")
        fcall(self.db, "pawl_policy", "orders", "on", "", "", "", "change")
        self.dsn = self.server.dsn()
        self.prepare(PORT=str(self.server.port), PAWL_GUARD_DSN=self.dsn)

    def n(self):
        return int(self.db.get("orders:n"))

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"[resource=orders token={old_token} max={new_token} mode=enforce]", met)
        self.assertEqual(self.db.hget(guard_key("orders"), "n:stale"), "1")

    def test_shell_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        guard = ("--guard", "redis:orders")
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "true", *guard))
        self.assertEqual(self.n(), 1)

    def test_python_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(PYTHON, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_guard(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("redis", self.dsn, "orders"))


if __name__ == "__main__":
    main()
