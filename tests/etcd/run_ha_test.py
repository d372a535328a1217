#!/usr/bin/python3
"""`make run-ha`: what it starts, what it says, and that Ctrl-C leaves nothing behind."""

import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from pawltest import ROOT, harness
from pawltest.process import children, dies_with_parent, is_alive
from pawltest.wait import PATIENCE, wait_until


class RunHaTest(unittest.TestCase):
    def setUp(self):
        self.dir = harness.scratch("run-ha")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.out = self.dir / "out"
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                dies_with_parent(
                    [
                        "/usr/bin/python3",
                        pathlib.Path(ROOT) / "scripts/run_ha",
                        harness.binary(),
                        self.dir,
                        "--free-ports",
                    ]
                ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self.addCleanup(self.process.wait, PATIENCE)
        self.addCleanup(self.process.terminate)

    def active(self, count):
        """The pid of the pawld that was the `count`th to be active."""

        def found():
            self.assertIsNone(self.process.poll(), self.out.read_text())
            pids = re.findall(r"^active: \S+, pid (\d+)$", self.out.read_text(), re.M)
            return int(pids[count - 1]) if len(pids) >= count else None

        return wait_until(found, f"{count} pawld were active")

    def test_another_pawld_is_active_after_kill_9_and_ctrl_c_ends_all(self):
        first = self.active(1)
        text = self.out.read_text()
        self.assertRegex(text, r"(?m)^PAWL_ADDR=(127\.0\.0\.1:\d+,?){3}$")
        self.assertIn(f"kill -9 {first}", text)
        started = children(self.process.pid)
        self.assertEqual(len(started), 6)
        subprocess.run(["kill", "-9", str(first)], check=True)
        self.assertNotEqual(self.active(2), first)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(PATIENCE), 0, self.out.read_text())
        self.assertEqual([pid for pid in started if is_alive(pid)], [])


if __name__ == "__main__":
    harness.main()
