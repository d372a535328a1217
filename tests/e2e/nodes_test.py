"""Clients and several pawld, of which one is active: `pawl`, `pawl run`, and the workers of the
how-to pages find the active one from any node, and keep their leases through a failover."""

import os
import subprocess
import unittest
from unittest import mock

import pawl_lease  # examples/python-worker, which docs/how-to/python.md shows
from pawltest import ROOT, harness, node_clients, nodes
from pawltest.harness import fields, wait_until
from pawltest.process import dies_with_parent

PAWL = os.environ.get("PAWL", "")
TTL_MS = 9000


class NodesCase(harness.PawldCase):
    """Two nodes, the first one active, and a list of both."""

    def setUp(self):
        super().setUp()
        self.first, self.second = nodes.Node(self.pawld.port), nodes.Node(self.pawld.port)
        self.addCleanup(self.first.close)
        self.addCleanup(self.second.close)
        self.second.stand_by(self.first.address)
        self.addresses = f"{self.first.address},{self.second.address}"
        self.name = self.lock()
        self.direct = self.client()  # To pawld itself.

    def start(self, command, address=None, **environment):
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        process = subprocess.Popen(
            dies_with_parent([str(word) for word in command]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**own, "PAWL_ADDR": address or self.addresses, **environment},
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def output(self, process):
        return process.communicate(timeout=harness.PATIENCE)[0]

    def renewals(self):
        return self.holders(self.direct, self.name)[0]["renewals"]

    def wait_for_a_renewal(self):
        """Since the failover, so that only the second node can have passed it on."""
        before = self.renewals()
        wait_until(lambda: self.renewals() > before, "it was renewed")

    def wait_until_held(self):
        wait_until(lambda: self.inspect(self.direct, self.name)["state"] == "held", "it is held")

    def how(self):
        return [fields(lease)["how"] for lease in self.direct.call("HISTORY", self.name)]


class CommandTest(NodesCase):
    def test_command_follows_a_standby_that_is_all_it_knows(self):
        shown = self.start([PAWL, "show", self.name], address=self.second.address)
        output = self.output(shown)
        self.assertEqual(shown.returncode, 0, output)
        self.assertEqual(self.second.refused, ["INSPECT"])

    def test_command_waits_for_a_takeover(self):
        # Nobody is active, and the call has 10 s: when one has taken over, it is answered.
        self.first.stand_by()
        self.second.stand_by()
        shown = self.start([PAWL, "show", self.name])
        wait_until(lambda: len(self.second.refused) > 1, "the second one was asked twice")
        self.second.take_over()
        output = self.output(shown)
        self.assertEqual(shown.returncode, 0, output)
        self.assertIn("free", output)


class RunTest(NodesCase):
    def run_cat(self, *options):
        """`pawl run` of a command that ends when its input does."""
        return self.start([PAWL, "run", self.name, "--ttl", f"{TTL_MS}ms", *options, "--", "cat"])

    def assertFinishes(self, process):
        output = self.output(process)
        self.assertEqual(process.returncode, 0, output)
        self.assertNotIn("lost", output)
        self.assertEqual(self.how(), ["released"])

    def test_run_keeps_its_lease_through_a_failover(self):
        process = self.run_cat()
        self.wait_until_held()
        nodes.fail_over(self.first, self.second)
        self.wait_for_a_renewal()
        self.assertFinishes(process)

    def test_run_keeps_its_lease_when_the_active_one_is_killed(self):
        process = self.run_cat()
        self.wait_until_held()
        self.second.take_over()
        self.first.close()
        self.wait_for_a_renewal()
        self.assertFinishes(process)

    def test_run_that_waits_queues_again_and_gets_the_lock(self):
        holder = self.client()
        lease = fields(holder.call("ACQUIRE", self.name, "TTL", 60000))["lease"]
        process = self.run_cat()

        def waiters():
            return self.inspect(self.direct, self.name)["waiters"]

        wait_until(lambda: waiters() == 1, "it waits")
        nodes.fail_over(self.first, self.second)
        wait_until(lambda: waiters() == 0 or self.first.refused, "the failover is noticed")
        wait_until(lambda: waiters() == 1, "it waits again")
        self.assertEqual(holder.call("RELEASE", lease), 1)
        self.wait_until_held()
        output = self.output(process)
        self.assertEqual(process.returncode, 0, output)


class Worker:
    """The worker of a how-to page. A subclass says how it is started: command()."""

    def test_worker_keeps_its_lease_through_a_failover(self):
        worker = self.start([*self.command(), self.name, 100000, TTL_MS])
        self.wait_until_held()
        nodes.fail_over(self.first, self.second)
        self.wait_for_a_renewal()
        self.assertIsNone(worker.poll())

    def test_worker_finds_the_active_one_from_a_standby_alone(self):
        worker = self.start([*self.command(), self.name, 1, TTL_MS], address=self.second.address)
        output = self.output(worker)
        self.assertEqual(worker.returncode, 0, output)
        self.assertEqual(self.how(), ["released"])

    def test_worker_keeps_its_lease_when_the_active_one_is_killed(self):
        worker = self.start([*self.command(), self.name, 100000, TTL_MS])
        self.wait_until_held()
        self.second.take_over()
        self.first.close()
        self.wait_for_a_renewal()
        self.assertIsNone(worker.poll())


class PythonWorkerTest(Worker, NodesCase):
    def command(self):
        return ["/usr/bin/python3", ROOT / "examples/python-worker/worker.py"]

    def test_release_goes_to_the_one_that_has_taken_over(self):
        with mock.patch.dict(os.environ, PAWL_ADDR=self.addresses):
            with pawl_lease.acquire(self.name, ttl_ms=60000, on_lost=lambda *_: None):
                nodes.fail_over(self.first, self.second)
        self.assertEqual(self.how(), ["released"])


class NodeWorkerTest(Worker, NodesCase):
    def setUp(self):
        super().setUp()
        self.project = harness.scratch("node-worker")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.project], check=True))
        for name in ("pawl-lease.mjs", "worker.mjs"):
            source = ROOT / "examples/node-worker" / name
            (self.project / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        node_clients.link(self.project, "redis")

    def command(self):
        return ["node", self.project / "worker.mjs"]


if __name__ == "__main__":
    unittest.main()
