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


class FrozenWorkerTest(frozen_worker.StoreWorkerTest, ServerCase):
    kind = "redis"
    writer = SHELL

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

    def refusals(self):
        return int(self.db.hget(guard_key("orders"), "n:stale"))

    def test_python_worker_is_refused(self):
        self.assertWorkerIsRefused(PYTHON)


if __name__ == "__main__":
    main()
