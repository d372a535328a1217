#!/usr/bin/python3
"""Many writers with old and new tokens at once: in the order of etcd's revisions, no token may be
smaller than one before it. The same race with a check of its own before the write, as clients
without a guard do it, finds stale writes, so that the race can fail.

Environment: PAWL is the binary, ETCD_RACER the writers (racer.cc).
"""

import base64
import os
import subprocess

from pawltest.etcd_guard import ServerCase, main

WRITERS = 64
ATTEMPTS = 20_000


class RaceTest(ServerCase):
    def race(self, how, attempts):
        """How many writes passed."""
        words = [os.environ["ETCD_RACER"], self.server.addresses[0], how, WRITERS, attempts]
        done = subprocess.run(
            [str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True
        )
        return int(done.stdout)

    def tokens(self):
        """Of the lines, in the order in which they took effect."""
        found = self.server.json("get", "--prefix", "orders/log/").get("kvs", [])
        found.sort(key=lambda each: each["mod_revision"])
        return [int(base64.b64decode(each["value"])) for each in found]

    @staticmethod
    def violations(tokens):
        greatest = 0
        count = 0
        for token in tokens:
            count += token < greatest
            greatest = max(greatest, token)
        return count

    def test_no_stale_write_among_many_writers(self):
        self.server.protect("orders/*")
        passed = self.race("guarded", ATTEMPTS)
        tokens = self.tokens()
        self.assertEqual(len(tokens), passed)
        self.assertGreater(len(set(tokens)), 100)
        self.assertGreater(self.server.counted("orders", "stale"), 100)
        self.assertEqual(self.violations(tokens), 0)

    def test_check_before_the_write_lets_stale_writes_through(self):
        self.race("checked", ATTEMPTS // 10)
        self.assertGreater(self.violations(self.tokens()), 0)


if __name__ == "__main__":
    main()
