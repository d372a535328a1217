"""A worker frozen past its lease wakes up and writes, and the table refuses: the same test for
every database. Hard cases 1 and 54.

No clock decides: what counts is that the new token reached the table before the old worker woke. A
test of a database inherits from FrozenWorkerTest, gives the workers an environment, and defines how
they write.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""

import os
import re
import shutil
import signal
import subprocess

from pawltest import harness
from pawltest.process import dies_with_parent, freeze, is_alive, resume, send_signal, tree
from pawltest.wait import wait_until

PAWL = os.environ.get("PAWL", "")
WORKER = os.environ.get("FROZEN_WORKER", "")

# Writes 1, waits for a line in $DIR/go, writes 666; its output goes to files. The test of the
# database defines `write`.
OLD_WORKER = """
write 1 >"$DIR/first" 2>&1
echo "$PAWL_TOKEN" >"$DIR/token.new" && mv "$DIR/token.new" "$DIR/token"
read go <"$DIR/go"
write 666 >"$DIR/second.new" 2>&1
echo "exit $?" >>"$DIR/second.new" && mv "$DIR/second.new" "$DIR/second"
"""


class FrozenWorkerTest:
    """For a TestCase that has n(), the value in the table. Call start_pawld() in setUpClass and
    prepare() in setUp."""

    @classmethod
    def start_pawld(cls):
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def prepare(self, **environment):
        self.dir = harness.scratch("frozen")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.mkfifo(self.dir / "go")
        self.environment = {
            **os.environ,
            "DIR": str(self.dir),
            "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}",
            **environment,
        }

    def start(self, command, **options):
        process = subprocess.Popen(
            dies_with_parent(command),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        self.addCleanup(self.end, process)
        return process

    def pawl_run(self, script, *options):
        return self.start(
            [PAWL, "run", self.id(), "-t", "2s", *options, "--", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
        )

    @staticmethod
    def end(process):
        if process.poll() is None:
            send_signal(reversed(tree(process.pid)), signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()

    def run_shell_workers(self, write, new_holder, *options):
        """Workers under `pawl run`, in any language: `write` defines a shell function of that name,
        the new holder calls it or does not. Returns (old token, new token, output of the second
        write)."""
        old = self.pawl_run(write + OLD_WORKER)
        wait_until((self.dir / "token").exists, "the old worker has written")
        self.assertEqual(self.n(), 1, (self.dir / "first").read_text())
        old_token = int((self.dir / "token").read_text())
        # pawl and its command, as when their host freezes.
        freeze([old.pid])
        supervisor, *below = tree(old.pid)[1:]
        self.assertTrue(below)
        freeze([supervisor, *below])
        new = self.pawl_run(
            f'{write}{new_holder} && echo "granted=$PAWL_TOKEN"', "-w", "60s", *options
        )
        output = new.communicate(timeout=90)[0]
        self.assertEqual(new.returncode, 0, output)
        new_token = int(re.search(r"granted=(\d+)", output)[1])
        self.assertGreater(new_token, old_token)
        # The command wakes first, as may happen: pawl or the supervisor would have killed it.
        resume(below)
        (self.dir / "go").write_text("go\n")
        wait_until((self.dir / "second").exists, "the old worker has tried to write")
        resume([supervisor, old.pid])
        self.assertEqual(old.wait(timeout=60), 122, "pawl reports that the lease was lost")
        wait_until(
            lambda: not any(is_alive(pid) for pid in below),
            "nothing of the old worker is left",
        )
        second = (self.dir / "second").read_text()
        self.assertNotIn("exit 0", second)
        return old_token, new_token, second

    def worker(self, kind, where, resource, value, *more):
        return self.start(
            [WORKER, kind, where, resource, self.id(), value, *more], stdin=subprocess.PIPE
        )

    def run_cpp_workers(self, kind, where, resource):
        """Two workers with libpawl. Returns (old token, new token, output of the old worker): the
        errors of its lease, which it checks first, and of the table when it does not check."""
        old = self.worker(kind, where, resource, 1, "stay")
        first_line = old.stdout.readline()
        self.assertRegex(first_line, r"^granted=\d+$")
        self.assertEqual(self.n(), 1)
        freeze([old.pid])
        new = self.worker(kind, where, resource, 2)
        output, _ = new.communicate(timeout=90)
        self.assertEqual(new.returncode, 0, output)
        self.assertEqual(self.n(), 2)
        resume([old.pid])
        errors, _ = old.communicate("go\n", timeout=60)
        self.assertEqual(old.returncode, 121, errors)
        self.assertEqual(self.n(), 2)
        old_token, new_token = (
            int(re.search(r"granted=(\d+)", text)[1]) for text in (first_line, output)
        )
        self.assertGreater(new_token, old_token)
        self.assertRegex(errors, r"(?m)^with its lease: lost: ")
        self.assertRegex(errors, r"(?m)^with its token: stale: ")
        return old_token, new_token, errors


class StoreWorkerTest(FrozenWorkerTest):
    """The same for stores without tables, whose guard is called orders.

    `kind` of the guard; `writer` defines `write`; self.dsn is set before each test; refusals() is
    how often the guard has counted a stale write."""

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn(f"[resource=orders token={old_token} max={new_token} mode=enforce]", met)
        self.assertEqual(self.refusals(), 1)

    def assertWorkerIsRefused(self, write):
        self.assertRefusedAndCounted(*self.run_shell_workers(write, "write 2"))
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused(self):
        self.assertWorkerIsRefused(self.writer)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        guard = ("--guard", f"{self.kind}:orders")
        self.assertRefusedAndCounted(*self.run_shell_workers(self.writer, "true", *guard))
        self.assertEqual(self.n(), 1)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_guard(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers(self.kind, self.dsn, "orders"))
