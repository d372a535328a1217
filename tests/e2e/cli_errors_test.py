#!/usr/bin/python3
"""What the command line says when something is wrong: in words that tell what to type, and under
--json as one document.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import subprocess
import unittest

from pawltest import harness
from pawltest.cli_case import PAWL, CliCase
from pawltest.process import dies_with_parent, free_port
from pawltest.tcp_proxy import TcpServer

PAWLD = os.environ.get("PAWLD", "")


class JsonErrorsTest(CliCase):
    def error(self, *words, **options):
        """The one document that a failing command prints."""
        return self.data(*words, **options)["error"]

    def test_usage_errors_are_a_document(self):
        for words in (
            ["--bogus"],
            ["bogus"],
            ["acquire"],
            ["acquire", "x", "--bogus"],
            ["acquire", "x", "-t", "15"],
            ["break", "x", "--token", "-1", "--reason", "r"],
            ["guard"],
            ["guard", "instal"],
            ["guard", "install", "oracle"],
            ["run", "x"],
            ["run", "x", "true"],
            ["status", "--addr", "host:port"],
            ["status", "--addr", ""],
            ["watch", "--from", "bogus"],
            ["completion", "tcsh"],
            ["backup", "relative"],
        ):
            with self.subTest(words=words):
                error = self.error(*words, expect=64)
                self.assertEqual(error["code"], "invalid")
                self.assertNotEqual(error["detail"], "")

    def test_no_verb_is_a_document(self):
        self.assertEqual(self.error(expect=64)["code"], "invalid")

    def test_wrong_environment_is_a_document(self):
        for environment, named in (
            ({"PAWL_ADDR": "::1:7295"}, "PAWL_ADDR"),
            ({"PAWL_AUTH": "no-colon"}, "PAWL_AUTH"),
            ({"PAWL_ADDR": "tls://localhost:1", "PAWL_TLS_CA": "/nonexistent"}, "PAWL_TLS_CA"),
        ):
            with self.subTest(environment=environment):
                self.assertIn(named, self.error("status", expect=78, **environment)["detail"])

    def test_json_behind_the_dashes_belongs_to_the_command(self):
        done = self.pawl("run", self.name, "--bogus", "--", "echo", "--json", expect=64)
        self.assertEqual(done.stdout, "")

    def test_every_verb_fails_with_a_document_when_pawld_is_gone(self):
        address = f"127.0.0.1:{free_port()}"
        for words in (
            ["run", "x", "--json", "--", "true"],
            ["elect", "x", "--json"],
            ["elect", "x", "--observe", "--json"],
            ["acquire", "x", "--json"],
            ["renew", "0" * 32, "--json"],
            ["release", "0" * 32, "--json"],
            ["show", "x", "--json"],
            ["ls", "--json"],
            ["ls", "--waits", "--json"],
            ["watch", "--json"],
            ["history", "x", "--json"],
            ["break", "x", "--token", "1", "--reason", "r", "--json"],
            ["raise", "1", "--reason", "r", "--json"],
            ["backup", "/nonexistent/x", "--json"],
            ["status", "--json"],
        ):
            with self.subTest(words=words):
                done = self.pawl(*words, addr=address, expect=69)
                self.assertEqual(json.loads(done.stdout)["error"]["code"], "unavailable")


class MessagesTest(CliCase):
    def stderr(self, *words, expect=64, **options):
        return self.pawl(*words, expect=expect, **options).stderr

    def test_command_without_dashes_is_told_what_to_type(self):
        self.assertIn("pawl run x -- true\n", self.stderr("run", "x", "true"))
        self.assertIn("pawl run x -- head -n 5\n", self.stderr("run", "x", "head", "-n", "5"))
        self.assertIn(
            "pawl run make -t 5s -- make 'a b'\n",
            self.stderr("run", "make", "-t", "5s", "make", "a b"),
        )
        # An option of the command, which pawl would take for its own and refuse.
        self.assertIn("pawl run x -- make -t 3\n", self.stderr("run", "x", "make", "-t", "3"))
        self.assertIn("pawl elect x -- true\n", self.stderr("elect", "x", "true"))

    def test_mistyped_verb_is_recognised(self):
        said = self.stderr("rn", "x", "--", "true")
        self.assertIn('there is no verb "rn"; did you mean run?', said)
        self.assertNotIn("true", said)
        self.assertIn("did you mean install?", self.stderr("guard", "instal", "postgres"))
        self.assertIn("did you mean", self.stderr("guard", "protet", "postgres", "orders"))
        self.assertNotIn("did you mean", self.stderr("frobnicate"))

    def test_help_of_a_mistyped_verb_is_not_the_help_of_pawl(self):
        self.assertIn('there is no verb "rn"; did you mean run?', self.stderr("rn", "--help"))
        self.assertIn("did you mean install?", self.stderr("guard", "instal", "--help"))
        self.assertIn('there is no verb "rn"; did you mean run?', self.stderr("help", "rn"))
        self.assertIn("did you mean install?", self.stderr("help", "guard", "instal"))

    def test_pawl_help_prints_the_help_of_a_verb(self):
        for verb in ([], ["run"], ["guard"], ["guard", "install"], ["help"]):
            with self.subTest(verb=verb):
                asked = self.pawl("help", *verb).stdout
                self.assertEqual(asked, self.pawl(*verb, "--help").stdout)
        self.assertEqual(self.data("help", "run")["help"], self.pawl("run", "--help").stdout)

    def test_mistyped_option_is_recognised(self):
        self.assertIn("did you mean --limit?", self.stderr("acquire", "x", "--limt", "2"))
        said = self.stderr("break", "x", "--tokn", "1", "--reason", "r")
        self.assertIn("unknown option --tokn; did you mean --token?", said)

    def test_unexpected_words_are_listed_in_order(self):
        self.assertIn("unexpected: b c d", self.stderr("show", "a", "b", "c", "d"))

    def test_group_without_a_verb_lists_its_verbs(self):
        self.assertIn("install, protect", self.stderr("guard"))

    def test_version_is_an_option(self):
        version = self.pawl("version").stdout
        self.assertEqual(self.pawl("--version", addr="127.0.0.1:1").stdout, version)
        self.assertEqual(self.data("--version"), {"version": version.split()[1]})
        pawld = subprocess.run([PAWLD, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(pawld.stdout, "pawld " + version.split()[1] + "\n")

    def test_empty_address_is_not_the_default(self):
        for option in ("--addr", "--auth-file"):
            said = self.stderr("acquire", self.name, option, "")
            self.assertIn(option, said)
            self.assertIn("must not be empty", said)
        self.assertEqual(self.data("show", self.name)["state"], "free")

    def test_server_that_does_not_speak_resp_is_named(self):
        def talk(connection):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with TcpServer(talk) as server:
            for words in (["status"], ["run", "x", "--", "true"], ["watch"]):
                said = self.stderr(*words, addr=server.address, expect=69)
                self.assertIn(f"{server.address}: not a pawld server", said)
                self.assertIn("or this is pawld's port for HTTP", said)
                self.assertNotIn("unreachable", said)

    def test_break_now_without_a_terminal_says_it_in_plain_characters(self):
        words = ["break", "x", "--token", "1", "--reason", "r", "--now"]
        self.assertIn("--yes", self.stderr(*words))
        self.assertNotIn("\\x", self.stderr(*words))


class ClosedDescriptorsTest(CliCase):
    def closed(self, numbers, *words, redirect=""):
        """pawl with these descriptors closed, as a shell does it."""
        closing = " ".join(f"{n}>&-" for n in numbers)
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {closing} {redirect}', "sh", PAWL, *words],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=self.environment(),
            check=False,
        )

    def test_lease_is_released_when_stdout_is_closed(self):
        for numbers in ((1,), (0, 1), (0, 1, 2)):
            done = self.closed(numbers, "acquire", self.name)
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertEqual(self.data("show", self.name)["state"], "free")

    def test_messages_do_not_go_to_pawld(self):
        received = []

        def talk(connection):
            received.append(connection.recv(4096))
            connection.sendall(b"-NOAUTH authenticate first\r\n")
            while chunk := connection.recv(4096):
                received.append(chunk)

        with TcpServer(talk) as server:
            for numbers in ((2,), (1, 2), (0, 1, 2), (0, 2)):
                for words in (["status"], ["run", "x"], ["acquire", "x"], ["watch"]):
                    command = ["--", "true"] if words[0] == "run" else []
                    done = self.closed(numbers, *words, "--addr", server.address, *command)
                    self.assertEqual(done.returncode, 77, f"{numbers} {words}")
        self.assertNotIn(b"pawl: ", b"".join(received))

    def test_log_of_pawld_does_not_go_into_its_store(self):
        directory = harness.scratch("closed")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", directory], check=True))
        data, port_file = directory / "data", directory / "port"
        words = ["--data", data, "--port-file", port_file, "--resp", "127.0.0.1:0"]
        pawld = subprocess.Popen(
            dies_with_parent(
                ["sh", "-c", 'exec "$@" 0>&- 1>&- 2>&-', "sh", PAWLD, *words, "--http", "off"]
            )
        )
        self.addCleanup(pawld.wait)
        self.addCleanup(pawld.kill)
        harness.wait_until(lambda: port_file.exists() and port_file.read_text(), "pawld listens")
        address = f"127.0.0.1:{port_file.read_text().split()[0]}"
        self.pawl("acquire", self.name, addr=address)
        descriptors = f"/proc/{pawld.pid}/fd"
        self.assertEqual({os.readlink(f"{descriptors}/{n}") for n in range(3)}, {"/dev/null"})

    def test_run_works_with_all_descriptors_closed(self):
        done = self.closed((0, 1, 2), "run", self.name, "--", "true")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
