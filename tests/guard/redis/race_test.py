#!/usr/bin/python3
"""Many writers with old and new tokens at once: in the order in which the lines came into the list,
no token may be smaller than one before it. The same race with a check of its own before the write,
as clients without a guard do it, finds stale writes, so that the race can fail."""

import random
import threading

import redis
from pawltest.redis_server import ServerCase, fcall, main, protect, write

WRITERS = 64
ATTEMPTS = 20_000


class RaceTest(ServerCase):
    # Races are about order, not about the disk.
    settings = {"appendfsync": "everysec"}

    def race(self, attempt):
        """Runs attempt(connection, token, line) in all writers, with tokens that grow and stray
        back. Returns how many passed."""
        newest = [1]
        passed = []
        failures = []
        lock = threading.Lock()

        def work(seed):
            choice = random.Random(seed)
            db = self.server.connect()
            count = 0
            try:
                for number in range(ATTEMPTS // WRITERS):
                    with lock:
                        newest[0] += choice.random() < 0.3
                        token = max(1, newest[0] - choice.randrange(4))
                    count += attempt(db, token, f"{token} {seed}-{number}")
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            finally:
                db.close()
                passed.append(count)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        return sum(passed)

    def tokens(self):
        return [int(line.split()[0]) for line in self.db.lrange("orders:log", 0, -1)]

    def violations(self):
        tokens = self.tokens()
        greatest = 0
        count = 0
        for token in tokens:
            count += token < greatest
            greatest = max(greatest, token)
        return count

    def test_no_stale_write_among_many_writers(self):
        protect(self.db, "orders", "orders:*")

        def guarded(db, token, line):
            try:
                if token % 10 == 0:
                    fcall(db, "pawl_advance", "orders", "orders", token)
                    return False
                return write(db, "orders", token, "RPUSH", "orders:log", line) == "admitted"
            except redis.exceptions.ResponseError as error:
                if not str(error).startswith("PAWLSTALE"):
                    raise
                return False

        passed = self.race(guarded)
        tokens = self.tokens()
        self.assertEqual(len(tokens), passed)
        self.assertGreater(len(set(tokens)), 100)
        stale = int(self.db.hget("{orders}:pawl", "n:stale"))
        self.assertGreater(stale, 100)
        self.assertEqual(self.violations(), 0)

    def test_check_before_the_write_lets_stale_writes_through(self):
        def checked_first(db, token, line):
            if int(db.get("orders:max") or 0) > token:
                return False
            db.set("orders:max", token)
            db.rpush("orders:log", line)
            return True

        self.race(checked_first)
        self.assertGreater(self.violations(), 0)


if __name__ == "__main__":
    main()
