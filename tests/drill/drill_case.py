"""Drills against a real database: the verdict must be right whether the guard refuses, only judges, or is not there.

    class MyTest(DrillCase):
        kind = "sqlite"
        @classmethod
        def open_database(cls): …                            # cls.where: words for pawl; cls.leftovers(): names of what drills made

Several drills run at once: they wait for leases most of the time, and nothing that one makes is another's.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("e2e", "guard", "guard_mariadb")]

import harness  # noqa: E402

PAWL = os.environ["PAWL"]
WITH_USERS_PAWLD = ("pause", "partition", "delayed-write", "flapping")
WITH_THROWAWAY_PAWLD = ("kill", "clock-step", "issuer-restart", "restore-from-backup")
DRILLS = WITH_USERS_PAWLD + WITH_THROWAWAY_PAWLD
AT_ONCE = 4
TTL = "1s"


def children_of(pid):
    """The processes that this one has started, and theirs: (pid, command line)."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            try:
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found += [(int(child), words), *children_of(child)]
    return found


class DrillCase(harness.PawldCase):
    kind = ""
    where = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.open_database()

    @classmethod
    def open_database(cls):
        raise NotImplementedError

    @classmethod
    def leftovers(cls):
        raise NotImplementedError

    @classmethod
    def words(cls, *more):
        guard = [] if "--guard" in more else ["--guard", cls.kind]
        return [PAWL, "drill", *more[:1], "--addr", f"127.0.0.1:{cls.pawld.port}", *guard, *cls.where, "--ttl", TTL, *more[1:]]

    @classmethod
    def pawl(cls, *words):
        subprocess.run([PAWL, *words, *(word.replace("--guard-dsn", "--dsn") for word in cls.where)], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def start(cls, *more, **options):
        return subprocess.Popen(harness.guarded(cls.words(*more)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    @classmethod
    def run_drill(cls, *more):
        """(exit code, stdout, stderr)"""
        with cls.start(*more) as process:
            try:
                out, error = process.communicate(timeout=240)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, out, error

    def records(self, *more, code):
        ended, out, error = self.run_drill(*more, "--json")
        report = json.loads(out)
        told = [(record["drill"], record["verdict"], [line["text"] for line in record["lines"]]) for record in report.get("drills", [])]
        self.assertEqual(ended, code, f"{more}\n{told}\n{error}")
        self.assertEqual(report["passed"], code == 0)
        return report["drills"]

    def all_at_once(self, check, drills=DRILLS):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for name, done in [(name, pool.submit(check, name)) for name in drills]:
                with self.subTest(drill=name):
                    done.result()
        self.assertEqual(self.leftovers(), [])

    def assertPlayed(self, record, name, mode):
        """What holds of every drill, whatever the guard did."""
        said = json.dumps(record, indent=1)
        verdict = record["verdict"]
        self.assertEqual((record["drill"], record["guard"], record["mode"], record["scratch"]), (name, self.kind, mode, True))
        self.assertGreater(verdict["stale_sent"], 0, said)
        self.assertEqual(verdict["refused"] + verdict["let_through"], verdict["stale_sent"], said)
        self.assertTrue(all(write["fate"] == "admitted" for write in record["writes"] if not write["stale"] and write["fate"] != "withheld"), said)
        tokens = [owned["token"] for owned in record["ownerships"]]
        self.assertEqual(tokens, sorted(set(tokens)), said)
        self.assertTrue(record["lines"] and record["beliefs"], said)
        self.assertEqual(record["pawld"] == "throw-away", name in WITH_THROWAWAY_PAWLD)

    def refused_everywhere(self, name):
        (record,) = self.records(name, code=0)
        self.assertPlayed(record, name, "enforce")
        self.assertEqual(record["verdict"]["let_through"], 0)

    def let_through_everywhere(self, name, mode):
        (record,) = self.records(name, "--mode", mode, code=1)
        self.assertPlayed(record, name, mode)
        self.assertEqual(record["verdict"]["refused"], 0)
        self.assertIn("got through", record["verdict"]["because"][0])


class OwnResource:
    """Drills with the user's own lock and resource, a table `orders` with one row, n = 0; mixed into a DrillCase.

    count() is that row's n, protect() puts the table under guard and returns the guard's name."""

    def put_under_guard(self, mode):
        guard = self.protect()
        self.pawl("guard", "mode", self.kind, guard, mode, "--yes", "--reason", "drill")
        return guard

    def own(self, drill, guard, *more, code):
        (record,) = self.records(drill, "--guard", f"{self.kind}:{guard}", "--yes", *more, code=code)
        self.assertEqual((record["resource"], record["lock"], record["scratch"]), (guard, guard, False))
        self.assertGreater(record["verdict"]["stale_sent"], 0)
        return record

    def test_the_users_own_guard_is_judged_in_the_mode_that_it_is_in(self):
        guard = self.put_under_guard("enforce")
        for drill in WITH_USERS_PAWLD:
            with self.subTest(drill=drill):
                record = self.own(drill, guard, code=0)
                self.assertEqual((record["mode"], record["verdict"]["let_through"]), ("enforce", 0))
        self.pawl("guard", "mode", self.kind, guard, "shadow", "--yes", "--reason", "drill")
        record = self.own("pause", guard, code=1)
        self.assertEqual((record["mode"], record["verdict"]["let_through"]), ("shadow", 1))
        self.assertEqual(self.count(), 0, "nothing is written by default")
        self.writes_only_what_may_pass(guard)

    def writes_only_what_may_pass(self, guard):
        add = "UPDATE orders SET n = n + 1 WHERE id = 1"
        self.pawl("guard", "mode", self.kind, guard, "enforce", "--yes", "--reason", "drill")
        record = self.own("pause", guard, "--write", add, code=0)
        self.assertEqual(self.count(), record["verdict"]["writes"] - record["verdict"]["refused"])


class Matrix:
    """Each drill against the guard on, in shadow and absent; mixed into a DrillCase."""

    def test_a_guard_refuses_every_stale_write(self):
        self.all_at_once(self.refused_everywhere)

    def test_a_guard_in_shadow_lets_them_through_and_the_drill_says_so(self):
        self.all_at_once(lambda name: self.let_through_everywhere(name, "shadow"))

    def test_without_a_guard_they_get_through_and_the_drill_says_so(self):
        self.all_at_once(lambda name: self.let_through_everywhere(name, "none"))
