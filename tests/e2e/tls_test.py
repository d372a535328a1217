#!/usr/bin/python3
"""TLS on the real binaries: pawl, redis-cli and redis-py against a pawld with a certificate;
certificates that do not fit, each with its name and exit code; certificates rotated while leases
are renewed.

Environment: PAWL and PAWLD are the binaries.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess

import redis

from pawltest import harness
from pawltest.harness import fields, wait_until
from pawltest.process import dies_with_parent
from pawltest.tcp_proxy import Proxy, TcpServer
from pawltest.tls_files import LOCAL, Authority, trusting

PAWL = os.environ.get("PAWL", "")
LONG_AGO = ("20200101000000Z", "20200102000000Z")


class FakeServer(TcpServer):
    """Speaks TLS with any certificate, also with one that pawld itself would refuse; says
    nothing."""

    def __init__(self, files):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.cert, files.key)
        super().__init__(self.handshake)

    def handshake(self, connection):
        with contextlib.suppress(OSError):
            self.context.wrap_socket(connection, server_side=True).close()


class TlsTest(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.files = harness.scratch("tls")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.authority = Authority(cls.files, "authority")
        cls.stranger = Authority(cls.files, "stranger")
        cls.server = cls.authority.sign("pawld", LOCAL)
        cls.batch = cls.authority.sign("batch")
        cls.pawld = cls.new_pawld(cls.server)
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    @classmethod
    def new_pawld(cls, files, client_ca=None):
        more = f'client_ca = "{client_ca}"\n' if client_ca else ""
        settings = f'[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\n{more}'
        return harness.Pawld(settings=settings, tls=trusting(cls.authority))

    def pawl(self, *words, port=None, host="localhost", ca=None, expect=0, **environment):
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        own.update(
            PAWL_ADDR=f"tls://{host}:{port or self.pawld.port}",
            PAWL_TLS_CA=str(ca or self.authority.cert),
            **environment,
        )
        done = subprocess.run(
            dies_with_parent([PAWL, *words]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=own,
            check=False,
        )
        self.assertEqual(
            done.returncode, expect, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        )
        return done

    # -- Clients

    def test_pawl_acquires_shows_and_runs_over_tls(self):
        name = self.lock()
        held = json.loads(self.pawl("acquire", name, "--json").stdout)
        self.assertEqual(
            json.loads(self.pawl("show", name, "--json").stdout)["token"], held["token"]
        )
        self.pawl("release", held["lease"])
        done = self.pawl("run", name, "--", "sh", "-c", "echo $PAWL_ADDR")
        self.assertEqual(done.stdout.strip(), f"tls://localhost:{self.pawld.port}")

    def test_command_under_run_can_connect_over_tls(self):
        """What reaches the command is enough to speak TLS."""
        self.pawl("run", self.lock(), "--", PAWL, "run", self.lock(), "--", "true")

    def test_redis_cli_speaks_tls(self):
        done = harness.redis_cli(
            self.pawld.port,
            "ACQUIRE",
            self.lock(),
            "TTL",
            15000,
            options=("--tls", "--cacert", str(self.authority.cert)),
        )
        self.assertIn("token", done.stdout, done.stderr)

    def test_redis_py_works_and_its_hang_up_ends_its_wait(self):
        name = self.lock()
        with self.client() as holder:
            self.acquire(holder, name)
            waiter = redis.Redis(
                "localhost", self.pawld.port, ssl=True, ssl_ca_certs=str(self.authority.cert)
            )
            self.assertTrue(waiter.ping())
            connection = waiter.connection_pool.get_connection("ACQUIRE")
            connection.send_command("ACQUIRE", name, "TTL", 1000, "WAIT", 60000)
            self.waiting(holder, name, 1)
            connection.disconnect()
            self.waiting(holder, name, 0)

    def test_close_notify_ends_a_wait(self):
        name = self.lock()
        with self.client() as holder, self.client() as waiter:
            self.acquire(holder, name)
            waiter.socket.sendall(harness.resp.encode("ACQUIRE", name, "TTL", 1000, "WAIT", 60000))
            self.waiting(holder, name, 1)
            waiter.socket.settimeout(0.05)
            # It waits for pawld's goodbye, which comes, or not in that time.
            with contextlib.suppress(OSError):
                waiter.socket.unwrap()
            self.waiting(holder, name, 0)

    def test_large_answers_and_pipelines_arrive_complete(self):
        with self.client() as client:
            names = [f"{self.lock()}/{i:04}" + "x" * 400 for i in range(300)]
            client.socket.sendall(
                b"".join(harness.resp.encode("ACQUIRE", name, "TTL", 60000) for name in names)
            )
            for _ in names:
                self.assertGranted(client.read())
            listed, cursor = [], ()
            while cursor is not None:
                after, page = client.call(
                    "LOCKS", "PREFIX", self._testMethodName, "COUNT", 1000, *cursor
                )
                listed += [fields(one)["lock"] for one in page]
                cursor = ("CURSOR", after) if after not in ("0", 0) else None
            self.assertEqual(sorted(listed), sorted(names))

    def test_commands_printed_at_start_work(self):
        # It listens on 127.0.0.1, which this certificate does not name.
        server = self.new_pawld(self.authority.sign("by-name", ("DNS:localhost",)))
        self.addCleanup(server.remove)
        server.start()
        output = wait_until(
            lambda: re.search(
                r"try: (PAWL_TLS_CA=CA.pem pawl .*)\nhttp: (curl .*)\n", server.log()
            ),
            "it prints them",
        )
        self.assertIn(f"--addr tls://localhost:{server.port} ", output[1])
        for line in output.groups():
            line = line.replace("CA.pem", shlex.quote(str(self.authority.cert)))
            line = line.replace(" pawl ", f" {shlex.quote(PAWL)} ").replace(
                "curl ", "curl -sS --fail "
            )
            done = subprocess.run(
                ["bash", "-c", line],
                capture_output=True,
                text=True,
                timeout=harness.PATIENCE,
                check=False,
            )
            self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr}")

    # -- The wrong door

    def test_plain_client_on_a_tls_port_gets_an_error_and_is_logged(self):
        server = self.new_pawld(self.server)
        self.addCleanup(server.remove)
        server.start()
        with self.client(server=server, tls=None) as client:
            self.assertError(client.call("PING"), "ERR", "speaks TLS", "redis-cli --tls")
        wait_until(lambda: re.search(r'does not speak TLS.*"\*1"', server.log()), "it is logged")
        for words in (("status",), ("run", self.lock(), "--", "true"), ("watch",)):
            done = (
                self.pawl(*words, "--addr", f"localhost:{server.port}", expect=78)
                if words[0] != "run"
                else self.pawl("run", "--addr", f"localhost:{server.port}", *words[1:], expect=78)
            )
            self.assertIn(
                f"pawl: localhost:{server.port} speaks TLS: write --addr "
                f"tls://localhost:{server.port}\n",
                done.stderr,
            )
            self.assertIn("PAWL_TLS_CA", done.stderr)
            self.assertNotIn("Is pawld running", done.stderr)

    def test_tls_client_on_a_plain_port_gets_an_error_and_is_logged(self):
        plain = self.own_pawld()
        done = self.pawl("status", port=plain.port, expect=78)
        self.assertIn("the server does not speak TLS", done.stderr)
        wait_until(lambda: "this port does not speak TLS" in plain.log(), "the log says so")

    # -- Certificates that do not fit

    def refused(self, *parts, words=("status",), **options):
        """Each way to connect refuses it in the same words, with the exit code for
        configuration."""
        for verb in (words, ("run", self.lock(), "--", "true")):
            done = self.pawl(*verb, expect=78, **options)
            for part in (*parts, "TLS with pawld failed at tls://", "PAWL_TLS_CA"):
                self.assertIn(part, done.stderr)

    def test_unknown_authority_is_named(self):
        self.refused(
            "the certificate of pawld is signed by an unknown authority: CN=authority",
            ca=self.stranger.cert,
        )

    def test_certificate_of_another_host_is_named(self):
        files = self.authority.sign("db1", ("DNS:db1", "DNS:db2"))
        with contextlib.closing(FakeServer(files)) as server:
            self.refused(
                "the certificate of db1 is for db1, db2, not for localhost", port=server.port
            )
            self.refused("not for 127.0.0.1", port=server.port, host="127.0.0.1")

    def test_an_expired_certificate_is_named_with_its_date(self):
        files = self.authority.sign("old", LOCAL, LONG_AGO)
        with contextlib.closing(FakeServer(files)) as server:
            self.refused(
                "the certificate of old expired on 2020-01-02 00:00:00 UTC", port=server.port
            )

    def test_failure_is_json_with_json(self):
        done = self.pawl("status", "--json", ca=self.stranger.cert, expect=78)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], "unavailable")  # Nothing has happened.
        self.assertIn("unknown authority", error["detail"])

    def test_unusable_files_are_named_before_connecting(self):
        for verb in (("status",), ("run", "x", "--", "true")):
            self.assertIn(
                "no/such.pem: cannot be read", self.pawl(*verb, ca="no/such.pem", expect=78).stderr
            )
            done = self.pawl(*verb, expect=78, PAWL_TLS_CERT=str(self.batch.cert))
            self.assertIn("a certificate needs its key", done.stderr)

    def test_mismatched_files_prevent_the_start(self):
        old = self.authority.sign("old", LOCAL, LONG_AGO, file="old-start")
        for cert, key, why in (
            (self.server.cert, self.batch.key, "does not belong to the certificate in"),
            (old.cert, old.key, "expired on 2020-01-02"),
            (self.server.key, self.server.key, "has no certificate in PEM form"),
            (self.files / "none", self.server.key, "cannot be read: No such file"),
        ):
            server = self.own_pawld(start=False)
            code, output = server.refused("--tls-cert", cert, "--tls-key", key)
            self.assertEqual(code, 78, output)
            self.assertIn(why, output)
            self.assertFalse(server.data.exists(), "and touches nothing")

    # -- Client certificates

    def test_client_certificates_are_optional_and_checked_when_given(self):
        server = self.new_pawld(self.server, self.authority.cert)
        self.addCleanup(server.remove)
        server.start()
        intruder = self.stranger.sign("admin")
        self.pawl("status", port=server.port)
        self.pawl(
            "status",
            port=server.port,
            PAWL_TLS_CERT=str(self.batch.cert),
            PAWL_TLS_KEY=str(self.batch.key),
        )
        self.refused(
            "the server refused our certificate: unknown CA",
            port=server.port,
            PAWL_TLS_CERT=str(intruder.cert),
            PAWL_TLS_KEY=str(intruder.key),
        )
        wait_until(
            lambda: "the certificate of admin is signed by an unknown authority: CN=stranger"
            in server.log(),
            "the log names it",
        )

    # -- Trouble

    @staticmethod
    def others(client):
        """The connections of `pawl run`, by id."""
        lines = client.call("CLIENT", "LIST").splitlines()
        return {line.split()[0] for line in lines if "name=pawl-run" in line}

    def test_pawl_run_survives_a_lost_connection(self):
        name = self.lock()
        proxy = Proxy(self.pawld.port)
        self.addCleanup(proxy.close)
        port = proxy.port
        done = self.files / "done"
        with self.client() as client:
            process = subprocess.Popen(
                dies_with_parent(
                    [
                        PAWL,
                        "run",
                        name,
                        "-t",
                        "6s",
                        "--",
                        "sh",
                        "-c",
                        f"while [ ! -e {done} ]; do sleep 0.05; done",
                    ]
                ),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "PAWL_ADDR": f"tls://localhost:{port}",
                    "PAWL_TLS_CA": str(self.authority.cert),
                },
            )
            self.addCleanup(process.kill)
            wait_until(lambda: self.holders(client, name), "it runs")
            renewals, before = self.holders(client, name)[0]["renewals"], self.others(client)
            self.assertEqual(len(before), 1)
            proxy.cut()
            wait_until(lambda: not self.others(client) & before, "it gave the silent connection up")
            proxy.mend()
            wait_until(
                lambda: self.holders(client, name)[0]["renewals"] >= renewals + 2, "it renews again"
            )
            done.write_text("")
            self.assertEqual(process.wait(timeout=harness.PATIENCE), 0, process.stderr.read())
        process.stderr.close()

    def test_silent_handshakes_do_not_block_others(self):
        silent = [socket.create_connection(("127.0.0.1", self.pawld.port)) for _ in range(1100)]
        try:
            self.pawl("status")
            # The first of them had to make room.
            wait_until(lambda: "too many are under way" in self.pawld.log(), "the log says so")
            silent[0].settimeout(harness.PATIENCE)
            self.assertEqual(silent[0].recv(1), b"")
        finally:
            for one in silent:
                one.close()

    def test_silent_handshake_times_out(self):
        with socket.create_connection(
            ("127.0.0.1", self.pawld.port), timeout=harness.PATIENCE
        ) as silent:
            silent.sendall(b"\x16\x03\x01")
            self.assertEqual(silent.recv(1), b"")

    # -- Rotation

    def test_rotated_certificate_costs_no_lease(self):
        current = self.authority.sign("pawld", LOCAL, file="current")
        server = self.new_pawld(current)
        self.addCleanup(server.remove)
        server.start()
        clients = [server.client() for _ in range(50)]
        for client in clients:
            self.addCleanup(client.close)
        leases = [self.acquire(client, self.lock(), ttl=5000)["lease"] for client in clients]

        def renew_all():
            for client, lease in zip(clients, leases):
                self.assertGreater(client.call("RENEW", lease), 0)

        renew_all()
        # A key that does not fit its certificate: the old pair stays.
        shutil.copy(self.batch.key, current.key)
        server.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: "cannot load new certificate, keeping the old one" in server.log(),
            "the log says so",
        )
        wait_until(
            lambda: f"{current.key}: does not belong to the certificate in {current.cert}"
            in server.log(),
            "it is logged",
        )
        renew_all()
        self.pawl("status", port=server.port)
        # A pair by another authority.
        rotated = self.stranger.sign("pawld", LOCAL)
        shutil.copy(rotated.cert, current.cert)
        shutil.copy(rotated.key, current.key)
        server.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: "new connections use the certificate of pawld" in server.log(),
            "the log says so",
        )
        renew_all()
        self.pawl("status", port=server.port, ca=self.stranger.cert)
        self.refused("unknown authority: CN=stranger", port=server.port)
        renew_all()


if __name__ == "__main__":
    harness.main()
