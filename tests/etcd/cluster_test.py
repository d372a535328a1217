#!/usr/bin/python3
"""The etcd client and three nodes: a leader that stops, users, TLS, an etcd without space."""

import unittest

from pawltest import etcd
from pawltest.etcd import Cluster, Probe
from pawltest.harness import scratch
from pawltest.tls_files import LOCAL, Authority
from pawltest.wait import wait_until


class LeaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(3)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def setUp(self):
        self.probe = Probe(self.cluster.addresses, status_ms=200)
        self.addCleanup(self.probe.close)
        self.probe.wait_usable(3)
        self.key = self._testMethodName

    def leading(self):
        """The address of the endpoint that the client takes for the leader."""
        leaders = [
            one["name"]
            for one in self.probe.endpoints()
            if one["usable"] and one["status"]["is_leader"]
        ]
        return leaders[0] if len(leaders) == 1 else None

    def test_transactions_go_on_while_the_leader_is_stopped(self):
        self.assertTrue(self.probe.write(self.key, "-", "1"))
        leader = self.cluster.leader()
        leader.pause()
        try:
            done = self.probe.txn(self.key, "1", "2")
            applied = done["txn"] == "applied" or done["found"]["value"] == "2"
            self.assertTrue(applied, done)
            self.assertGreater(done["sends"], 1)
            self.assertTrue(self.probe.write(self.key, "2", "3"))
        finally:
            leader.resume()
        self.cluster.wait_healthy()
        (kv,) = self.cluster.json("get", self.key)["kvs"]
        self.assertEqual(kv["version"], 3)
        self.probe.wait_usable(3)

    def test_transactions_go_on_after_the_leader_is_killed(self):
        self.assertTrue(self.probe.write(self.key, "-", "1"))
        leader = self.cluster.leader()
        leader.kill()
        try:
            done = self.probe.txn(self.key, "1", "2")
            self.assertTrue(done["txn"] == "applied" or done["found"]["value"] == "2", done)
        finally:
            leader.start()
            self.cluster.wait_healthy()
        (kv,) = self.cluster.json("get", self.key)["kvs"]
        self.assertEqual(kv["version"], 2)
        self.probe.wait_usable(3)

    def test_the_leader_is_preferred_after_it_has_changed(self):
        leader = self.cluster.leader()
        wait_until(lambda: self.leading() == leader.address, "the client knows the leader")
        other = next(node for node in self.cluster.nodes if node is not leader)
        status = self.cluster.json("endpoint", "status", nodes=[other])[0]["Status"]
        member = f"{status['header']['member_id']:x}"
        self.cluster.etcdctl("move-leader", member, nodes=[leader])
        wait_until(lambda: self.leading() == other.address, "the client knows the new leader")
        done = self.probe.txn(self.key, "-", "1")
        self.assertEqual(done["answer"]["header"]["member_id"], status["header"]["member_id"])

    def test_a_watch_ends_when_its_endpoint_is_stopped(self):
        call = self.probe.begin("watch", self.key, "-", 0)
        created = self.probe.event(call)["watch"]
        node = next(
            node
            for node in self.cluster.nodes
            if self.cluster.json("endpoint", "status", nodes=[node])[0]["Status"]["header"][
                "member_id"
            ]
            == created["header"]["member_id"]
        )
        node.pause()
        try:
            self.assertIn("no answer in time", self.probe.event(call)["ended"])
            again = self.probe.begin("watch", self.key, "-", 0)
            other = self.probe.event(again)["watch"]["header"]["member_id"]
            self.assertNotEqual(other, created["header"]["member_id"])
        finally:
            node.resume()
        self.cluster.wait_healthy()

    def test_a_node_without_a_leader_ends_the_watch(self):
        """Two of three nodes are stopped: the third has no majority."""
        alone = self.cluster.nodes[0]
        others = self.cluster.nodes[1:]
        with Probe([alone.address], status_ms=200) as probe:
            call = probe.begin("watch", self.key, "-", 0)
            self.assertTrue(probe.event(call)["watch"]["created"])
            for node in others:
                node.pause()
            try:
                self.assertIn("no leader", probe.event(call)["ended"])
            finally:
                for node in others:
                    node.resume()
            self.cluster.wait_healthy()

    def test_an_endpoint_of_another_cluster_is_not_used(self):
        with Cluster() as other:
            with Probe([*self.cluster.addresses, *other.addresses], status_ms=200) as probe:
                # The first one that answers says which cluster it is.
                def told_apart():
                    foreign = ["another etcd cluster" in one["error"] for one in probe.endpoints()]
                    return foreign in ([False] * 3 + [True], [True] * 3 + [False])

                wait_until(told_apart, "the client uses one of the clusters")


class UsersTest(unittest.TestCase):
    def setUp(self):
        # etcdctl logs in for each command, and has five seconds for all of it: cheap hashes.
        self.cluster = Cluster(settings={"bcrypt-cost": 4})
        self.addCleanup(self.cluster.remove)
        self.cluster.start()
        ctl = self.cluster.etcdctl
        ctl("user", "add", "root:secret")
        ctl("user", "add", "pawld:word")
        ctl("role", "add", "pawl")
        ctl("role", "grant-permission", "pawl", "--prefix=true", "readwrite", "pawl/")
        ctl("user", "grant-role", "pawld", "pawl")
        ctl("user", "grant-role", "root", "root")
        ctl("auth", "enable")
        self.cluster.user = "root:secret"

    def probe(self, **options):
        probe = Probe(self.cluster.addresses, **options)
        self.addCleanup(probe.close)
        return probe

    def test_a_user_works_within_its_role(self):
        probe = self.probe(user="pawld", password="word")
        self.assertTrue(probe.write("pawl/head", "-", "1"))
        self.assertEqual(probe.range("pawl/head")["answer"]["kvs"][0]["value"], "1")
        call = probe.begin("watch", "pawl/", "pawl0", 0)
        self.assertTrue(probe.event(call)["watch"]["created"])
        denied = probe.txn("other", "-", "1")
        self.assertEqual(denied["txn"], "fatal")
        self.assertIn("permission denied", denied["text"])

    def test_a_wrong_password_is_an_error(self):
        done = self.probe(user="pawld", password="wrong").txn("pawl/head", "-", "1")
        self.assertEqual((done["txn"], done["sends"]), ("fatal", 0))
        self.assertIn('refuses the user "pawld"', done["text"])

    def test_a_missing_user_is_an_error_that_says_what_to_do(self):
        done = self.probe().txn("pawl/head", "-", "1")
        self.assertEqual(done["txn"], "fatal")
        self.assertIn("configure a user and a password", done["text"])

    def test_a_token_that_etcd_has_forgotten_is_renewed(self):
        probe = self.probe(user="pawld", password="word")
        self.assertTrue(probe.write("pawl/head", "-", "1"))
        self.cluster.nodes[0].kill()
        self.cluster.nodes[0].start()  # Its tokens were in memory.
        self.cluster.wait_healthy()
        self.assertTrue(probe.write("pawl/head", "1", "2"))

    def test_a_change_of_users_does_not_stop_the_client(self):
        probe = self.probe(user="pawld", password="word")
        self.assertTrue(probe.write("pawl/head", "-", "1"))
        self.cluster.etcdctl("user", "add", "someone:else")
        self.assertTrue(probe.write("pawl/head", "1", "2"))

    def test_a_user_is_no_obstacle_where_etcd_has_none(self):
        self.cluster.etcdctl("auth", "disable")
        probe = self.probe(user="pawld", password="word")
        self.assertTrue(probe.write("anything", "-", "1"))


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.dir = scratch("etcd-tls")
        self.authority = Authority(self.dir, "authority")
        self.files = self.authority.sign("etcd", hosts=LOCAL)
        self.cluster = Cluster(tls=(self.authority, self.files))
        self.addCleanup(self.cluster.remove)
        self.cluster.start()

    def probe(self, authority, files):
        probe = Probe(self.cluster.addresses, ca=authority.cert, cert=files.cert, key=files.key)
        self.addCleanup(probe.close)
        return probe

    def test_calls_work_over_tls_with_a_certificate_on_each_end(self):
        probe = self.probe(self.authority, self.files)
        self.assertTrue(probe.write("key", "-", "1"))
        done = probe.call("append", "big/", "-", "h1", "1", "-", 500_000)
        self.assertTrue(done["txn"] == "applied" or done["found"]["value"] == "h1", done)
        self.assertEqual(probe.range("big/log/1")["answer"]["kvs"][0]["size"], 500_000)

    def test_a_server_of_an_unknown_authority_is_not_used(self):
        stranger = Authority(self.dir, "stranger")
        probe = self.probe(stranger, self.files)
        wait_until(
            lambda: "certificate" in probe.endpoints()[0]["error"], "the client refuses the server"
        )
        self.assertFalse(probe.endpoints()[0]["usable"])

    def test_a_client_without_a_certificate_is_told_why(self):
        stranger = Authority(self.dir, "stranger")
        probe = self.probe(self.authority, stranger.sign("pawld"))
        wait_until(lambda: probe.endpoints()[0]["error"], "the server refuses the client")
        self.assertIn("certificate", probe.endpoints()[0]["error"])


class SpaceTest(unittest.TestCase):
    def test_transactions_wait_until_etcd_has_space_again(self):
        with Cluster(settings={"quota-backend-bytes": 4 << 20}) as cluster, Probe(
            cluster.addresses, status_ms=200
        ) as probe:
            self.assertTrue(probe.write("head", "-", "0"))
            step = 0

            def full():
                nonlocal step
                old = "-" if step == 0 else step
                call = probe.begin("append", "a/", old, step + 1, step, "-", 500_000)
                step += 1
                # On a busy machine it may be told that there was no answer in time as well.
                line = probe.line(
                    lambda line: line.get("call") == call
                    or "database space exceeded" in line.get("trouble", ""),
                    "an answer",
                )
                return "trouble" in line

            wait_until(full, "etcd has no space")
            wait_until(
                lambda: any("NOSPACE" in text for text in probe.endpoints()[0]["status"]["errors"]),
                "the status shows the alarm",
            )
            pending = probe.begin("txn", "head", "0", "1")
            cluster.etcdctl("del", "--prefix", "a/log")
            revision = cluster.json("endpoint", "status")[0]["Status"]["header"]["revision"]
            cluster.etcdctl("compact", revision)
            cluster.etcdctl("defrag")
            cluster.etcdctl("alarm", "disarm")
            done = probe.event(pending)
            self.assertTrue(done["txn"] == "applied" or done["found"]["value"] == "1", done)
            (kv,) = cluster.json("get", "head")["kvs"]
            self.assertEqual(kv["version"], 2)


if __name__ == "__main__":
    etcd.main()
