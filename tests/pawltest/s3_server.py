"""A small S3 for tests, in this process: one that keeps conditions as Amazon documents them.

    with Server() as server:
        server.create_bucket("shop")
        subprocess.run([...], env={**os.environ, **server.environment(), ...})
        server.objects("shop")          # {key: bytes}

It checks every signature with code of its own. It is no product: the real one in the tests is
Ceph's (ceph.py). `python3 -m pawltest.s3_server PORT BUCKET…` starts it for people. `faults` makes it misbehave, as stores do that are only called compatible:

    ignore_conditions    PUT and DELETE happen whatever their conditions are
    unquoted             If-Match is compared without quotes, as Ceph 16 does
    versions             a bucket says that it keeps versions
"""

import hashlib
import hmac
import http.server
import os
import re
import ssl
import subprocess
import sys
import threading
import unittest
import urllib.parse
from xml.sax.saxutils import escape

ACCESS_KEY = "AKTEST"
SECRET_KEY = "secret/of+tests"


def sign(secret, scope, text):
    """The signature of `text` for a scope such as 20261117/us-east-1/s3/aws4_request."""
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One packet for each answer.

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>test</Message></Error>".encode())

    def is_signed(self, body):
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), SignedHeaders=([^,]+), Signature=(.*)",
            self.headers.get("Authorization", ""),
        )
        digest = hashlib.sha256(body).hexdigest()
        if not found or self.headers.get("x-amz-content-sha256") != digest:
            return False
        user, scope, names, signature = found.groups()
        path, _, query = self.path.partition("?")
        lines = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names.split(";"))
        query = "&".join(sorted(query.split("&")))
        canonical = "\n".join([self.command, path, query, lines, names, digest])
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, hashed])
        wanted = sign(SECRET_KEY, scope, text)
        return user == ACCESS_KEY and hmac.compare_digest(signature, wanted)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        store = self.server.store
        host = self.headers["Host"].split(":")[0]
        path = urllib.parse.unquote(url.path).lstrip("/")
        if host.endswith(".localhost"):  # virtual-host style
            bucket, key = host[: -len(".localhost")], path
        else:
            bucket, _, key = path.partition("/")
        with store.lock:
            store.requests.append((self.command, key or url.query))
        if not self.is_signed(body):
            return self.error(403, "SignatureDoesNotMatch")
        if bucket not in store.buckets:
            return self.error(404, "NoSuchBucket")
        with store.lock:
            if key:
                return self.object(store, store.buckets[bucket], key, body)
            return self.bucket(store, store.buckets[bucket], query)

    do_GET = do_PUT = do_DELETE = do_HEAD = serve

    def holds(self, store, objects, key):
        """Whether the conditions of the request hold."""
        if store.faults.get("ignore_conditions"):
            return True
        if self.headers.get("If-None-Match") == "*" and key in objects:
            return False
        wanted = self.headers.get("If-Match")
        if wanted is None:
            return True
        etag = hashlib.md5(objects[key]).hexdigest() if key in objects else None
        return wanted == (etag if store.faults.get("unquoted") else f'"{etag}"')

    def object(self, store, objects, key, body):
        if self.command in ("GET", "HEAD"):
            if key not in objects:
                return self.error(404, "NoSuchKey")
            etag = hashlib.md5(objects[key]).hexdigest()
            return self.answer(200, objects[key], ETag=f'"{etag}"')
        if not self.holds(store, objects, key):
            return self.error(412, "PreconditionFailed")
        if self.command == "DELETE":
            objects.pop(key, None)
            return self.answer(204)
        objects[key] = body
        return self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def bucket(self, store, objects, query):
        if "versioning" in query:
            status = "<Status>Enabled</Status>" if store.faults.get("versions") else ""
            xml = f"<VersioningConfiguration>{status}</VersioningConfiguration>"
            return self.answer(200, xml.encode())
        if "policy" in query:
            if store.policy:
                return self.answer(200, store.policy.encode())
            return self.error(404, "NoSuchBucketPolicy")
        return self.list(objects, query)

    def list(self, objects, query):
        after = query.get("continuation-token", "")
        keys = sorted(key for key in objects if key.startswith(query.get("prefix", "")))
        keys = [key for key in keys if key > after]
        page = keys[: self.server.store.page]
        more = len(keys) > len(page)
        xml = "<ListBucketResult>"
        for key in page:
            xml += f"<Contents><Key>{escape(urllib.parse.quote(key))}</Key></Contents>"
        xml += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            xml += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        return self.answer(200, (xml + "</ListBucketResult>").encode())


class Threads(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """A client that hung up, or does not trust the certificate, is no news."""


class Server:
    """Starts when it is entered, or by start()."""

    def __init__(self, **faults):
        self.faults = faults
        self.buckets = {}
        self.policy = ""
        self.page = 1000  # keys of one answer to a list
        self.requests = []
        self.lock = threading.Lock()
        self.http = None

    def start(self, files=None):
        """`files`: the certificate and key of a server that speaks TLS (tls_files.py)."""
        self.http = Threads(("127.0.0.1", 0), Handler)
        self.http.store = self
        if files:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(files.cert, files.key)
            self.http.socket = context.wrap_socket(
                self.http.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def remove(self):
        if self.http is not None:
            self.http.shutdown()
            self.http.server_close()
            self.http = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    @property
    def port(self):
        return self.http.server_port

    def create_bucket(self, name):
        self.buckets[name] = {}
        return self.buckets[name]

    def objects(self, name):
        with self.lock:
            return dict(self.buckets[name])

    def dsn(self, bucket, **more):
        words = {"bucket": bucket, "endpoint": f"http://127.0.0.1:{self.port}", **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    @staticmethod
    def environment():
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}

    def log_text(self):
        return "\n".join(" ".join(words) for words in self.requests[-100:])


class ServerCase(unittest.TestCase):
    """One server per class in self.server, with a new bucket `shop` before each test, whose objects
    are self.shop. self.pawl() runs pawl there; `code` is its exit code, None: whatever it is."""

    maxDiff = None
    faults = {}
    new_server = Server
    patience = 300  # seconds for one command

    @classmethod
    def setUpClass(cls):
        cls.server = cls.new_server(**cls.faults)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()

    def setUp(self):
        self.shop = self.server.create_bucket("shop")
        self.dsn = self.server.dsn("shop")

    def pawl(self, *words, code=0, environment=None, **options):
        done = subprocess.run(
            [os.environ["PAWL"], *words],
            capture_output=True,
            text=True,
            timeout=self.patience,
            check=False,
            env={
                **os.environ,
                "PAWL_GUARD_DSN": self.dsn,
                **self.server.environment(),
                **(environment or {}),
            },
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
            **options,
        )
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def guard(self, verb, *words, **options):
        return self.pawl("guard", verb, "s3", *words, **options)

    def put(self, key, token, content, code=0):
        return self.guard("put", key, "--token", str(token), input=content, code=code)

    def get(self, key):
        return self.guard("get", key).stdout


def main():
    unittest.main(module="__main__", verbosity=2)


def serve(port, *buckets):
    """For people, until it is interrupted."""
    server = Server()
    for name in buckets:
        server.create_bucket(name)
    server.http = Threads(("127.0.0.1", port), Handler)
    server.http.store = server
    server.http.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), *sys.argv[2:])
