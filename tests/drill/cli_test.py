#!/usr/bin/python3
"""The command line of `pawl drill`: its output, its exit codes, and that it leaves nothing behind."""

import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import threading

from drill_case import DRILLS, PAWL, TTL, DrillCase, children_of
from pawltest import harness
from sqlite_test import make_file


class DrillCliTest(DrillCase):
    kind = "sqlite"

    @classmethod
    def open_database(cls):
        cls.path = make_file(cls.pawld.dir)
        cls.where = ("--file", str(cls.path))

    def setUp(self):
        super().setUp()
        self.temporary = harness.scratch("drill-tmp")
        self.addCleanup(lambda: self.temporary.rmdir())  # It must be empty.

    @classmethod
    def leftovers(cls):
        with sqlite3.connect(cls.path) as db:
            found = db.execute(
                "SELECT name FROM sqlite_schema WHERE name LIKE '%conformance%'"
            ).fetchall()
            found += db.execute(
                "SELECT name FROM pawl_guard WHERE name LIKE '%conformance%'"
            ).fetchall()
        db.close()
        return found

    def interrupted(self, drill, line, sign):
        """Starts a drill and sends it a signal once it has printed that line. Returns its exit code
        and its stderr."""
        process = self.start(drill, env={**os.environ, "TMPDIR": str(self.temporary)})
        self.addCleanup(process.kill)
        printed = ""
        while line not in printed:
            more = process.stdout.readline()
            self.assertTrue(
                more,
                f"ended before it printed \"{line}\":\n{printed}{process.stderr.read() if not more else ''}",
            )
            printed += more
        started = children_of(process.pid)
        self.assertTrue([words for _, words in started if "drill-worker" in words], started)
        process.send_signal(sign)
        _, error = process.communicate(timeout=60)
        harness.wait_until(
            lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid, _ in started),
            f"what it started has ended: {started}",
        )
        return process.returncode, error

    def test_ctrl_c_with_a_frozen_worker_leaves_nothing_behind(self):
        code, error = self.interrupted("pause", "is frozen (SIGSTOP)", signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertIn("nothing is left behind", error)
        self.assertEqual(self.leftovers(), [])

    def test_sigterm_with_a_throw_away_pawld_leaves_nothing_behind(self):
        code, _ = self.interrupted("restore-from-backup", "is backed up", signal.SIGTERM)
        self.assertEqual(code, 143)
        self.assertEqual(self.leftovers(), [])

    def test_no_process_outlives_a_drill_that_is_killed(self):
        where = type(self).where
        self.addCleanup(setattr, type(self), "where", where)
        folder = self.pawld.dir / "killed"  # What it has made stays behind, of course.
        folder.mkdir()
        type(self).where = ("--file", str(make_file(folder)))
        self.interrupted("pause", "is frozen (SIGSTOP)", signal.SIGKILL)

    def test_prints_steps_and_verdict(self):
        code, out, error = self.run_drill("pause")
        self.assertEqual((code, error), (0, ""))
        steps = [
            "A      is granted the lock",
            "A      is frozen",
            "B      is granted the lock",
            "A      is resumed",
            "refused",
            "checks its lease first, and does not write",
            "PASSED  pause: The stale write was refused.",
        ]
        at = 0
        for step in steps:
            self.assertIn(step, out[at:])
            at = out.index(step, at)
        self.assertNotIn("\033", out)

    def test_failure_is_red_on_a_terminal(self):
        words = " ".join(self.words("delayed-write", "--mode", "shadow"))
        done = subprocess.run(
            ["script", "-qec", words, "/dev/null"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "TERM": "xterm"},
        )
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("\033[31mFAILED\033[0m", done.stdout)
        self.assertIn("\033[31m2 stale writes got through.\033[0m", done.stdout)

    def test_report_is_one_page_per_drill(self):
        one = self.temporary / "one.html"
        self.addCleanup(one.unlink)
        self.records("delayed-write", "--report", str(one), code=0)
        page = one.read_text(encoding="utf-8")
        self.assertIn("<svg", page)
        self.assertIn("delayed-write", page)
        self.assertNotIn("<script", page)
        several = [self.temporary / f"all-{name}.html" for name in DRILLS]
        records = self.records("all", "--report", str(self.temporary / "all.html"), code=0)
        self.assertEqual(tuple(record["drill"] for record in records), DRILLS)
        self.assertEqual(sorted(self.temporary.iterdir()), sorted([one, *several]))
        for path in several:
            path.unlink()

    def test_rounds_repeat_the_drill(self):
        (record,) = self.records("delayed-write", "--rounds", "3", code=0)
        self.assertEqual(record["verdict"]["stale_sent"], 6)
        self.assertEqual(len(record["ownerships"]), 6)

    def test_takes_the_lock_of_the_option(self):
        lock = self.lock()
        (record,) = self.records("delayed-write", "--lock", lock, code=0)
        self.assertEqual(record["lock"], lock)
        with self.client() as client:
            held = [harness.fields(epoch)["token"] for epoch in client.call("HISTORY", lock)]
        self.assertEqual(held, [owned["token"] for owned in reversed(record["ownerships"])])

    def test_other_holders_of_the_lock_do_not_disturb(self):
        lock = self.lock()
        done = threading.Event()
        tokens = []

        def compete():
            with self.client() as client:
                while not done.is_set():
                    reply = client.call("ACQUIRE", lock, "TTL", 60000, "WAIT", 100)
                    if reply is None:
                        continue
                    tokens.append(harness.fields(reply)["token"])
                    client.call("RELEASE", harness.fields(reply)["lease"])

        other = threading.Thread(target=compete)
        other.start()
        try:
            (record,) = self.records("pause", "--lock", lock, "--rounds", "3", code=0)
        finally:
            done.set()
            other.join()
        self.assertTrue(tokens)
        seen = {owned["token"]: owned["actor"] for owned in record["ownerships"]}
        for token in tokens:
            self.assertEqual(seen.get(token, "someone else"), "someone else")
        self.assertIn("someone else", seen.values())

    def test_gives_up_when_the_lock_stays_held(self):
        lock = self.lock()
        with self.client() as client:
            held = self.acquire(client, lock)
            code, out, error = self.run_drill("delayed-write", "--lock", lock, "--wait", "100ms")
            # Else other tests could not tell whether this holder writes to their resource.
            client.call("RELEASE", held["lease"])
        self.assertEqual(code, 75, out + error)
        self.assertIn("could not be carried out", error)
        self.assertEqual(self.leftovers(), [])

    def test_asks_before_using_an_own_resource(self):
        self.pawl("guard", "protect", "sqlite", "orders")
        self.addCleanup(self.pawl, "guard", "unprotect", "sqlite", "orders", "--yes")
        client = self.client()
        before = client.call("HISTORY", "orders")
        code, _, error = self.run_drill("pause", "--guard", "sqlite:orders")
        self.assertEqual(code, 64)
        for part in (
            "--yes is needed",
            "acquires the lock orders",
            "want this lock wait",
            "raises the fence of orders from",
            "Nothing is written",
        ):
            self.assertIn(part, error)
        words = " ".join(self.words("pause", "--guard", "sqlite:orders"))
        done = subprocess.run(
            ["script", "-qec", words, "/dev/null"],
            input="n\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("Go on? [y/N]", done.stdout)
        self.assertEqual(client.call("HISTORY", "orders"), before, "nobody has taken the lock")

    def test_question_names_holders_of_other_locks(self):
        self.pawl("guard", "protect", "sqlite", "orders", "--guard", "asked", "--mode", "enforce")
        self.addCleanup(self.pawl, "guard", "unprotect", "sqlite", "orders", "--yes")
        client = self.client()
        held = self.acquire(client, self.lock())
        self.addCleanup(client.call, "RELEASE", held["lease"])
        words = " ".join(self.words("delayed-write", "--guard", "sqlite:asked", "--lock", "asked"))
        for answer, code in (("n", 1), ("y", 0)):
            done = subprocess.run(
                ["script", "-qec", words, "/dev/null"],
                input=f"{answer}\n",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(f"(token {held['token']})", done.stdout)
            self.assertIn("Go on anyway? [y/N]", done.stdout)

    def test_failing_statement_is_an_error_not_a_verdict(self):
        self.pawl("guard", "protect", "sqlite", "orders")
        self.addCleanup(self.pawl, "guard", "unprotect", "sqlite", "orders", "--yes")
        code, out, error = self.run_drill(
            "delayed-write", "--guard", "sqlite:orders", "--yes", "--write", "UPDATE nonsense"
        )
        self.assertEqual(code, 64, out + error)
        self.assertIn("could not be carried out: A's write failed", error)
        self.assertNotIn("FAILED  ", out)

    def test_throw_away_pawld_never_touches_an_own_resource(self):
        self.pawl("guard", "protect", "sqlite", "orders")
        self.pawl("guard", "mode", "sqlite", "orders", "enforce", "--yes", "--reason", "drill")
        self.addCleanup(self.pawl, "guard", "unprotect", "sqlite", "orders", "--yes")
        records = self.records("all", "--guard", "sqlite:orders", "--yes", code=0)
        self.assertEqual(
            [(record["pawld"] == "throw-away", record["scratch"]) for record in records],
            [(False, False)] * 4 + [(True, True)] * 4,
        )
        fence = subprocess.run(
            [PAWL, "guard", "max", "sqlite", "orders", *self.where],
            check=True,
            capture_output=True,
            text=True,
        )
        self.assertEqual(int(fence.stdout), records[3]["ownerships"][-1]["token"])

    def assertFails(self, code, part, *words):
        done = subprocess.run(
            [PAWL, "drill", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(part, done.stderr)

    def test_usage_errors(self):
        here = ["--addr", f"127.0.0.1:{self.pawld.port}", *self.where]
        self.assertFails(64, "DRILL", *here, "--guard", "sqlite")
        self.assertFails(64, "earthquake", "earthquake", *here, "--guard", "sqlite")
        self.assertFails(64, "--guard sqlite --file", "pause", *self.where)
        self.assertFails(64, "--addr needs --guard", "pause", "--addr", "127.0.0.1:1")
        self.assertFails(
            64, "redis, etcd, s3 or dynamodb", "pause", *here, "--guard", "oracle"
        )
        self.assertFails(
            64, "--ttl: at least 500ms", "pause", *here, "--guard", "sqlite", "--ttl", "100ms"
        )
        self.assertFails(
            64, "--rounds: 1 to 1000", "pause", *here, "--guard", "sqlite", "--rounds", "0"
        )
        self.assertFails(64, "no resource", "pause", *here, "--guard", "sqlite:")
        self.assertFails(
            64, "there is no guard", "pause", *here, "--guard", "sqlite:nothing", "--yes"
        )
        self.assertFails(
            64,
            "--mode is for a scratch",
            "pause",
            *here,
            "--guard",
            "sqlite:orders",
            "--mode",
            "shadow",
        )
        self.assertFails(
            64,
            "--write is for a resource of yours",
            "pause",
            *here,
            "--guard",
            "sqlite",
            "--write",
            "SELECT 1",
        )
        self.assertFails(
            64, "with a scratch resource only", "kill", *here, "--guard", "sqlite:orders", "--yes"
        )
        self.assertFails(
            64,
            "no writable directory",
            "pause",
            *here,
            "--guard",
            "sqlite",
            "--report",
            "/nowhere/at/all.html",
        )
        self.assertFails(
            64,
            "--mode: expected enforce, shadow, observe or none",
            "pause",
            *here,
            "--guard",
            "sqlite",
            "--mode",
            "lax",
        )

    def test_missing_pawld_or_guard(self):
        self.assertFails(
            69,
            "pawld unreachable",
            "pause",
            "--addr",
            "127.0.0.1:1",
            *self.where,
            "--guard",
            "sqlite",
        )
        empty = self.pawld.dir / "empty.db"
        sqlite3.connect(empty).close()
        plain = self.pawld.dir / "plain.db"
        sqlite3.connect(plain).close()
        subprocess.run(
            [PAWL, "guard", "install", "sqlite", "--file", plain],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.assertFails(
            64,
            "need the file in WAL mode",
            "pause",
            "--addr",
            f"127.0.0.1:{self.pawld.port}",
            "--guard",
            "sqlite",
            "--file",
            str(plain),
        )
        self.assertFails(
            64,
            "pawl guard install sqlite",
            "pause",
            "--addr",
            f"127.0.0.1:{self.pawld.port}",
            "--guard",
            "sqlite",
            "--file",
            str(empty),
        )


class NoArgumentsTest(harness.PawldCase):
    """`pawl drill NAME` and nothing else: a throw-away pawld and SQLite file, a report, and the
    commands for the user's own database."""

    def setUp(self):
        super().setUp()
        self.temporary = harness.scratch("drill-alone")
        self.addCleanup(shutil.rmtree, self.temporary)

    def drill(self, *words, code=0, program=PAWL, **more):
        hidden = ("PAWL_ADDR", "PAWL_GUARD_DSN", "PGHOST", "PGSERVICE")
        env = {key: value for key, value in os.environ.items() if key not in hidden}
        done = subprocess.run(
            [program, "drill", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            cwd=self.temporary,
            env={**env, "TMPDIR": str(self.temporary), **more},
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def reports(self):
        return sorted(path.name for path in self.temporary.iterdir())

    def test_every_drill_passes_and_writes_a_report(self):
        done = self.drill("all", "--ttl", TTL)
        for name in DRILLS:
            self.assertIn(f"PASSED  {name}: ", done.stdout)
            self.assertIn(f"report: {self.temporary}/pawl-drill-{name}-", done.stderr)
        reports = self.reports()
        self.assertEqual(len(reports), len(DRILLS), f"nothing else is left behind: {reports}")
        self.assertTrue(all(name.endswith(".html") for name in reports))
        self.assertIn("<svg", (self.temporary / reports[0]).read_text(encoding="utf-8"))

    def test_the_last_lines_work_on_an_own_database(self):
        lines = self.drill("delayed-write", "--ttl", TTL).stdout.splitlines()
        commands = [line.strip() for line in lines[-3:]]
        self.assertEqual(
            commands[-1], "pawl drill delayed-write --guard sqlite --file shop.db", lines
        )
        env = {
            **os.environ,
            "PATH": f"{pathlib.Path(PAWL).parent}:{os.environ['PATH']}",
            "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}",
        }
        for command in commands:
            done = subprocess.run(
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                cwd=self.temporary,
                env=env,
            )
            self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)

    def test_environment_of_the_user_is_not_used(self):
        self.drill(
            "delayed-write", "--ttl", TTL, PAWL_ADDR="127.0.0.1:1", PAWL_GUARD_DSN="/nowhere"
        )

    def test_json_writes_no_report_and_no_hint(self):
        done = self.drill("delayed-write", "--ttl", TTL, "--json")
        (record,) = json.loads(done.stdout)["drills"]
        self.assertEqual((record["pawld"], record["guard"]), ("throw-away", "sqlite"))
        self.assertEqual((done.stderr, self.reports()), ("", []))

    def test_without_a_guard_it_fails(self):
        done = self.drill("delayed-write", "--ttl", TTL, "--mode", "none", code=1)
        self.assertIn("FAILED  delayed-write: 2 stale writes got through.", done.stdout)

    def test_missing_pawld_is_named(self):
        alone = self.temporary / "bin"
        alone.mkdir()
        shutil.copy(PAWL, alone / "pawl")
        done = self.drill("pause", code=69, program=alone / "pawl", PATH="/nowhere")
        self.assertIn("cannot find pawld", done.stderr)


harness.main()
