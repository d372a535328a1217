#!/usr/bin/python3
"""The command line as people and scripts use it: every verb, in text and in --json, and every exit
code.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import re
import subprocess
import time
import unittest

from pawltest import harness
from pawltest.cli_case import PAWL, CliCase
from pawltest.process import free_port
from pawltest.tcp_proxy import TcpServer

GREETING = b"%1\r\n+server\r\n+pawl\r\n"


class CliTest(CliCase):
    # -- acquire

    def test_acquire_prints_lease_token_and_next_step(self):
        done = self.pawl("acquire", self.name)
        lines = dict(line.split(": ") for line in done.stdout.splitlines())
        self.assertRegex(lines["lease"], harness.LEASE)
        self.assertGreater(int(lines["token"]), 0)
        self.assertIn(f"pawl renew {lines['lease']}", done.stderr)
        self.assertIn(f"pawl release {lines['lease']}", done.stderr)
        self.assertIn("15s", done.stderr)
        self.assertNotIn("\033", done.stdout + done.stderr)  # colour is for terminals

    def test_acquire_json_has_the_keys_of_the_protocol(self):
        held = self.take()
        self.assertEqual(
            set(held),
            {
                "lease",
                "token",
                "floor",
                "slot",
                "ttl_ms",
                "waited_ms",
                "request",
                "deadline_boottime_ns",
            },
        )
        self.assertRegex(held["lease"], harness.LEASE)
        self.assertRegex(held["request"], r"^[A-Za-z0-9_-]{22,64}$")
        self.assertEqual(
            (held["floor"], held["slot"], held["ttl_ms"]), (held["token"], None, 15000)
        )
        left = held["deadline_boottime_ns"] / 1e9 - time.clock_gettime(time.CLOCK_BOOTTIME)
        self.assertLess(left, 14.7)
        self.assertGreater(left, 0)

    def test_acquire_n_does_not_wait_and_names_the_holder(self):
        first = self.take(self.name, "--owner", "alice")
        done = self.pawl("acquire", self.name, "-n", expect=75)
        self.assertIn("alice", done.stderr)
        self.assertIn(f"token {first['token']}", done.stderr)
        self.assertEqual(done.stdout, "")
        error = self.data("acquire", self.name, "-n", expect=75)["error"]
        self.assertEqual(error["code"], "busy")

    def test_acquire_conflict_exit_code_can_be_chosen(self):
        self.take()
        self.pawl("acquire", self.name, "-n", "-E", "3", expect=3)
        self.pawl("acquire", self.name, "-w", "50ms", "-E", "0", expect=0)

    def test_acquire_wait_is_limited(self):
        self.take()
        self.pawl("acquire", self.name, "-w", "100ms", expect=75)

    def test_acquire_waits_without_limit_until_it_is_released(self):
        first = self.take()
        waiter = self.waiting("--json")
        self.pawl("release", first["lease"])
        out, err = waiter.communicate(timeout=harness.PATIENCE)
        self.assertEqual(waiter.returncode, 0, err)
        self.assertGreater(json.loads(out)["token"], first["token"])
        self.assertIn(f"waiting for {self.name}: position 1 in the queue", err)

    def test_killed_waiter_leaves_the_queue(self):
        self.take()
        self.waiting().kill()
        self.wait_for_waiters(0)

    def test_same_request_id_returns_the_same_lease(self):  # Hard case 2.
        request = "r" * 22
        first = self.take(self.name, "--request", request)
        again = self.take(self.name, "--request", request)
        self.assertEqual((first["lease"], first["token"]), (again["lease"], again["token"]))
        # Hard case 5.
        self.pawl("acquire", self.name, "--request", request, "-t", "20s", expect=64)
        self.pawl("release", first["lease"])
        done = self.pawl("acquire", self.name, "--request", request, expect=122)  # Hard case 4.
        self.assertIn("released", done.stderr)

    def test_several_locks_are_one_lease(self):
        held = self.take(self.name + "/a", "--and", self.name + "/b", "--and", self.name + "/c")
        for name in "abc":
            shown = self.data("show", f"{self.name}/{name}")
            self.assertEqual(shown["token"], held["token"])
        self.pawl("acquire", self.name + "/b", "-n", expect=75)

    def test_shared_and_limit(self):
        one, two = self.take(self.name, "--shared"), self.take(self.name, "--shared", "-n")
        self.assertEqual(two["floor"], one["token"])
        self.pawl("acquire", self.name, "-n", expect=75)
        slots = {self.take(self.name + "/n", "--limit", "2", "-n")["slot"] for _ in range(2)}
        self.assertEqual(slots, {0, 1})
        self.pawl("acquire", self.name + "/n", "--limit", "2", "-n", expect=75)

    def test_owner_meta_delay_and_max_hold_reach_pawld(self):
        self.take(
            self.name,
            "--owner",
            "me",
            "--meta",
            "job=42",
            "--meta",
            "url=a=b",
            "--delay",
            "1s",
            "--max-hold",
            "1h",
        )
        holder = self.data("show", self.name)["holders"][0]
        self.assertEqual(holder["owner"], "me")
        self.assertEqual(holder["meta"], {"job": "42", "url": "a=b"})

    def test_default_owner_is_user_host_and_parent_process(self):
        self.take()
        owner = self.data("show", self.name)["holders"][0]["owner"]
        self.assertRegex(owner, r"^[^@]+@.+:%d$" % os.getpid())

    def test_lease_that_cannot_be_printed_is_released(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [PAWL, "acquire", self.name],
                env=self.environment(),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=harness.PATIENCE,
                check=False,
            )
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual(self.data("show", self.name)["state"], "free")

    # -- show

    def test_show_lists_sixteen_holders_and_all_of_them_when_asked(self):
        for _ in range(20):
            self.pawl("acquire", self.name, "--shared", "--ttl", "1m")
        some = self.data("show", self.name)
        self.assertEqual((len(some["holders"]), some["holder_count"]), (16, 20))
        self.assertIn("and 4 more holders", self.pawl("show", self.name).stdout)
        self.assertIn("+19", self.pawl("ls", self.name).stdout)
        every = self.data("show", self.name, "--all")["holders"]
        self.assertEqual(len({holder["token"] for holder in every}), 20)
        self.assertNotIn("more holders", self.pawl("show", self.name, "--all").stdout)

    def test_status_shows_use_against_limit(self):
        self.take()
        limits = self.data("status")["limits"]
        self.assertGreaterEqual(limits["leases"]["use"], 1)
        self.assertEqual(limits["leases"]["limit"], 2_000_000)
        self.assertRegex(self.pawl("status").stdout, r"  leases: +\d+ of 2000000 \(0 %\)")

    # -- renew, release

    def test_renew_takes_the_lease_from_argv_environment_and_stdin(self):
        lease = self.take()["lease"]
        self.assertIn("renewed", self.pawl("renew", lease).stdout)
        self.assertIn("renewed", self.pawl("renew", PAWL_LEASE=lease).stdout)
        self.assertIn("renewed", self.pawl("renew", "-", stdin=lease + "\n").stdout)
        renewed = self.data("renew", lease)
        self.assertEqual(set(renewed), {"expires_in_ms", "deadline_boottime_ns"})
        self.assertEqual(renewed["expires_in_ms"], 15000)
        self.assertEqual(self.data("show", self.name)["holders"][0]["renewals"], 4)

    def test_renew_of_an_ended_lease_exits_122(self):
        lease = self.take()["lease"]
        self.pawl("release", lease)
        done = self.pawl("renew", lease, expect=122)
        self.assertIn("released", done.stderr)
        self.assertIn("Stop", done.stderr)
        self.assertEqual(self.data("renew", "0" * 32, expect=122)["error"]["code"], "lost")

    def test_release_can_be_repeated(self):  # Hard case 7.
        lease = self.take()["lease"]
        self.assertEqual(self.pawl("release", "-", stdin=lease).stdout, "released\n")
        done = self.pawl("release", PAWL_LEASE=lease)
        self.assertEqual(done.stdout, "already over\n")
        self.assertIn("ended before", done.stderr)
        self.assertEqual(self.data("release", lease), {"released": False})
        self.assertEqual(self.data("release", self.take()["lease"]), {"released": True})

    def test_malformed_lease_is_a_usage_error_and_is_not_printed(self):
        done = self.pawl("renew", "5F0C-not-a-lease", expect=64)
        self.assertNotIn("5F0C", done.stderr)
        self.pawl("renew", expect=64)
        self.pawl("release", "-", stdin="", expect=64)

    # -- show, ls, history

    def test_show_prints_every_field(self):
        free = self.pawl("show", self.name).stdout
        self.assertIn("free", free)
        held = self.take(self.name, "--owner", "alice")
        self.waiting("--owner", "bob")
        text = self.pawl("show", self.name).stdout
        for part in (
            "held",
            "alice",
            str(held["token"]),
            "since",
            "expires",
            "1 waiting",
            "bob",
            "unknown: no guard has reported",
        ):
            self.assertIn(part, text)

    def test_show_names_a_holder_that_gave_no_owner(self):
        self.client().call("ACQUIRE", self.name, "TTL", "15000")
        self.assertIn("(no owner given)", self.pawl("show", self.name).stdout)
        self.assertIn("(no owner given)", self.pawl("ls", self.name).stdout)

    def test_show_json_equals_inspect(self):
        held = self.take()
        shown = self.data("show", self.name)
        self.assertEqual(
            (shown["lock"], shown["state"], shown["token"]), (self.name, "held", held["token"])
        )
        self.assertNotIn(held["lease"], json.dumps(shown))  # the lease is a secret

    # Pawld refuses such owners; pawl trusts no server.
    def test_show_escapes_control_characters_in_the_owner(self):
        def talk(connection):
            connection.recv(4096)
            connection.sendall(GREETING)
            connection.recv(4096)
            connection.sendall(
                b"%2\r\n+state\r\n+held\r\n+holders\r\n*1\r\n%1\r\n+owner\r\n$8\r\n\033[2Jroot\r\n"
            )
            connection.recv(4096)

        with TcpServer(talk) as server:
            text = self.pawl("show", self.name, addr=server.address).stdout
        self.assertNotIn("\033", text)
        self.assertIn("\\x1b[2Jroot", text)

    def test_ls_lists_all_pages_of_a_prefix(self):
        names = [f"{self.name}/{i:04}" for i in range(40)]
        for at in range(0, 40, 16):
            more = [word for name in names[at + 1 : at + 16] for word in ("--and", name)]
            self.take(names[at], *more)
        listed = self.data("ls", self.name + "/")
        self.assertEqual(sorted(lock["lock"] for lock in listed), names)
        text = self.pawl("ls", self.name + "/").stdout.splitlines()
        self.assertEqual(len(text), 41)
        self.assertIn("LOCK", text[0])
        self.assertTrue(all("held" in line for line in text[1:]))

    def test_ls_without_matches_exits_0(self):
        done = self.pawl("ls", self.name)
        self.assertEqual(done.stdout, "")
        self.assertIn("no lock", done.stderr)
        self.assertEqual(self.data("ls", self.name), [])

    def test_ls_waits_shows_waiters_and_holders(self):
        self.take(self.name, "--owner", "alice")
        self.assertEqual(self.data("ls", self.name, "--waits"), [])
        self.assertIn("no request is waiting", self.pawl("ls", self.name, "--waits").stderr)
        self.waiting("--owner", "bob")
        text = self.pawl("ls", self.name, "--waits").stdout.splitlines()
        self.assertRegex(text[1], r"^bob\s+\S+\s+%s\s+alice$" % self.name)
        wait = self.data("ls", self.name, "--waits")[0]
        self.assertEqual(
            (wait["lock"], wait["owner"], wait["held_by"]), (self.name, "bob", ["alice"])
        )

    def test_history_is_newest_first(self):
        self.assertIn("no earlier holders", self.pawl("history", self.name).stderr)
        tokens = []
        for owner in ("alice", "bob"):
            held = self.take(self.name, "--owner", owner)
            tokens.append(held["token"])
            self.pawl("release", held["lease"])
        lines = self.pawl("history", self.name).stdout.splitlines()
        self.assertIn("TOKEN", lines[0])
        self.assertIn("bob", lines[1])
        self.assertIn("alice", lines[2])
        self.assertIn("released", lines[2])
        epochs = self.data("history", self.name)
        self.assertEqual([e["token"] for e in epochs], tokens[::-1])
        self.assertEqual(len(self.data("history", self.name, "-c", "1")), 1)

    # -- break, raise, status, version, completion

    def test_break_refuses_later_renewals(self):
        held = self.take()
        done = self.pawl(
            "break", self.name, "--token", str(held["token"]), "--reason", "host is gone"
        )
        self.assertIn("broken", done.stdout)
        self.assertIn("run out", done.stderr)
        self.pawl("renew", held["lease"], expect=122)
        self.assertIn("broken", self.pawl("show", self.name).stdout)
        self.pawl("acquire", self.name, "-n", expect=75)  # It passes on when it has run out.

    def test_break_now_frees_the_lock_at_once(self):
        held = self.take()
        answer = self.data(
            "break", self.name, "--token", str(held["token"]), "--reason", "x", "--now", "--yes"
        )
        self.assertEqual(answer, {"broken": True})
        self.assertGreater(self.take(self.name, "-n")["token"], held["token"])

    def test_break_with_another_token_exits_1(self):
        held = self.take()
        done = self.pawl(
            "break", self.name, "--token", str(held["token"] + 1000), "--reason", "x", expect=1
        )
        self.assertIn("pawl show", done.stderr)
        self.assertEqual(
            self.data("break", self.name, "--token", "1", "--reason", "x", expect=1),
            {"broken": False},
        )

    def test_break_now_asks_for_confirmation(self):
        token = str(self.take()["token"])
        words = ["break", self.name, "--token", token, "--reason", "x", "--now"]
        self.pawl(*words, expect=64)
        for answer, code in (("n", 1), ("", 1), ("y", 0)):
            code_seen, text = self.on_a_terminal(words, answer + "\n")
            self.assertIn("guards", text)
            self.assertEqual(code_seen, code, text)
        self.assertEqual(self.data("show", self.name)["state"], "free")

    def test_colour_needs_a_terminal_and_respects_no_color(self):
        self.take()
        self.assertIn("\033[", self.on_a_terminal(["show", self.name])[1])
        self.assertNotIn("\033[", self.on_a_terminal(["show", self.name], NO_COLOR="1")[1])
        self.assertNotIn("\033[", self.pawl("show", self.name, TERM="xterm").stdout)

    def test_raise_moves_the_counter_forward_only(self):
        last = self.data("status")["last_token"]
        self.assertEqual(
            self.data("raise", str(last + 100), "--reason", "test"), {"last_token": last + 100}
        )
        self.assertGreater(self.take()["token"], last + 100)
        self.pawl("raise", "1", "--reason", "back", expect=64)
        last = self.data("status")["last_token"]
        self.assertIn(str(last + 7), self.pawl("raise", str(last + 7), "--reason", "test").stdout)

    def test_status_prints_every_field(self):
        status = self.data("status")
        for key in (
            "version",
            "store",
            "role",
            "incarnation",
            "last_token",
            "locks",
            "leases",
            "waiters",
            "uptime_ms",
        ):
            self.assertIn(key, status)
        text = self.pawl("status").stdout
        self.assertNotIn("restoring", text, "it was not restored")
        self.assertIn("version:", text)
        self.assertIn("last_token:", text)

    def test_version_needs_no_pawld(self):
        text = self.pawl("version", addr="127.0.0.1:1").stdout
        self.assertRegex(text, r"^pawl \d+\.\d+\.\d+\n$")
        self.assertEqual("pawl " + self.data("version", addr="127.0.0.1:1")["version"] + "\n", text)

    def test_renew_and_release_use_the_exported_lease(self):
        script = (
            f'eval "$({PAWL} acquire {self.name} --export)"; echo "$PAWL_TOKEN"; {PAWL} renew && '
            f"{PAWL} release"
        )
        done = subprocess.run(
            ["sh", "-ec", script],
            capture_output=True,
            text=True,
            env=self.environment(),
            check=True,
        )
        self.assertEqual(int(done.stdout.split()[0]), self.data("history", self.name)[0]["token"])
        self.pawl("acquire", self.name, "--export", "--json", expect=64)

    # -- usage

    def test_every_verb_has_help_with_an_example(self):
        for verb in re.findall(
            r"^  (\w+)  +\S", self.pawl("--help").stdout.split("Subcommands:")[1], re.M
        ):
            self.assertRegex(self.pawl(verb, "--help").stdout, r"Examples:\n(.*\n)*.*pawl " + verb)

    def test_usage_of_run_shows_the_command(self):
        self.assertIn("Usage: pawl run [OPTIONS] LOCK -- CMD…\n", self.pawl("run", "--help").stdout)
        self.assertNotIn("CMD", self.pawl("acquire", "--help").stdout)

    def test_contradictory_options_are_usage_errors(self):
        for words in (
            [],
            ["bogus"],
            ["acquire"],
            ["show"],
            ["show", "a", "b"],
            ["acquire", "x", "--bogus"],
            ["acquire", "x", "-n", "-w", "1s"],
            ["acquire", "x", "--shared", "--limit", "2"],
            ["acquire", "x", "--and", "y", "--shared"],
            ["acquire", "x", "--meta", "novalue"],
            ["acquire", "x", "--limit", "many"],
            ["acquire", "x", "--limit", "5000"],
            ["acquire", "x", "--limit", "0"],
            ["acquire", "x", "--limit", "-1"],
            ["acquire", "x", "-E", "256"],
            ["break", "x", "--token", "-1", "--reason", "r"],
            ["break", "x", "--token", "1"],
            ["break", "x", "--reason", "r"],
            ["raise", "5"],
            ["history", "x", "-c", "0"],
            ["acquire", "x", "--and", "x"],
            ["acquire", ""],
            ["acquire", "x", "-t", "1ms"],
            ["acquire", "x", "-t", "25h"],
            ["acquire", "x", "--request", "short"],
            ["acquire", "x", *(["--and", "y"] * 16)],
            ["status", "--addr", "host:port"],
        ):
            done = self.pawl(*words, expect=64)
            self.assertNotEqual(done.stderr, "", words)

    def test_duration_needs_a_unit(self):
        self.assertIn("15s or 15ms", self.pawl("acquire", self.name, "-t", "15", expect=64).stderr)

    # -- unreachable, denied, uncertain

    def test_unreachable_pawld_exits_69_with_advice(self):
        address = f"127.0.0.1:{free_port()}"
        for words in (
            ["show", "x"],
            ["acquire", "x"],
            ["renew", "0" * 32],
            ["release", "0" * 32],
            ["ls"],
            ["status"],
            ["history", "x"],
            ["break", "x", "--token", "1", "--reason", "r"],
            ["raise", "1", "--reason", "r"],
        ):
            done = self.pawl(*words, addr=address, expect=69)
            self.assertIn(address, done.stderr)
            self.assertIn("Is pawld running?", done.stderr)
            self.assertIn("--addr", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(
            self.data("status", addr=address, expect=69)["error"]["code"], "unavailable"
        )

    def test_next_address_of_the_list_is_tried(self):
        dead = f"127.0.0.1:{free_port()}"
        self.pawl("status", addr=f"{dead}, {self.address}")
        self.pawl("status", "--addr", f"{dead},{self.address}", addr="127.0.0.1:1")

    def test_malformed_environment_is_a_configuration_error(self):
        self.assertIn("PAWL_ADDR", self.pawl("status", addr="::1:7295", expect=78).stderr)

    def test_not_permitted_exits_77(self):
        def talk(connection):
            connection.recv(4096)
            connection.sendall(b"-NOAUTH authenticate first\r\n")

        with TcpServer(talk) as server:
            self.assertIn("NOAUTH", self.pawl("status", addr=server.address, expect=77).stderr)

    def test_server_that_is_not_pawld_is_recognised(self):
        def talk(connection):
            connection.recv(4096)
            connection.sendall(b"-ERR unknown command 'HELLO'\r\n")

        with TcpServer(talk) as server:
            self.assertIn("not a pawld", self.pawl("status", addr=server.address, expect=69).stderr)

    def test_lost_reply_to_break_is_reported_as_unknown(self):
        def talk(connection):
            connection.recv(4096)
            connection.sendall(GREETING)
            connection.recv(4096)

        with TcpServer(talk) as server:
            words = ["break", "x", "--token", "1", "--reason", "r"]
            self.assertIn(
                "may have taken effect", self.pawl(*words, addr=server.address, expect=69).stderr
            )
            self.assertEqual(
                self.data(*words, addr=server.address, expect=69)["error"]["code"], "unknown"
            )

    # Hard case 2.
    def test_lost_reply_to_acquire_is_retried_with_the_same_request_id(self):
        asked = []

        def talk(connection):
            connection.recv(4096)
            connection.sendall(GREETING)
            asked.append(connection.recv(4096))
            if len(asked) == 3:
                connection.sendall(
                    b"%6\r\n+lease\r\n+"
                    + b"1" * 32
                    + b"\r\n+token\r\n:34\r\n+floor\r\n:34\r\n+slot\r\n_\r\n"
                    b"+ttl_ms\r\n:15000\r\n+waited_ms\r\n:0\r\n"
                )
                connection.recv(4096)

        with TcpServer(talk) as server:
            self.assertEqual(self.take(self.name, "-n", addr=server.address)["token"], 34)
        self.assertEqual(len(set(asked)), 1)
        self.assertIn(b"REQUEST", asked[0])


if __name__ == "__main__":
    unittest.main()
