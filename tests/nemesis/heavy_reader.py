#!/usr/bin/python3
"""Authenticated connections that ask the dearest questions without a break: a lock with many
holders, long lists, whole histories; some never read the answers. Until this process is killed or
the time is over.

    heavy_reader.py --port 7295 --count 100 --seconds 30 [--ca FILE]

Environment: PAWL_WORKER and PAWL_READER are user:secret, with the roles use and observe.
"""

import argparse
import contextlib
import os
import ssl
import time

from pawltest.resp import Client, Closed, encode

HOLDERS = 500  # of the lock that is inspected
LOCK = "heavy/shared"
CONNECTS_PER_ROUND = 50
UNREAD = 10  # Every so many connections never read.
QUESTIONS = b"".join(
    encode(*words)
    for words in (
        ("INSPECT", LOCK),
        ("LOCKS", "COUNT", 1000),
        ("HISTORY", LOCK, "COUNT", 1000),
        ("HISTORY", "alpha", "COUNT", 1000),
        ("INSPECT", "pool"),
        ("LOCKS", "PREFIX", "heavy", "COUNT", 1000),
    )
)


class Readers:
    def __init__(self, given):
        self.given = given
        self.context = ssl.create_default_context(cafile=given.ca) if given.ca else None
        self.connections = []
        self.asked = 0

    def connect(self, user):
        return Client(self.given.port, 3, tls=self.context, auth=os.environ[user])

    def fill(self):
        """Something that is dear to look at. The leases end by themselves."""
        with self.connect("PAWL_WORKER") as worker:
            worker.pipeline(
                ("ACQUIRE", LOCK, "SHARED", "TTL", 5000, "OWNER", f"reader-{number}")
                for number in range(HOLDERS)
            )

    def round(self):
        for _ in range(min(CONNECTS_PER_ROUND, self.given.count - len(self.connections))):
            client = self.connect("PAWL_READER")
            client.socket.setblocking(False)
            client.unsent = b""
            self.connections.append(client)
        for number, client in enumerate(list(self.connections)):
            if not self._ask(client, reads=number % UNREAD != 0):
                client.close()
                self.connections.remove(client)

    def _ask(self, client, reads):
        """False: pawld has closed it."""
        try:
            if reads:
                with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
                    while data := client.socket.recv(1 << 20):
                        client.received += len(data)
                    if not data:
                        return False
            self.asked += not client.unsent
            client.unsent = client.unsent or QUESTIONS
            client.unsent = client.unsent[client.socket.send(client.unsent) :]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError:
            return False
        return True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30, help="at most")
    parser.add_argument("--ca", help="pawld speaks TLS, with a certificate of this authority")
    given = parser.parse_args()
    readers = Readers(given)
    until = time.monotonic() + given.seconds
    fill_again = 0.0
    while time.monotonic() < until:
        try:
            if time.monotonic() > fill_again:
                readers.fill()
                fill_again = time.monotonic() + 4
            readers.round()
        except (OSError, Closed, AssertionError):
            time.sleep(0.05)  # pawld is killed and restarted meanwhile, or loading.
    print(readers.asked)


if __name__ == "__main__":
    main()
