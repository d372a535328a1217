"""The workers of docs/how-to and the cron job of examples/, against the real pawld: as printed, and as promised."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import harness
import node_clients
from harness import fields, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
TTL_MS = 3000
NOT_REACHED, NOT_ACQUIRED, LOST = 69, 75, 122


def block(page, language):
    """The one block of that language on a page of docs/how-to."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    if len(blocks) != 1:
        raise AssertionError(f"{page} has {len(blocks)} {language} blocks")
    return blocks[0]


class Process:
    """A program whose output is a file that can be read while it runs."""

    def __init__(self, case, command, **environment):
        self.dir = harness.scratch("howto")
        case.addCleanup(shutil.rmtree, self.dir)
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        with open(self.dir / "said", "wb") as said:
            self.process = subprocess.Popen(harness.guarded(command), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            env={**own, **environment})
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def said(self):
        return (self.dir / "said").read_text(encoding="utf-8")

    def wait(self):
        return self.process.wait(timeout=harness.PATIENCE)

    def signal(self, number):
        self.process.send_signal(number)


class Worker:
    """What every worker does, in any language. A subclass says how it is started: command()."""

    def start(self, lock, steps, server=None):
        address = f"127.0.0.1:{(server or self.pawld).port}"
        return Process(self, [*self.command(), address, lock, steps, TTL_MS])

    def at_work(self, lock, server=None):
        """A worker that would work for longer than any test, once it has begun."""
        worker = self.start(lock, 100000, server)
        wait_until(lambda: "step 3 " in worker.said() or worker.process.poll() is not None, "it works")
        self.assertIn("step 3 ", worker.said())
        return worker

    def test_it_works_past_its_first_ttl_and_releases(self):
        lock, begun = self.lock(), time.monotonic()
        worker = self.start(lock, TTL_MS // 100 * 3 // 2)
        self.assertEqual(worker.wait(), 0, worker.said())
        self.assertGreater((time.monotonic() - begun) * 1000, TTL_MS)
        lines = worker.said().splitlines()
        self.assertEqual(lines[-1], "released")
        history = [fields(lease) for lease in self.client().call("HISTORY", lock)]
        self.assertEqual(len(history), 1)
        self.assertEqual(history[0]["how"], "released")
        self.assertEqual(lines[0], f"step 1 with token {history[0]['token']}")

    def test_it_stops_by_itself_when_pawld_hangs(self):
        # pawld is stopped until the worker has ended, so nothing else can have told it to.
        server, lock = self.own_pawld(), self.lock()
        worker = self.at_work(lock, server)
        server.pause()
        self.addCleanup(server.resume)
        self.assertEqual(worker.wait(), LOST, worker.said())
        server.resume()
        with server.client() as client:
            self.assertGranted(client.call("ACQUIRE", lock, "TTL", 1000, "WAIT", 60000))

    def test_it_stops_by_itself_when_pawld_is_gone(self):
        server = self.own_pawld()
        worker = self.at_work(self.lock(), server)
        server.kill()
        self.assertEqual(worker.wait(), LOST, worker.said())

    def test_it_stops_when_its_lease_was_broken(self):
        lock = self.lock()
        worker, client = self.at_work(lock), self.client()
        token = self.inspect(client, lock)["token"]
        self.assertEqual(client.call("BREAK", lock, "TOKEN", token, "NOW", "REASON", "test"), 1)
        self.assertEqual(worker.wait(), LOST, worker.said())

    def test_it_ends_when_it_was_frozen_past_its_ttl(self):
        # Hard case 1.
        lock = self.lock()
        worker = self.at_work(lock)
        worker.signal(signal.SIGSTOP)
        self.acquire(self.client(), lock, "WAIT", 60000)  # The lock has passed on.
        worker.signal(signal.SIGCONT)
        self.assertEqual(worker.wait(), LOST, worker.said())

    def test_it_gives_up_when_somebody_else_has_the_lock(self):
        lock = self.lock()
        self.acquire(self.client(), lock)
        worker = self.start(lock, 1)
        self.assertEqual(worker.wait(), NOT_ACQUIRED, worker.said())
        self.assertNotIn("step", worker.said())

    def test_it_gives_up_when_nobody_answers(self):
        server = self.own_pawld()
        server.kill()
        worker = self.start(self.lock(), 1, server)
        self.assertEqual(worker.wait(), NOT_REACHED, worker.said())


class PythonWorkerTest(Worker, harness.PawldCase):
    def command(self):
        return ["/usr/bin/python3", ROOT / "examples/python-worker/worker.py"]

    def test_the_page_shows_the_worker(self):
        self.assertEqual(block("python.md", "python"), (ROOT / "examples/python-worker/worker.py").read_text())


class NodeWorkerTest(Worker, harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A directory as the page has it made: the worker, and `redis` in node_modules.
        cls.project = harness.scratch("node-worker")
        cls.addClassCleanup(shutil.rmtree, cls.project)
        shutil.copy(ROOT / "examples/node-worker/worker.mjs", cls.project)
        library = "redis" if node_clients.node_major() >= 20 else "redis-5"
        (cls.project / "node_modules").mkdir()
        (cls.project / "node_modules/redis").symlink_to(node_clients.installed().resolve() / "node_modules" / library)

    def command(self):
        return ["node", self.project / "worker.mjs"]

    def test_the_page_shows_the_worker(self):
        self.assertEqual(block("node.md", "js"), (ROOT / "examples/node-worker/worker.mjs").read_text())


class CronOnceTest(harness.PawldCase):
    def start(self, lock, *words, hold):
        path = f"{pathlib.Path(os.environ['PAWL']).parent}:{os.environ['PATH']}"
        return Process(self, [ROOT / "examples/cron-once/run-once", lock, *words], PATH=path, ONCE_HOLD_S=str(hold),
                       PAWL_ADDR=f"127.0.0.1:{self.pawld.port}")

    def test_of_many_machines_one_runs_the_job(self):
        # The lock is kept until the test ends it, so it does not matter how late the others come.
        lock = self.lock()
        machines = [self.start(lock, "echo", "the job ran", hold=600) for _ in range(4)]
        wait_until(lambda: sum(machine.process.poll() is not None for machine in machines) == 3, "three had nothing to do")
        late = self.start(lock, "echo", "the job ran", hold=600)
        self.assertEqual(late.wait(), 0, late.said())
        winner = next(machine for machine in machines if machine.process.poll() is None)
        wait_until(lambda: "the job ran" in winner.said(), "one ran it")
        for machine in [*machines, late]:
            if machine is not winner:
                self.assertEqual(machine.process.returncode, 0, machine.said())
                self.assertNotIn("the job ran", machine.said())
        winner.signal(signal.SIGTERM)
        self.assertEqual(winner.wait(), 128 + signal.SIGTERM)

    def test_the_next_time_it_runs_again_and_its_failure_is_told(self):
        lock = self.lock()
        self.assertEqual(self.start(lock, "true", hold=0).wait(), 0)
        failed = self.start(lock, "sh", "-c", "echo again; exit 3", hold=0)
        self.assertEqual(failed.wait(), 3)
        self.assertIn("again", failed.said())


if __name__ == "__main__":
    harness.main()
