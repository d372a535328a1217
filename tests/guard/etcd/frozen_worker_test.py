#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to etcd, and the guard refuses.

Real pawld, real `pawl run`, real etcd; the worker is in Python or Node.js, as in the how-to, or in
C++ with libpawl. See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import re
import sys

from pawltest import frozen_worker
from pawltest.etcd_guard import PAGE, PYTHON_MODULE, ServerCase, main

PYTHON = f"""
write() {{ {sys.executable} - "$1" <<'END'
import os, sys
sys.path.insert(0, os.environ["DIR"])
import pawl_etcd
guard = pawl_etcd.Guard("orders", os.environ["ETCD_URL"])
guard.write(int(os.environ["PAWL_TOKEN"]), {{"orders/n": sys.argv[1]}})
END
}}
"""
NODE = """
write() { node "$DIR/write.cjs" orders/n "$1"; }
"""


class FrozenWorkerTest(frozen_worker.StoreWorkerTest, ServerCase):
    kind = "etcd"
    writer = PYTHON

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.server.protect("orders/*")
        self.dsn = self.server.dsn
        self.prepare(ETCD_URL=self.server.nodes[0].url, PAWL_GUARD_DSN=self.dsn)
        (program,) = re.findall(r"^```js\n(.*?)^```$", PAGE, re.M | re.S)
        (self.dir / "pawl_etcd.py").write_text(PYTHON_MODULE, encoding="utf-8")
        (self.dir / "write.cjs").write_text(program, encoding="utf-8")

    def n(self):
        return int(self.server.value("orders/n"))

    def refusals(self):
        return self.server.counted("orders", "stale")

    def test_node_worker_is_refused(self):
        self.assertWorkerIsRefused(NODE)


if __name__ == "__main__":
    main()
