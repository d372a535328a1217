#!/usr/bin/python3
"""Observe changes nothing: programs without tokens run the same mixed workload with the guard and
without it, at every isolation level, and fail as often."""

import random
import threading

import pymysql

from pawltest.mariadb import ISOLATIONS, ServerCase, call, main, rows

WRITERS = 6
TURNS = 25
STATEMENTS = (
    "UPDATE work SET n = n + 1 WHERE id = {id}",
    "INSERT INTO work (k, n) VALUES ({id}, 1)",
    "DELETE FROM work WHERE id = {id}",
    "REPLACE INTO work (id, k, n) VALUES ({id}, {id}, 1)",
)


class ObserveTest(ServerCase):
    def failures(self, isolation):
        """Each writer has rows of its own, so that nothing but a guard can be in its way."""
        failed = []

        def writer(number):
            chosen = random.Random(number)
            db = self.connect(isolation=isolation)
            for turn in range(TURNS):
                row = number * TURNS + turn % 5 + 1
                try:
                    rows(db, "START TRANSACTION")
                    rows(db, "SELECT 1")
                    for sql in chosen.sample(STATEMENTS, 2):
                        rows(db, sql.format(id=row))
                    rows(db, "COMMIT" if chosen.random() < 0.8 else "ROLLBACK")
                except pymysql.MySQLError as error:
                    failed.append(error.args)
                    rows(db, "ROLLBACK")

        threads = [threading.Thread(target=writer, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failed

    def test_no_write_fails_that_would_not_fail_without_the_guard(self):
        for key in (None, "k"):
            for isolation in ISOLATIONS:
                with self.subTest(isolation, key=key):
                    results = []
                    for guarded in (False, True):
                        rows(
                            self.connect(),
                            "CREATE OR REPLACE TABLE work (id INT AUTO_INCREMENT PRIMARY KEY, "
                            "k INT, n INT) AUTO_INCREMENT = 1000",
                        )
                        fill = "INSERT INTO work SELECT seq, seq, 0 FROM seq_1_to_200"
                        rows(self.connect(), fill)
                        if guarded:
                            guard = self.protect("work", key=key, mode="observe")
                        results.append(self.failures(isolation))
                    self.assertEqual(results[1], results[0])
                    self.assertGreater(self.count("missing", guard), 0)
                    call(self.connect(), "unprotect", guard)
                    call(self.connect(), "drop_guard", guard)


if __name__ == "__main__":
    main()
