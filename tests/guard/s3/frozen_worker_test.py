#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to an object in S3, and the guard refuses.

Real pawld, real `pawl run`; the worker is a shell script with `pawl guard put`, or C++ with libpawl.
See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import re

from pawltest import frozen_worker
from pawltest.s3_server import ServerCase, main

SHELL = """
write() { printf %s "$1" | "$PAWL" guard put s3 orders; }
"""


class FrozenWorkerTest(frozen_worker.StoreWorkerTest, ServerCase):
    kind = "s3"
    writer = SHELL

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

    def refusals(self):
        counts = re.search(rb"^stale (\d+)$", self.shop[".pawl/guards/orders"], re.M)
        return int(counts[1])


if __name__ == "__main__":
    main()
