#!/usr/bin/python3
"""`pawl run` on the real binaries: how it ends, what it passes on, and that nothing of it runs
after the next grant.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import signal
import subprocess
import sys

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent, free_port, is_alive, tree
from pawltest.run_case import PAWL, STUBBORN, RunCase, boottime
from pawltest.tcp_proxy import Proxy


class RunTest(RunCase):
    # -- How it ends

    def test_exit_code_is_that_of_the_command(self):
        self.run_pawl(self.name, "--", "true")
        self.run_pawl(self.name, "--", "sh", "-c", "exit 7", expect=7)
        self.run_pawl(self.name, "--", "sh", "-c", "kill -USR1 $$", expect=128 + signal.SIGUSR1)
        self.run_pawl(self.name, "--", "sh", "-c", "kill -KILL $$", expect=128 + signal.SIGKILL)

    def test_lock_is_free_after_a_command_that_cannot_start(self):
        self.assertIn(
            "not found", self.run_pawl(self.name, "--", "no-such-command", expect=127).stderr
        )
        self.run_pawl(self.name, "--", "/etc/passwd", expect=126)
        self.run_pawl(self.name, "-n", "--", "true")

    def json_error(self, done):
        """The only thing on stdout."""
        return json.loads(done.stdout)["error"]

    def test_with_json_a_command_that_cannot_start_is_reported_as_json(self):
        missing = self.run_pawl(self.name, "--json", "--", "no-such-command", expect=127)
        self.assertEqual(
            self.json_error(missing),
            {"code": "invalid", "detail": "no-such-command: command not found"},
        )
        self.assertEqual(missing.stderr, "pawl: no-such-command: command not found\n")
        refused = self.json_error(
            self.run_pawl(self.name, "--json", "--", "/etc/passwd", expect=126)
        )
        self.assertEqual(
            refused, {"code": "invalid", "detail": "/etc/passwd: Permission denied"}
        )

    def test_with_json_a_failure_of_pawl_itself_is_reported_as_json(self):
        self.enter = ("prlimit", "--nofile=4")
        failed = self.json_error(self.run_pawl(self.name, "--json", "--", "true", expect=125))
        self.assertEqual(failed["code"], "unavailable")
        self.assertIn("file descriptor", failed["detail"])

    def test_lease_that_ends_before_the_command_starts_is_reported_as_json(self):
        report = self.dir / "report"
        # Sleeps past the deadline right after the grant, which it reports.
        self.enter = ("strace", "-o", os.devnull, "-P", report)
        self.enter += ("-e", "trace=write", "-e", "inject=write:delay_exit=1500000:when=1")
        with open(report, "wb") as to:
            process = self.start_pawl(
                *(self.name, "--json", "-t", "1s", "--report-fd", str(to.fileno())),
                *("--", "touch", self.log),
                pass_fds=(to.fileno(),),
            )
        out, err = self.ends(process, 122)
        self.assertEqual(json.loads(out)["error"]["code"], "lost")
        self.assertIn("lost before the command started", err)
        self.assertFalse(self.log.exists())

    def test_usage_error_acquires_nothing(self):
        for words in (
            (self.name,),
            (self.name, "--"),
            (self.name, "-t", "999ms", "--", "true"),
            (self.name, "--kill-after", "6s", "--", "true"),
            (self.name, "--on-lost=shrug", "--", "true"),
            (self.name, "--report-fd", "2", "--", "true"),
            (self.name, "--report-fd", "99", "--", "true"),
            (self.name, "-E", "256", "--", "true"),
            (self.name, "--limit", "0", "--", "true"),
            (self.name, "-t", "15", "--", "true"),
            (self.name, "true"),
        ):
            self.run_pawl(*words, expect=64)
        with self.client() as client:
            self.assertIsNone(self.inspect(client, self.name)["last_token"])

    def test_not_acquired_and_unreachable_have_different_exit_codes(self):
        with self.client() as client:
            self.acquire(client, self.name)
            self.assertIn(
                "not acquired", self.run_pawl(self.name, "-n", "--", "true", expect=75).stderr
            )
            self.run_pawl(self.name, "-w", "20ms", "-E", "9", "--", "true", expect=9)
        self.run_pawl(self.name, "--addr", f"127.0.0.1:{free_port()}", "--", "true", expect=69)

    def test_lock_is_held_while_the_command_runs(self):
        show = f"{PAWL} show {self.name} --json; {PAWL} show {self.name}/2 --json"
        done = self.run_pawl(
            self.name,
            "--and",
            self.name + "/2",
            "--owner",
            "me",
            "--meta",
            "k=v",
            "--",
            "sh",
            "-c",
            show,
        )
        for line in done.stdout.splitlines():
            shown = json.loads(line)
            self.assertEqual((shown["state"], shown["holders"][0]["owner"]), ("held", "me"))
            self.assertEqual(shown["holders"][0]["meta"], {"k": "v"})
        with self.client() as client:
            self.assertEqual(self.inspect(client, self.name)["state"], "free")

    def test_readers_share_and_a_limit_gives_slots(self):
        inner = (PAWL, "run", self.name, "-n")
        for mode in (("--shared",), ("--limit", "2")):
            done = self.run_pawl(
                self.name,
                *mode,
                "--",
                "env",
                "-u",
                "PAWL_LOCK",
                *inner,
                *mode,
                "--",
                "sh",
                "-c",
                "echo slot=${PAWL_SLOT:-none}",
            )
            self.assertEqual(
                done.stdout.strip(), "slot=none" if mode[0] == "--shared" else "slot=1"
            )
        self.run_pawl(
            self.name, "--", "env", "-u", "PAWL_LOCK", *inner, "--shared", "--", "true", expect=75
        )

    def test_max_hold_ends_the_command(self):  # Hard case 32.
        done = self.run_pawl(
            self.name, "-t", "1s", "--max-hold", "1s", "--", "sleep", "60", expect=124
        )
        self.assertIn("--max-hold", done.stderr)

    # -- What the command gets

    def test_stdin_and_stdout_pass_through(self):
        text = "line\n" * 50_000
        self.assertEqual(self.run_pawl(self.name, "--", "cat", stdin=text).stdout, text)

    def test_arguments_reach_the_command_unchanged(self):
        words = ["[a,b]", "--", "-n", "", "two words", "--json"]
        done = self.run_pawl(
            self.name,
            "--",
            sys.executable,
            "-c",
            "import json,sys; print(json.dumps(sys.argv[1:]))",
            *words,
        )
        self.assertEqual(json.loads(done.stdout), words)

    def test_environment_has_the_inner_token_and_all_locks(self):  # Hard case 16.
        done = self.run_pawl(
            self.name,
            "--owner",
            "outer",
            "--",
            "sh",
            "-c",
            f"echo $PAWL_TOKEN; {PAWL} run {self.name}/in --owner inner -t 3s -- env -0",
        )
        outer, _, rest = done.stdout.partition("\n")
        inner = dict(entry.split("=", 1) for entry in rest.split("\0") if entry)
        self.assertGreater(int(inner["PAWL_TOKEN"]), int(outer))
        self.assertEqual(inner["PAWL_LOCK"], f"{self.name}/in\n{self.name}")
        self.assertEqual(
            (inner["PAWL_OWNER"], inner["PAWL_TTL_MS"], inner["PAWL_HELD"]), ("inner", "3000", "1")
        )
        self.assertEqual(inner["PAWL_ADDR"], self.address)
        self.assertRegex(inner["PAWL_LEASE"], harness.LEASE)
        self.assertLess(0, int(inner["PAWL_DEADLINE_BOOTTIME_NS"]) - boottime() + 10**9 * 60)

    def test_nested_run_on_the_same_lock_is_refused(self):  # Hard case 16.
        done = self.run_pawl(
            self.name, "--", PAWL, "run", "other", "--and", self.name, "--", "true", expect=64
        )
        self.assertIn("already held", done.stderr)
        self.assertIn("PAWL_LOCK", done.stderr)

    def test_report_file_describes_the_run(self):
        read, write = os.pipe()
        done = self.start_pawl(
            self.name,
            "-t",
            "1s",
            "--report-fd",
            str(write),
            "--",
            "sh",
            "-c",
            f"sleep 1; ls /proc/$$/fd | grep -x {write}; exit 4",
            pass_fds=(write,),
        )
        os.close(write)
        with open(read, encoding="utf-8") as reports:
            events = [json.loads(line) for line in reports]
        out, _ = self.ends(done, 4)
        self.assertEqual(out, "")  # The command does not inherit the descriptor.
        names = [event["event"] for event in events]
        self.assertEqual((names[:2], names[-2:]), (["acquired", "started"], ["released", "exit"]))
        self.assertIn("renewed", names)
        self.assertEqual(events[-1]["code"], 4)
        self.assertGreater(events[0]["token"], 0)

    # -- Signals

    def test_signals_reach_the_whole_group(self):
        inner = "trap 'echo inner; exit' USR1; echo up; while :; do sleep 0.01; done"
        script = f'trap : USR1; sh -c "{inner}" & wait; wait; echo outer; exit 5'
        process = self.start_pawl(self.name, "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGUSR1)
        out, _ = self.ends(process, 5)
        self.assertEqual(sorted(out.split()), ["inner", "outer"])

    def test_signal_while_waiting_cancels_the_wait(self):  # Hard case 18.
        with self.client() as client:
            lease = self.acquire(client, self.name)["lease"]
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                process = self.start_pawl(self.name, "--", "touch", str(self.log))
                self.waiting(client, self.name, 1)
                process.send_signal(number)
                _, err = self.ends(process, -number)
                self.assertEqual(self.inspect(client, self.name)["waiters"], 0, err)
            client.call("RELEASE", lease)
            self.assertEqual(self.inspect(client, self.name)["state"], "free")
        self.assertFalse(self.log.exists())

    def test_waiting_run_prints_holder_and_position(self):
        with self.client() as client:
            lease = self.acquire(client, self.name, "OWNER", "alice")["lease"]
            process = self.start_pawl(self.name, "--", "echo", "mine")
            line = process.stderr.readline()
            self.assertRegex(line, r"held by alice \(token \d+\) for \S+; position 1 in the queue")
            client.call("RELEASE", lease)
            self.assertEqual(self.ends(process, 0)[0], "mine\n")

    # -- Nothing of the group runs after the next grant

    def test_leftover_processes_end_before_the_next_grant(self):
        process = self.writer("leave", "deaf")
        granted = self.rival(self.pawld)
        self.ends(process, 0)
        self.assert_no_write_after(granted)

    def test_command_stops_before_the_next_grant_when_pawld_is_killed(self):  # Hard case 33.
        server = self.own_pawld(resp_address=f"127.0.0.1:{free_port()}")
        self.address = f"127.0.0.1:{server.port}"
        for options in STUBBORN:
            self.ends_before_the_next_grant(server, options, server.kill, server.start)

    def test_command_stops_before_the_next_grant_when_pawld_is_frozen(self):
        # Hard cases 27 and 33.
        server = self.own_pawld()
        self.address = f"127.0.0.1:{server.port}"
        for options in STUBBORN:
            self.ends_before_the_next_grant(server, options, server.pause, server.resume)

    def test_command_stops_before_the_next_grant_when_cut_off(self):  # Hard case 33.
        proxy = Proxy(self.pawld.port)
        self.addCleanup(proxy.close)
        self.address = proxy.address
        for options in ((), *STUBBORN):
            self.ends_before_the_next_grant(self.pawld, options, proxy.cut, proxy.mend)

    # Else the tests above would show nothing.
    def test_check_detects_a_command_that_keeps_running(self):
        proxy = Proxy(self.pawld.port)
        self.addCleanup(proxy.close)
        self.address = proxy.address
        process = self.writer(run=("--on-lost=ignore",))
        granted = self.rival(self.pawld)
        self.queued(self.pawld)
        proxy.cut()
        wait_until(
            lambda: granted and self.writes()[1] > granted[0],
            "the command writes after the next grant",
        )
        with self.assertRaisesRegex(AssertionError, "ran after the next grant"):
            self.assert_no_write_after(granted)
        process.kill()

    def test_short_outage_does_not_stop_the_command(self):
        server = self.own_pawld(resp_address=f"127.0.0.1:{free_port()}")
        self.address = f"127.0.0.1:{server.port}"
        os.mkfifo(self.dir / "go")
        process = self.start_pawl(
            self.name, "-t", "6s", "--", "sh", "-c", "echo up; read x < " + str(self.dir / "go")
        )
        self.assertEqual(process.stdout.readline(), "up\n")
        server.restart()
        with server.client() as client:
            wait_until(
                lambda: self.holders(client, self.name)[0]["renewals"] > 0,
                "renewed after the restart",
            )
        (self.dir / "go").write_text("now\n")
        self.ends(process, 0)

    def test_broken_lease_stops_the_command(self):
        process = self.writer()
        with self.client() as client:
            token = self.inspect(client, self.name)["token"]
            self.assertEqual(client.call("BREAK", self.name, "TOKEN", token, "REASON", "test"), 1)
        granted = self.rival(self.pawld)
        _, err = self.ends(process, 122)
        self.assertIn(f"the lease (token {token}) was broken: test; stopping the command\n", err)
        self.assert_no_write_after(granted)

    # -- A command that someone else has stopped

    def stopped_command(self, *options):
        """pawl run without a terminal, whose command is stopped; and what it wrote on stderr."""
        err = self.dir / "err"
        pid = self.dir / "pid"
        with open(err, "wb") as to:
            process = subprocess.Popen(
                dies_with_parent(
                    [PAWL, "run", self.name, "-t", "1s", *options, "--"]
                    + ["sh", "-c", f"echo $$ > {pid}; exec sleep 1000"]
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=to,
                env=self.environment(),
                start_new_session=True,
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: pid.exists() and pid.read_text().strip(), "the command runs")
        command = int(pid.read_text())
        os.kill(command, signal.SIGSTOP)
        wait_until(lambda: "SIGSTOP has stopped the command" in err.read_text(), "it is reported")
        return process, command, err

    def test_stopped_command_keeps_its_lock_and_is_reported(self):
        process, command, err = self.stopped_command()
        with self.client() as client:
            seen = self.holders(client, self.name)[0]["renewals"]
            wait_until(
                lambda: self.holders(client, self.name)[0]["renewals"] > seen + 1, "it is renewed"
            )
        self.assertIn(f"kill -CONT {command}", err.read_text())
        os.kill(command, signal.SIGCONT)
        wait_until(lambda: "the command was continued" in err.read_text(), "it is reported")
        os.kill(command, signal.SIGSTOP)
        wait_until(lambda: err.read_text().count("SIGSTOP has") == 2, "it is reported again")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=harness.PATIENCE), -signal.SIGTERM)

    def test_command_that_is_stopped_too_long_is_ended(self):
        process, command, err = self.stopped_command("--max-stopped", "100ms")
        self.assertEqual(process.wait(timeout=harness.PATIENCE), 124, err.read_text())
        self.assertIn("--max-stopped 100ms reached; stopping the command", err.read_text())
        self.assertFalse(is_alive(command))
        with self.client() as client:
            self.assertEqual(self.inspect(client, self.name)["state"], "free")

    def test_on_lost_ignore_lets_the_command_finish(self):
        proxy = Proxy(self.pawld.port)
        self.addCleanup(proxy.close)
        self.address = proxy.address
        done = self.dir / "done"
        process = self.start_pawl(
            self.name,
            "-t",
            "1s",
            "--on-lost=ignore",
            "--",
            "sh",
            "-c",
            f"echo up; until [ -e {done} ]; do sleep 0.02; done; exit 6",
        )
        self.assertEqual(process.stdout.readline(), "up\n")
        proxy.cut()
        self.assertIn("continues without it", process.stderr.readline())
        done.touch()
        self.ends(process, 6)

    def wakes_too_late(self, options, freeze, wake):
        """pawl is frozen until the lock has passed on. What its group does meanwhile nobody can
        prevent; woken, it ends."""
        with self.subTest("-".join(options)):
            self.name = self.lock()
            self.log = self.dir / "-".join(("writes", *options))
            process = self.writer(*options)
            granted = self.rival(self.pawld)
            self.queued(self.pawld)
            freeze(process)
            wait_until(lambda: granted, "the rival is granted")
            woken = boottime()
            wake(process)
            _, err = self.ends(process, 122)
            self.assertIn("is lost", err)
            pids, last = self.writes()
            self.assertEqual([pid for pid in pids if is_alive(pid)], [])
            print(
                f"{self._testMethodName} {' '.join(options)}: the group of {len(pids)} wrote its "
                f"last "
                f"{(last - woken) / 1e6:+.1f} ms from when pawl was woken",
                file=sys.stderr,
            )

    def test_pawl_frozen_past_its_ttl_kills_the_command(self):  # Hard case 1.
        for options in STUBBORN:
            self.wakes_too_late(
                options,
                lambda pawl: pawl.send_signal(signal.SIGSTOP),
                lambda pawl: pawl.send_signal(signal.SIGCONT),
            )

    # Hard case 1: the whole machine was suspended.
    def test_pawl_frozen_with_its_command_kills_it(self):
        machine = []

        def freeze(pawl):
            machine.extend(reversed(tree(pawl.pid)))
            for pid in machine:
                os.kill(pid, signal.SIGSTOP)

        def wake(_):
            for pid in machine:  # pawl last: the worst order.
                os.kill(pid, signal.SIGCONT)

        self.wakes_too_late(("deaf", "family"), freeze, wake)

    def test_killing_pawl_itself_kills_the_command(self):
        process = self.writer("deaf")
        pids, _ = self.writes()
        process.kill()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), "the command died with pawl")


if __name__ == "__main__":
    harness.main()
