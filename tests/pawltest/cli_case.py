"""What the tests of the command line share: running pawl against a pawld of the class.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import pty
import subprocess

from pawltest import harness
from pawltest.process import dies_with_parent

PAWL = os.environ.get("PAWL", "")


class CliCase(harness.PawldCase):
    """A pawld for the class, and a lock name of each test's own."""

    def setUp(self):
        super().setUp()
        self.address = f"127.0.0.1:{self.pawld.port}"
        self.name = "cli/" + self._testMethodName

    def environment(self, addr=None, **more):
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        return {**own, "PAWL_ADDR": addr or self.address, **more}

    def pawl(self, *words, expect=0, addr=None, stdin="", **environment):
        """Runs pawl and returns the finished process, after checking how it ended."""
        done = subprocess.run(
            [PAWL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=self.environment(addr, **environment),
            check=False,
        )
        self.assertEqual(
            done.returncode, expect, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        )
        return done

    def data(self, *words, **options):
        return json.loads(self.pawl(*words, "--json", **options).stdout)

    def take(self, *words, **options):
        return self.data("acquire", *(words or (self.name,)), **options)

    def waiting(self, *words):
        """A pawl acquire that stands in the queue by now."""
        waiter = subprocess.Popen(
            dies_with_parent([PAWL, "acquire", self.name, *words]),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(waiter.communicate)
        self.addCleanup(waiter.kill)
        self.wait_for_waiters(1)
        return waiter

    def wait_for_waiters(self, count):
        harness.wait_until(
            lambda: self.data("show", self.name)["waiters"] == count, f"{count} waiting"
        )

    def on_a_terminal(self, words, typed="", **environment):
        """Runs pawl with a terminal on all three: (exit code, what it wrote)."""
        pid, master = pty.fork()
        if pid == 0:
            os.execve(
                PAWL, ["pawl", *words], {"PAWL_ADDR": self.address, "TERM": "xterm", **environment}
            )
        os.write(master, typed.encode())
        seen = b""
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:  # How a terminal says that the other side is closed.
            pass
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return os.waitstatus_to_exitcode(status), seen.decode()
