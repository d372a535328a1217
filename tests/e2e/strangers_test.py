#!/usr/bin/python3
"""Strangers: thousands of connections that never authenticate, few file descriptors, and clients
that go on. Judged by what clients get, never by how long it takes.

Environment: PAWLD is the binary.
"""

import contextlib
import hashlib
import http.client
import os
import pathlib
import re
import shutil
import socket
import ssl
import time

from pawltest import harness
from pawltest.harness import wait_until
from pawltest.tls_files import LOCAL, Authority, trusting
from pawltest.web import Web

SECRET = "correct-horse"
ADMIN = f"boss:{SECRET}"
NEWCOMERS = 1024  # kNewcomersMax
HTTP_NEWCOMERS = 256  # kHttpNewcomersMax
CONNECTIONS = 10_000  # kConnectionsMax
HALF_A_HEADER = b"POST /v1/renew HTTP/1.1\r\nHost: localhost\r\nPawl-"


def line_of(user, role):
    salt = os.urandom(16).hex()
    digest = hashlib.sha256((salt + SECRET).encode()).hexdigest()
    return f"{user} {role} sha256:{salt}:{digest}\n"


class StrangersCase(harness.PawldCase):
    """A pawld with users, and with TLS where the class says so, for each test."""

    pawld = None
    with_tls = False

    @classmethod
    def setUpClass(cls):
        cls.files = harness.scratch("strangers")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.users = cls.files / "users"
        cls.users.write_text(line_of("boss", "admin"))
        cls.users.chmod(0o600)
        if cls.with_tls:
            cls.authority = Authority(cls.files, "authority")
            cls.server = cls.authority.sign("pawld", LOCAL)
        harness.allow_descriptors(16_000)

    def serve(self, nofile=None, users=True):
        settings, tls = "", None
        if self.with_tls:
            settings = f'[tls]\ncert = "{self.server.cert}"\nkey = "{self.server.key}"\n'
            tls = trusting(self.authority)
        server = self.own_pawld(start=False, settings=settings, tls=tls)
        if nofile:
            command = server.command
            server.command = lambda *more: ["prlimit", f"--nofile={nofile}", *command(*more)]
        return server.start(*(("--auth-file", self.users) if users else ()))

    def user(self, server):
        client = self.client(3, server)
        self.assertEqual(client.call("AUTH", *ADMIN.split(":")), "OK")
        return client

    def web(self, server):
        return Web(server.http_port, server.tls, ADMIN)

    def connect(self, port, count, data=b"", tls=None):
        """Opens that many connections, which say this and no more."""
        opened = []
        self.addCleanup(lambda: [peer.close() for peer in opened])
        for _ in range(count):
            peer = socket.create_connection(("127.0.0.1", port), harness.PATIENCE)
            opened.append(peer)
            with contextlib.suppress(OSError, ssl.SSLError):  # It may have been closed already.
                if tls:
                    opened[-1] = peer = tls.wrap_socket(peer, server_hostname="localhost")
                if data:
                    peer.sendall(data)
        return opened

    def metric(self, client_web, name):
        page = client_web.get("/metrics").body.decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", page, re.M).group(1))

    def descriptors(self, server):
        return len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))

    def use_new_tokens(self, client):
        """Makes the store create a file: a block of tokens is reserved."""
        token = self.acquire(client, self.lock())["token"]
        self.assertEqual(
            client.call("RAISE", token + 5000, "REASON", "test"), token + 5000, "the store works"
        )
        self.assertGreater(self.acquire(client, self.lock())["token"], token + 5000)

    def assertServes(self, server, holder, lease):
        """A holder renews, and a new client connects, authenticates, acquires and renews: over RESP
        and over HTTP."""
        self.assertEqual(holder.call("RENEW", lease), 60000)
        client = self.user(server)
        mine = self.acquire(client, self.lock())["lease"]
        self.assertEqual(client.call("RENEW", mine), 60000)
        self.use_new_tokens(client)
        client.close()
        web = self.web(server)
        renewed = self.gets_through(lambda: web.with_lease("renew", mine))
        self.assertEqual(renewed.status, 200)
        granted = self.gets_through(lambda: web.acquire(self.lock()))
        self.assertEqual(granted.status, 201, granted)
        released = self.gets_through(lambda: web.with_lease("release", granted.json["lease"]))
        self.assertEqual(released.status, 200)

    def gets_through(self, request, tries=20):
        """Which unknown connection makes room is decided by chance, also while what strangers have
        sent is still being read. A client that met it before its request was read tries again."""
        for _ in range(tries - 1):
            with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
                return request()
        return request()


class PlainTest(StrangersCase):
    def test_silent_strangers_take_no_place_and_little_memory(self):
        server = self.serve()
        holder = self.user(server)
        lease = self.acquire(holder, self.lock())["lease"]
        before = server.rss_bytes()
        self.connect(server.port, CONNECTIONS, b"*2\r\n$4\r\nAUTH\r\n$900\r\n" + b"x" * 800)
        self.assertServes(server, holder, lease)
        web = self.web(server)
        self.assertLessEqual(self.metric(web, "pawl_connections_unauthenticated"), NEWCOMERS)
        displaced = 'pawl_unauthenticated_closed_total{proto="resp",reason="displaced"}'
        self.assertGreaterEqual(self.metric(web, displaced), CONNECTIONS - NEWCOMERS - 1)
        self.assertGrewLess(before, 64 << 20, "strangers hold memory", server)

    def test_large_frame_of_a_stranger_is_refused(self):
        server = self.serve()
        [peer] = self.connect(server.port, 1, b"*2\r\n$4\r\nAUTH\r\n$60000\r\n")
        self.assertTrue(peer.recv(200).startswith(b"-TOOLONG a command takes at most 1024 bytes"))

    def test_strangers_that_park_requests_over_http_hold_little_memory(self):
        many_fields = b"POST /v1/renew HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 3900
        half_a_body = (
            b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 65536\r\n\r\n" + b"x" * 65000
        )
        for name, parked in (("a body", half_a_body), ("fields", many_fields)):
            with self.subTest(name):
                server = self.serve()
                holder = self.user(server)
                lease = self.acquire(holder, self.lock())["lease"]
                self.assertServes(server, holder, lease)
                before = server.rss_bytes()
                self.connect(server.http_port, 4 * HTTP_NEWCOMERS, parked)
                self.assertServes(server, holder, lease)
                self.assertGrewLess(before, 16 << 20, "strangers hold memory", server)

    def test_half_headers_and_wrong_secrets_keep_no_client_from_http(self):
        server = self.serve()
        holder = self.user(server)
        lease = self.acquire(holder, self.lock())["lease"]
        guess = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer boss:wrong\r\n\r\n"
        self.connect(server.http_port, 4 * HTTP_NEWCOMERS, HALF_A_HEADER)
        self.assertServes(server, holder, lease)
        self.connect(server.http_port, 4 * HTTP_NEWCOMERS, guess.replace(b": x", b": localhost"))
        self.assertServes(server, holder, lease)
        self.connect(server.http_port, 4 * HTTP_NEWCOMERS)
        self.assertServes(server, holder, lease)
        self.assertLess(self.descriptors(server), 2 * HTTP_NEWCOMERS)

    def test_limits_shrink_with_the_hard_limit_and_are_logged(self):
        server = self.serve("160:160", users=False)
        logged = re.search(
            r"only 160 file descriptors are allowed, and all limits together need \d+: at most "
            r"(\d+) connections instead of 10000",
            server.log(),
        )
        self.assertIsNotNone(logged, server.log())
        holder = self.client(3, server)
        lease = self.acquire(holder, self.lock())["lease"]
        self.assertIn(f"maxclients:{logged.group(1)}\r\n", holder.call("INFO"))
        peers = self.connect(server.port, 300)
        self.connect(server.http_port, 300, HALF_A_HEADER)
        peers[-1].settimeout(harness.PATIENCE)
        self.assertTrue(peers[-1].recv(200).startswith(b"-BUSY connections: the limit of "))
        self.assertEqual(holder.call("RENEW", lease), 60000)
        self.use_new_tokens(holder)
        self.assertNotIn("out of file descriptors", server.log())
        self.assertLess(self.descriptors(server), 160 - 16)

    def test_soft_limit_is_raised_as_far_as_needed(self):
        server = self.serve("1024:20000")
        self.assertNotIn("file descriptors are allowed", server.log())
        limits = pathlib.Path(f"/proc/{server.pid}/limits").read_text()
        soft = int(re.search(r"Max open files\s+(\d+)", limits).group(1))
        needed = CONNECTIONS + CONNECTIONS // 10 + NEWCOMERS + 1024 + 128 + HTTP_NEWCOMERS
        self.assertGreater(soft, needed + 40, "the store has descriptors of its own")


class TlsTest(StrangersCase):
    with_tls = True

    def test_1024_descriptors_and_thousands_of_strangers(self):
        server = self.serve("1024:1024")
        self.assertIn("only 1024 file descriptors are allowed", server.log())
        holder = self.user(server)
        lease = self.acquire(holder, self.lock())["lease"]
        hello = b"\x16\x03\x01\x02\x00\x01"  # The beginning of a handshake.
        for port in (server.port, server.http_port):
            self.connect(port, 1000)
            self.assertServes(server, holder, lease)
            self.connect(port, 1000, hello)
            self.assertServes(server, holder, lease)
            self.connect(port, 150, tls=trusting(self.authority))
            self.assertServes(server, holder, lease)
        self.assertNotIn("out of file descriptors", server.log())
        self.assertLess(self.descriptors(server), 1024 - 16)

    def test_nobody_stays_longer_than_its_time(self):
        # The one test that waits for the real 10 s, for all kinds of strangers at once.
        server = self.serve()
        tls = trusting(self.authority)
        peers = {
            "no handshake": self.connect(server.port, 1),
            "half a handshake": self.connect(server.port, 1, b"\x16\x03\x01\x02\x00\x01"),
            "silent": self.connect(server.port, 1, tls=tls),
            "half an AUTH": self.connect(server.port, 1, b"AUTH boss ", tls=tls),
            "no handshake, http": self.connect(server.http_port, 1),
            "silent, http": self.connect(server.http_port, 1, tls=tls),
            "half a header": self.connect(server.http_port, 1, HALF_A_HEADER, tls=tls),
        }
        pinging = self.client(2, server)
        holder = self.user(server)
        lease = self.acquire(holder, self.lock())["lease"]

        def still_there():
            with contextlib.suppress(OSError, harness.Closed):
                return pinging.call("PING").code == "NOAUTH"
            return False

        def closed():
            time.sleep(0.1)
            return not still_there()

        wait_until(closed, "a stranger that talks is closed as well")
        for kind, [peer] in peers.items():
            with self.subTest(kind), contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
                peer.settimeout(harness.PATIENCE)
                while peer.recv(4096):
                    pass
        self.assertServes(server, holder, lease)
        page = self.web(server).get("/metrics").body.decode()
        for proto in ("resp", "http"):
            name = f'pawl_unauthenticated_closed_total{{proto="{proto}",reason="late"}}'
            self.assertRegex(page, rf"(?m)^{re.escape(name)} [1-9]")


if __name__ == "__main__":
    harness.main()
