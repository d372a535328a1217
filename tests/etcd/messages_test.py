#!/usr/bin/python3
"""The decoder reads the messages of a real etcd as etcd's own client does.

`etcdctl -w protobuf` prints an answer as it was received, `-w json` what it means. With a file as
argument, the answers are also added to the seeds of the fuzz target:

    messages_test.py tests/fuzz/seeds/etcd_answers.txt
"""

import base64
import json
import os
import select
import socket
import subprocess
import sys
import unittest

from pawltest import ROOT, etcd, tcp_proxy
from pawltest.etcd import Cluster
from pawltest.wait import PATIENCE

RECORDED = {}


def decode(kind, data):
    done = subprocess.run(
        [os.environ["ETCD_PROBE"], "--decode", kind],
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)


def text(value):
    return base64.b64decode(value or "").decode()


class RecordingRelay(tcp_proxy.TcpServer):
    """Passes bytes on to a server, and keeps what the server says."""

    def __init__(self, port):
        self.port_of_server, self.said = port, b""
        super().__init__(self.relay)

    def relay(self, connection):
        with socket.create_connection(("127.0.0.1", self.port_of_server)) as server:
            while True:
                for ready in select.select([connection, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    if ready is server:
                        self.said += data
                    (connection if ready is server else server).sendall(data)


class MessagesTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()
        for number in range(4):
            cls.cluster.etcdctl("put", f"key{number}", "value" * 50 * number)
        cls.cluster.etcdctl("put", "key1", "again")

    def both(self, kind, *words, **options):
        """What our decoder and etcdctl say about the same question."""
        data = self.cluster.etcdctl(*words, "-w", "protobuf", text=False, **options).stdout
        RECORDED[f"{kind}_{self._testMethodName.removeprefix('test_')[:32]}"] = data
        return decode(kind, data), self.cluster.json(*words, **options)

    def assertSameHeader(self, ours, theirs):
        for name in ("cluster_id", "member_id", "revision", "raft_term"):
            self.assertEqual(ours[name], theirs[name], name)

    def assertSameKeys(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for our, their in zip(ours, theirs):
            self.assertEqual(our["key"], text(their["key"]))
            self.assertEqual(our["size"], len(text(their.get("value"))))
            self.assertTrue(text(their.get("value")).startswith(our["value"]))
            for name in ("create_revision", "mod_revision", "version"):
                self.assertEqual(our[name], their[name], name)

    def test_a_range(self):
        ours, theirs = self.both("range", "get", "--prefix", "key")
        self.assertSameHeader(ours["header"], theirs["header"])
        self.assertSameKeys(ours["kvs"], theirs["kvs"])
        self.assertEqual((ours["count"], ours["more"]), (4, False))

    def test_a_range_with_a_limit(self):
        ours, theirs = self.both("range", "get", "--prefix", "key", "--limit", "2")
        self.assertSameKeys(ours["kvs"], theirs["kvs"])
        self.assertEqual((ours["count"], ours["more"]), (4, True))

    def test_a_range_without_keys(self):
        ours, _ = self.both("range", "get", "nothing")
        self.assertEqual((ours["kvs"], ours["count"]), ([], 0))

    def test_a_transaction(self):
        request = 'value("key1") = "again"\n\nput key9 v\nget key2\ndel key9x\n\n\n'
        data = self.cluster.etcdctl(
            "txn", "-w", "protobuf", input=request.encode(), text=False
        ).stdout
        RECORDED["txn_succeeded"] = data
        ours = decode("txn", data)
        self.assertTrue(ours["succeeded"])
        kinds = [list(one) for one in ours["responses"]]
        self.assertEqual(kinds, [["put"], ["range"], ["deleted"]])
        self.assertEqual(ours["responses"][1]["range"]["kvs"][0]["key"], "key2")
        self.assertEqual(ours["responses"][2]["deleted"], 0)

    def test_a_transaction_that_fails_its_compare(self):
        request = 'value("key1") = "other"\n\nput key9 v\n\nget key1\n\n'
        data = self.cluster.etcdctl(
            "txn", "-w", "protobuf", input=request.encode(), text=False
        ).stdout
        RECORDED["txn_compare_failed"] = data
        ours = decode("txn", data)
        self.assertFalse(ours["succeeded"])
        self.assertEqual(ours["responses"][0]["range"]["kvs"][0]["value"], "again")

    def test_a_member_status(self):
        theirs = self.cluster.json("endpoint", "status")[0]["Status"]
        with etcd.Probe(self.cluster.addresses) as probe:
            (ours,) = probe.wait_usable(1)
        self.assertEqual(ours["status"]["version"], theirs["version"])
        self.assertEqual(ours["status"]["raft_term"], theirs["raftTerm"])

    def test_a_whole_connection(self):
        with RecordingRelay(self.cluster.nodes[0].client_port) as relay:
            with etcd.Probe([relay.address], attempt_ms=20000) as probe:
                self.assertEqual(probe.txn("connection", "-", "1")["txn"], "applied")
                self.assertEqual(probe.txn("connection", "0", "1")["txn"], "compare_failed")
        self.assertEqual(relay.said[3], 4)  # A connection begins with the settings.
        RECORDED["connection"] = relay.said

    def test_every_cut_of_an_answer_is_read_or_refused(self):
        data = self.cluster.etcdctl("get", "--prefix", "key", "-w", "protobuf", text=False).stdout
        for end in range(0, len(data), 7):
            done = subprocess.run(
                [os.environ["ETCD_PROBE"], "--decode", "range"],
                input=data[:end],
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
            self.assertIn(done.returncode, (0, 1), end)


if __name__ == "__main__":
    record = sys.argv.pop(1) if len(sys.argv) > 1 and "/" in sys.argv[1] else None
    program = unittest.main(verbosity=2, exit=False)
    if record and program.result.wasSuccessful():
        folder = etcd.scratch("seeds")
        said = RECORDED.pop("connection")
        seeds = {name: b"m" + seed for name, seed in RECORDED.items()}
        seeds |= {"connection": b"h" + said, "client": b"c" + said}
        for name, seed in seeds.items():
            (folder / name).write_bytes(seed)
        subprocess.run(
            [ROOT / "tests/fuzz/seeds.py", "add", record, *sorted(folder.iterdir())], check=True
        )
    sys.exit(not program.result.wasSuccessful())
