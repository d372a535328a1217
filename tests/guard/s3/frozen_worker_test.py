#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to an object in S3, and the guard refuses.

Real pawld, real `pawl run`; the worker is a shell script with `pawl guard put`, or C++ with libpawl.
See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

from pawltest import frozen_worker
from pawltest.s3_server import ServerCase, main

SHELL = """
write() { printf %s "$1" | "$PAWL" guard put s3 orders; }
"""


class FrozenWorkerTest(frozen_worker.FrozenWorkerTest, ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.guard("install")
        self.guard("protect", "orders", "--mode", "enforce")
        self.prepare(PAWL_GUARD_DSN=self.dsn, **self.server.environment())

    def n(self):
        return int(self.shop["orders"].rpartition(b"\n\n")[2])

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"[resource=orders token={old_token} max={new_token} mode=enforce]", met)
        self.assertIn(b"\nstale 1\n", self.shop[".pawl/guards/orders"])

    def test_shell_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        guard = ("--guard", "s3:orders")
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "true", *guard))
        self.assertEqual(self.n(), 1)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_guard(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("s3", self.dsn, "orders"))


if __name__ == "__main__":
    main()
