#!/usr/bin/python3
"""`pawl run` stops everything that its command started, in whatever process group or session,
before the lock can pass on; and says what it could not stop.

As root each test runs twice: with a cgroup, and as a user who may not make one. Some need root and
a C compiler: a set-user-ID program, pid 1.

Environment: PAWL and PAWLD are the binaries.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import children, is_alive, tree
from pawltest.run_case import PAWL, WRITER, RunCase
from pawltest.terminal import CTRL_Z, SHELLS, Terminal

USER = 54321  # nobody's
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
AS_ROOT = os.geteuid() == 0

# Writes as a daemon does: forks twice, in a session of its own, deaf to TERM.
DAEMON = """
import os, sys
if os.fork() > 0: os._exit(0)
os.setsid()
if os.fork() > 0: os._exit(0)
"""

# Forks a child and exits, again and again, so that no process lives for long; each writes.
RUNNER_AWAY = """
import os, signal, sys, time
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.setsid() if os.fork() == 0 else time.sleep(60)
end = time.monotonic() + 60
while time.monotonic() < end:
    os.write(out, b"%d %d\\n" % (os.getpid(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
    if os.fork() > 0: os._exit(0)
"""

SUID_WRITER = """
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (setresuid(0, 0, 0) != 0) return 1;
  puts("up");
  fflush(stdout);
  for (int i = 0; argc > 1 && access(argv[1], F_OK) != 0 && i < 60000; ++i) usleep(1000);
  return 0;
}
"""


class RunTreeTest(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Another user may not enter the tree, as in root's home; so pawl and its files are elsewhere.
        cls.public = pathlib.Path(tempfile.mkdtemp(prefix="pawl-run-tree-"))
        cls.addClassCleanup(shutil.rmtree, cls.public)
        cls.public.chmod(0o755)
        cls.pawl = shutil.copy(PAWL, cls.public / "pawl")

    def setUp(self):
        super().setUp()
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=self.public))
        self.log = self.dir / "writes"
        self.dir.chmod(0o777)

    def ways(self):
        """With a cgroup, if one may be made, and without."""
        for name, enter in (("root", ()), ("user", AS_USER)) if AS_ROOT else (("user", ()),):
            self.enter = enter
            self.name = self.lock()
            self.log = self.dir / f"writes-{name}"
            yield name

    def break_lock(self, name=None):
        with self.client() as client:
            token = self.inspect(client, name or self.name)["token"]
            self.assertEqual(client.call("BREAK", name or self.name, "TOKEN", token, "REASON", "x"),
                             1)

    def written(self):
        wait_until(lambda: self.log.exists() and self.log.stat().st_size > 0, "the command writes")

    def lost_before_the_next_grant(self, *command, code=122):
        process = self.start_pawl(self.name, "-t", "3s", "--", *command)
        self.written()
        granted = self.rival(self.pawld)
        self.queued(self.pawld)
        self.break_lock()
        _, err = self.ends(process, code)
        self.assert_no_write_after(granted)
        return err

    # -- Everything it started

    def test_nested_run_ends_with_the_outer_lease(self):
        for _ in self.ways():
            self.lost_before_the_next_grant(
                self.pawl, "run", self.name + "/inner", "-t", "60s", "--",
                sys.executable, "-c", WRITER, self.log, "deaf", "family",
            )

    def test_daemon_ends_with_the_lease(self):
        for _ in self.ways():
            writer = (sys.executable, "-c", DAEMON + WRITER, self.log, "deaf")
            self.lost_before_the_next_grant("sh", "-c", '"$@"; sleep 1000', "sh", *writer)

    def test_daemon_ends_with_the_command(self):
        for _ in self.ways():
            writer = (sys.executable, "-c", DAEMON + WRITER, self.log, "deaf")
            until_it_writes = f'"$@"; until [ -s {self.log} ]; do sleep 0.01; done'
            process = self.start_pawl(
                self.name, "-t", "3s", "--", "sh", "-c", until_it_writes, "sh", *writer
            )
            self.written()
            granted = self.rival(self.pawld)
            self.ends(process, 0)
            self.assert_no_write_after(granted)

    def test_processes_that_fork_and_exit_cannot_run_away(self):
        for _ in self.ways():
            self.lost_before_the_next_grant(sys.executable, "-c", RUNNER_AWAY, self.log)

    def test_everything_ends_when_pawl_is_killed(self):
        for _ in self.ways():
            process = self.writer("deaf", "family")
            pids, _ = self.writes()
            process.kill()
            wait_until(lambda: not any(is_alive(pid) for pid in pids), "everything is killed")

    def test_everything_ends_when_the_supervisor_is_killed(self):
        for _ in self.ways():
            process = self.writer("deaf", "family")
            pids, _ = self.writes()
            supervisor = next(
                pid for pid in tree(process.pid)
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "pawl-supervisor\n"
            )
            os.kill(supervisor, signal.SIGKILL)
            self.ends(process, 128 + signal.SIGKILL)
            self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_frozen_pawl_does_not_keep_the_command_running(self):
        for _ in self.ways():
            process = self.writer("deaf", "family")
            granted = self.rival(self.pawld)
            self.queued(self.pawld)
            process.send_signal(signal.SIGSTOP)
            self.assert_no_write_after(granted)
            process.send_signal(signal.SIGCONT)
            self.ends(process, 122)

    def test_ctrl_z_stops_everything_until_the_lease_is_over(self):
        deaf = "import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN)\n" + WRITER
        worker = self.dir / "worker.py"
        worker.write_text(deaf)
        terminal = Terminal(SHELLS["bash"], self.environment())
        self.addCleanup(terminal.close)
        command = f"{sys.executable} {worker} {self.log} & cat"
        terminal.type(f"{self.pawl} run {self.name} -t 3s -- sh -c '{command}'\n")
        self.written()
        granted = self.rival(self.pawld)
        self.queued(self.pawld)
        terminal.type(CTRL_Z)
        self.assert_no_write_after(granted)
        terminal.type("fg\n")
        terminal.type("echo code''=$?\n")
        terminal.expect("code=122")

    # -- What is said

    def test_report_names_what_stops_the_command(self):
        for name in self.ways():
            read, write = os.pipe()
            process = self.start_pawl(
                self.name, "-v", "--report-fd", str(write), "--", "true", pass_fds=(write,)
            )
            os.close(write)
            with open(read, encoding="utf-8") as reports:
                events = [json.loads(line) for line in reports]
            _, err = self.ends(process, 0)
            by = next(event["stopped_by"] for event in events if event["event"] == "started")
            self.assertIn("cgroup", err)
            if name == "user":
                self.assertEqual(by, "descendants")
                self.assertIn("every descendant", err)
                self.assertRegex(err, r"there is no cgroup: .*[a-z]")
            else:
                self.assertIn(by, ("cgroup", "descendants"))

    def suid_program(self):
        source = self.dir / "writer.c"
        source.write_text(SUID_WRITER)
        program = pathlib.Path(shutil.which("true")).parent / f"pawl-test-suid-{os.getpid()}"
        self.addCleanup(program.unlink)
        subprocess.run(["cc", "-o", program, source], check=True)
        program.chmod(0o4755)
        return program

    def test_set_user_id_command_that_cannot_be_stopped_is_named(self):
        if not AS_ROOT:
            self.fail("this test makes a set-user-ID program: run it as root")
        self.enter = AS_USER
        stop = self.dir / "stop"
        process = self.start_pawl(self.name, "-t", "3s", "--", self.suid_program(), stop)
        self.assertIn("runs as another user", process.stderr.readline())
        self.assertEqual(process.stdout.readline(), "up\n")
        self.break_lock()
        try:
            lines = [process.stderr.readline() for _ in range(2)]
            self.assertIn("stopping the command", lines[0])
            self.assertRegex(lines[1], r"NOT STOPPED: \d+ \(pawl-test-suid")
            self.assertEqual(process.wait(harness.PATIENCE), 120)
        finally:
            stop.touch()

    # -- Other

    def start_hanging_exec(self):
        """`pawl run` of a program that hangs in its exec, once the lease was renewed."""
        program = self.dir / "slow"
        program.write_text("#!/bin/sh\ntrue\n")
        program.chmod(0o755)
        # Whoever opens the file waits until this lease of the kernel's is given up.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        file = os.open(program, os.O_RDONLY)
        self.addCleanup(os.close, file)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        process = self.start_pawl(self.name, "-t", "3s", "--", program)
        with self.client() as client:
            wait_until(
                lambda: self.inspect(client, self.name)["state"] == "held"
                and self.holders(client, self.name)[0]["renewals"] > 0,
                "the lease is renewed",
            )
        return process

    def test_exec_that_hangs_does_not_delay_the_deadline(self):
        process = self.start_hanging_exec()
        self.break_lock()
        self.ends(process, 122)

    def test_command_that_was_killed_before_its_exec_does_not_keep_the_lock(self):
        process = self.start_hanging_exec()
        for pid in children(process.pid):
            os.kill(pid, signal.SIGKILL)
        self.ends(process, 128 + signal.SIGKILL)
        with self.client() as client:
            self.assertEqual(self.inspect(client, self.name)["state"], "free")

    def test_orphans_are_reaped_by_pid_1(self):
        if not AS_ROOT:
            self.fail("this test makes a pid namespace: run it as root")
        self.enter = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        orphans = "for i in 1 2 3 4 5; do (sleep 0.01 & ); done; "
        look = "while [ $(ls -d /proc/[0-9]* | wc -l) -gt 5 ]; do sleep 0.01; done"
        zombies = "grep -l '^State:.Z' /proc/[0-9]*/status"
        process = self.start_pawl(
            self.name, "--", "sh", "-c", f"{orphans} {look}; {zombies}; echo end"
        )
        out, _ = self.ends(process, 0)
        self.assertEqual(out, "end\n")


if __name__ == "__main__":
    harness.main()
