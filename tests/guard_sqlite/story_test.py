#!/usr/bin/python3
"""The story that Pawl is for, in a file: a worker frozen past its lease wakes up and writes, and the table refuses. Hard cases 1 and 54.

Real pawld, real `pawl run`, the plain sqlite3 shell, plain Python and plain Node.js. Nobody's clock decides: what counts is that the new token
reached the file before the old worker woke.

Environment: PAWL and PAWLD are the binaries.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import base
from base import one

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402  (starts pawld)
import node_clients  # noqa: E402  (the packages for Node.js that tests use)
from harness import wait_until  # noqa: E402

PAWL = os.environ.get("PAWL", "")

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
# Writes 1, waits to be told to go on, writes 666. What is said then goes to a file.
OLD_WORKER = """
write 1 >"$DIR/first" 2>&1
echo "$PAWL_TOKEN" >"$DIR/token.new" && mv "$DIR/token.new" "$DIR/token"
read go <"$DIR/go"
write 666 >"$DIR/second.new" 2>&1
echo "exit $?" >>"$DIR/second.new" && mv "$DIR/second.new" "$DIR/second"
"""


def children(pid):
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


def family(pid):
    """The process and all below it."""
    return [pid, *[below for child in children(pid) for below in family(child)]]


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


class Story(base.GuardedFile):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def setUp(self):
        super().setUp()
        self.db.execute("ALTER TABLE orders ADD COLUMN n INT")
        self.db.execute("INSERT INTO orders (id, n) VALUES (1, 0)")
        self.db.execute("SELECT pawl_set_policy('orders', 'require_token', 1)")
        self.dir = harness.scratch("sqlite-story")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.mkfifo(self.dir / "go")
        self.environment = {**os.environ, "DIR": str(self.dir), "FILE": self.path, "EXTENSION": base.EXTENSION,
                            "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}"}

    def pawl_run(self, script, *options):
        command = [PAWL, "run", self.id(), "-t", "2s", *options, "--", "sh", "-c", script]
        process = subprocess.Popen(harness.guarded(command), env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        for pid in reversed(family(process.pid)) if process.poll() is None else ():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    def freeze(self, process):
        """Stops pawl and its command, as a host that stands still would. Returns the command's processes."""
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(process.pid) in "Tt", "pawl stands still")
        below = family(process.pid)[1:]
        self.assertTrue(below)
        for pid in below:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(state(pid) in "Tt" for pid in below), "its command stands still")
        return below

    def play(self, language, new_holder, *options):
        """Returns (old token, new token, what the old worker was told on waking)."""
        old = self.pawl_run(language + OLD_WORKER)
        wait_until((self.dir / "token").exists, "the old worker has written")
        self.assertEqual(one(self.db, "SELECT n FROM orders"), 1, (self.dir / "first").read_text())
        old_token = int((self.dir / "token").read_text())
        below = self.freeze(old)
        new = self.pawl_run(f'{language}{new_holder} && echo "granted=$PAWL_TOKEN"', "-w", "60s", *options)
        said = new.communicate(timeout=90)[0]
        self.assertEqual(new.returncode, 0, said)
        new_token = int(re.search(r"granted=(\d+)", said)[1])
        self.assertGreater(new_token, old_token)
        for pid in below:  # The command wakes first, as may happen: pawl itself would have killed it.
            os.kill(pid, signal.SIGCONT)
        (self.dir / "go").write_text("go\n")
        wait_until((self.dir / "second").exists, "the old worker has tried to write")
        old.send_signal(signal.SIGCONT)
        self.assertEqual(old.wait(timeout=60), 122, "pawl reports that the lease was lost")
        return old_token, new_token, (self.dir / "second").read_text()

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"PAWL_STALE: stale token {old_token} for orders: token {new_token} has been here", met)
        self.assertNotIn("exit 0", met)
        # The shell ends without closing the file: whoever asks for the status takes the refusal in.
        status = json.loads(one(self.db, "SELECT pawl_status('orders')"))[0]
        self.assertEqual(status["stale"], 1)
        self.assertEqual(self.db.execute("SELECT resource, verdict, token, max FROM pawl_refusal").fetchall(),
                         [("orders", "stale", old_token, new_token)])

    def test_a_worker_frozen_past_its_ttl_is_refused_when_it_wakes_and_writes_through_the_shell(self):
        self.assertRefusedAndCounted(*self.play(SHELL, "write 2"))
        self.assertEqual(one(self.db, "SELECT n FROM orders"), 2)

    def test_and_so_it_is_in_python(self):
        self.assertRefusedAndCounted(*self.play(PYTHON, "write 2"))
        self.assertEqual(one(self.db, "SELECT n FROM orders"), 2)

    def test_and_so_it_is_in_node(self):
        self.environment.update(CLIENTS=str(HERE / "clients"), NODE_SQLITE=node_clients.sqlite_module())
        self.assertRefusedAndCounted(*self.play(NODE, "write 2"))
        self.assertEqual(one(self.db, "SELECT n FROM orders"), 2)

    def test_it_is_refused_also_when_the_new_holder_was_fenced_on_its_grant_and_has_not_written_yet(self):
        self.assertRefusedAndCounted(
            *self.play(SHELL, "true", "--guard", "sqlite:orders", "--guard-dsn", self.path))
        self.assertEqual(one(self.db, "SELECT n FROM orders"), 1)


if __name__ == "__main__":
    base.main()
