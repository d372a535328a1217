#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to MariaDB, and the table refuses.

Real pawld, real `pawl run`, real MariaDB; the worker is a shell script with the mariadb client,
Python, or C++ with libpawl. See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import sys

from pawltest import frozen_worker
from pawltest.mariadb import ServerCase, call, main

SHELL = """
write() { mariadb --no-defaults -h127.0.0.1 -P"$PORT" -uroot "$DB" -e "CALL pawl.begin('$DB.orders', $PAWL_TOKEN); UPDATE orders SET n = $1; CALL pawl.finish()"; }
"""
PYTHON = f"""
write() {{ {sys.executable} - "$1" <<'END'
import os, sys, pymysql
db = pymysql.connect(host="127.0.0.1", port=int(os.environ["PORT"]), user="root", database=os.environ["DB"])
with db.cursor() as cursor:
    cursor.execute("CALL pawl.begin(%s, %s)", (os.environ["DB"] + ".orders", os.environ["PAWL_TOKEN"]))
    cursor.execute("UPDATE orders SET n = %s", (sys.argv[1],))
db.commit()
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
        self.protect()
        call(self.connect(), "set_policy", self.orders, True, None, None, None)
        self.dsn = self.server.dsn(database=self.db)
        self.prepare(DB=self.db, PORT=str(self.server.port), PAWL_GUARD_DSN=self.dsn)

    def n(self):
        return self.value("SELECT n FROM orders WHERE id = 1")

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"[token={old_token} max={new_token} mode=enforce]", met)
        self.assertEqual(self.count("stale"), 1)

    def test_shell_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        guard = ("--guard", f"mariadb:{self.orders}")
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "true", *guard))
        self.assertEqual(self.n(), 1)

    def test_python_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(PYTHON, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_table(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("mariadb", self.dsn, self.orders))


if __name__ == "__main__":
    main()
