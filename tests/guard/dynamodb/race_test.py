#!/usr/bin/python3
"""Many writers with old and new tokens at once: in the order in which their writes came into the
item, no token is smaller than one before it, and none that was answered as written is missing. The
same race with a check of its own before the write, as clients without a guard do it, finds
violations, so that the race can fail.

Environment: DYNAMO_RACE is the program; PAWL_RACE_WRITERS and PAWL_RACE_ATTEMPTS say how many.
"""

import os
import re
import subprocess

from pawltest.dynamodb import ServerCase, main

WRITERS = os.environ.get("PAWL_RACE_WRITERS", "16")
ATTEMPTS = int(os.environ.get("PAWL_RACE_ATTEMPTS", "400"))
# dynalite does one transaction at a time, and an unguarded race needs no more to show what it does.
FEWER = min(ATTEMPTS, 2000)


class RaceTest(ServerCase):
    def race(self, how, resource, attempts):
        """Runs the program; its figures."""
        done = subprocess.run(
            [os.environ["DYNAMO_RACE"], how, self.dsn, resource, "log", WRITERS, str(attempts)],
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
            env={**os.environ, **self.server.environment()},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        print(how, resource, done.stdout, end="")
        return {name: int(value) for name, value in re.findall(r"([A-Z]+) (\d+)", done.stdout)}

    def assertNoViolation(self, resource, attempts):
        found = self.race("guarded", resource, attempts)
        self.assertEqual(found["VIOLATIONS"], 0)
        self.assertGreater(found["PASSED"], attempts // 20)
        self.assertGreater(found["TOKENS"], 10)

    def test_no_stale_write_among_many_writers(self):
        self.protect("orders", "--key", "*")
        self.assertNoViolation("orders:log", ATTEMPTS)

    def test_no_stale_write_among_many_transactions(self):
        self.protect()
        self.assertNoViolation("orders", FEWER)

    def test_check_before_the_write_lets_stale_writes_through(self):
        self.assertGreater(self.race("checked", "none", FEWER)["VIOLATIONS"], 0)


if __name__ == "__main__":
    main()
