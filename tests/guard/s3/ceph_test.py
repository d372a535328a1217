#!/usr/bin/python3
"""The guard in a real S3: Ceph's radosgw. What the probe finds out about it, the conformance kit, a
race of many writers, and a frozen worker.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++, S3_RACE the race;
PAWL_CONFORMANCE_ROUNDS how often each racer of the kit tries, PAWL_RACE_WRITERS and
PAWL_RACE_ATTEMPTS the size of the race.
"""

import json
import os
import re
import unittest

from pawltest import frozen_worker
from pawltest.ceph import Ceph
from pawltest.s3_server import ServerCase
from race_test import race

ROUNDS = os.environ.get("PAWL_CONFORMANCE_ROUNDS", "10")
SERVER = []  # One for all classes: it takes long to start.


class CephCase(ServerCase):
    count = 0
    patience = 1200

    @classmethod
    def setUpClass(cls):
        if not SERVER:
            SERVER.append(Ceph())
            unittest.addModuleCleanup(SERVER[0].remove)
            SERVER[0].start()
        cls.server = SERVER[0]

    def setUp(self):
        CephCase.count += 1
        self.bucket = f"shop-{self.count}"
        self.server.create_bucket(self.bucket)
        self.dsn = self.server.dsn(self.bucket)

    def body(self, key):
        return self.server.request("GET", f"/{self.bucket}/{key}")[2]


class CephTest(CephCase):
    def test_form_of_its_etags_is_found(self):
        self.guard("install")
        found = re.search(rb"etag (\w+)", self.body(".pawl/installation"))[1]
        # Which of the two depends on the version of Ceph: Debian 12 has one that wants them bare.
        self.assertIn(found, (b"quoted", b"unquoted"))
        self.guard("protect", "a", "--mode", "enforce")
        self.put("a", 34, "x" * 20_000)
        self.put("a", 35, "y" * 20_000)
        self.put("a", 34, "z", code=121)
        self.assertEqual(self.get("a"), "y" * 20_000)
        self.assertEqual(self.guard("gc").stdout.count("removed"), 1)
        self.assertEqual(self.get("a"), "y" * 20_000)

    def test_bucket_with_versions_is_refused_where_conditions_do_not_hold_there(self):
        self.server.keep_versions(self.bucket)
        done = self.guard("install", code=64)
        self.assertIn("cannot be guarded", done.stderr)
        self.assertIn("keeps versions (enabled)", done.stderr)

    def test_kit(self):
        """In the form with more requests; the race below has the other one."""
        self.guard("install")
        words = ("--json", "--form", "pointer", "--rounds", ROUNDS)
        done = self.guard("conformance", *words, code=None)
        (found,) = json.loads(done.stdout)["reports"]
        print(f"{found['passed']} passed")
        self.assertEqual([], [each for each in found["cases"] if each["end"] == "failed"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(found["passed"], 55)

    def test_race(self):
        self.guard("install")
        self.guard("protect", "log", "--mode", "enforce")
        found = race(self, "guarded")
        self.assertEqual(found["VIOLATIONS"], 0)
        self.assertGreater(found["TOKENS"], 10)


class FrozenWorkerTest(frozen_worker.FrozenWorkerTest, CephCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.guard("install")
        self.guard("protect", "orders", "--mode", "enforce")
        self.prepare(PAWL_GUARD_DSN=self.dsn, **self.server.environment())

    def n(self):
        return int(self.body("orders").rpartition(b"\n\n")[2])

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_guard(self):
        old, new, met = self.run_cpp_workers("s3", self.dsn, "orders")
        self.assertIn(f"[resource=orders token={old} max={new} mode=enforce]", met)


if __name__ == "__main__":
    unittest.main(verbosity=2)
