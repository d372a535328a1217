"""Twice the load that pawld can take, beside a thousand healthy leases that libpawl renews: none of
them is lost. G10.

First it is asked for far more than anyone could do, and what it answers is its rate; then acquires
arrive at twice that rate, whether it answers or not.

Environment: PAWL_FIRE_OVERLOAD_SECONDS (20); PAWL_BENCH_HOLD and PAWL_FLOOD are binaries.
"""

import json
import os
import subprocess

from pawltest.disk_faults import FireCase, harness, wait_until
from pawltest.process import dies_with_parent

SECONDS = int(os.environ.get("PAWL_FIRE_OVERLOAD_SECONDS", "20"))
LEASES = 1000
TTL_SECONDS = 10  # Shorter than the flood: a lease that is not renewed during it is lost.
UNLIMITED = 1_000_000


def start(program, *words):
    command = dies_with_parent([os.environ[program], *words])
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class OverloadTest(FireCase):
    def finish(self, process):
        output, complaint = process.communicate(timeout=SECONDS + harness.PATIENCE)
        self.assertEqual(process.returncode, 0, complaint)
        return json.loads(output)

    @staticmethod
    def answered(flood, seconds):
        """Acquires in a second; each grant was followed by a release."""
        return (flood["granted"] + flood["refused"]) / seconds

    def test_thousand_leases_survive_a_double_overload(self):
        server = self.own_pawld(segment_bytes=64 << 20)
        at = ("--port", server.port)
        rate = self.answered(
            self.finish(start("PAWL_FLOOD", *at, "--rate", UNLIMITED, "--seconds", 2)), 2
        )
        client = self.client(3, server)
        wait_until(
            lambda: client.call("STATUS")["leases"] == 0, "what the first flood left is over"
        )
        before = server.rss_bytes()
        holding = start(
            "PAWL_BENCH_HOLD",
            *at,
            "--leases",
            LEASES,
            "--ttl",
            TTL_SECONDS,
            "--seconds",
            SECONDS + 2,
        )
        wait_until(lambda: client.call("STATUS")["leases"] >= LEASES, "the healthy leases are held")
        flood = self.finish(start("PAWL_FLOOD", *at, "--rate", 2 * rate, "--seconds", SECONDS))
        held = self.finish(holding)
        asked, answered = flood["asked"] / SECONDS, self.answered(flood, SECONDS)
        print(
            f"{rate:.0f}/s is what pawld can do; {asked:.0f}/s asked for {SECONDS} s, "
            f"{answered:.0f}/s answered, "
            f"up to {flood['behind_max']} unanswered at once and {flood['dropped']} beyond that "
            f"never sent; "
            f"{held['renewals']} renewals of {LEASES} leases, {held['lost']} lost"
        )
        self.assertEqual(
            (held["held"], held["lost"]), (LEASES, 0), "healthy holders lost leases under load"
        )
        self.assertGreater(
            flood["dropped"] + flood["behind_max"], rate / 2, "pawld kept up: this was no overload"
        )
        self.assertGrewLess(before, 512 << 20, "what it could not serve piled up in memory", server)
        self.assertEqual(self.client(3, server).call("PING"), "PONG")


if __name__ == "__main__":
    harness.main()
