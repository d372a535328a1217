"""Drills against a real database: the verdict must be right whether the guard refuses, only judges,
or is not there.

    class MyTest(DrillCase):
        kind = "sqlite"
        @classmethod
        def open_database(cls): …                            # cls.where: words for pawl; cls.leftovers(): names of what drills made

Several drills run at once: they wait for leases most of the time, and nothing that one makes is
another's. """

import concurrent.futures
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

from pawltest import harness
from pawltest.process import dies_with_parent

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
                words = (
                    pathlib.Path(f"/proc/{child}/cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode()
                )
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
        return [
            PAWL,
            "drill",
            *more[:1],
            "--addr",
            f"127.0.0.1:{cls.pawld.port}",
            *guard,
            *cls.where,
            "--ttl",
            TTL,
            *more[1:],
        ]

    @classmethod
    def pawl(cls, *words):
        subprocess.run(
            [PAWL, *words, *(word.replace("--guard-dsn", "--dsn") for word in cls.where)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @classmethod
    def start(cls, *more, **options):
        return subprocess.Popen(
            dies_with_parent(cls.words(*more)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

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
        told = [
            (record["drill"], record["verdict"], [line["text"] for line in record["lines"]])
            for record in report.get("drills", [])
        ]
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
        self.assertEqual(
            (record["drill"], record["guard"], record["mode"], record["scratch"]),
            (name, self.kind, mode, True),
        )
        self.assertGreater(verdict["stale_sent"], 0, said)
        self.assertEqual(verdict["refused"] + verdict["let_through"], verdict["stale_sent"], said)
        self.assertTrue(
            all(
                write["fate"] == "admitted"
                for write in record["writes"]
                if not write["stale"] and write["fate"] != "withheld"
            ),
            said,
        )
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
    """Drills with the user's own lock and resource, a table `orders` with one row, n = 0; mixed
    into a DrillCase.

    count() is that row's n, protect() puts the table under guard and returns the guard's name."""

    def put_under_guard(self, mode):
        guard = self.protect()
        self.pawl("guard", "mode", self.kind, guard, mode, "--yes", "--reason", "drill")
        return guard

    def own(self, drill, guard, *more, code):
        (record,) = self.records(
            drill, "--guard", f"{self.kind}:{guard}", "--yes", *more, code=code
        )
        self.assertEqual(
            (record["resource"], record["lock"], record["scratch"]), (guard, guard, False)
        )
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


class ShutsNobodyOut:
    """A drill on the user's own guard never fences out a holder that is at work; mixed into a
    DrillCase.

    protect_new(name) makes a table and puts it under guard; the guard's name."""

    def begin(self):
        self.guard = self.protect_new(f"invoices{next(self._numbers)}")
        self.pawl("guard", "mode", self.kind, self.guard, "enforce", "--yes", "--reason", "drill")
        self.production = self.lock("/billing/nightly")

    def hold(self, lock):
        """A grant of a lock that the test gives back at its end."""
        client = self.client()
        held = self.acquire(client, lock)
        self.addCleanup(client.call, "RELEASE", held["lease"])
        return held

    def let_go(self, held):
        self.client().call("RELEASE", held["lease"])

    def advance(self, token):
        self.pawl("guard", "advance", self.kind, self.guard, str(token))

    def fence(self):
        done = subprocess.run(
            [
                PAWL,
                "guard",
                "max",
                self.kind,
                self.guard,
                *(word.replace("--guard-dsn", "--dsn") for word in self.where),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        return int(done.stdout or 0)

    def refused(self, *more, code=64):
        """What it says; the fence has not moved."""
        before = self.fence()
        ended, out, error = self.run_drill(
            "pause", "--guard", f"{self.kind}:{self.guard}", "--yes", "--json", *more
        )
        self.assertEqual(ended, code, out + error)
        self.assertEqual(self.fence(), before)
        return json.loads(out)["error"]["detail"]

    def test_a_holder_of_another_lock_that_has_written_is_named_and_left_alone(self):
        self.begin()
        token = self.hold(self.production)["token"]
        self.advance(token)
        for more in ([], ["--lock", self.guard], ["--lock", self.lock()]):
            said = self.refused(*more)
            self.assertIn(f"token {token} holds {self.production} now", said)
            self.assertIn(f"use --lock {self.production}", said)

    def test_a_holder_of_another_lock_that_has_not_written_yet_is_left_alone(self):
        self.begin()
        first = self.hold(self.production)
        self.advance(first["token"])
        self.let_go(first)
        second = self.hold(self.production)["token"]
        said = self.refused("--lock", self.guard)
        self.assertIn(f"token {second} holds {self.production} now", said)
        self.assertIn(f"is at token {first['token']}", said)

    def test_with_the_lock_of_the_writers_it_waits_for_them_and_passes_after_them(self):
        self.begin()
        held = self.hold(self.production)
        self.advance(held["token"])
        self.refused("--lock", self.production, "--wait", "100ms", code=75)
        self.let_go(held)
        self.hold(self.lock("/unrelated"))
        for _ in range(2):  # The second time the fence is at a token of the first drill.
            (record,) = self.records(
                "delayed-write",
                "--guard",
                f"{self.kind}:{self.guard}",
                "--yes",
                "--lock",
                self.production,
                code=0,
            )
            self.assertEqual(record["verdict"]["let_through"], 0)

    def test_what_pawld_cannot_know_is_not_covered_by_yes(self):
        self.begin()
        with self.subTest("somebody holds another lock, and nobody has written yet"):
            held = self.hold(self.production)
            self.assertIn("Name the lock", self.refused())
            said = self.refused("--lock", self.guard)
            self.assertIn(f"{self.production} (token {held['token']})", said)
            self.assertIn("--yes does not cover that", said)
        with self.subTest("the token of the fence was granted under a lock that nobody holds"):
            self.let_go(held)
            self.advance(held["token"])
            self.assertIn(
                f"does not know token {held['token']}", self.refused("--lock", self.guard)
            )

    def test_a_holder_that_comes_while_the_drill_runs_is_not_shut_out(self):
        self.begin()
        drill = self.start(
            "delayed-write", "--guard", f"{self.kind}:{self.guard}", "--yes", "--rounds", "1000"
        )
        self.addCleanup(drill.kill)
        while "has advanced the fence" not in (line := drill.stdout.readline()):
            self.assertTrue(line, "it ended before it had advanced the fence")
        token = self.hold(self.production)["token"]
        out, error = drill.communicate(timeout=60)
        self.assertEqual(drill.returncode, 75, out + error)
        self.assertIn(f"{self.production} (token {token})", error)
        self.advance(token)  # Refused as stale, if the drill had gone on.


class Matrix:
    """Each drill against the guard on, in shadow and absent; mixed into a DrillCase."""

    def test_a_guard_refuses_every_stale_write(self):
        self.all_at_once(self.refused_everywhere)

    def test_a_guard_in_shadow_lets_them_through_and_the_drill_says_so(self):
        self.all_at_once(lambda name: self.let_through_everywhere(name, "shadow"))

    def test_without_a_guard_they_get_through_and_the_drill_says_so(self):
        self.all_at_once(lambda name: self.let_through_everywhere(name, "none"))
