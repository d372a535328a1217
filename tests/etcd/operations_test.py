#!/usr/bin/python3
"""What an operator does with a cluster of pawld on etcd: hand over, compact and defragment etcd,
back up, restore, move to a store of its own and back. Hard case 50."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from failover_test import TTL, ClusterCase
from pawltest import harness
from pawltest.harness import Pawld, fields
from pawltest.wait import wait_until

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(program, *words):
    return subprocess.run(
        [program, *[str(word) for word in words]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * harness.PATIENCE,
        check=False,
    )


class OperatorCase(ClusterCase):
    def pawl(self, *words):
        addresses = ",".join(pawld.address for pawld in self.cluster.pawlds)
        return run(os.environ["PAWL"], "--addr", addresses, *words)

    def where(self, cluster="test"):
        return ["--etcd", ",".join(self.cluster.etcd.addresses), "--cluster", cluster]

    def pawld(self, *words, code=0):
        done = run(harness.binary(), *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def wait_for_standby(self, pawld):
        def listed():
            nodes = self.status(pawld)["cluster"]["nodes"]
            return any(fields(node)["role"] == "standby" for node in nodes)

        wait_until(listed, "the active one knows of a standby")


class HandoverTest(OperatorCase):
    # So long that only a handover in order can be what moves the role.
    role_ttl_ms = 60000

    def test_pawl_handover_moves_the_role_and_keeps_the_leases(self):
        grant = self.acquire("lock")
        old = self.cluster.active()
        (new,) = self.cluster.others(old)
        self.wait_for_standby(old)
        done = self.pawl("handover", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["from"], told["active"]), (old.address, new.address))
        print(f"the handover took {told['took_ms']} ms")
        self.assertGreater(self.on_active("RENEW", grant["lease"], among=[new]), 0)
        self.assertEqual(old.role(), "standby")
        status = self.status(old)
        self.assertEqual(status["incarnation"], self.status(new)["incarnation"])
        self.wait_for_standby(new)
        back = self.pawl("handover")
        self.assertEqual(back.returncode, 0, back.stdout + back.stderr)
        self.assertIn(f"handed over: {old.address} is active", back.stdout)

    def test_without_a_standby_the_role_stays_and_pawl_says_to_start_one(self):
        old = self.cluster.active()
        (other,) = self.cluster.others(old)
        self.assertEqual(other.terminate(), 0)
        wait_until(
            lambda: len(self.status(old)["cluster"]["nodes"]) == 1, "the other one is not listed"
        )
        done = self.pawl("handover")
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        self.assertIn("start one first", done.stderr)
        self.assertEqual(old.role(), "active")


class StatusTest(OperatorCase):
    def test_status_shows_nodes_and_the_health_of_etcd(self):
        active = self.cluster.active()
        self.wait_for_standby(active)

        def healthy():
            text = self.pawl("status").stdout
            return text if "1 of 1 endpoints answer" in text and " leads" in text else None

        text = wait_until(healthy, "etcd has answered")
        for pawld in self.cluster.pawlds:
            role = "active" if pawld is active else "standby"
            self.assertRegex(text, rf"(?m)^  pawld {pawld.address} +{role}, pid {pawld.pid}")
        status = json.loads(self.pawl("status", "--json").stdout)
        self.assertIn("leads", status["cluster"]["health"])
        (endpoint,) = status["cluster"]["etcd"]
        if endpoint["version"].startswith("3.4.2"):
            self.assertIn("upgrade", endpoint["problem"])
        self.cluster.etcd.nodes[0].kill()

        def lost():
            return "without a majority" in self.pawl("status").stdout

        wait_until(lost, "the status says that etcd is lost")


class HousekeepingTest(OperatorCase):
    def test_compaction_and_defragmentation_of_etcd_cost_nothing(self):
        """Also the standby, whose next read begins before what is forgotten."""
        etcd = self.cluster.etcd
        kept = self.acquire("kept")
        for number in range(20):
            self.acquire(f"before/{number}")
        active = self.cluster.active()
        (standby,) = self.cluster.others(active)
        epoch = self.status(active)["epoch"]
        standby.pause()
        try:
            for number in range(20):
                self.acquire(f"meanwhile/{number}", among=[active])
            revision = etcd.json("endpoint", "status")[0]["Status"]["header"]["revision"]
            etcd.etcdctl("compact", "--physical", revision)
            etcd.etcdctl("defrag")
        finally:
            standby.resume()
        last = self.acquire("after")
        self.assertEqual(self.status(self.cluster.active())["epoch"], epoch, "the role stays")
        active.kill()
        self.assertGreater(self.on_active("RENEW", kept["lease"], among=[standby]), 0)
        held = fields(self.on_active("INSPECT", "after", among=[standby]))
        self.assertEqual(held["token"], last["token"])
        self.assertEqual(self.status(standby)["leases"], 42)


class BackupTest(OperatorCase):
    def setUp(self):
        super().setUp()
        self.dir = harness.scratch("cluster-backup")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def stop_all(self):
        for pawld in self.cluster.pawlds:
            self.assertEqual(pawld.terminate(), 0)

    def test_a_cluster_moves_to_a_journal_and_back_with_growing_tokens(self):
        grant = self.acquire("lock")
        copy = self.dir / "from-etcd"
        told = json.loads(self.pawld("backup", *self.where(), "--to", copy, "--json").stdout)
        self.assertEqual(told["last_token"], grant["token"])
        verified = json.loads(self.pawld("verify", "--data", copy, "--json").stdout)
        self.assertEqual((verified["kind"], verified["leases"]), ("backup", 1))
        self.stop_all()

        single = Pawld()
        self.addCleanup(single.remove)
        self.pawld("restore", "--from", copy, "--data", single.data, "--skip-wait")
        single.start()
        with single.client(3) as client:
            lost = client.call("RENEW", grant["lease"])
            self.assertTrue(lost.startswith("LOST"), "leases of the backup are void")
            later = fields(client.call("ACQUIRE", "lock", "TTL", TTL))
            self.assertGreater(later["token"], grant["token"])
            back = self.dir / "from-journal"
            client.call("BACKUP", str(back))
        self.assertEqual(single.terminate(), 0)

        words = ["restore", "--from", back, "--store", "etcd", "--skip-wait"]
        refused = self.pawld(*words, *self.where(), code=78)
        self.assertIn("etcdctl del --prefix pawl/test/", refused.stderr)
        self.cluster.etcd.etcdctl("del", "--prefix", "pawl/test/")
        self.assertIn("cluster test in etcd", self.pawld(*words, *self.where()).stdout)
        for pawld in self.cluster.pawlds:
            pawld.start()
        self.assertGreater(self.acquire("lock")["token"], later["token"])

    def test_the_nightly_backup_copies_a_cluster_and_keeps_the_newest(self):
        """What pawl-backup.service runs."""
        self.acquire("lock")
        config = self.dir / "pawl.toml"
        endpoints = ",".join(self.cluster.etcd.addresses)
        config.write_text(f'store = "etcd"\n[etcd]\nendpoints = "{endpoints}"\ncluster = "test"\n')
        backups = self.dir / "backups"
        backups.mkdir()
        programs = [os.path.dirname(program) for program in (harness.binary(), os.environ["PAWL"])]
        settings = {
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
            "BACKUP_CLUSTER_CONFIG": str(config),
            "BACKUP_DIRECTORY": str(backups),
            "BACKUP_KEEP": "1",
        }
        for _ in range(2):
            done = subprocess.run(
                [SOURCE / "deploy/libexec/backup"],
                env={**os.environ, **settings},
                capture_output=True,
                text=True,
                timeout=harness.PATIENCE,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("removed", done.stdout)
        (left,) = backups.iterdir()
        verified = json.loads(self.pawld("verify", "--data", left, "--json").stdout)
        self.assertEqual((verified["kind"], verified["leases"]), ("backup", 1))

    def test_a_restored_cluster_waits_until_leases_after_the_backup_are_over(self):
        self.acquire("lock")
        copy = self.dir / "copy"
        self.pawld("backup", *self.where(), "--to", copy)
        self.pawld("restore", "--from", copy, "--store", "etcd", *self.where("other"))
        self.assertIn(
            "nothing is granted for", self.pawld("dump", "--store=etcd", *self.where("other")).stdout
        )

    def test_backup_and_restore_say_what_is_wrong(self):
        none = self.pawld("backup", *self.where("nobody"), "--to", self.dir / "copy", code=78)
        self.assertIn("there is no store of this cluster", none.stderr)
        taken = self.pawld("backup", *self.where(), "--to", self.dir, code=78)
        self.assertIn("exists already", taken.stderr)
        self.acquire("lock")
        reply = self.on_active("BACKUP", str(self.dir / "copy"))
        self.assertIn("pawld backup", reply)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_after_a_snapshot_of_etcd_the_cluster_goes_on_in_a_new_era(self):
        """As docs/how-to/run-a-cluster.md says."""
        etcd = self.cluster.etcd
        (node,) = etcd.nodes
        self.acquire("before")
        snapshot = etcd.dir / "snapshot"
        etcd.etcdctl("snapshot", "save", snapshot)
        last = [self.acquire(f"after/{number}") for number in range(5)][-1]
        self.stop_all()
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
        etcd.wait_healthy()
        copy = self.dir / "copy"
        self.pawld("backup", *self.where(), "--to", copy)
        etcd.etcdctl("del", "--prefix", "pawl/test/")
        self.pawld("restore", "--from", copy, "--store", "etcd", "--skip-wait", *self.where())
        for pawld in self.cluster.pawlds:
            pawld.start()
        self.assertGreater(self.acquire("again")["token"], last["token"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
