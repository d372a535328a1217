#!/usr/bin/python3
"""HTTPS on the real binary: one certificate for both ports, clients known by theirs, and plain
clients get an error.

Environment: PAWL and PAWLD are the binaries.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
import warnings

from pawltest import harness
from pawltest.harness import request_id, wait_until
from pawltest.process import dies_with_parent
from pawltest.tls_files import LOCAL, Authority, trusting
from pawltest.web import Events, Web, read_all

PAWL = os.environ.get("PAWL", "")


class HttpsCase(harness.PawldCase):
    @classmethod
    def setUpClass(cls):
        cls.files = harness.scratch("https")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        cls.authority = Authority(cls.files, "authority")
        cls.stranger = Authority(cls.files, "stranger")
        cls.server = cls.authority.sign("pawld", LOCAL)
        cls.pawld = harness.Pawld(
            settings=cls.settings_for(cls.server), tls=trusting(cls.authority)
        )
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    @staticmethod
    def settings_for(files, client_ca=None, more=""):
        ca = f'client_ca = "{client_ca}"\n' if client_ca else ""
        return f'{more}\n[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\n{ca}'

    def web(self, server=None, own=None, auth=None):
        return Web((server or self.pawld).http_port, trusting(self.authority, own), auth)

    def curl(self, *words, expect=0):
        done = subprocess.run(
            ["curl", "-sS", "--cacert", str(self.authority.cert), *words],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            check=False,
        )
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout


class HttpsTest(HttpsCase):
    def test_curl_holds_a_lock_over_https(self):
        url = f"https://localhost:{self.pawld.http_port}/v1/"
        body = json.dumps({"locks": [self.lock()], "ttl_ms": 60000})
        post = ("-H", "Content-Type: application/json")
        granted = json.loads(self.curl(*post, "-d", body, url + "acquire"))
        self.assertEqual(
            json.loads(
                self.curl(
                    *post, "-H", f"Pawl-Lease: {granted['lease']}", "-X", "POST", url + "renew"
                )
            ),
            {"expires_in_ms": 60000, "release_wanted": None},
        )
        # Expect: 100-continue is answered before the reply.
        again = self.curl(
            *post,
            "-H",
            "Expect: 100-continue",
            "--expect100-timeout",
            "50",
            "-i",
            "-d",
            body,
            url + "acquire",
        )
        self.assertRegex(again, r"^HTTP/1.1 100 Continue\s+HTTP/1.1 409 ")

    def test_large_answer_arrives_complete(self):
        prefix, client = self.lock("/"), self.client()
        for number in range(200):
            self.acquire(client, f"{prefix}{'x' * 200}{number}")
        reply = self.web().get(f"/v1/locks?limit=1000&prefix={prefix}")
        self.assertEqual(len(reply.json["locks"]), 200)
        self.assertGreater(len(reply.body), 3 * 16384)

    def test_requests_of_one_connection_are_answered_in_order(self):
        connection = self.web().connection()
        self.addCleanup(connection.close)
        for _ in range(3):
            connection.request("GET", "/v1/status")
            self.assertEqual(json.loads(connection.getresponse().read())["role"], "active")

    def test_hang_up_or_close_notify_leaves_the_queue(self):
        lock, client = self.lock(), self.client(3)
        self.acquire(client, lock)
        for how in ("close", "goodbye", "reset"):
            with self.subTest(how):
                waiting = self.web().start_post(
                    "/v1/acquire",
                    {"locks": [lock], "ttl_ms": 60000, "wait_ms": 60000},
                    {"Idempotency-Key": request_id()},
                )
                self.addCleanup(waiting.close)
                self.waiting(client, lock, 1)
                if how == "goodbye":
                    waiting.sock.settimeout(0)
                    # It is sent, and the other end's is not here yet.
                    with self.assertRaises(ssl.SSLError):
                        waiting.sock.unwrap()
                elif how == "reset":
                    waiting.sock.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                    )
                    waiting.close()
                else:
                    waiting.close()
                self.waiting(client, lock, 0)

    def test_events_arrive_as_they_happen(self):
        lock = self.lock()
        events = Events(
            self.pawld.http_port, f"/v1/events?prefix={lock}", tls=trusting(self.authority)
        ).begun()
        self.addCleanup(events.close)
        self.acquire(self.client(), lock)
        self.assertEqual(events.next()[0], "granted")

    def test_plain_client_is_told_to_use_tls_and_logged_at_a_limited_rate(self):
        server = self.own_pawld(
            settings=self.settings_for(self.server), tls=trusting(self.authority)
        )
        reply = Web(server.http_port).get("/v1/status")
        self.assertEqual((reply.status, reply.code), (400, "tls_required"), reply)
        for _ in range(50):
            with Web(server.http_port).raw(b"PING\r\n") as peer:
                self.assertIn(b"https://", read_all(peer))
        output = [
            line for line in server.log().splitlines() if "the client does not speak TLS" in line
        ]
        self.assertTrue(1 <= len(output) <= 10, output)
        self.assertIn("http: TLS handshake with 127.0.0.1:", output[0])
        self.assertEqual(self.web(server).get("/healthz").status, 200)

    def test_old_versions_of_tls_are_refused(self):
        context = ssl.create_default_context(cafile=str(self.authority.cert))
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = (
                ssl.TLSVersion.TLSv1,
                ssl.TLSVersion.TLSv1_1,
            )
        with self.assertRaises((ssl.SSLError, ConnectionResetError)):
            Web(self.pawld.http_port, context).get("/healthz")

    def test_rotated_certificate_is_used_and_a_bad_one_is_not(self):
        current = self.stranger.sign("current", LOCAL)
        for source, target in zip(self.server, current):
            shutil.copy(source, target)
        server = self.own_pawld(settings=self.settings_for(current), tls=trusting(self.authority))
        kept = self.web(server).connection()
        self.addCleanup(kept.close)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        rotated = self.stranger.sign("pawld", LOCAL)
        for source, target in zip(rotated, current):
            shutil.copy(source, target)
        server.reload()
        wait_until(lambda: "new connections use" in server.log(), "the new certificate is in use")
        theirs = Web(server.http_port, trusting(self.stranger))
        self.assertEqual(theirs.get("/healthz").status, 200)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.web(server).get("/healthz")
        kept.request("GET", "/v1/status")
        self.assertEqual(kept.getresponse().status, 200)
        current.key.write_text("no key")
        server.reload()
        wait_until(
            lambda: "cannot load new certificate, keeping the old one" in server.log(),
            "it is logged",
        )
        self.assertEqual(theirs.get("/healthz").status, 200)


class CertificatesTest(HttpsCase):
    """Clients that a certificate identifies."""

    def setUp(self):
        super().setUp()
        self.users = users = self.files / f"{self._testMethodName}.users"
        self.secrets = {
            user: self.auth("add", user, "--role", role)
            for user, role in (("batch", "use"), ("viewer", "observe"))
        }
        self.guarded = self.own_pawld(
            settings=self.settings_for(self.server, self.authority.cert, f'auth_file = "{users}"'),
            tls=trusting(self.authority),
        )

    def auth(self, *words):
        return subprocess.run(
            [PAWL, "auth", *words, "--file", self.users],
            capture_output=True,
            text=True,
            check=True,
            timeout=harness.PATIENCE,
        ).stdout.strip()

    def web_of(self, name, auth=None):
        return self.web(self.guarded, self.authority.sign(name), auth)

    def test_common_name_is_the_user(self):
        batch, viewer = self.web_of("batch"), self.web_of("viewer")
        self.assertEqual(batch.acquire(self.lock()).status, 201)
        self.assertEqual(viewer.get("/v1/status").status, 200)
        refused = viewer.acquire(self.lock())
        self.assertEqual((refused.status, refused.code), (403, "noperm"), refused)
        self.assertIn("user viewer has observe", refused.json["detail"])

    def test_unknown_or_missing_certificate_is_no_user(self):
        for web in (self.web(self.guarded), self.web_of("someone")):
            reply = web.get("/v1/status")
            self.assertEqual((reply.status, reply.code), (401, "noauth"), reply)
            self.assertEqual(web.get("/healthz").status, 200)

    def test_stream_of_a_removed_user_ends(self):
        own = self.authority.sign("viewer")
        reader = subprocess.Popen(
            dies_with_parent(
                [
                    "curl",
                    "-sSN",
                    "--cacert",
                    self.authority.cert,
                    "--cert",
                    own.cert,
                    "--key",
                    own.key,
                    f"https://localhost:{self.guarded.http_port}/v1/events",
                ]
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(lambda: (reader.kill(), reader.communicate()))
        self.assertIn("retry: ", reader.stdout.readline())  # It has begun.
        self.auth("rm", "viewer")
        self.guarded.reload()
        _, output = reader.communicate(timeout=harness.PATIENCE)
        # Otherwise curl says that something was cut off.
        self.assertEqual(reader.returncode, 0, output)

    def test_credentials_override_the_certificate(self):
        self.assertEqual(
            self.web_of("viewer", self.secrets["batch"]).acquire(self.lock()).status, 201
        )
        wrong = self.web_of("batch", "batch:wrong").acquire(self.lock())
        self.assertEqual((wrong.status, wrong.code), (401, "wrongpass"), wrong)

    def test_certificate_of_another_authority_is_refused(self):
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.web(self.guarded, self.stranger.sign("batch")).get("/healthz")
        wait_until(lambda: "http: TLS handshake with" in self.guarded.log(), "the log names it")
        wait_until(
            lambda: "the certificate of batch is signed by an unknown authority: CN=stranger"
            in self.guarded.log(),
            "it is logged",
        )


if __name__ == "__main__":
    harness.main()
