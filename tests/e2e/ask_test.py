"""Asking a holder to let go, with the real programs: pawl ask, pawl run --on-ask, HTTP.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import select
import subprocess
import sys
import unittest

from pawltest import harness
from pawltest.cli_case import PAWL, CliCase
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent
from pawltest.web import Web

# Says that it runs, and by which signal it was asked to stop.
POLITE = """
import signal, sys, time
def stop(number, frame):
    print("stopped by", signal.Signals(number).name, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGUSR1, stop)
print("works", flush=True)
while True: time.sleep(0.05)
"""


class AskTest(CliCase):
    def runs(self, *options):
        """A pawl run whose command has begun."""
        process = subprocess.Popen(
            dies_with_parent(
                [PAWL, "run", self.name, "-t", "2s", *options, "--", sys.executable, "-c", POLITE]
            ),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        self.assertEqual(process.stdout.readline(), "works\n")
        return process

    def test_a_lock_that_nobody_holds_is_said_to_be_free(self):
        self.assertIn("nobody holds", self.pawl("ask", self.name).stdout)
        self.assertEqual(
            self.data("ask", self.name, "--wait", "1m"),
            {"lock": self.name, "state": "not_held", "holders": 0, "token": None},
        )

    def test_a_command_that_is_sent_a_signal_lets_go_before_the_wait_ends(self):
        for name in ("TERM", "usr1", "SIGUSR1"):
            with self.subTest(name):
                process = self.runs("--on-ask", name)
                asked = self.data("ask", self.name, "--reason", "a deployment", "--wait", "1m")
                self.assertEqual((asked["state"], asked["let_go"]), ("asked", True))
                out, err = process.communicate(timeout=harness.PATIENCE)
                signal = name.upper().removeprefix("SIG")
                self.assertEqual(out, f"stopped by SIG{signal}\n")
                self.assertEqual(process.returncode, 0)
                self.assertIn(f"asks for {self.name}: a deployment; sending SIG{signal}", err)

    def test_by_default_one_line_says_who_asks_and_why(self):
        process = self.runs()
        self.pawl("ask", self.name, "--owner", "deploy@here", "--reason", "a deployment")
        line = process.stderr.readline()
        self.assertEqual(line, f"pawl: deploy@here asks for {self.name}: a deployment\n")
        self.assertIsNone(process.poll())

    def test_a_holder_that_does_not_let_go_is_exit_75(self):
        self.take(self.name, "--ttl", "10m")
        done = self.pawl("ask", self.name, "--wait", "100ms", expect=75)
        self.assertIn("did not let go", done.stdout)

    def test_asking_twice_in_a_second_is_answered_so(self):
        # However slow this machine is: one of these pairs is within a second.
        self.take(self.name, "--ttl", "10m")
        with self.client(protocol=3) as client:

            def asked_twice():
                client.call("ASK", self.name)
                return client.call("ASK", self.name)["state"] == "already_asked"

            wait_until(asked_twice, "two asks within a second")
        harness.wait_until(
            lambda: "already asked" in self.pawl("ask", self.name).stdout
            or "already asked" in self.pawl("ask", self.name).stdout,
            "the words of pawl ask",
        )

    def test_the_wait_ends_when_the_asked_lease_does_although_the_next_one_holds(self):
        lease = self.take(self.name, "--ttl", "10m")["lease"]
        waiter = self.waiting("--ttl", "10m", "--wait", "10m", "--json")
        asking = subprocess.Popen(
            dies_with_parent([PAWL, "ask", self.name, "--wait", "10m", "--json"]),
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(asking.communicate)
        self.addCleanup(asking.kill)
        with self.client(protocol=3) as client:
            wait_until(
                lambda: client.call("RENEW", lease, "ASKS")["release_wanted"], "the ask arrived"
            )
        self.pawl("release", lease)
        out, _ = asking.communicate(timeout=harness.PATIENCE)
        self.assertEqual((asking.returncode, json.loads(out)["let_go"]), (0, True))
        out, _ = waiter.communicate(timeout=harness.PATIENCE)
        self.assertGreater(json.loads(out)["token"], 0)

    def test_wrong_options_are_explained(self):
        for wrong in ("KILL", "STOP", "sometimes", ""):
            done = self.pawl("run", self.name, "--on-ask", wrong, "--", "true", expect=64)
            self.assertIn("--on-ask", done.stderr)

    def test_pawl_watch_shows_who_asks(self):
        watch = subprocess.Popen(
            dies_with_parent([PAWL, "watch", self.name, "--json"]),
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        other = self.name + "/begin"
        with self.client(protocol=3) as client:
            seen = []

            def observed():
                """Until the watch has begun: something happens, and it shows that."""
                grant = client.call("ACQUIRE", other, "TTL", 60000)
                client.call("RELEASE", grant["lease"])
                if select.select([watch.stdout], [], [], 0.05)[0]:
                    seen.append(watch.stdout.readline())
                return seen

            wait_until(observed, "pawl watch observes")
            token = client.call("ACQUIRE", self.name, "TTL", 60000)["token"]
            client.call("ASK", self.name, "OWNER", "bob", "REASON", "deploy")
        for line in watch.stdout:
            event = json.loads(line)
            if event["event"] == "release_wanted":
                break
        self.assertEqual(
            {key: event[key] for key in ("lock", "token", "owner", "reason")},
            {"lock": self.name, "token": token, "owner": "bob", "reason": "deploy"},
        )

    def test_http_asks_and_the_holder_hears_of_it_with_a_renewal(self):
        web = Web(self.pawld.http_port)
        path = "/v1/locks/" + self.name.replace("/", "%2F") + "/ask"
        self.assertEqual(web.post(path, {}).json["state"], "not_held")
        grant = web.post("/v1/acquire", {"locks": [self.name], "ttl_ms": 60000}).json
        renewal = web.with_lease("renew", grant["lease"]).json
        self.assertIsNone(renewal["release_wanted"])
        asked = web.post(path, {"owner": "bob", "reason": "deploy"})
        self.assertEqual(asked.status, 200)
        self.assertEqual(
            asked.json,
            {"lock": self.name, "state": "asked", "holders": 1, "token": grant["token"]},
        )
        wanted = web.with_lease("renew", grant["lease"]).json["release_wanted"]
        self.assertEqual(
            {key: wanted[key] for key in ("lock", "by", "reason")},
            {"lock": self.name, "by": "bob", "reason": "deploy"},
        )
        self.assertEqual(web.post(path, {"reason": ""}).status, 400)
        self.assertEqual(web.post(path, {"why": "x"}).status, 400)


if __name__ == "__main__":
    unittest.main()
