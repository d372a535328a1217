#!/usr/bin/python3
"""The tools do what they say: a nemesis whose faults do not happen finds nothing.

Environment: PAWL_BUILD is the build directory.
"""

import contextlib
import fcntl
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

import clocks
import hosts
import namespaces
import network
import programs
from pawltest import tcp_proxy
from pawltest.process import dies_with_parent


def echo(address):
    """An echo server, one connection after the other; its listener."""
    listener = socket.create_server(address)

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection):
        with connection, contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1000):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return listener


# Prints what it receives, and sends it back.
ECHO = f"""
import socket, threading
listener = socket.create_server(("0.0.0.0", {network.PORT}))
print("listens")
def answer(connection):
    while data := connection.recv(1000):
        print(data.decode(), end="")
        connection.sendall(data)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"""
# Sends what it reads, and prints what comes back.
ASK = f"""
import socket, sys
connection = socket.create_connection((sys.argv[1], {network.PORT}))
for line in sys.stdin:
    connection.sendall(line.encode())
    print(connection.recv(1000).decode(), end="")
"""


class PartsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wire = network.Wire()
        cls.listener = echo(("0.0.0.0", network.PORT))
        cls.addClassCleanup(cls.listener.close)

    def connect(self, host, port):
        connection = socket.create_connection((host, port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def says(self, connection, words):
        connection.sendall(words)
        self.assertEqual(connection.recv(1000), words)

    @staticmethod
    def unacknowledged(connection):
        """Bytes that were sent and did not arrive, by the kernel's own account."""
        return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0]

    def test_cut_link_loses_packets_until_mended(self):
        mine, other = self.connect(self.wire.host("a"), network.PORT), self.connect(
            self.wire.host("b"), network.PORT
        )
        self.says(mine, b"before")
        self.wire.cut("a", requests=True, replies=False)
        mine.sendall(b"during")
        self.says(other, b"others go on")
        self.assertEqual(self.unacknowledged(mine), len(b"during"))
        self.wire.mend("a")
        self.assertEqual(mine.recv(1000), b"during")

    def test_link_can_lose_replies_only(self):
        mine = self.connect(self.wire.host("c"), network.PORT)
        self.wire.cut("c", requests=False, replies=True)
        mine.sendall(b"heard")
        mine.setblocking(False)
        self.says(self.connect(self.wire.host("d"), network.PORT), b"others go on")
        self.assertRaises(BlockingIOError, mine.recv, 1000)
        self.wire.mend("c")
        mine.settimeout(30)
        self.assertEqual(mine.recv(1000), b"heard")

    def test_link_reset_ends_the_connection(self):
        mine = self.connect(self.wire.host("e"), network.PORT)
        self.says(mine, b"before")
        self.wire.reset("e")
        with self.assertRaises(ConnectionResetError):
            mine.sendall(b"after")
            mine.recv(1000)
        self.wire.mend("e")

    def in_host(self, name, code, *words):
        """A Python program on one of the machines, which answers lines with lines."""
        process = subprocess.Popen(
            dies_with_parent([*self.hosts.enter(name), sys.executable, "-uc", code, *words]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ask(self, process, word):
        process.stdin.write(word + b"\n")
        process.stdin.flush()

    def test_machines_lose_packets_one_way_until_mended(self):
        self.hosts = hosts.Hosts({"x": "10.77.0.41", "y": "10.77.0.42"})
        self.addCleanup(self.hosts.close)
        server = self.in_host("x", ECHO)
        self.assertEqual(server.stdout.readline(), b"listens\n")
        client = self.in_host("y", ASK, "10.77.0.41")
        self.ask(client, b"before")
        self.assertEqual(client.stdout.readline(), b"before\n")
        self.hosts.cut([("x", "y")])
        self.hosts.cut([("x", "y")])
        self.ask(client, b"during")
        self.assertEqual(server.stdout.readline(), b"before\n")
        self.assertEqual(server.stdout.readline(), b"during\n", "the other way is whole")
        self.hosts.mend([("x", "y")])
        self.says(self.connect("10.77.0.41", network.PORT), b"the world is never cut\n")
        self.assertEqual(select.select([client.stdout], [], [], 0)[0], [], "it is cut twice")
        self.hosts.mend([("x", "y")])
        self.assertEqual(client.stdout.readline(), b"during\n")

    def make_relay(self):
        made = tcp_proxy.Proxy(network.PORT)
        self.addCleanup(made.close)
        return made, self.connect("127.0.0.1", made.port)

    def test_proxy_holds_bytes_in_order(self):
        made, mine = self.make_relay()
        self.says(mine, b"before")
        made.hold(True)
        mine.sendall(b"one")
        mine.setblocking(False)
        self.says(self.connect(self.wire.host("f"), network.PORT), b"others go on")
        self.assertRaises(BlockingIOError, mine.recv, 1000)
        mine.settimeout(30)
        made.hold(False)
        self.assertEqual(mine.recv(1000), b"one")

    def test_proxy_delays_bytes(self):
        made, mine = self.make_relay()
        self.says(mine, b"before")
        made.delay(0.2)
        began = time.monotonic()
        self.says(mine, b"late")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_proxy_resets_connections(self):
        made, mine = self.make_relay()
        self.says(mine, b"before")
        made.reset()
        self.assertRaises(ConnectionResetError, mine.recv, 1000)

    def test_time_namespaces_have_the_stated_offset(self):
        made = clocks.Clocks(3)
        self.addCleanup(made.close)
        walls = []
        for number in range(len(made)):
            read = "import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time())"
            before = clocks.boot_now()
            output = subprocess.run(
                [*made.enter(number), sys.executable, "-c", read],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.split()
            there = int(output[0]) - made.ahead(number)
            self.assertLess(before, there)
            self.assertLess(there, clocks.boot_now())
            walls.append(abs(float(output[1]) - time.time()))
        self.assertLess(walls[0], 60)
        self.assertTrue(any(wall > 60 for wall in walls[1:]), walls)


if __name__ == "__main__":
    if not namespaces.allowed():
        sys.exit(77)
    namespaces.enter()
    programs.find()
    unittest.main(verbosity=2)
