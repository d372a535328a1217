"""The story that Pawl is for, told once for every database: a worker frozen past its lease wakes up
and writes, and the table refuses. Hard cases 1 and 54.

Nobody's clock decides: what counts is that the new token reached the table before the old worker
woke. A test of a database mixes Story in, gives it an environment for the workers, and says how a
worker writes.

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

# Writes 1, waits to be told to go on, writes 666. What is said then goes to a file. `write` is the
# database's.
OLD_WORKER = """
write 1 >"$DIR/first" 2>&1
echo "$PAWL_TOKEN" >"$DIR/token.new" && mv "$DIR/token.new" "$DIR/token"
read go <"$DIR/go"
write 666 >"$DIR/second.new" 2>&1
echo "exit $?" >>"$DIR/second.new" && mv "$DIR/second.new" "$DIR/second"
"""


class Story:
    """Mixed into a TestCase; call start_pawld() in setUpClass and begin_story() in setUp. The test
    case has n(), what the table says."""

    @classmethod
    def start_pawld(cls):
        cls.pawld = harness.Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def begin_story(self, **environment):
        self.dir = harness.scratch("story")
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

    def play(self, write, new_holder, *options):
        """Workers under `pawl run`, in any language: `write` defines a shell function of that name,
        the new holder calls it or does not. Returns (old token, new token, what the old worker was
        told on waking)."""
        old = self.pawl_run(write + OLD_WORKER)
        wait_until((self.dir / "token").exists, "the old worker has written")
        self.assertEqual(self.n(), 1, (self.dir / "first").read_text())
        old_token = int((self.dir / "token").read_text())
        # pawl and its command, as a host that stands still would.
        freeze([old.pid])
        below = tree(old.pid)[1:]
        self.assertTrue(below)
        freeze(below)
        new = self.pawl_run(
            f'{write}{new_holder} && echo "granted=$PAWL_TOKEN"', "-w", "60s", *options
        )
        said = new.communicate(timeout=90)[0]
        self.assertEqual(new.returncode, 0, said)
        new_token = int(re.search(r"granted=(\d+)", said)[1])
        self.assertGreater(new_token, old_token)
        resume(below)  # The command wakes first, as may happen: pawl itself would have killed it.
        (self.dir / "go").write_text("go\n")
        wait_until((self.dir / "second").exists, "the old worker has tried to write")
        resume([old.pid])
        self.assertEqual(old.wait(timeout=60), 122, "pawl reports that the lease was lost")
        wait_until(
            lambda: not any(is_alive(pid) for pid in below),
            "nothing of the old worker is left",
        )
        met = (self.dir / "second").read_text()
        self.assertNotIn("exit 0", met)
        return old_token, new_token, met

    def worker(self, kind, where, resource, value, *more):
        return self.start(
            [WORKER, kind, where, resource, self.id(), value, *more], stdin=subprocess.PIPE
        )

    def play_in_cpp(self, kind, where, resource):
        """Two workers with libpawl. Returns (old token, new token, what the old one was told on
        waking): by its lease, which knows first, and by the table when it does not ask its
        lease."""
        old = self.worker(kind, where, resource, 1, "stay")
        said = old.stdout.readline()
        self.assertRegex(said, r"^granted=\d+$")
        self.assertEqual(self.n(), 1)
        freeze([old.pid])
        new = self.worker(kind, where, resource, 2)
        told, _ = new.communicate(timeout=90)
        self.assertEqual(new.returncode, 0, told)
        self.assertEqual(self.n(), 2)
        resume([old.pid])
        met, _ = old.communicate("go\n", timeout=60)
        self.assertEqual(old.returncode, 121, met)
        self.assertEqual(self.n(), 2)
        old_token, new_token = (int(re.search(r"granted=(\d+)", text)[1]) for text in (said, told))
        self.assertGreater(new_token, old_token)
        self.assertRegex(met, r"(?m)^with its lease: lost: ")
        self.assertRegex(met, r"(?m)^with its token: stale: ")
        return old_token, new_token, met
