#!/usr/bin/python3
"""`pawl run` on a real terminal, under bash, dash and zsh: keys, jobs, pipelines and scripts behave
as with any other program.

Environment: PAWL and PAWLD are the binaries.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import is_alive, tree
from pawltest.run_case import PAWL, RunCase
from pawltest.terminal import CTRL_C, CTRL_D, CTRL_Z, SHELLS, Terminal, is_stopped

# Prints what it reads. The marks are put together, so that the echo of the line has none.
READER = """sh -c 'echo rea""dy; while read line; do echo got:$line; done; echo do""ne'"""


class RunTerminalTest(RunCase):
    def environment(self, **more):
        path = f"{pathlib.Path(PAWL).resolve().parent}:{os.environ['PATH']}"
        return super().environment(PATH=path, HISTFILE="", **more)

    def terminal(self, words, **more):
        terminal = Terminal([str(word) for word in words], self.environment(**more))
        self.addCleanup(terminal.close)
        return terminal

    def in_each_shell(self, test):
        """Runs `test` with a terminal on which each shell has printed its prompt. The shell must
        be there afterwards."""
        for name, words in SHELLS.items():
            with self.subTest(name):
                self.name = self.lock()
                terminal = self.terminal(words)
                self.answers(terminal)
                test(terminal)
                self.answers(terminal)

    def answers(self, terminal):
        """The shell is there, and has the terminal."""
        terminal.type("echo still''-here\n")
        terminal.expect("still-here")

    def press_ctrl_z(self, terminal):
        """Returns when pawl has stopped: what is typed before could be read by its command."""
        pawl = self.programs(terminal, "pawl")[0]
        terminal.type(CTRL_Z)
        wait_until(lambda: is_stopped(pawl), "pawl stops")

    def held(self):
        with self.client() as client:
            return self.inspect(client, self.name)["state"] == "held"

    def programs(self, terminal, name):
        """The pids that run this program on the terminal."""
        found = []
        for pid in tree(terminal.pid):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_alive(pid) and words and words[0].endswith(name.encode()):
                found.append(pid)
        return found

    # -- Ctrl-C

    def script(self, *lines):
        path = self.dir / "script.sh"
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_ctrl_c_ends_the_script_and_not_only_its_first_step(self):
        for shell in SHELLS:
            with self.subTest(shell):
                self.name = self.lock()
                script = self.script(
                    f"pawl run {self.name} -- sh -c 'echo rea\"\"dy; sleep 1000'",
                    "echo NEXT''-STEP",
                )
                terminal = self.terminal([shell, script])
                terminal.expect("ready")
                # dash drops a signal that comes while it forks.
                wait_until(lambda: self.programs(terminal, "sleep"), "the command runs")
                terminal.type(CTRL_C)
                self.assertEqual(terminal.wait(), -signal.SIGINT)
                self.assertNotIn("NEXT-STEP", terminal.seen)
                self.assertFalse(self.held())

    def test_ctrl_c_while_waiting_ends_the_script(self):
        with self.client() as client:
            self.acquire(client, self.name)
            script = self.script(f"pawl run {self.name} -- true", "echo NEXT''-STEP")
            terminal = self.terminal(["bash", script])
            self.waiting(client, self.name, 1)
            terminal.type(CTRL_C)
            self.assertEqual(terminal.wait(), -signal.SIGINT)
            self.assertNotIn("NEXT-STEP", terminal.seen)
            self.assertEqual(self.inspect(client, self.name)["waiters"], 0)

    def test_command_that_handles_ctrl_c_decides_how_the_script_goes_on(self):
        handler = "trap \"exit 5\" INT; echo rea\"\"dy; while :; do sleep 0.01; done"
        script = self.script(f"pawl run {self.name} -- sh -c '{handler}'", "echo code''=$?")
        terminal = self.terminal(["bash", script])
        terminal.expect("ready")
        terminal.type(CTRL_C)
        terminal.expect("code=5")
        terminal.wait()

    def test_ctrl_c_arrives_once(self):
        # Waits for input and signals at once: a signal that arrives just before input() begins would
        # be handled only when a line was typed.
        counter = (
            "import os, select, signal\n"
            "signals, wakeup = os.pipe()\n"
            "os.set_blocking(wakeup, False)\n"
            "signal.set_wakeup_fd(wakeup)\n"
            "signal.signal(signal.SIGINT, lambda *_: None)\n"
            "print('rea'+'dy', flush=True)\n"
            "typed = b''\n"
            "while b'end' not in typed:\n"
            "    for ready in select.select([0, signals], [], [])[0]:\n"
            "        got = os.read(ready, 100)\n"
            "        if ready == 0: typed += got\n"
            "        else: print(('in'+'terrupted ') * len(got), flush=True)\n"
        )
        terminal = self.terminal([PAWL, "run", self.name, "--", sys.executable, "-c", counter])
        terminal.expect("ready")
        terminal.type(CTRL_C)
        terminal.expect("interrupted")
        terminal.type("end\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("interrupted", terminal.seen)

    # -- Ctrl-Z, bg, fg

    def test_ctrl_z_and_fg_work(self):
        def test(terminal):
            terminal.type(f"pawl run {self.name} -- {READER}\n")
            terminal.expect("ready")
            terminal.type("one\n")
            terminal.expect("got:one")
            self.press_ctrl_z(terminal)
            self.answers(terminal)
            terminal.type("fg\n")
            terminal.type("two\n")
            terminal.expect("got:two")
            terminal.type(CTRL_D)
            terminal.expect("done")

        self.in_each_shell(test)

    def test_shell_keeps_the_terminal_when_a_job_in_the_background_ends(self):
        def test(terminal):
            go = self.dir / self.name.replace("/", "-")
            # One process: a shell that waits for its child to exec cannot be stopped.
            wait = self.dir / "wait.py"
            wait.write_text(
                "import os, sys, time\n"
                "print('rea' + 'dy', flush=True)\n"
                "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
            )
            terminal.type(f"pawl run {self.name} -- {sys.executable} {wait} {go}\n")
            terminal.expect("ready")
            self.press_ctrl_z(terminal)
            self.answers(terminal)
            terminal.type("bg\n")
            self.answers(terminal)
            go.touch()
            wait_until(lambda: not self.held(), "the run is over")
            self.answers(terminal)

        self.in_each_shell(test)

    def test_job_in_the_background_that_reads_stops_and_fg_continues_it(self):
        def test(terminal):
            terminal.type(f"pawl run {self.name} -- {READER} &\n")
            terminal.expect("ready")
            pawl = wait_until(lambda: self.programs(terminal, "pawl"), "pawl runs")[0]
            wait_until(lambda: is_stopped(pawl), "pawl stops with its command")
            self.answers(terminal)
            terminal.type("fg\n")
            terminal.type("one\n")
            terminal.expect("got:one")
            terminal.type(CTRL_C)
            wait_until(lambda: not self.held(), "the run is over")

        self.in_each_shell(test)

    def test_term_ends_a_stopped_job(self):
        def test(terminal):
            terminal.type(f"pawl run {self.name} -- {READER}\n")
            terminal.expect("ready")
            self.press_ctrl_z(terminal)
            self.answers(terminal)
            terminal.type("kill -TERM %1; kill -CONT %1\n")
            wait_until(lambda: not self.held(), "the run is over")

        self.in_each_shell(test)

    def test_ctrl_z_while_waiting_stops_the_wait(self):
        with self.client() as client:
            def test(terminal):
                lease = self.acquire(client, self.name)["lease"]
                terminal.type(f"pawl run {self.name} -- echo granted''-now\n")
                self.waiting(client, self.name, 1)
                self.press_ctrl_z(terminal)
                self.answers(terminal)
                terminal.type("fg\n")
                client.call("RELEASE", lease)
                terminal.expect("granted-now")

            self.in_each_shell(test)

    # -- Pipelines

    def test_pager_in_the_pipeline_keeps_the_terminal(self):
        def test(terminal):
            go = self.dir / self.name.replace("/", "-")
            command = f"sh -c 'touch {go}.up; until [ -e {go} ]; do sleep 0.01; done; echo tex\"\"t'"
            # Reads keys from the terminal while the command runs, as less does.
            ready = f"until [ -e {go}.up ]; do sleep 0.01; done"
            pager = f"sh -c '{ready}; echo pa\"\"ger; read key < /dev/tty; echo key:$key; cat'"
            terminal.type(f"pawl run {self.name} -- {command} | {pager}\n")
            terminal.expect("pager")
            terminal.type("q\n")
            terminal.expect("key:q")
            go.touch()
            terminal.expect("text")

        self.in_each_shell(test)

    # -- Without a shell that does job control: ssh -t HOST 'exec pawl run …'

    def test_ctrl_z_is_ignored_where_nobody_could_continue_it(self):
        terminal = self.terminal([PAWL, "run", self.name, "--", "sh", "-c",
                                  "echo rea''dy; while read x; do echo got:$x; done"])
        terminal.expect("ready")
        terminal.type(CTRL_Z)
        terminal.type("one\n")
        terminal.expect("got:one")
        terminal.type(CTRL_C)
        self.assertEqual(terminal.wait(), -signal.SIGINT)

    def test_closed_terminal_ends_the_command(self):
        terminal = self.terminal([PAWL, "run", self.name, "--", "sleep", "1000"])
        wait_until(self.held, "the command runs")
        sleep = wait_until(lambda: self.programs(terminal, "sleep"), "the command runs")
        terminal.hang_up()
        self.assertEqual(terminal.wait(), -signal.SIGHUP)
        self.assertEqual([pid for pid in sleep if is_alive(pid)], [])

    # -- A guard

    def test_command_behind_a_guard_has_the_terminal(self):
        database = self.dir / "shop.db"
        guard = ("--guard", "sqlite:orders", "--guard-dsn", database)
        with contextlib.closing(sqlite3.connect(database)) as made:
            made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        for words in (("install", "sqlite"), ("protect", "sqlite", "orders")):
            subprocess.run(
                [PAWL, "guard", *words, "--dsn", database],
                check=True,
                capture_output=True,
                env=self.environment(),
            )
        terminal = self.terminal([PAWL, "run", self.name, *guard, "--", "sh", "-c",
                                  "echo rea''dy; while read x; do echo got:$x; done"])
        terminal.expect("ready")
        terminal.type("one\n")
        terminal.expect("got:one")
        terminal.type(CTRL_C)
        self.assertEqual(terminal.wait(), -signal.SIGINT)

    # -- An interactive shell as the command

    def test_interactive_shell_under_a_lock_works(self):
        for name, words in SHELLS.items():
            with self.subTest(name):
                self.name = self.lock()
                terminal = self.terminal(SHELLS["bash"])
                terminal.type(f"pawl run {self.name} -- {' '.join(words)}\n")
                terminal.type("echo held''-by-$PAWL_HELD\n")
                terminal.expect("held-by-1")
                terminal.type(f"{READER}\n")
                terminal.expect("ready")
                reader = self.programs(terminal, "sh")[-1]
                terminal.type(CTRL_Z)
                wait_until(lambda: is_stopped(reader), "the job stops")
                self.answers(terminal)
                self.assertTrue(self.held())
                terminal.type("fg\n")
                terminal.type("one\n")
                terminal.expect("got:one")
                terminal.type(CTRL_C)
                wait_until(lambda: not is_alive(reader), "the job ends")
                self.answers(terminal)
                terminal.type("exit\n")
                wait_until(lambda: not self.held(), "the run is over")
                self.answers(terminal)

    def test_shell_gets_the_terminal_back_when_the_lease_is_lost(self):
        script = self.script(
            f"pawl run {self.name} -t 2s -- {' '.join(SHELLS['bash'])}",
            'echo code""=$?; read line; echo got:$line',
        )
        terminal = self.terminal(["dash", script])
        terminal.type("sleep 1000 & echo inner''-ready\n")
        terminal.expect("inner-ready")
        sleep = wait_until(lambda: self.programs(terminal, "sleep"), "the job runs")
        with self.client() as client:
            token = self.inspect(client, self.name)["token"]
            client.call("BREAK", self.name, "TOKEN", token, "REASON", "test")
        terminal.expect("code=122")
        self.assertEqual([pid for pid in sleep if is_alive(pid)], [])
        terminal.type("one\n")
        terminal.expect("got:one")
        terminal.wait()


if __name__ == "__main__":
    for shell in SHELLS:
        if shutil.which(shell) is None:
            sys.exit(f"{shell} is missing: scripts/setup test")
    harness.main()
