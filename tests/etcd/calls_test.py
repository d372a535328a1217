#!/usr/bin/python3
"""Each call of the etcd client against a real etcd of one node."""

import unittest

from pawltest import etcd
from pawltest.etcd import Cluster, Probe


class CallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def setUp(self):
        # Also on a busy machine no call is sent twice.
        self.probe = Probe(self.cluster.addresses, attempt_ms=20000)
        self.addCleanup(self.probe.close)
        self.prefix = f"{self._testMethodName}/"

    def append(self, old, new, number, first="-", size=8):
        return self.probe.call("append", self.prefix, old, new, f"{number:016x}", first, size)

    def keys(self):
        lines = self.cluster.etcdctl("get", "--prefix", self.prefix, "--keys-only").stdout.split()
        return [line.removeprefix(self.prefix) for line in lines]

    # -- transactions

    def test_a_transaction_applies_if_its_compare_is_true(self):
        done = self.probe.txn(self.prefix, "-", "1")
        self.assertEqual((done["txn"], done["sends"], done["went_back"]), ("applied", 1, False))
        self.assertEqual(self.probe.txn(self.prefix, "1", "2")["txn"], "applied")
        stored = self.cluster.etcdctl("get", self.prefix, "--print-value-only").stdout
        self.assertEqual(stored.strip(), "2")

    def test_a_failed_compare_shows_what_is_there(self):
        self.probe.txn(self.prefix, "-", "1")
        done = self.probe.txn(self.prefix, "0", "2")
        self.assertEqual(done["txn"], "compare_failed")
        self.assertEqual((done["found"]["value"], done["found"]["version"]), ("1", 1))

    def test_a_value_compare_of_an_absent_key_fails(self):
        done = self.probe.txn(self.prefix, "0", "1")
        self.assertEqual(done["txn"], "compare_failed")
        self.assertNotIn("found", done)

    def test_creation_fails_if_the_key_exists(self):
        self.probe.txn(self.prefix, "-", "1")
        self.assertEqual(self.probe.txn(self.prefix, "-", "1")["txn"], "compare_failed")

    def test_a_log_is_appended_and_cut_in_one_transaction(self):
        head = "-"
        for number in range(1, 6):
            self.assertEqual(self.append(head, f"h{number}", number)["txn"], "applied")
            head = f"h{number}"
        done = self.append(head, "h6", 6, first=f"{4:016x}")
        self.assertEqual(done["txn"], "applied")
        responses = done["answer"]["responses"]
        self.assertEqual(responses, [{"put": True}, {"put": True}, {"deleted": 3}])
        self.assertEqual(self.keys(), ["head"] + [f"log/{n:016x}" for n in (4, 5, 6)])
        # The same transaction again finds what it wrote itself.
        done = self.append(head, "h6", 6, first=f"{4:016x}")
        self.assertEqual((done["txn"], done["found"]["value"]), ("compare_failed", "h6"))

    def test_a_large_entry_is_stored_whole(self):
        self.assertEqual(self.append("-", "h1", 1, size=512 * 1024)["txn"], "applied")
        found = self.probe.range(f"{self.prefix}log/{1:016x}")
        self.assertEqual(found["answer"]["kvs"][0]["size"], 512 * 1024)

    def test_a_wrong_transaction_is_refused_with_etcds_own_words(self):
        done = self.probe.call("duplicate", self.prefix)
        self.assertEqual(done["txn"], "fatal")
        self.assertIn("duplicate key given in txn request", done["text"])

    # -- ranges and compaction

    def test_a_range_reads_the_state_of_a_revision(self):
        first = self.probe.txn(self.prefix, "-", "1")["answer"]["header"]["revision"]
        self.probe.txn(self.prefix, "1", "2")
        done = self.probe.range(self.prefix, revision=first)
        self.assertEqual(done["answer"]["kvs"][0]["value"], "1")
        self.assertEqual(self.probe.range(self.prefix)["answer"]["kvs"][0]["value"], "2")

    def test_pages_of_large_entries_arrive_whole(self):
        head = "-"
        for number in range(1, 41):
            self.append(head, f"h{number}", number, size=500_000)
            head = f"h{number}"
        log = f"{self.prefix}log/"
        found = self.probe.range(log, f"{self.prefix}log0")["answer"]["kvs"]
        self.assertEqual([kv["size"] for kv in found], [500_000] * 40)  # 20 MB in one answer.
        self.assertEqual([kv["key"] for kv in found], [f"{log}{n:016x}" for n in range(1, 41)])

    def test_a_compacted_revision_is_named(self):
        first = self.probe.txn(self.prefix, "-", "1")["answer"]["header"]["revision"]
        second = self.probe.txn(self.prefix, "1", "2")["answer"]["header"]["revision"]
        self.assertTrue(self.probe.call("compact", second)["compaction"])
        self.assertEqual(self.probe.range(self.prefix, revision=first)["range"], "compacted")
        again = self.probe.call("compact", first)
        self.assertFalse(again["compaction"])
        self.assertIn("required revision has been compacted", again["text"])

    def test_a_revision_of_the_future_is_an_error(self):
        done = self.probe.range(self.prefix, revision=1 << 40)
        self.assertEqual(done["range"], "fatal")
        self.assertIn("future revision", done["text"])

    # -- watches

    def watch(self, revision):
        call = self.probe.begin("watch", self.prefix, f"{self.prefix[:-1]}0", revision)
        self.assertTrue(self.probe.event(call)["watch"]["created"])
        return call

    def changes(self, call, count):
        """The next `count` events of a watch."""
        seen = []
        while len(seen) < count:
            seen += self.probe.event(call)["watch"]["events"]
        return seen

    def test_a_watch_sees_every_operation_in_order(self):
        start = self.append("-", "h1", 1)["answer"]["header"]["revision"] + 1
        call = self.watch(start)
        self.append("h1", "h2", 2)
        self.append("h2", "h3", 3, first=f"{3:016x}")
        seen = [
            (change["delete"], change["kv"]["key"].removeprefix(self.prefix))
            for change in self.changes(call, 6)
        ]
        one, two, three = (f"log/{n:016x}" for n in (1, 2, 3))
        self.assertEqual(seen[:2], [(False, "head"), (False, two)])
        self.assertEqual(seen[2:4], [(False, "head"), (False, three)])
        self.assertCountEqual(seen[4:], [(True, one), (True, two)])

    def test_a_watch_that_lags_behind_compaction_is_cancelled(self):
        first = self.probe.txn(f"{self.prefix}a", "-", "1")["answer"]["header"]["revision"]
        self.probe.txn(f"{self.prefix}a", "1", "2")
        last = self.probe.txn(f"{self.prefix}a", "2", "3")["answer"]["header"]["revision"]
        self.probe.call("compact", last)
        call = self.probe.begin("watch", self.prefix, f"{self.prefix[:-1]}0", first)
        while not (answer := self.probe.event(call)["watch"])["canceled"]:
            self.assertTrue(answer["created"])
        self.assertEqual(answer["compact_revision"], last)
        self.assertIn("cancelled", self.probe.event(call)["ended"])

    def test_large_changes_arrive_in_parts(self):
        start = self.append("-", "h1", 1, size=400_000)["answer"]["header"]["revision"]
        for number in range(2, 12):
            self.append(f"h{number - 1}", f"h{number}", number, size=400_000)
        call = self.watch(start)
        answers = []
        while sum(len(answer["events"]) for answer in answers) < 22:
            answers.append(self.probe.event(call)["watch"])
        self.assertTrue(any(answer["fragment"] for answer in answers))
        keys = [event["kv"]["key"] for answer in answers for event in answer["events"]]
        log = [key.rpartition("/")[2] for key in keys if "/log/" in key]
        self.assertEqual(log, [f"{n:016x}" for n in range(1, 12)])

    def test_a_watch_tells_its_progress(self):
        call = self.watch(0)
        revision = self.probe.txn("elsewhere", "-", "1")["answer"]["header"]["revision"]
        self.probe.command("progress", call)
        answer = self.probe.event(call)["watch"]
        self.assertEqual(answer["events"], [])
        self.assertGreaterEqual(answer["header"]["revision"], revision)

    def test_a_cancelled_watch_is_silent(self):
        call = self.watch(0)
        self.probe.command("cancel", call)
        other = self.watch(0)
        self.probe.txn(f"{self.prefix}a", "-", "1")
        self.assertEqual(len(self.changes(other, 1)), 1)
        self.assertFalse([line for line in self.probe.kept() if line.get("call") == call])

    # -- status

    def test_the_status_names_version_and_leader(self):
        (endpoint,) = self.probe.wait_usable(1)
        status = self.cluster.json("endpoint", "status")[0]["Status"]
        self.assertEqual(endpoint["status"]["version"], status["version"])
        self.assertEqual(endpoint["status"]["leader"], status["leader"])
        self.assertTrue(endpoint["status"]["is_leader"])
        self.assertGreater(endpoint["status"]["db_size"], 0)


if __name__ == "__main__":
    etcd.main()
