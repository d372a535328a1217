#!/usr/bin/python3
"""A real product that ignores conditions, the package s3rver of npm: the probe finds out, and no
guard is installed. Hard case 58."""

import os
import pathlib
import shutil
import subprocess
import unittest
import urllib.request

from pawltest import ROOT, harness
from pawltest.process import dies_with_parent, free_port
from pawltest.wait import wait_until

WANTED = ROOT / "tests/guard/s3/s3rver"


class S3rverTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.scratch("s3rver")
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(WANTED / name, cls.dir / name)
        subprocess.run(
            dies_with_parent(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
            cwd=cls.dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=True,
        )
        cls.port = free_port()
        program = cls.dir / "node_modules/s3rver/bin/s3rver.js"
        words = ["node", program, "-d", cls.dir / "data", "-a", "127.0.0.1", "-p", str(cls.port)]
        pathlib.Path(cls.dir / "data").mkdir()
        process = subprocess.Popen(
            dies_with_parent([*words, "--configure-bucket", "shop"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        wait_until(cls.answers, "s3rver answers")

    @classmethod
    def answers(cls):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/shop", timeout=10):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def test_no_guard_is_installed(self):
        done = subprocess.run(
            [os.environ["PAWL"], "guard", "install", "s3"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={
                **os.environ,
                "PAWL_GUARD_DSN": f"bucket=shop endpoint=http://127.0.0.1:{self.port}",
                "AWS_ACCESS_KEY_ID": "S3RVER",
                "AWS_SECRET_ACCESS_KEY": "S3RVER",
            },
        )
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("it ignores If-None-Match: *", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
