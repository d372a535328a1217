"""What the tests of `pawl run` share: a command that writes down that it runs, and a rival for its
lock.

The observer: every process of the command appends its pid and CLOCK_BOOTTIME to a file several
times in a millisecond (faster, the disk would make it wait); a rival notes CLOCK_BOOTTIME when the
lock is granted to it. The last line of the file must be older. Only the order is judged; the
distance is printed.

Environment: PAWL and PAWLD are the binaries.
"""

import os
import subprocess
import sys
import threading
import time

from pawltest import harness
from pawltest.process import dies_with_parent, is_alive
from pawltest.wait import wait_until

PAWL = os.environ.get("PAWL", "")
TTL_MS = 2000

# What makes a command hard to stop: it ignores TERM, it has children and grandchildren, both.
STUBBORN = (("deaf",), ("family",), ("deaf", "family"))
FAMILY = 7  # processes

# Appends "pid boottime" all the time, and ends after a minute at the latest.
WRITER = """
import os, signal, sys, time
out, options = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT), sys.argv[2:]
if "deaf" in options: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "family" in options:
    for _ in range(3):
        if os.fork() == 0: os.fork(); break
if "leave" in options and os.fork() > 0: sys.exit(0)
end = time.monotonic() + 60
while time.monotonic() < end:
    os.write(out, b"%d %d\\n" % (os.getpid(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
    time.sleep(0.0001)
"""


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class RunCase(harness.PawldCase):
    """A pawld for the class, and `pawl run` on a lock of each test's own."""

    enter = ()  # Words in front of pawl, which bring it somewhere else.
    pawl = PAWL

    def setUp(self):
        super().setUp()
        self.address = f"127.0.0.1:{self.pawld.port}"
        self.name = self.lock()
        self.dir = harness.scratch("run")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.dir], check=True))
        self.log = self.dir / "writes"

    def environment(self, **more):
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        return {**own, "PAWL_ADDR": self.address, **more}

    def run_pawl(self, *words, expect=0, stdin="", **environment):
        done = subprocess.run(
            dies_with_parent([*self.enter, self.pawl, "run", *words]),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=self.environment(**environment),
            check=False,
        )
        self.assertEqual(
            done.returncode, expect, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        )
        return done

    def start_pawl(self, *words, **options):
        process = subprocess.Popen(
            dies_with_parent([*self.enter, self.pawl, "run", *words]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            **options,
        )
        self.addCleanup(self.finish, process)
        return process

    def finish(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def ends(self, process, code):
        out, err = process.communicate(timeout=harness.PATIENCE)
        self.assertEqual(process.returncode, code, f"stdout: {out}\nstderr: {err}")
        return out, err

    def writer(self, *options, run=()):
        """pawl run with a command that writes all the time; returns once it does."""
        process = self.start_pawl(
            self.name,
            "-t",
            f"{TTL_MS}ms",
            *run,
            "--",
            sys.executable,
            "-c",
            WRITER,
            self.log,
            *options,
        )
        wait_until(lambda: self.log.exists() and self.log.stat().st_size > 0, "the command writes")
        if "family" in options:
            wait_until(lambda: len(self.writes()[0]) == FAMILY, "every process writes")
        return process

    def writes(self):
        """The pids that wrote, and the time of the last write."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return {int(pid) for pid, _ in lines}, max(int(at) for _, at in lines)

    def rival(self, server):
        """Asks for the lock until it has it; the time of the grant appears in the list."""
        granted = []

        def ask():
            while not granted:
                try:
                    with server.client() as client:
                        client.socket.settimeout(harness.PATIENCE)
                        reply = client.call(
                            "ACQUIRE", self.name, "TTL", 60000, "WAIT", 30000, "OWNER", "rival"
                        )
                        if isinstance(reply, list):
                            granted.append(boottime())
                except (OSError, harness.Closed):
                    time.sleep(0.01)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        self.addCleanup(thread.join, harness.PATIENCE)
        return granted

    def assert_no_write_after(self, granted, options=()):
        wait_until(lambda: granted, "the rival is granted")
        pids, last = self.writes()
        self.assertLess(last, granted[0], "something of the group ran after the next grant")
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])
        print(
            f"{self._testMethodName} {' '.join(options)}: {len(pids)} processes; the last write "
            f"was "
            f"{(granted[0] - last) / 1e6:.1f} ms before the next grant",
            file=sys.stderr,
        )

    def queued(self, server):
        with server.client() as client:
            self.waiting(client, self.name, 1)

    def ends_before_the_next_grant(self, server, options, lose, mend=lambda: None):
        """A command that writes, a rival in the queue; `lose` keeps pawl
        from pawld, pawl exits with 122; `mend` lets pawld serve the rival."""
        with self.subTest("-".join(options) or "plain"):
            self.name = self.lock()
            self.log = self.dir / "-".join(("writes", *options))
            process = self.writer(*options)
            granted = self.rival(server)
            self.queued(server)
            lose()
            try:
                _, err = self.ends(process, 122)
            finally:
                mend()
            self.assertIn("stopping the command", err)
            self.assert_no_write_after(granted, options)
