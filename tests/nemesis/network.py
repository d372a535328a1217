"""The network of a world: its own namespace, so that nothing outside is touched and nothing stays
behind.

    wire = network.Wire()                       # each client has its own loopback address of pawld
    wire.cut("c2", requests=True, replies=False)
    wire.mend("c2")

Packets are dropped by nft: no connection ends, nothing is refused. `reset` answers the client's
packets with a reset instead. """

import subprocess

PORT = 7295
HTTP_PORT = 7296
RULES = f"""
add table inet wire
add set inet wire requests {{ type ipv4_addr; }}
add set inet wire replies {{ type ipv4_addr; }}
add set inet wire resets {{ type ipv4_addr; }}
add chain inet wire in {{ type filter hook input priority 0; }}
add rule inet wire in ip daddr @requests tcp dport {PORT} drop
add rule inet wire in ip saddr @replies tcp sport {PORT} drop
add rule inet wire in ip daddr @resets tcp dport {PORT} reject with tcp reset
"""


class Wire:
    """Inside a new network namespace; see inside()."""

    def __init__(self):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self._nft(RULES)
        self._addresses = {}
        self._cut = set()  # (set, address)

    def host(self, name):
        """The address of pawld for this client only."""
        return self._addresses.setdefault(name, f"127.0.1.{len(self._addresses) + 1}")

    def cut(self, name, requests, replies):
        self._put(
            name,
            *[where for where, wanted in (("requests", requests), ("replies", replies)) if wanted],
        )

    def reset(self, name):
        self._put(name, "resets")

    def mend(self, name):
        gone = {cut for cut in self._cut if cut[1] == self.host(name)}
        self._nft(
            "".join(
                f"delete element inet wire {where} {{ {address} }}\n" for where, address in gone
            )
        )
        self._cut -= gone

    def _put(self, name, *sets):
        cuts = {(where, self.host(name)) for where in sets} - self._cut
        self._nft(
            "".join(f"add element inet wire {where} {{ {address} }}\n" for where, address in cuts)
        )
        self._cut |= cuts

    @staticmethod
    def _nft(text):
        if text:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
