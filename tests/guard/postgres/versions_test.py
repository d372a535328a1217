"""The guard in PostgreSQL 16, 17 and 18: the functional tests, run against servers from npm, whose
versions tests/guard/postgres/versions/package-lock.json pins. Debian 12 has 15.

The versions are tested side by side, with a few tests each, or all of them with
PAWL_ALL_VERSIONS=1."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from pawltest.process import dies_with_parent

HERE = pathlib.Path(__file__).resolve().parent
TESTS = (
    "functional_test",
    "functional_keyed_test",
    "functional_rollout_test",
    "keys_test",
    "moved_tables_test",
    "changes_test",
    "session_test",
    "observe_test",
    "attack_test",
    "replication_test",
)

FEW = ("functional_keyed_test", "attack_test")
VERSIONS = {16: FEW, 17: FEW, 18: (*FEW, "functional_test", "changes_test")}
if os.environ.get("PAWL_ALL_VERSIONS"):
    VERSIONS = dict.fromkeys(VERSIONS, TESTS)


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not the build directory: the user of PostgreSQL may not read that.
        cls.modules = pathlib.Path(tempfile.mkdtemp(prefix="pawl-postgres-versions-"))
        cls.addClassCleanup(shutil.rmtree, cls.modules, ignore_errors=True)
        cls.modules.chmod(0o755)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "versions" / name, cls.modules / name)
        cls.run_in(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], 300)
        cls.run_in(["chmod", "-R", "a+rX", "node_modules"], 60)

    @classmethod
    def run_in(cls, command, limit, **environment):
        done = subprocess.run(
            dies_with_parent(command),
            cwd=cls.modules,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{command} failed:\n{done.stdout[-8000:]}")
        return done.stdout

    def programs(self, version):
        """The directory of its server. npm packs no symbolic links; the package lists them."""
        root = self.modules / f"node_modules/postgres-{version}"
        for link in json.loads((root / "native/pg-symlinks.json").read_text()):
            place = root / link["target"]
            if not place.exists():
                place.symlink_to(os.path.relpath(root / link["source"], place.parent))
        return root / "native/bin"

    def test_the_functional_tests_pass_in_newer_versions(self):
        runs = []
        for version, tests in VERSIONS.items():
            programs = self.programs(version)
            told = self.run_in([str(programs / "postgres"), "--version"], 60)
            self.assertIn(f"PostgreSQL) {version}.", told)
            runs += [(version, test, programs) for test in tests]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = [(*run, pool.submit(self.run_one, *run)) for run in runs]
        for version, test, _, result in done:
            with self.subTest(version=version, test=test):
                result.result()

    def run_one(self, _version, test, programs):
        words = [sys.executable, str(HERE / f"{test}.py")]
        if test == "replication_test":
            words.append("LogicalReplication")
        self.run_in(words, 900, PAWL_POSTGRES_BIN=str(programs))


if __name__ == "__main__":
    unittest.main(verbosity=2)
