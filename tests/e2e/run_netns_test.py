#!/usr/bin/python3
"""`pawl run` really cut off: pawl and its command in a network namespace of their own, and nft
drops what passes between it and pawld. Nobody hangs up, nothing is refused; the packets are just
gone, both ways or one.

Runs itself in a new network namespace, so it changes nothing outside. That takes root, or a kernel
that lets everyone have a user namespace; without either it fails and says so. Needs iproute2 and
nftables.

Environment: PAWL and PAWLD are the binaries.
"""

import os
import subprocess
import sys

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.process import dies_with_parent
from pawltest.run_case import STUBBORN, RunCase

INSIDE = "PAWL_TEST_NETNS"
PAWLD_ADDRESS, PAWL_ADDRESS = "10.77.0.1", "10.77.0.2"
CHAIN = "add table inet wire\nadd chain inet wire in { type filter hook input priority 0; }\n"


def tool(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


class Wire:
    """A second namespace and the wire to it: `near` is pawld's end, `far` is pawl's."""

    def __init__(self):
        self.keeper = subprocess.Popen(dies_with_parent(["unshare", "--net", "sleep", "infinity"]))
        self.enter = ("nsenter", f"--net=/proc/{self.keeper.pid}/ns/net")
        wait_until(
            lambda: self.namespace(self.keeper.pid) != self.namespace("self"),
            "the second namespace exists",
        )
        tool("ip", "link", "set", "lo", "up")
        tool(
            "ip",
            "link",
            "add",
            "near",
            "type",
            "veth",
            "peer",
            "name",
            "far",
            "netns",
            self.keeper.pid,
        )
        for side, end, address in (((), "near", PAWLD_ADDRESS), (self.enter, "far", PAWL_ADDRESS)):
            tool(*side, "ip", "address", "add", f"{address}/24", "dev", end)
            tool(*side, "ip", "link", "set", end, "up")
            tool(*side, "nft", "-f", "-", input=CHAIN, text=True)

    @staticmethod
    def namespace(pid):
        return os.readlink(f"/proc/{pid}/ns/net")

    def lose_requests(self):
        tool("nft", "add", "rule", "inet", "wire", "in", "iifname", "near", "drop")

    def lose_replies(self):
        tool(*self.enter, "nft", "add", "rule", "inet", "wire", "in", "iifname", "far", "drop")

    def lose_all(self):
        self.lose_requests()
        self.lose_replies()

    def mend(self):
        for side in ((), self.enter):
            tool(*side, "nft", "flush", "chain", "inet", "wire", "in")

    def close(self):
        self.keeper.kill()
        self.keeper.wait()


class RunNetnsTest(RunCase):
    @classmethod
    def setUpClass(cls):
        cls.wire = Wire()
        cls.addClassCleanup(cls.wire.close)
        cls.enter = cls.wire.enter
        cls.pawld = harness.Pawld(resp_address="0.0.0.0:0", settings="insecure = true")
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def setUp(self):
        super().setUp()
        self.address = f"{PAWLD_ADDRESS}:{self.pawld.port}"

    def test_run_works_in_the_network_namespace(self):
        self.run_pawl(self.name, "--", "true")

    def test_command_stops_when_both_directions_are_cut(self):  # Hard case 33.
        for options in STUBBORN:
            self.ends_before_the_next_grant(self.pawld, options, self.wire.lose_all, self.wire.mend)

    def test_command_stops_when_requests_are_lost(self):  # Hard case 33.
        self.ends_before_the_next_grant(
            self.pawld, ("deaf", "family"), self.wire.lose_requests, self.wire.mend
        )

    def test_command_stops_when_replies_are_lost(self):  # Hard case 33.
        self.ends_before_the_next_grant(
            self.pawld, ("deaf", "family"), self.wire.lose_replies, self.wire.mend
        )


def main():
    if INSIDE in os.environ:
        harness.main()
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *mapped, "--net", sys.executable, *sys.argv]
    print(
        "run_netns_test: in a network namespace (fails without root or user namespaces)",
        file=sys.stderr,
        flush=True,
    )
    os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})


if __name__ == "__main__":
    main()
