#!/usr/bin/python3
"""Many writers with old and new tokens at once: in the order of etcd's revisions, no token may be
smaller than one before it. The same race with a check of its own before the write, as clients
without a guard do it, finds stale writes, so that the race can fail.

Environment: PAWL is the binary.
"""

import base64
import random
import threading

from pawltest.etcd_guard import MODULE, Refused, ServerCase, main, writer

WRITERS = 64
ATTEMPTS = 20_000


class RaceTest(ServerCase):
    def race(self, attempts, attempt):
        """Runs attempt(guard, token, key) in all writers, with tokens that grow and stray back.
        Returns how many passed."""
        newest = [1]
        passed = []
        failures = []
        lock = threading.Lock()

        def work(seed):
            choice = random.Random(seed)
            guard = writer(self.server)
            count = 0
            try:
                for number in range(attempts // WRITERS):
                    with lock:
                        newest[0] += choice.random() < 0.3
                        token = max(1, newest[0] - choice.randrange(4))
                    count += attempt(guard, token, f"orders/log/{seed}-{number}")
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            passed.append(count)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        return sum(passed)

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

        def guarded(guard, token, key):
            try:
                if token % 10 == 0:
                    guard.advance(token)
                    return False
                return guard.write(token, {key: str(token)}) == "admitted"
            except Refused as error:
                if not str(error).startswith("stale"):
                    raise
                return False

        passed = self.race(ATTEMPTS, guarded)
        tokens = self.tokens()
        self.assertEqual(len(tokens), passed)
        self.assertGreater(len(set(tokens)), 100)
        self.assertGreater(self.server.counted("orders", "stale"), 100)
        self.assertEqual(self.violations(tokens), 0)

    def test_check_before_the_write_lets_stale_writes_through(self):
        def checked_first(guard, token, key):
            guard.own = "unguarded/"
            guard.transact([], guard.reads(), [])
            if guard.seen and int(guard.seen) > token:
                return False
            puts = [MODULE.change("unguarded/fence", str(token)), MODULE.change(key, str(token))]
            for put in puts:
                guard.transact([], [put], [])
            return True

        self.race(ATTEMPTS // 10, checked_first)
        self.assertGreater(self.violations(self.tokens()), 0)


if __name__ == "__main__":
    main()
