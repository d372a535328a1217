#!/usr/bin/python3
"""Several real pawld on a real etcd: one is active, another takes over. Hard cases 46, 47, 50."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

from pawltest import harness
from pawltest.cluster import PawldCluster
from pawltest.harness import Closed, Error, fields
from pawltest.process import dies_with_parent
from pawltest.resp import encode
from pawltest.wait import wait_until

TTL = 600000  # Longer than the whole test: nothing expires.


class ClusterCase(unittest.TestCase):
    pawlds, role_ttl_ms = 2, 2000

    def setUp(self):
        self.cluster = PawldCluster(self.pawlds, role_ttl_ms=self.role_ttl_ms)
        self.addCleanup(self.cluster.remove)
        self.cluster.start()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before and hasattr(self, "cluster"):
            print(self.cluster.logs()[-12000:], file=sys.stderr)

    def on_active(self, *words, among=None):
        """What the active one answers; asks whoever is it until one does."""

        def ask():
            try:
                with self.cluster.active(among).client(3) as client:
                    reply = client.call(*words)
            except (Closed, OSError):
                return None
            if isinstance(reply, Error) and reply.code in ("READONLY", "LOADING"):
                return None
            return (reply,)

        return wait_until(ask, f"the active pawld answers {words[0]}")[0]

    def acquire(self, lock, **options):
        request = harness.request_id()
        reply = self.on_active("ACQUIRE", lock, "TTL", TTL, "REQUEST", request, **options)
        self.assertIsInstance(reply, dict, reply)
        return fields(reply)


    def status(self, pawld):
        return wait_until(pawld.status, f"{pawld.address} answers STATUS")


class TakeoverTest(ClusterCase):
    def test_a_grant_survives_kill_9_of_the_active(self):
        tokens = []
        grant = self.acquire("kept")
        for number in range(3):
            tokens.append(self.acquire(f"lock/{number}")["token"])
            old = self.cluster.active()
            epoch = self.status(old)["epoch"]
            old.kill()
            others = self.cluster.others(old)
            new = self.cluster.active(others)
            self.assertGreater(self.status(new)["epoch"], epoch)
            held = fields(self.on_active("INSPECT", "kept", among=others))
            self.assertEqual(held["token"], grant["token"])
            self.assertGreater(self.on_active("RENEW", grant["lease"], among=others), 0)
            old.start()
        tokens.append(self.acquire("last")["token"])
        self.assertEqual(tokens, sorted(set(tokens)), "tokens grow over takeovers")
        self.assertEqual(self.on_active("RELEASE", grant["lease"]), 1)

    def test_one_that_was_stopped_says_nothing_from_memory(self):
        """Hard cases 46, 47: its role ends while it stands still."""
        grant = self.acquire("lock")
        old = self.cluster.active()
        others = self.cluster.others(old)
        with old.client(3) as client:
            self.assertGreater(client.call("RENEW", grant["lease"]), 0)
            old.pause()
            try:
                client.send_bytes(encode("RENEW", grant["lease"]))
                self.assertEqual(self.on_active("RELEASE", grant["lease"], among=others), 1)
                newer = self.acquire("lock", among=others)
                self.assertGreater(newer["token"], grant["token"])
            finally:
                old.resume()
            try:
                reply = client.read()
            except (Closed, OSError):
                reply = None
            self.assertTrue(
                reply is None or (isinstance(reply, Error) and reply.code in ("READONLY", "LOST")),
                f"it renewed a lease that is over: {reply!r}",
            )
        wait_until(lambda: old.role() == "standby", "the old one stands by")
        held = fields(self.on_active("INSPECT", "lock"))
        self.assertEqual(held["token"], newer["token"])

    def test_a_standby_names_the_active_one(self):
        def named():
            active = self.cluster.active()
            (standby,) = self.cluster.others(active)
            with standby.client(3) as client:
                reply = client.call("ACQUIRE", "lock", "TTL", TTL)
            expected = f"READONLY active={active.address} http=127.0.0.1:{active.http_port}"
            return isinstance(reply, Error) and reply == expected

        wait_until(named, "the standby says where the active one is")

    def test_a_standby_sends_http_requests_to_the_active_one(self):
        def location():
            active = self.cluster.active()
            (standby,) = self.cluster.others(active)
            web = http.client.HTTPConnection("127.0.0.1", standby.http_port)
            body = json.dumps({"locks": ["lock"], "ttl_ms": TTL})
            web.request("POST", "/v1/acquire", body, {"Content-Type": "application/json"})
            reply = web.getresponse()
            web.close()
            expected = f"http://127.0.0.1:{active.http_port}/v1/acquire"
            return (reply.status, reply.getheader("Location")) == (307, expected)

        wait_until(location, "the standby sends the request to the active one")

    def test_status_lists_nodes_and_etcd(self):
        def nodes():
            status = self.status(self.cluster.active())
            listed = {node["address"]: node for node in map(fields, status["cluster"]["nodes"])}
            roles = sorted(node["role"] for node in listed.values())
            return (status, listed) if roles == ["active", "standby"] else None

        status, listed = wait_until(nodes, "both pawld are listed")
        self.assertEqual(status["store"], "etcd")
        for pawld in self.cluster.pawlds:
            self.assertEqual(listed[pawld.address]["pid"], pawld.pid)
        (endpoint,) = status["cluster"]["etcd"]
        self.assertTrue(endpoint["usable"] and endpoint["leader"], endpoint)
        if endpoint["version"].startswith("3.4.2"):
            self.assertIn("3.4.42", endpoint["problem"])
        port = self.cluster.active().http_port
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            text = page.read().decode()
        self.assertRegex(text, r"(?m)^pawl_leader_changes_total [1-9]")
        self.assertIn("pawl_etcd_endpoint_usable{endpoint=", text)

    def test_dump_prints_what_is_in_etcd(self):
        grant = self.acquire("dumped")
        done = subprocess.run(
            [
                harness.binary(),
                "dump",
                "--store=etcd",
                "--cluster=test",
                f"--etcd={','.join(self.cluster.etcd.addresses)}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("dumped", done.stdout)
        self.assertIn(f"token {grant['token']}", done.stdout)


class HandoverTest(ClusterCase):
    # So long that only a handover in order can be what moves the role.
    role_ttl_ms = 60000

    def test_sigterm_hands_the_role_over(self):
        grant = self.acquire("lock")
        old = self.cluster.active()
        others = self.cluster.others(old)
        self.assertEqual(old.terminate(), 0)
        self.assertGreater(self.on_active("RENEW", grant["lease"], among=others), 0)
        wait_until(
            lambda: len(self.status(others[0])["cluster"]["nodes"]) == 1,
            "the old one is not listed",
        )


# Writes down every signal that would end it, and ends with its input.
COMMAND = """
import os, signal, sys
def note(text): os.write(1, (text + "\\n").encode())
for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(sign, lambda number, _: note(f"signal {number}"))
note(f"began with {os.environ['PAWL_TOKEN']}")
sys.stdin.read()
note("ended")
"""


class RunTest(ClusterCase):
    role_ttl_ms = 5000  # As by default; and `pawl run` has its own TTL.

    def holder(self, among=None):
        (holder,) = fields(self.on_active("INSPECT", "job", among=among))["holders"]
        return fields(holder)

    def test_killing_the_active_changes_nothing_for_the_command_of_pawl_run(self):
        addresses = ",".join(pawld.address for pawld in self.cluster.pawlds)
        command = [sys.executable, "-c", COMMAND]
        run = subprocess.Popen(
            dies_with_parent([os.environ["PAWL"], "run", "job", "--", *command]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PAWL_ADDR": addresses},
        )
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        began = run.stdout.readline()
        token = self.holder()["token"]
        old = self.cluster.active()
        old.kill()
        others = self.cluster.others(old)
        renewals = self.holder(others)["renewals"]
        wait_until(
            lambda: self.holder(others)["renewals"] > renewals, "it is renewed where it is now"
        )
        self.assertEqual(self.holder(others)["token"], token)
        output = run.communicate(timeout=harness.PATIENCE)[0]
        self.assertEqual([began, output], [f"began with {token}\n", "ended\n"])
        self.assertEqual(run.returncode, 0)
        self.assertEqual(fields(self.on_active("INSPECT", "job", among=others))["state"], "free")


class RestoredTest(ClusterCase):
    @staticmethod
    def answers_of_etcd(pawld):
        with urllib.request.urlopen(f"http://127.0.0.1:{pawld.http_port}/metrics") as page:
            return int(re.search(rb"(?m)^pawl_etcd_requests_total (\d+)$", page.read())[1])

    def test_a_snapshot_restored_under_pawld_is_refused(self):
        """Hard case 50."""
        etcd = self.cluster.etcd
        (node,) = etcd.nodes
        self.acquire("before")
        snapshot = etcd.dir / "snapshot"
        etcd.etcdctl("snapshot", "save", snapshot)
        for number in range(5):
            self.acquire(f"after/{number}")
        # A standby that has seen nothing of it could not know. Of so many answers two at least are
        # those of reads, and the second one was sent after the grants.
        counts = {pawld: self.answers_of_etcd(pawld) for pawld in self.cluster.pawlds}
        for pawld, before in counts.items():
            wait_until(
                lambda pawld=pawld, before=before: self.answers_of_etcd(pawld) >= before + 6,
                "it has read what was granted",
            )
        node.kill()
        shutil.rmtree(node.data)
        etcd.etcdctl(
            "snapshot",
            "restore",
            snapshot,
            f"--data-dir={node.data}",
            f"--name={node.name}",
            f"--initial-cluster={node.name}={node.peer_url}",
            f"--initial-advertise-peer-urls={node.peer_url}",
        )
        node.start()
        for pawld in self.cluster.pawlds:
            self.assertEqual(pawld.wait(), 78, pawld.log())
            self.assertIn("restored from a snapshot", pawld.log())


if __name__ == "__main__":
    harness.main()
