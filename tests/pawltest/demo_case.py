"""Runs `pawl demo`, reads its events, and looks for what it may have left behind.

Environment: PAWL and PAWLD, side by side.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from pawltest import harness

PAWL = os.environ["PAWL"]


def session(pid):
    """The other processes of the session that this process leads."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == pid and int(entry.name) != pid and fields[0] != "Z":
            found.append(
                (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
    return found


class DemoCase(unittest.TestCase):
    def setUp(self):
        self.tmp = harness.scratch("demo")
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)

    def environment(self, **more):
        env = {
            key: value
            for key, value in os.environ.items()
            if key not in ("NO_COLOR", "TERM", "PAWL_GUARD_DSN")
        }
        return {**env, "TMPDIR": str(self.tmp), **more}

    def start(self, *words, **more):
        """Starts the demo in its own session; it ends with the test."""
        demo = subprocess.Popen(
            [PAWL, "demo", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.environment(),
            **more
        )
        self.addCleanup(self.end, demo)
        return demo

    @staticmethod
    def end(demo):
        if demo.poll() is None:
            demo.send_signal(signal.SIGKILL)
        if demo.stdout:
            demo.communicate()
        demo.wait()

    def assertNothingLeft(self, pid):
        self.assertEqual(session(pid), [])
        self.assertEqual(list(self.tmp.iterdir()), [])

    def demo_events(self, *words):
        """The events of a demo that went as it should."""
        demo = self.start("--fast", "--json", *words)
        out, errors = demo.communicate(timeout=120)
        self.assertEqual((demo.returncode, errors), (0, ""), out)
        self.assertNothingLeft(demo.pid)
        return [json.loads(line) for line in out.splitlines()]

    def assertEveryStep(self, events):
        """The writer, token and row of each step, not the texts."""
        self.assertEqual(
            events[-1],
            {
                "event": "end",
                "lost_without_guard": True,
                "refused_with_guard": True,
                "refused_every_way": True,
            },
        )
        acts = [
            [event for event in events[:-1] if event["who"] and event["guarded"] == guarded]
            for guarded in (False, True)
        ]
        seen = [[(event["event"], event["who"], event["row"]) for event in act] for act in acts]
        both = [
            ("granted", "A", "10 widgets"),
            ("read", "A", "10 widgets"),
            ("frozen", "A", "10 widgets"),
            ("waits", "B", "10 widgets"),
            ("granted", "B", "10 widgets"),
            ("read", "B", "10 widgets"),
            ("written", "B", "7 widgets"),
            ("wakes", "A", "7 widgets"),
        ]
        self.assertEqual(seen[0], [*both, ("written", "A", "15 widgets")])
        self.assertEqual(
            seen[1],
            [
                *both,
                ("refused", "A", "7 widgets"),
                ("retried", "A", "7 widgets"),  # without asking the guard first
                ("retried", "A", "7 widgets"),  # without a token
                ("written", "A", "12 widgets"),
            ],
        )
        for act in acts:
            tokens = [event["token"] for event in act if event["event"] == "granted"]
            self.assertLess(*tokens)
            late = next(event for event in act if event["event"] == "wakes")
            self.assertEqual(late["token"], tokens[0], "A writes with the token it was given")
