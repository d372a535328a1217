"""The workers of docs/how-to and the cron job of examples/, against the real pawld: as printed, and
as promised."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock
import unittest

import pawl_lease  # examples/python-worker, which docs/how-to/python.md shows
from pawltest import ROOT, harness, node_clients, tls_files
from pawltest.harness import fields, wait_until
from pawltest.process import dies_with_parent

PYTHON = ROOT / "examples/python-worker"
NODE = ROOT / "examples/node-worker"

TTL_MS = 3000
NOT_REACHED, NOT_ACQUIRED, LOST = 69, 75, 122


def blocks(page, language):
    """The blocks of that language on a page of docs/how-to."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


class Process:
    """A program whose output is a file that can be read while it runs."""

    def __init__(self, case, command, stderr=None, **environment):
        self.dir = harness.scratch("howto")
        case.addCleanup(shutil.rmtree, self.dir)
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        with open(self.dir / "output", "wb") as output:
            self.process = subprocess.Popen(
                dies_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output if stderr is None else stderr,
                env={**own, **environment},
            )
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def output(self):
        return (self.dir / "output").read_text(encoding="utf-8")

    def wait(self):
        return self.process.wait(timeout=harness.PATIENCE)

    def signal(self, number):
        self.process.send_signal(number)


class Worker:
    """What every worker does, in any language. A subclass says how it is started: command()."""

    def start(self, lock, steps, server=None, stderr=None, ttl=TTL_MS, **environment):
        environment = {"PAWL_ADDR": f"127.0.0.1:{(server or self.pawld).port}", **environment}
        return Process(self, [*self.command(), lock, steps, ttl], stderr, **environment)

    def at_work(self, lock, server=None, stderr=None):
        """A worker that would work for longer than any test, once it has begun."""
        worker = self.start(lock, 100000, server, stderr)
        wait_until(
            lambda: "step 3 " in worker.output() or worker.process.poll() is not None, "it works"
        )
        self.assertIn("step 3 ", worker.output())
        return worker

    def assertLost(self, worker, lock, why):
        self.assertEqual(worker.wait(), LOST, worker.output())
        self.assertRegex(
            worker.output(),
            rf"(?m)^pawl: lost {lock} \(token \d+\): {why}.*\. This process ends with 122\.$",
        )

    def test_worker_runs_past_its_first_ttl_and_releases(self):
        lock, begun = self.lock(), time.monotonic()
        worker = self.start(lock, TTL_MS // 100 * 3 // 2)
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertGreater((time.monotonic() - begun) * 1000, TTL_MS)
        lines = worker.output().splitlines()
        self.assertEqual(lines[-1], "done")
        history = [fields(lease) for lease in self.client().call("HISTORY", lock)]
        self.assertEqual(len(history), 1)
        self.assertEqual(history[0]["how"], "released")
        self.assertEqual(lines[0], f"step 1 with token {history[0]['token']}")

    def test_worker_stops_when_pawld_hangs(self):
        # pawld is stopped until the worker has ended, so it cannot have been informed.
        server, lock = self.own_pawld(), self.lock()
        worker = self.at_work(lock, server)
        server.pause()
        self.addCleanup(server.resume)
        self.assertLost(worker, lock, "it was not renewed in time")
        server.resume()
        with server.client() as client:
            self.assertGranted(client.call("ACQUIRE", lock, "TTL", 1000, "WAIT", 60000))

    def test_worker_stops_when_pawld_is_gone_and_stderr_is_blocked(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 65536)
        except BlockingIOError:
            os.set_blocking(writer, True)
        server = self.own_pawld()
        worker = self.at_work(self.lock(), server, writer)
        os.close(writer)
        server.kill()
        self.assertEqual(worker.wait(), LOST, worker.output())

    def test_worker_stops_when_its_lease_is_broken(self):
        lock = self.lock()
        worker, client = self.at_work(lock), self.client()
        token = self.inspect(client, lock)["token"]
        self.assertEqual(client.call("BREAK", lock, "TOKEN", token, "NOW", "REASON", "test"), 1)
        self.assertLost(worker, lock, "pawld answered LOST")

    def test_worker_ends_when_frozen_past_its_ttl(self):
        # Hard case 1.
        lock = self.lock()
        worker = self.at_work(lock)
        worker.signal(signal.SIGSTOP)
        self.acquire(self.client(), lock, "WAIT", 60000)  # The lock has passed on.
        worker.signal(signal.SIGCONT)
        self.assertLost(worker, lock, "")

    def test_worker_gives_up_when_the_lock_is_held(self):
        lock = self.lock()
        self.acquire(self.client(), lock)
        worker = self.start(lock, 1)
        self.assertEqual(worker.wait(), NOT_ACQUIRED, worker.output())
        self.assertNotIn("step", worker.output())

    def test_worker_gives_up_when_pawld_is_unreachable(self):
        server = self.own_pawld()
        server.kill()
        worker = self.start(self.lock(), 1, server, ttl=1000)
        self.assertEqual(worker.wait(), NOT_REACHED, worker.output())

    def test_worker_works_with_tls_and_users(self):
        files = harness.scratch("howto-tls")
        self.addCleanup(shutil.rmtree, files)
        authority = tls_files.Authority(files, "authority")
        own = authority.sign("pawld", ["DNS:localhost"])
        users = files / "users"
        made = subprocess.run(
            [
                os.environ["PAWL"],
                "auth",
                "add",
                "worker",
                "--role",
                "use",
                "--prefix",
                "jobs",
                "--file",
                users,
            ],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            check=True,
        )
        trust = tls_files.trusting(authority)
        trust.check_hostname = False  # The harness connects to 127.0.0.1.
        server = self.own_pawld(
            settings=f'auth_file = "{users}"\n[tls]\ncert = "{own.cert}"\nkey = "{own.key}"\n',
            tls=trust,
        )

        def start(lock="jobs/it", host="localhost", auth=made.stdout.strip(), ca=authority.cert):
            return self.start(
                lock,
                1,
                ttl=1000,
                PAWL_ADDR=f"tls://{host}:{server.port}",
                PAWL_AUTH=auth,
                PAWL_TLS_CA=str(ca),
            )

        right = start()
        self.assertEqual(right.wait(), 0, right.output())
        # Each is refused: the certificate does not name that host, or is not signed by that
        # authority; the user.
        wrong = {
            "certificate|altnames": start(host="127.0.0.1"),
            "certificate": start(ca=own.cert),
            "(?i)wrong user or secret|invalid username": start(auth="worker:wrong"),
            "NOPERM|prefix": start(lock="other"),
        }
        for words, worker in wrong.items():
            self.assertEqual(worker.wait(), NOT_REACHED, worker.output())
            self.assertRegex(worker.output(), words)


class PythonWorkerTest(Worker, harness.PawldCase):
    def command(self):
        return ["/usr/bin/python3", PYTHON / "worker.py"]


class PythonLeaseTest(harness.PawldCase):
    """pawl_lease.py where the process is not its own to end: in this one."""

    def setUp(self):
        super().setUp()
        address = mock.patch.dict(os.environ, PAWL_ADDR=f"127.0.0.1:{self.pawld.port}")
        address.start()
        self.addCleanup(address.stop)
        self.name, self.calls = self.lock(), []

    def acquire_here(self, ttl_ms=60000):
        return pawl_lease.acquire(
            self.name, ttl_ms=ttl_ms, on_lost=lambda lease, why: self.calls.append((lease, why))
        )

    def how(self):
        return [fields(lease)["how"] for lease in self.client().call("HISTORY", self.name)]

    def test_lost_lease_is_reported_once_and_the_process_lives(self):
        with self.assertRaises(pawl_lease.LeaseLost):
            with self.acquire_here(ttl_ms=6000) as lease:
                lease.check()
                self.client().call(
                    "BREAK", self.name, "TOKEN", lease.token, "NOW", "REASON", "test"
                )
                wait_until(lambda: self.calls, "on_lost was called")
                self.assertRaises(pawl_lease.LeaseLost, lease.check)
        self.assertEqual([call[0] for call in self.calls], [lease])
        self.assertIn("LOST", self.calls[0][1])

    def test_loss_is_reported_before_the_lock_can_pass_on(self):
        server = self.own_pawld()
        with mock.patch.dict(os.environ, PAWL_ADDR=f"127.0.0.1:{server.port}"):
            lease = self.acquire_here(ttl_ms=3000)
        self.assertEqual(lease.early, 500)
        server.pause()
        self.addCleanup(server.resume)
        wait_until(lambda: self.calls, "on_lost was called")
        self.assertRaises(pawl_lease.LeaseLost, lease.check)
        self.assertEqual(len(self.calls), 1)

    def test_exception_in_the_work_releases_the_lock(self):
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            with self.acquire_here():
                1 / 0  # pylint: disable=pointless-statement
        self.assertEqual(self.how(), ["released"])
        self.assertEqual(self.calls, [])

    def test_acquire_does_not_wait_by_default(self):
        with self.acquire_here():
            self.assertRaises(pawl_lease.NotAcquired, self.acquire_here)

    def test_released_lease_is_not_valid(self):
        lease = self.acquire_here()
        self.assertTrue(lease.release())
        self.assertRaises(pawl_lease.LeaseLost, lease.check)
        self.assertEqual(self.calls, [])

    def test_forked_child_has_no_lease_and_releases_nothing(self):
        with self.acquire_here() as lease:
            child = os.fork()
            if child == 0:
                try:
                    lease.check()
                except pawl_lease.LeaseLost:
                    lease.__exit__(None)
                    os._exit(7)
                os._exit(8)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            lease.check()
            self.assertEqual(self.inspect(self.client(), self.name)["token"], lease.token)


NODE_SCENARIOS = """
import { acquire, withLease, LeaseLost, NotAcquired } from './pawl-lease.mjs';
const [lock, scenario] = process.argv.slice(2);
const calls = [];
const onLost = (lease, why) => calls.push(why);
const caught = (promise) => promise.then(() => null, (error) => error);
const result = {};
if (scenario === 'lost') {
  const error = await caught(withLease(lock, { ttlMs: 6000, onLost }, async (lease) => {
    lease.check();
    console.log(lease.token);
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    try { lease.check(); } catch (error) { result.check = error instanceof LeaseLost; }
  }));
  Object.assign(result, { lost: error instanceof LeaseLost, calls });
} else {
  const error = await caught(withLease(lock, { onLost }, async () => {
    result.busy = (await caught(acquire(lock))) instanceof NotAcquired;
    throw new RangeError('the work failed');
  }));
  const lease = await acquire(lock, { onLost });
  Object.assign(result, { passed: error.message, released: await lease.release(), calls });
  try { lease.check(); } catch (error) { result.over = error instanceof LeaseLost; }
}
console.log(JSON.stringify(result));
"""


class NodeWorkerTest(Worker, harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A directory as the page has it made: the programs, and `redis` in node_modules.
        cls.project = harness.scratch("node-worker")
        cls.addClassCleanup(shutil.rmtree, cls.project)
        for name in ("pawl-lease.mjs", "worker.mjs"):
            shutil.copy(NODE / name, cls.project)
        (cls.project / "scenario.mjs").write_text(NODE_SCENARIOS)
        node_clients.link(cls.project, "redis")

    def command(self):
        return ["node", self.project / "worker.mjs"]

    def scenario(self, *words):
        return Process(
            self,
            ["node", self.project / "scenario.mjs", *words],
            PAWL_ADDR=f"127.0.0.1:{self.pawld.port}",
        )

    def test_lost_lease_is_reported_once_and_the_process_lives(self):
        lock = self.lock()
        scenario = self.scenario(lock, "lost")
        token = int(wait_until(lambda: scenario.output().strip(), "it holds the lock"))
        self.client().call("BREAK", lock, "TOKEN", token, "NOW", "REASON", "test")
        self.assertEqual(scenario.wait(), 0, scenario.output())
        result = json.loads(scenario.output().splitlines()[-1])
        self.assertRegex(result.pop("calls")[0], "^pawld answered LOST")
        self.assertEqual(result, {"check": True, "lost": True})

    def test_worker_whose_work_fails_does_not_say_not_acquired(self):
        program = self.project / "failing.mjs"
        text = (NODE / "worker.mjs").read_text(encoding="utf-8")
        broken = text.replace("  console.log(`step", "  throw new Error('it broke');\n//")
        program.write_text(broken)
        worker = Process(
            self, ["node", program, self.lock()], PAWL_ADDR=f"127.0.0.1:{self.pawld.port}"
        )
        self.assertEqual(worker.wait(), 1, worker.output())
        self.assertIn("it broke", worker.output())
        self.assertNotIn("not acquired", worker.output())

    def test_error_in_the_work_releases_the_lock(self):
        scenario = self.scenario(self.lock(), "throws")
        self.assertEqual(scenario.wait(), 0, scenario.output())
        self.assertEqual(
            json.loads(scenario.output()),
            {
                "busy": True,
                "passed": "the work failed",
                "released": True,
                "calls": [],
                "over": True,
            },
        )


class PagesTest(unittest.TestCase):
    def test_pages_show_the_tested_programs(self):
        examples = ROOT / "examples"
        for page, language, folder, names in (
            (
                "python.md",
                "python",
                PYTHON,
                ("job.py", "pawl_lease.py", "worker.py", "invoices.py"),
            ),
            ("node.md", "js", NODE, ("job.mjs", "pawl-lease.mjs", "worker.mjs", "invoices.mjs")),
            (
                "test-your-job.md",
                "python",
                examples / "tested-job",
                ("report.py", "test_report.py"),
            ),
        ):
            self.assertEqual(
                blocks(page, language), [(folder / name).read_text() for name in names], page
            )


class CronOnceTest(harness.PawldCase):
    def start(self, lock, *words, hold):
        path = f"{pathlib.Path(os.environ['PAWL']).parent}:{os.environ['PATH']}"
        return Process(
            self,
            [ROOT / "examples/cron-once/run-once", lock, *words],
            PATH=path,
            ONCE_HOLD_S=str(hold),
            PAWL_ADDR=f"127.0.0.1:{self.pawld.port}",
        )

    def test_one_of_many_machines_runs_the_job(self):
        # The lock is kept until the test ends it, so it does not matter how late the others come.
        lock = self.lock()
        machines = [self.start(lock, "echo", "the job ran", hold=600) for _ in range(4)]
        wait_until(
            lambda: sum(machine.process.poll() is not None for machine in machines) == 3,
            "three had nothing to do",
        )
        late = self.start(lock, "echo", "the job ran", hold=600)
        self.assertEqual(late.wait(), 0, late.output())
        winner = next(machine for machine in machines if machine.process.poll() is None)
        wait_until(lambda: "the job ran" in winner.output(), "one ran it")
        for machine in [*machines, late]:
            if machine is not winner:
                self.assertEqual(machine.process.returncode, 0, machine.output())
                self.assertNotIn("the job ran", machine.output())
        winner.signal(signal.SIGTERM)
        self.assertEqual(winner.wait(), -signal.SIGTERM)

    def test_next_run_works_and_reports_a_failure(self):
        lock = self.lock()
        self.assertEqual(self.start(lock, "true", hold=0).wait(), 0)
        failed = self.start(lock, "sh", "-c", "echo again; exit 3", hold=0)
        self.assertEqual(failed.wait(), 3)
        self.assertIn("again", failed.output())


def main():
    """Runs the classes side by side, each in a process of its own: most of their time they wait."""
    if len(sys.argv) > 1:
        return harness.main()
    classes = [
        name
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, unittest.TestCase)
    ]
    runs = [
        subprocess.Popen(
            dies_with_parent([sys.executable, __file__, name]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in classes
    ]
    for run in runs:
        print(run.communicate()[0])
    return sys.exit(any(run.returncode for run in runs))


if __name__ == "__main__":
    main()
