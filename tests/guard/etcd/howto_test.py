#!/usr/bin/python3
"""docs/how-to/guard-etcd.md: its program for Node.js does what it says, and its commands are those
that `protect` prints. (docs_test runs its shell blocks.)

Environment: PAWL is the binary.
"""

import os
import re
import shutil
import subprocess

from pawltest import harness
from pawltest.etcd_guard import PAGE, ServerCase, main


class HowToTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.printed = self.server.protect("orders/*").stderr
        self.dir = harness.scratch("etcd-howto")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def node(self, token):
        (program,) = re.findall(r"^```js\n(.*?)^```$", PAGE, re.M | re.S)
        (self.dir / "write.cjs").write_text(program, encoding="utf-8")
        return subprocess.run(
            ["node", "write.cjs", "orders/9", str(token)],
            cwd=self.dir,
            env={**os.environ, "ETCD_URL": self.server.nodes[0].url, "PAWL_TOKEN": str(token)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def test_program_for_node_writes_and_is_refused(self):
        for token in (34, 34, 35):
            done = self.node(token)
            self.assertEqual((done.returncode, done.stdout), (0, "admitted\n"), done.stderr)
        done = self.node(34)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("STALE token 34 "), done.stderr)
        self.assertEqual(self.server.value("orders/9"), "35")
        self.assertEqual(self.server.value("pawl-guard/orders/fence"), f"{35:016} {0:016}")

    def test_page_has_the_commands_that_protect_prints(self):
        printed = re.findall(r"^  (etcdctl .*)$", self.printed, re.M)
        (shown,) = re.findall(r"^```console\n(etcdctl role add .*?)^```$", PAGE, re.M | re.S)
        self.assertEqual(shown.splitlines(), printed)


if __name__ == "__main__":
    main()
