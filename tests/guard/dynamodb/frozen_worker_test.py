#!/usr/bin/python3
"""A worker frozen past its lease wakes up and writes to DynamoDB, and the guard refuses.

Real pawld, real `pawl run`; the worker is a shell script with `pawl guard put`, Python and Node.js
with the programs of docs/how-to/guard-dynamodb.md, or C++ with libpawl. See
pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import re

from pawltest import ROOT, frozen_worker
from pawltest.dynamodb import ServerCase, installed, main

PAGE = (ROOT / "docs/how-to/guard-dynamodb.md").read_text(encoding="utf-8")
(NODE_PROGRAM,) = re.findall(r"^```js\n(.*?)^```$", PAGE, re.M | re.S)
PYTHON_FILES = dict(
    re.findall(r"^cat > dynamo-demo/(\w+\.py) <<'END'\n(.*?)^END$", PAGE, re.M | re.S)
)

SHELL = """
write() { echo "{\\"n\\": {\\"N\\": \\"$1\\"}}" | "$PAWL" guard put dynamodb orders:7; }
"""
# Of Debian: that has boto3.
PYTHON = 'write() { /usr/bin/python3 "$DIR/job.py" 7 "$1"; }\n'
NODE = 'write() { node "$DIR/job.cjs" 7 "$1"; }\n'


class FrozenWorkerTest(frozen_worker.FrozenWorkerTest, ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.protect("orders", "--key", "*")
        self.prepare(
            PAWL_GUARD_DSN=self.dsn,
            DYNAMODB_URL=self.server.endpoint,
            NODE_PATH=str(installed().resolve() / "node_modules"),
            **self.server.environment(),
        )
        (self.dir / "job.cjs").write_text(NODE_PROGRAM, encoding="utf-8")
        for name, program in PYTHON_FILES.items():
            (self.dir / name).write_text(program, encoding="utf-8")

    def n(self):
        return int(self.server.item("orders", id="7")["n"]["N"])

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"[resource=orders:7 token={old_token} max={new_token} mode=enforce]", met)
        self.assertEqual(self.counted("orders", "stale"), 1)

    def test_shell_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        guard = ("--guard", "dynamodb:orders:7")
        self.assertRefusedAndCounted(*self.run_shell_workers(SHELL, "true", *guard))
        self.assertEqual(self.n(), 1)

    def test_python_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(PYTHON, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_node_worker_is_refused(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(NODE, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_guard(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("dynamodb", self.dsn, "orders:7"))


if __name__ == "__main__":
    main()
