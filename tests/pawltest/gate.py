"""A `pawl gate` in front of an HTTP service that a test controls."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

from pawltest import harness
from pawltest.harness import PATIENCE, wait_until
from pawltest.process import dies_with_parent

PAWL = os.environ.get("PAWL", "")


class Upstream:
    """A service that knows nothing of tokens. It notes each write when it takes effect. Headers of
    a request say how: X-Hold: NAME waits for release(NAME), X-Delay-Ms waits, X-Drop ends the
    connection without an effect or an answer, X-Chunked answers in chunks, X-Raw with those
    bytes."""

    def __init__(self, case, port=0, tls=None):
        """`tls`: files of tls_files, for HTTPS."""
        self.effects = []  # (method, path, token, body)
        self.held = set()
        self.running = 0  # connections that were accepted and are not over
        self._released = {}
        self._lock = threading.Lock()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                upstream.serve(self)

            do_GET = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_POST

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def process_request(self, request, client_address):
                upstream.count_running(+1)
                super().process_request(request, client_address)

            def process_request_thread(self, request, client_address):
                super().process_request_thread(request, client_address)
                upstream.count_running(-1)

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.cert, tls.key)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        case.addCleanup(self.close)

    def close(self):
        with self._lock:
            for event in self._released.values():
                event.set()
        self.server.shutdown()
        self.server.server_close()

    def _event(self, name):
        with self._lock:
            return self._released.setdefault(name, threading.Event())

    def release(self, name):
        self._event(name).set()

    def tokens(self):
        return [effect[2] for effect in self.effects]

    @staticmethod
    def body_of(handler):
        if handler.headers.get("Transfer-Encoding") != "chunked":
            return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        body = b""
        while size := int(handler.rfile.readline(), 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
        return body

    def wait_until_idle(self):
        """Until nothing that was sent so far can have an effect any more."""
        # Connections are accepted in order, so those before this one are counted by then.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/idle", headers={"Connection": "close"})
            connection.getresponse().read()
        wait_until(lambda: self.running == 0, "nothing runs upstream")

    def count_running(self, change):
        with self._lock:
            self.running += change

    def serve(self, handler):
        body = self.body_of(handler)
        if name := handler.headers.get("X-Hold"):
            self.held.add(name)
            self._event(name).wait()
        time.sleep(int(handler.headers.get("X-Delay-Ms") or 0) / 1000)
        if handler.headers.get("X-Drop"):
            handler.close_connection = True
            return
        if handler.command not in ("GET", "HEAD", "OPTIONS"):
            token = int(handler.headers.get("X-Fencing-Token") or 0)
            self.effects.append((handler.command, handler.path, token, body))
        if raw := handler.headers.get("X-Raw"):
            handler.wfile.write(raw.encode().decode("unicode_escape").encode("latin-1"))
            handler.close_connection = True
            return
        answer = body or b"done\n"
        handler.send_response(200)
        if handler.headers.get("X-Chunked"):
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for at in range(0, len(answer), 1000):
                part = answer[at : at + 1000]
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            handler.wfile.write(b"0\r\n\r\n")
            return
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer)


class Gate:
    """A running gate. Start it from the main thread."""

    def __init__(self, case, upstream_url, *options, state=None, resource="path:/accounts/{id}"):
        self.dir = pathlib.Path(state) if state else harness.scratch("gate")
        if state is None:
            case.addCleanup(shutil.rmtree, self.dir)
        self.log = harness.scratch("gate-log") / "log"
        case.addCleanup(shutil.rmtree, self.log.parent)
        command = [PAWL, "gate", "--listen", "127.0.0.1:0", "--upstream", upstream_url]
        command += ["--resource", resource, "--state", self.dir, "--log-format", "json", *options]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                dies_with_parent(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.tls = None  # set by a test: how its clients connect
        case.addCleanup(self.kill)
        ready = wait_until(lambda: self.events("ready"), "the gate is ready or has ended")
        self.port = int(ready[0]["address"].rpartition(":")[2])
        admin = self.events("admin")
        self.admin_port = int(admin[0]["address"].rpartition(":")[2]) if admin else 0

    def events(self, name):
        """The lines of its log with that event."""
        if self.process.poll() not in (None, 0, -9) and name == "ready":
            raise AssertionError(self.log.read_text())
        lines = self.log.read_text().rpartition("\n")[0].splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line.get("event") == name]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """An orderly stop; its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)

    def connect(self):
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=PATIENCE, context=self.tls
        )

    def send(self, method, path, token=None, body=None, **headers):
        """One request; the answer with its body read, and `problem` if it is one."""
        connection = self.connect()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            headers["X-Fencing-Token"] = str(token)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            answer.data = answer.read()
        is_problem = answer.getheader("Content-Type") == "application/problem+json"
        answer.problem = json.loads(answer.data) if is_problem else None
        return answer

    def post(self, token, path="/accounts/7", body=b"x", **headers):
        return self.send("POST", path, token, body, **headers)

    def in_background(self, *arguments, **headers):
        """A post() on a thread; call the result for its answer (None: the gate hung up)."""
        answers = []

        def ask():
            try:
                answers.append(self.post(*arguments, **headers))
            except (OSError, http.client.HTTPException):
                answers.append(None)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()

        def answer():
            thread.join(PATIENCE)
            return answers[0]

        return answer

    def raw(self, data, timeout=PATIENCE):
        """Sends bytes on a connection of its own; the socket."""
        link = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        link.sendall(data)
        return link

    def status(self, *words, expect=0):
        done = subprocess.run(
            [PAWL, "gate", *(words or ("status", "--json")), "--state", self.dir],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode != expect:
            raise AssertionError(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if not words else done.stdout + done.stderr

    def fence(self, resource="/accounts/7"):
        found = [r for r in self.status()["resources"] if r["resource"] == resource]
        return found[0] if found else None

    def settle(self, resource="/accounts/7"):
        return self.status("settle", resource)
