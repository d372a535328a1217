#!/usr/bin/python3
"""The completion scripts for bash, zsh and fish.

Environment: PAWL and PAWLD are the binaries.
"""

import os
import re
import shutil
import subprocess
import unittest

from pawltest.cli_case import PAWL, CliCase

# The limit of a second in the scripts is for people: a busy machine may need more.
UNLIMITED = {
    "bash": 'timeout() { shift; "$@"; }\n',
    "fish": "function timeout; $argv[2..]; end\n",
}


class CompletionTest(CliCase):
    def complete(self, *words):
        """What bash offers for the last word."""
        script = UNLIMITED["bash"] + self.pawl("completion", "bash").stdout
        line = " ".join(f"'{w}'" for w in words)
        done = subprocess.run(
            [
                "bash",
                "-c",
                f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _pawl; "
                'printf "%s\\n" "${COMPREPLY[@]}"',
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            env=self.environment(PATH=os.path.dirname(PAWL) + ":" + os.environ["PATH"]),
        )
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def complete_in_fish(self, line):
        """What fish offers at the end of the line, without the descriptions."""
        script = UNLIMITED["fish"] + self.pawl("completion", "fish").stdout
        done = subprocess.run(
            ["fish", "--no-config", "-c", script + "\ncomplete -C $argv[1]", line],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            env=self.environment(
                PATH=os.path.dirname(PAWL) + ":" + os.environ["PATH"], HOME=os.environ["HOME"]
            ),
        )
        self.assertEqual(done.stderr, "")
        return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_offers_what_bash_offers(self):
        self.take()
        self.assertEqual(self.complete_in_fish("pawl acq"), ["acquire"])
        self.assertEqual(self.complete_in_fish("pawl acquire hello --sh"), ["--shared"])
        self.assertIn("install", self.complete_in_fish("pawl guard "))
        self.assertIn("postgres", self.complete_in_fish("pawl guard install "))
        self.assertEqual(self.complete_in_fish("pawl run x --on-lost k"), ["kill"])
        self.assertEqual(self.complete_in_fish(f"pawl show {self.name[:-3]}"), [self.name])
        self.assertIn("mkdir", self.complete_in_fish("pawl run x -- mkdi"))

    def test_completion_offers_every_verb_and_option(self):
        verbs = re.findall(
            r"^  (\w+)  +\S", self.pawl("--help").stdout.split("Subcommands:")[1], re.M
        )
        self.assertGreaterEqual(len(verbs), 11)
        for shell in ("bash", "zsh", "fish"):
            script = self.pawl("completion", shell).stdout
            for word in verbs + ["ttl", "no-wait", "waits", "reason"]:
                self.assertIn(word, script, shell)
            self.assertEqual(self.data("completion", shell), {"shell": shell, "script": script})
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)
        self.pawl("completion", "tcsh", expect=64)

    def test_verbs_and_options_complete(self):
        self.assertEqual(self.complete("pawl", "acq"), ["acquire"])
        self.assertEqual(self.complete("pawl", "acquire", "hello", "--sh"), ["--shared"])
        self.assertEqual(self.complete("pawl", "--vers"), ["--version"])
        self.assertIn("bash", self.complete("pawl", "completion", ""))

    def test_kinds_follow_a_verb_of_guard(self):
        self.assertIn("install", self.complete("pawl", "guard", ""))
        offered = self.complete("pawl", "guard", "install", "")
        self.assertIn("postgres", offered)
        self.assertIn("sqlite", offered)
        self.assertNotIn("protect", offered)
        self.assertIn("mariadb", self.complete("pawl", "guard", "install", "--dry-run", ""))
        self.assertNotIn("postgres", self.complete("pawl", "guard", "protect", "postgres", ""))
        self.assertEqual(self.complete("pawl", "guard", "mode", "sqlite", "x", "enf"), ["enforce"])

    def test_values_of_options_complete(self):
        files = self.complete("pawl", "status", "--auth-file", "/etc/passw")
        self.assertEqual([name for name in files if "-" not in name], ["/etc/passwd"])
        files = self.complete("pawl", "guard", "status", "sqlite", "--file", "/etc/passw")
        self.assertIn("/etc/passwd", files)
        self.assertEqual(self.complete("pawl", "run", "x", "--on-lost", "k"), ["kill"])
        self.assertEqual(self.complete("pawl", "run", "--on-ask", ""), ["report", "ignore"])
        self.assertEqual(self.complete("pawl", "run", "--ttl", ""), [])

    def test_command_behind_the_dashes_completes(self):
        self.assertIn("mkdir", self.complete("pawl", "run", "x", "--", "mkdi"))
        self.assertIn("/etc/passwd", self.complete("pawl", "run", "x", "--", "cat", "/etc/pas"))
        self.assertEqual(self.complete("pawl", "status", "--", "mkdi"), [])

    def test_names_of_locks_complete(self):
        self.take()
        self.assertEqual(self.complete("pawl", "show", self.name[:-3]), [self.name])
        self.assertEqual(self.complete("pawl", "run", "-t", "5s", self.name[:-3]), [self.name])


if __name__ == "__main__":
    unittest.main()
