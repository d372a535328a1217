"""Machines of a world: a network namespace each, on one bridge in the namespace of the world.

    hosts = hosts.Hosts({"e1": "10.77.0.11", "p1": "10.77.0.21"})
    subprocess.Popen([*hosts.enter("p1"), "pawld", …])
    hosts.cut([("p1", "e1")])            # what p1 sends does not reach e1; the other way it does
    hosts.mend([("p1", "e1")])

Packets are dropped by nft where they would arrive: no connection ends, nothing is refused. Two
faults may cut the same way; it is whole again when both are over. The world's own processes are at
WORLD, which nothing cuts.
"""

import collections
import subprocess

from pawltest.process import dies_with_parent
from pawltest.wait import wait_until

WORLD = "10.77.0.254"
NETWORK_BITS = 24
RULES = """
add table inet wire
add set inet wire lost { type ipv4_addr; }
add chain inet wire in { type filter hook input priority 0; }
add rule inet wire in ip saddr @lost drop
"""


class Hosts:
    """Inside a new network namespace; see namespaces.enter()."""

    def __init__(self, addresses):
        self.addresses = dict(addresses)
        self._keepers = {}
        self._cuts = collections.Counter()  # (from, to)
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "name", "world", "type", "bridge")
        _run("ip", "addr", "add", f"{WORLD}/{NETWORK_BITS}", "dev", "world")
        _run("ip", "link", "set", "world", "up")
        for name in self.addresses:
            self._make(name)

    def _make(self, name):
        keeper = subprocess.Popen(dies_with_parent(["unshare", "--net", "sleep", "infinity"]))
        self._keepers[name] = keeper
        wait_until(lambda: _network_of(keeper.pid) != _network_of("self"), "the namespace exists")
        _run(
            *("ip", "link", "add", f"to-{name}", "type", "veth"),
            *("peer", "name", "eth0", "netns", keeper.pid),
        )
        _run("ip", "link", "set", f"to-{name}", "master", "world", "up")
        self._run_in(name, "ip", "link", "set", "lo", "up")
        address = f"{self.addresses[name]}/{NETWORK_BITS}"
        self._run_in(name, "ip", "addr", "add", address, "dev", "eth0")
        self._run_in(name, "ip", "link", "set", "eth0", "up")
        self._nft(name, RULES)

    def enter(self, name):
        """What to write before a command."""
        return ["nsenter", f"--net=/proc/{self._keepers[name].pid}/ns/net"]

    def cut(self, ways):
        """`ways`: pairs (from, to)."""
        new = [way for way in ways if not self._cuts[way]]
        self._cuts.update(ways)
        self._change("add", new)

    def mend(self, ways):
        self._cuts.subtract(ways)
        self._change("delete", [way for way in ways if not self._cuts[way]])

    def close(self):
        for keeper in self._keepers.values():
            keeper.kill()
            keeper.wait()

    def _change(self, verb, ways):
        for receiver in {receiver for _, receiver in ways}:
            lost = ", ".join(self.addresses[sender] for sender, to in ways if to == receiver)
            self._nft(receiver, f"{verb} element inet wire lost {{ {lost} }}\n")

    def _nft(self, name, text):
        subprocess.run([*self.enter(name), "nft", "-f", "-"], input=text, text=True, check=True)

    def _run_in(self, name, *words):
        _run(*self.enter(name), *words)


def both_ways(these, those):
    return [*one_way(these, those), *one_way(those, these)]


def one_way(senders, receivers):
    return [(sender, receiver) for sender in senders for receiver in receivers]


def _run(*words):
    subprocess.run([str(word) for word in words], check=True)


def _network_of(pid):
    found = subprocess.run(
        ["readlink", f"/proc/{pid}/ns/net"], stdout=subprocess.PIPE, text=True, check=False
    )
    return found.stdout
