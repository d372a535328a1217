#!/usr/bin/python3
"""docs/how-to/guard-redis.md: its program for Node.js does what it says, and its words are those of
the guard. (docs_test runs its shell blocks.)"""

import os
import re
import shutil
import subprocess

from pawltest import ROOT, harness, node_clients
from pawltest.redis_server import ServerCase, library, main, protect

PAGE = (ROOT / "docs/how-to/guard-redis.md").read_text(encoding="utf-8")


class HowToTest(ServerCase):
    def setUp(self):
        super().setUp()
        protect(self.db, "orders", "orders:*")
        self.dir = harness.scratch("redis-howto")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def node(self, token):
        (program,) = re.findall(r"^```js\n(.*?)^```$", PAGE, re.M | re.S)
        (self.dir / "write.cjs").write_text(program, encoding="utf-8")
        return subprocess.run(
            ["node", "write.cjs"],
            cwd=self.dir,
            env={
                **os.environ,
                "REDIS_URL": f"redis://127.0.0.1:{self.server.port}",
                "PAWL_TOKEN": str(token),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def test_program_for_node_writes_and_is_refused(self):
        node_clients.link(self.dir, "redis")
        done = self.node(34)
        self.assertEqual((done.returncode, done.stdout), (0, "OK\n"), done.stderr)
        self.assertEqual(self.db.get("orders:9"), "paid")
        done = self.node(33)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("PAWLSTALE "), done.stderr)

    def test_page_names_every_word_of_a_refusal(self):
        self.assertEqual(
            set(re.findall(r"^\| `(PAWL[A-Z]+)`", PAGE, re.M)),
            set(re.findall(r"'(PAWL[A-Z]+)", library())),
        )


if __name__ == "__main__":
    main()
