#!/usr/bin/python3
"""Many writers with old and new tokens at once: in the order in which their writes came into the
object, no token is smaller than one before it, and none that was answered as written is missing.
The same race with a check of its own before the write, as clients without a guard do it, finds
violations, so that the race can fail.

Environment: S3_RACE is the program; PAWL_RACE_WRITERS and PAWL_RACE_ATTEMPTS say how many.
"""

import os
import re
import subprocess

from pawltest.s3_server import ServerCase, main

WRITERS = os.environ.get("PAWL_RACE_WRITERS", "16")
ATTEMPTS = os.environ.get("PAWL_RACE_ATTEMPTS", "800")


def race(test, how):
    """Runs the program; its figures."""
    done = subprocess.run(
        [os.environ["S3_RACE"], how, test.dsn, "log", WRITERS, ATTEMPTS],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
        env={**os.environ, **test.server.environment()},
    )
    test.assertEqual(done.returncode, 0, done.stderr)
    print(how, done.stdout, end="")
    return {name: int(value) for name, value in re.findall(r"([A-Z]+) (\d+)", done.stdout)}


class RaceTest(ServerCase):
    def test_no_stale_write_among_many_writers(self):
        self.guard("install")
        self.guard("protect", "log", "--mode", "enforce")
        found = race(self, "guarded")
        self.assertEqual(found["VIOLATIONS"], 0)
        self.assertGreater(found["PASSED"], int(ATTEMPTS) // 20)
        self.assertGreater(found["TOKENS"], 10)

    def test_check_before_the_write_lets_stale_writes_through(self):
        self.assertGreater(race(self, "checked")["VIOLATIONS"], 0)


if __name__ == "__main__":
    main()
