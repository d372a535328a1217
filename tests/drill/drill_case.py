"""Drills against a real database: the verdict must be right with a guard that enforces, with one in
shadow, and without one.

    class MyTest(DrillCase):
        kind = "sqlite"
        @classmethod
        def open_database(cls): …    # sets cls.where: options for pawl

leftovers() lists what drills have made and not removed. Several drills run at once: they wait for
leases most of the time, and share nothing. """

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
    """All descendants of a process: (pid, command line)."""
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
    # Of an old token, after a drill with a guard that enforces.
    ways = {"call": "refused", "carried": "refused", "none": "refused"}

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
        summary = [
            (record["drill"], record["verdict"], [line["text"] for line in record["lines"]])
            for record in report.get("drills", [])
        ]
        self.assertEqual(ended, code, f"{more}\n{summary}\n{error}")
        self.assertEqual(report["passed"], code == 0)
        return report["drills"]

    def all_at_once(self, check, drills=DRILLS):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for name, done in [(name, pool.submit(check, name)) for name in drills]:
                with self.subTest(drill=name):
                    done.result()
        self.assertEqual(self.leftovers(), [])

    def assertCarriedOut(self, record, name, mode):
        """Checks what holds for every drill, with or without a guard."""
        dump = json.dumps(record, indent=1)
        verdict = record["verdict"]
        self.assertEqual(
            (record["drill"], record["guard"], record["mode"], record["scratch"]),
            (name, self.kind, mode, True),
        )
        self.assertGreater(verdict["stale_sent"], 0, dump)
        self.assertEqual(verdict["refused"] + verdict["let_through"], verdict["stale_sent"], dump)
        self.assertTrue(
            all(
                write["fate"] == "admitted"
                for write in record["writes"]
                if not write["stale"] and write["fate"] != "withheld"
            ),
            dump,
        )
        tokens = [owned["token"] for owned in record["ownerships"]]
        self.assertEqual(tokens, sorted(set(tokens)), dump)
        self.assertTrue(record["lines"] and record["beliefs"], dump)
        self.assertEqual(record["pawld"] == "throw-away", name in WITH_THROWAWAY_PAWLD)

    def all_refused(self, name):
        (record,) = self.records(name, code=0)
        self.assertCarriedOut(record, name, "enforce")
        self.assertEqual(record["verdict"]["let_through"], 0)
        self.assertEqual(
            [(way["way"], way["fate"]) for way in record["ways"]],
            list(self.ways.items()),
        )

    def all_let_through(self, name, mode):
        (record,) = self.records(name, "--mode", mode, code=1)
        self.assertCarriedOut(record, name, mode)
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

    def test_own_guard_is_drilled_in_its_present_mode(self):
        guard = self.put_under_guard("enforce")
        for drill in WITH_USERS_PAWLD:
            with self.subTest(drill=drill):
                record = self.own(drill, guard, code=0)
                self.assertEqual((record["mode"], record["verdict"]["let_through"]), ("enforce", 0))
                policy, not_sent = record["verdict"]["notes"]
                self.assertRegex(
                    policy, rf"pawl guard policy {self.kind} {guard} .*--require-token on"
                )
                self.assertRegex(not_sent, rf"--guard {self.kind}:{guard} .*--write 'UPDATE …'")
        self.pawl("guard", "mode", self.kind, guard, "shadow", "--yes", "--reason", "drill")
        record = self.own("pause", guard, code=1)
        self.assertEqual((record["mode"], record["verdict"]["let_through"]), ("shadow", 1))
        self.assertEqual(self.count(), 0, "nothing is written by default")


class ExercisesTheTable:
    """A drill with --write finds out whether the table refuses the write, not only whether the
    guard's call does; mixed into a DrillCase.

    protect_new(name) is as in ShutsNobodyOut; sql()
    runs statements as the owner of the table; remove_trigger(table) removes one of the guard's
    triggers, table(name) is how a statement names it."""

    def new_guard(self, mode="enforce", require_token="on"):
        """The names of a guard and of its table, which has one row: id 1, n 0."""
        name = f"stock{next(self._numbers)}"
        guard = self.protect_new(name)
        self.set_mode(guard, mode)
        self.pawl(
            *("guard", "policy", self.kind, guard, "--require-token", require_token),
            *("--reason", "drill"),
        )
        return guard, name

    def set_mode(self, guard, mode):
        more = ["--percent", "50"] if mode == "canary" else []
        self.pawl("guard", "mode", self.kind, guard, mode, *more, "--yes", "--reason", "drill")

    def drill_write(self, guard, statement, code):
        """(the verdict, {way: fate}) of a drill that sends this statement."""
        (record,) = self.records(
            *("delayed-write", "--guard", f"{self.kind}:{guard}", "--yes"),
            *("--write", statement),
            code=code,
        )
        return record, {way["way"]: way["fate"] for way in record["ways"]}

    def add(self, name):
        return f"UPDATE {self.table(name)} SET n = n + 1 WHERE id = 1"

    def because(self, record):
        return "\n".join(record["verdict"]["because"])

    def test_sound_table_refuses_the_statement_in_every_way(self):
        guard, name = self.new_guard()
        record, ways = self.drill_write(guard, self.add(name), code=0)
        self.assertEqual(ways, {"call": "refused", "carried": "refused", "none": "refused"})
        self.assertEqual((record["require_token"], record["problems"]), (True, []))
        self.assertEqual(record["verdict"]["notes"], [])
        self.assertEqual({write["rows"] for write in record["writes"]}, {1, None})
        self.assertEqual(self.value(name), 0, "every write was rolled back")

    def test_write_without_a_token_is_named_where_the_policy_admits_it(self):
        guard, name = self.new_guard(require_token="off")
        record, ways = self.drill_write(guard, self.add(name), code=0)
        self.assertEqual(ways, {"call": "refused", "carried": "refused", "none": "landed"})
        (note,) = record["verdict"]["notes"]
        self.assertRegex(note, rf"pawl guard policy {self.kind} {guard} .*--require-token on")
        self.assertEqual(self.value(name), 0)

    def test_table_without_its_triggers_fails_the_drill(self):
        guard, name = self.new_guard(require_token="off")
        self.remove_trigger(name)
        record, ways = self.drill_write(guard, self.add(name), code=1)
        self.assertEqual((ways["call"], ways["carried"]), ("refused", "landed"))
        self.assertRegex(self.because(record), "(?s)landed.*trigger.*is (missing|not what)")
        self.assertIn("error", {problem["severity"] for problem in record["problems"]})
        self.assertEqual(self.value(name), 0, "what has landed was rolled back")

    def test_table_without_its_triggers_fails_a_drill_that_sends_no_statement(self):
        guard, name = self.new_guard()
        self.remove_trigger(name)
        (record,) = self.records(
            "delayed-write", "--guard", f"{self.kind}:{guard}", "--yes", code=1
        )
        self.assertRegex(self.because(record), "trigger.*is (missing|not what)")

    def test_statement_for_another_table_fails_the_drill(self):
        guard, name = self.new_guard(require_token="off")
        other = f"other{next(self._numbers)}"
        self.sql(f"CREATE TABLE {self.table(other)} (id int PRIMARY KEY, n int)")
        self.sql(f"INSERT INTO {self.table(other)} VALUES (1, 0)")
        record, ways = self.drill_write(guard, self.add(other), code=1)
        self.assertEqual(ways, {"call": "refused", "carried": "landed", "none": "landed"})
        self.assertIn(f"does not reach the guard {guard}", self.because(record))
        self.assertEqual((self.value(name), self.value(other)), (0, 0))

    def test_statement_that_changes_no_row_fails_the_drill(self):
        guard, name = self.new_guard()
        nothing = self.add(name).replace("id = 1", "id = 2")
        record, _ = self.drill_write(guard, nothing, code=1)
        self.assertIn("changes no row", self.because(record))

    def test_guard_that_does_not_enforce_fails_the_drill(self):
        guard, name = self.new_guard()
        for mode in ("canary", "shadow", "observe"):
            with self.subTest(mode=mode):
                self.set_mode(guard, mode)
                record, ways = self.drill_write(guard, self.add(name), code=1)
                self.assertRegex(
                    self.because(record),
                    rf"in mode {mode}, .*pawl guard mode {self.kind} {guard} .*enforce",
                )
                if mode != "canary":  # There it depends on the name of the resource.
                    self.assertEqual(ways["carried"], "landed")
        self.assertEqual(self.value(name), 0)

    def test_table_that_is_no_longer_under_guard_fails_the_drill(self):
        guard, name = self.new_guard()
        self.pawl("guard", "unprotect", self.kind, self.table(name), "--yes")
        record, ways = self.drill_write(guard, self.add(name), code=1)
        self.assertEqual((ways["call"], ways["none"]), ("refused", "landed"))
        self.assertIn(f"No table is under the guard {guard}", self.because(record))
        self.assertIn(f"pawl guard protect {self.kind} TABLE", self.because(record))

    def test_statement_that_commits_is_not_sent(self):
        guard, name = self.new_guard()
        for statement in self.committing(name):
            with self.subTest(statement=statement):
                code, out, error = self.run_drill(
                    *("delayed-write", "--guard", f"{self.kind}:{guard}", "--yes"),
                    *("--write", statement),
                )
                self.assertEqual(code, 64, out + error)
                self.assertRegex(error, "(?i)commit")
        self.assertEqual(self.value(name), 0)

    def test_verdict_lists_every_way(self):
        guard, name = self.new_guard(require_token="off")
        code, out, _ = self.run_drill(
            *("delayed-write", "--guard", f"{self.kind}:{guard}", "--yes"),
            *("--write", self.add(name)),
        )
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"(?m)^ +.*use\(\) +refused$")
        self.assertRegex(out, rf"(?m)^ +{self.carried(guard)} +refused$")
        self.assertRegex(out, r"(?m)^ +no token +lands, because require_token is off$")


class ShutsNobodyOut:
    """A drill on the user's own guard never fences out a live holder; mixed into a DrillCase.

    protect_new(name) makes a table with one row, id 1 and n 0, and puts it under guard; the guard's
    name."""

    def protect_and_enforce(self):
        self.guard = self.protect_new(f"invoices{next(self._numbers)}")
        self.pawl("guard", "mode", self.kind, self.guard, "enforce", "--yes", "--reason", "drill")
        self.production = self.lock("/billing/nightly")

    def hold(self, lock):
        """A grant that the test releases at its end."""
        client = self.client()
        held = self.acquire(client, lock)
        self.addCleanup(client.call, "RELEASE", held["lease"])
        return held

    def release(self, held):
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
        """The error message of a drill that must not run; checks that the fence has not moved."""
        before = self.fence()
        ended, out, error = self.run_drill(
            "pause", "--guard", f"{self.kind}:{self.guard}", "--yes", "--json", *more
        )
        self.assertEqual(ended, code, out + error)
        self.assertEqual(self.fence(), before)
        return json.loads(out)["error"]["detail"]

    def test_refuses_to_shut_out_a_holder_that_has_written(self):
        self.protect_and_enforce()
        token = self.hold(self.production)["token"]
        self.advance(token)
        for more in ([], ["--lock", self.guard], ["--lock", self.lock()]):
            message = self.refused(*more)
            self.assertIn(f"token {token} holds {self.production} now", message)
            self.assertIn(f"use --lock {self.production}", message)

    def test_refuses_to_shut_out_a_holder_that_has_not_written_yet(self):
        self.protect_and_enforce()
        first = self.hold(self.production)
        self.advance(first["token"])
        self.release(first)
        second = self.hold(self.production)["token"]
        message = self.refused("--lock", self.guard)
        self.assertIn(f"token {second} holds {self.production} now", message)
        self.assertIn(f"is at token {first['token']}", message)

    def test_waits_for_holders_of_the_same_lock(self):
        self.protect_and_enforce()
        held = self.hold(self.production)
        self.advance(held["token"])
        self.refused("--lock", self.production, "--wait", "100ms", code=75)
        self.release(held)
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

    def test_yes_does_not_cover_unknown_holders(self):
        self.protect_and_enforce()
        with self.subTest("somebody holds another lock, and nobody has written yet"):
            held = self.hold(self.production)
            self.assertIn("Name the lock", self.refused())
            message = self.refused("--lock", self.guard)
            self.assertIn(f"{self.production} (token {held['token']})", message)
            self.assertIn("--yes does not cover that", message)
        with self.subTest("the token of the fence was granted under a lock that nobody holds"):
            self.release(held)
            self.advance(held["token"])
            self.assertIn(
                f"does not know token {held['token']}", self.refused("--lock", self.guard)
            )

    def test_stops_when_another_holder_appears(self):
        self.protect_and_enforce()
        drill = self.start(
            "delayed-write", "--guard", f"{self.kind}:{self.guard}", "--yes", "--rounds", "1000"
        )
        self.addCleanup(drill.kill)
        while "advances the fence" not in (line := drill.stdout.readline()):
            self.assertTrue(line, "it ended before it had advanced the fence")
        token = self.hold(self.production)["token"]
        out, error = drill.communicate(timeout=60)
        self.assertEqual(drill.returncode, 75, out + error)
        self.assertIn(f"{self.production} (token {token})", error)
        self.advance(token)  # Refused as stale, if the drill had gone on.


class Matrix:
    """Each drill against the guard on, in shadow and absent; mixed into a DrillCase."""

    def test_enforcing_guard_refuses_every_stale_write(self):
        self.all_at_once(self.all_refused)

    def test_drill_fails_with_a_guard_in_shadow(self):
        self.all_at_once(lambda name: self.all_let_through(name, "shadow"))

    def test_drill_fails_without_a_guard(self):
        self.all_at_once(lambda name: self.all_let_through(name, "none"))


class StoreMatrix(Matrix):
    """The same for stores without transactions: a write could not be rolled back, so the guard is
    only asked."""

    ways = {"call": "refused", "carried": "not_applicable", "none": "not_applicable"}

    def drill_own(self, code):
        """The record of a drill with the user's own guard `orders`."""
        (record,) = self.records(
            "delayed-write", "--guard", f"{self.kind}:orders", "--yes", code=code
        )
        return record
