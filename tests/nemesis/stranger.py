#!/usr/bin/python3
"""Connections to pawld that never authenticate, each misbehaving in one way, until this process is
killed or the time is over. A connection that pawld closes is opened again.

    stranger.py --resp 127.0.0.1:7295 --http 127.0.0.1:7296 --count 600 --seconds 30 [--tls]

The ways are the functions in WAYS: silent, half of a handshake, slow, huge, wrong, and those that
never stop asking. Prints the number of connections it opened.
"""

import argparse
import contextlib
import random
import selectors
import socket
import ssl
import time

CONNECTS_PER_ROUND = 500
ROUND = 0.05  # Seconds between two rounds of sending.
SILENT = b""


def silent(_):
    """Connects and sends nothing."""
    while True:
        yield SILENT


def slow(_):
    """A command, a byte at a time, which never ends."""
    for byte in b"*2\r\n$4\r\nPING\r\n$60000\r\n":
        yield bytes([byte])
    while True:
        yield b"x"


def huge(_):
    """As much of one frame as pawld takes, without its end."""
    yield b"*2\r\n$4\r\nPING\r\n$65000\r\n" + b"x" * 60_000
    yield from silent(_)


def wrong(dice):
    """Bytes that mean nothing."""
    yield dice.randbytes(dice.randrange(1, 2000))
    yield from silent(dice)


def wrong_secret(_):
    while True:
        yield b"*3\r\n$4\r\nAUTH\r\n$6\r\nworker\r\n$5\r\nguess\r\n"


def talks(_):
    """What anyone may ask, for ever."""
    while True:
        yield b"*1\r\n$4\r\nPING\r\n" * 8


def refused(_):
    """What it may not ask, for ever."""
    while True:
        yield b"*4\r\n$7\r\nACQUIRE\r\n$5\r\nalpha\r\n$3\r\nTTL\r\n$4\r\n1000\r\n"


def tls_half(_):
    """The first bytes of a TLS handshake."""
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    yield from silent(_)


def http_half(_):
    """Half of a request's header."""
    yield b"POST /v1/locks/alpha/acquire HTTP/1.1\r\nHost: localhost\r\nX-Half: "
    yield from silent(_)


def http_slow_body(_):
    yield (
        b"POST /v1/locks/alpha/acquire HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    )
    while True:
        yield b" "


def http_asks(_):
    """Requests without a user, for ever."""
    while True:
        yield b"GET /v1/locks HTTP/1.1\r\nHost: localhost\r\n\r\n"


WAYS = {
    "resp": [silent, slow, huge, wrong, wrong_secret, talks, refused, tls_half],
    "http": [silent, wrong, tls_half, http_half, http_slow_body, http_asks],
}
# Within a TLS connection, where the handshake is done first.
HANDSHAKEN = 0.2  # share of the connections


class Connection:
    """One stranger; reads away what pawld answers, so that only pawld decides when it ends."""

    def __init__(self, address, way, dice, context):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(address)
        self.steps = way(dice)
        self.unsent = b""
        self.context = context  # None: no handshake to do

    def advance(self):
        """Sends the next piece. False: pawld has closed it."""
        try:
            if self.context:
                return self._handshake()
            while self.socket.recv(1 << 16):
                pass
            return False
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            return False
        return self._send()

    def _handshake(self):
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket = self.context.wrap_socket(self.socket, do_handshake_on_connect=False)
        try:
            self.socket.do_handshake()
            self.context = None
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return True

    def _send(self):
        self.unsent = self.unsent or next(self.steps)
        try:
            if self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            return isinstance(error, ssl.SSLWantReadError) or error.errno == 107  # ENOTCONN: soon
        return True


class Crowd:
    def __init__(self, given):
        self.given = given
        self.dice = random.Random(given.seed)
        self.connections = []
        self.opened = 0
        self.context = None
        if given.tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE

    def round(self):
        alive = []
        for connection in self.connections:
            if connection.advance():
                alive.append(connection)
            else:
                connection.socket.close()
        self.connections = alive
        for _ in range(min(CONNECTS_PER_ROUND, self.given.count - len(alive))):
            with contextlib.suppress(OSError):
                self.connections.append(self._open())
                self.opened += 1

    def _open(self):
        protocol = "http" if self.dice.random() < 0.3 else "resp"
        address = self.given.http if protocol == "http" else self.given.resp
        handshake = self.context and self.dice.random() < HANDSHAKEN
        way = self.dice.choice(WAYS[protocol])
        return Connection(address, way, self.dice, self.context if handshake else None)


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resp", type=address, required=True)
    parser.add_argument("--http", type=address, required=True)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30, help="at most")
    parser.add_argument("--tls", action="store_true", help="pawld speaks TLS")
    given = parser.parse_args()
    crowd = Crowd(given)
    until = time.monotonic() + given.seconds
    pause = selectors.DefaultSelector()
    while time.monotonic() < until:
        crowd.round()
        pause.select(ROUND)
    print(crowd.opened)


if __name__ == "__main__":
    main()
