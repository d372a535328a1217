#!/usr/bin/python3
"""`pawl elect` on the real binaries: candidates, losses, commands, and observers that miss nothing.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent, freeze

PAWL = os.environ.get("PAWL", "")


class Elect:
    """A `pawl elect` whose output can be read while it runs."""

    def __init__(self, case, *words, server=None):
        self.dir = harness.scratch("elect")
        case.addCleanup(shutil.rmtree, self.dir)
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        address = f"127.0.0.1:{(server or case.pawld).port}"
        with open(self.dir / "out", "wb") as out, open(self.dir / "err", "wb") as err:
            self.process = subprocess.Popen(
                dies_with_parent([PAWL, "elect", *words]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**own, "PAWL_ADDR": address},
            )
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def lines(self):
        """The complete lines of its stdout."""
        return (self.dir / "out").read_text(encoding="utf-8").split("\n")[:-1]

    def objects(self):
        return [json.loads(line) for line in self.lines()]

    def err(self):
        return (self.dir / "err").read_text(encoding="utf-8")

    def says(self, count):
        wait_until(
            lambda: len(self.lines()) >= count or self.process.poll() is not None, f"{count} lines"
        )
        return self.lines()

    def wait(self):
        return self.process.wait(timeout=harness.PATIENCE)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()

    def freeze(self):
        freeze([self.process.pid])


class ElectTest(harness.PawldCase):
    def setUp(self):
        super().setUp()
        self.name = self.lock()

    def elect(self, *words, server=None):
        return Elect(self, self.name, *words, server=server)

    def elected(self, *words, server=None):
        """One that leads, and its token."""
        candidate = self.elect(*words, server=server)
        candidate.says(1)
        self.assertRegex(
            "\n".join(candidate.lines()), rf"^elected {self.name} token \d+$", candidate.err()
        )
        return candidate, int(candidate.lines()[0].split()[-1])

    def watch(self, server=None):
        """An observer that has begun."""
        observer = self.elect("--observe", "--json", server=server)
        self.assertTrue(observer.says(1), observer.err())
        return observer

    def assertSaw(self, observer, *expected):
        """Values of the leaders, None: no leader."""
        observer.says(len(expected))
        seen = [event["leader"] and event["leader"]["value"] for event in observer.objects()]
        self.assertEqual(seen, list(expected), observer.err())

    # -- candidates

    def test_next_candidate_leads_after_a_resignation(self):
        first, token = self.elected("--value", "one")
        second = self.elect("--value", "two")
        self.waiting(self.client(), self.name, 1)
        self.assertEqual(second.lines(), [])
        self.assertEqual(first.end(), -signal.SIGTERM, first.err())
        second.says(1)
        self.assertGreater(int(second.lines()[0].split()[-1]), token)
        self.assertEqual(second.end(signal.SIGINT), -signal.SIGINT)
        self.assertEqual(self.inspect(self.client(), self.name)["state"], "free")

    def test_leader_frozen_past_its_ttl_is_replaced(self):
        # Hard case 1.
        observer = self.watch()
        first, token = self.elected("--value", "one", "-t", "1s")
        second = self.elect("--value", "two", "-t", "30s")
        self.waiting(self.client(), self.name, 1)
        first.freeze()
        self.assertGreater(int(second.says(1)[0].split()[-1]), token)
        first.process.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(), 122, first.err())
        self.assertIn("lost", first.err())
        self.assertSaw(observer, None, "one", None, "two")
        self.assertIsNone(second.process.poll())

    def test_leader_stays_for_many_ttls(self):
        leader, _ = self.elected("-t", "1s")
        client = self.client()
        wait_until(lambda: self.holders(client, self.name)[0]["renewals"] >= 4, "it renews")
        self.assertEqual(leader.end(), -signal.SIGTERM)

    def test_leader_that_cannot_reach_pawld_stops(self):
        server = self.own_pawld()
        leader, _ = self.elected("-t", "1s", server=server)
        server.kill()
        self.assertEqual(leader.wait(), 122, leader.err())
        self.assertIn("cannot be confirmed", leader.err())

    def test_leader_with_a_broken_lease_stops(self):
        leader, token = self.elected("-t", "2s")
        self.assertEqual(
            self.client().call("BREAK", self.name, "TOKEN", token, "NOW", "REASON", "test"), 1
        )
        self.assertEqual(leader.wait(), 122, leader.err())
        self.assertIn(f"the lease (token {token}) was broken: test; it is over\n", leader.err())

    def test_max_hold_ends_the_leadership(self):
        leader, _ = self.elected("-t", "1s", "--max-hold", "1s")
        self.assertEqual(leader.wait(), 124, leader.err())

    def test_candidate_without_wait_reports_the_leader(self):
        self.elected()
        for words in (["-n"], ["-w", "10ms"]):
            refused = self.elect(*words)
            self.assertEqual(refused.wait(), 75)
            self.assertIn("not acquired", refused.err())
        self.assertEqual(self.elect("-n", "-E", "0").wait(), 0)

    def test_stopped_candidate_leaves_the_queue(self):
        self.elected()
        candidate = self.elect()
        self.waiting(self.client(), self.name, 1)
        self.assertEqual(candidate.end(), -signal.SIGTERM)
        self.waiting(self.client(), self.name, 0)
        self.assertEqual(candidate.lines(), [])

    def test_json_reports_begin_and_end_of_the_leadership(self):
        leader = self.elect("--value", "a=b", "--json", "-t", "1s")
        leader.says(1)
        [elected] = leader.objects()
        token = elected["token"]
        self.assertEqual(
            elected, {"name": self.name, "state": "elected", "token": token, "value": "a=b"}
        )
        self.assertEqual(self.holders(self.client(), self.name)[0]["meta"], ["value", "a=b"])
        leader.end()
        self.assertEqual(leader.objects()[1:], [{"name": self.name, "state": "resigned"}])
        lost = self.elect("--json", "-t", "1s")
        lost.says(1)
        lost.freeze()
        self.acquire(self.client(), self.name, "WAIT", 60000)
        lost.process.send_signal(signal.SIGCONT)
        self.assertEqual(lost.wait(), 122)
        self.assertEqual(lost.objects()[1:], [{"name": self.name, "state": "lost"}])

    def test_command_runs_only_while_elected(self):
        leader, token = self.elected()
        candidate = self.elect("--", "sh", "-c", "echo token $PAWL_TOKEN; exit 3")
        self.waiting(self.client(), self.name, 1)
        self.assertEqual(candidate.lines(), [])
        leader.end()
        self.assertEqual(candidate.wait(), 3)
        self.assertGreater(int(candidate.lines()[0].removeprefix("token ")), token)

    def test_leader_with_closed_output_resigns(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                dies_with_parent(
                    [PAWL, "elect", self.name, "--addr", f"127.0.0.1:{self.pawld.port}"]
                ),
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=harness.PATIENCE,
                check=False,
            )
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual(self.inspect(self.client(), self.name)["state"], "free")

    # -- observers

    def test_observer_sees_every_change_in_order(self):
        observer = self.watch()
        beside = Elect(self, self.name + "2", "--value", "noise")  # Its name begins with ours.
        beside.says(1)
        expected = [None]
        for value in ("one", "two", "three"):
            leader, token = self.elected("--value", value, "--owner", f"{value}@host")
            expected += [value, None]
            observer.says(len(expected) - 1)
            self.assertEqual(
                observer.objects()[-1],
                {
                    "name": self.name,
                    "leader": {"token": token, "owner": f"{value}@host", "value": value},
                },
            )
            leader.end()
        self.assertSaw(observer, *expected)

    def test_observer_starts_with_the_current_leader(self):
        leader, token = self.elected("--value", "10.0.0.7:8080", "--owner", "me@host:1")
        observer = self.elect("--observe")
        self.assertEqual(observer.says(1), [f"leader me@host:1 token {token} value 10.0.0.7:8080"])
        leader.end()
        self.assertEqual(observer.says(2)[1], "nobody")
        self.elected("--owner", "me@host:2")
        self.assertRegex(observer.says(3)[2], r"^leader me@host:2 token \d+$")

    def test_restart_of_pawld_neither_adds_nor_hides_changes(self):
        # A port of its own, so that the restarted one is found again.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        server = self.own_pawld(resp_address=f"127.0.0.1:{port}")
        observer = self.watch(server)
        leader, _ = self.elected("--value", "one", "-t", "30s", server=server)
        self.assertSaw(observer, None, "one")
        for _ in range(2):
            server.restart()
            with server.client() as client:  # Back: it has greeted, and sent its OBSERVE.
                wait_until(
                    lambda: re.search(
                        r"name=pawl-elect .* cmds=[2-9]", client.call("CLIENT", "LIST")
                    ),
                    "it observes",
                )
        follower = self.elect("--value", "two", "-t", "30s", server=server)
        with server.client() as client:
            self.waiting(client, self.name, 1)
        leader.end()
        follower.says(1)
        self.assertSaw(observer, None, "one", None, "two")
        self.assertIn("retrying", observer.err())

    def test_change_during_a_restart_is_reported_afterwards(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        server = self.own_pawld(resp_address=f"127.0.0.1:{port}")
        observer = self.watch(server)
        leader, _ = self.elected("--value", "one", "-t", "1s", server=server)
        self.assertSaw(observer, None, "one")
        server.kill()
        # Its lease has not ended for pawld, which will give it its whole TTL again.
        self.assertEqual(leader.wait(), 122)
        server.start()
        self.assertSaw(observer, None, "one", None)

    # -- usage

    def test_observer_does_not_become_a_candidate(self):
        for words in (["--value", "x"], ["-t", "5s"], ["-n"], ["--", "true"]):
            refused = self.elect("--observe", *words)
            self.assertEqual(refused.wait(), 64, words)
            self.assertIn("--observe", refused.err())
        self.assertEqual(self.elect("-t", "500ms").wait(), 64)
        self.assertEqual(self.elect("--value", "x" * 2000).wait(), 64)

    def test_unreachable_pawld_is_reported(self):
        server = self.own_pawld()
        server.kill()
        for words in ([], ["--observe"], ["--observe", "--json"]):
            refused = self.elect(*words, server=server)
            self.assertEqual(refused.wait(), 69)
            self.assertIn("Is pawld running?", refused.err())

    def test_refused_credentials_are_not_an_unreachable_pawld(self):
        folder = harness.scratch("users")
        self.addCleanup(shutil.rmtree, folder)
        users = folder / "users"
        subprocess.run(
            [PAWL, "auth", "add", "worker", "--role", "use", "--file", users],
            capture_output=True,
            check=True,
        )
        server = self.own_pawld(start=False)
        server.start("--auth-file", users)
        for words in ([], ["--observe"]):
            refused = self.elect(*words, server=server)
            self.assertEqual(refused.wait(), 77, refused.err())
            self.assertNotIn("Is pawld running?", refused.err())

    def test_server_that_is_not_pawld_is_reported(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def answer():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    peer.recv(65536)

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        for words in ([], ["--observe"]):
            refused = self.elect(*words, "--addr", address)
            self.assertEqual(refused.wait(), 69)
            self.assertIn("not RESP", refused.err())
        listener.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    harness.main()
