"""Starts the real pawld for a test, and never leaves one running.

    class MyTest(harness.PawldCase):              # one pawld for the class, in self.pawld
        def test_something(self):
            with self.client(protocol=3) as c:
                self.acquire(c, self.lock(), ttl=15000)

What is waited for is a condition (it answers, it stopped, it exited), never a stretch of time. A
failed test prints the log of every pawld it used.

Environment: PAWLD is the binary, PAWL_E2E_DIR a directory on a real file system for data and logs,
PAWL_SANITIZED whether the binary was built with sanitizers (1). """

import itertools
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from pawltest import process, resp  # noqa: F401  (tests use it as harness.resp)
from pawltest.process import dies_with_parent
from pawltest.resp import Client, Closed, Error, fields
from pawltest.wait import PATIENCE, wait_until

SEGMENT_MIN = 1 << 20
LEASE = r"^[0-9a-f]{32}$"


def request_id():
    """128 random bits, as every client should choose them."""
    return os.urandom(16).hex()


def allow_descriptors(count):
    """Raises this process's limit of open files, which a pawld started afterwards inherits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        # Needs root; fails loudly otherwise.
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    elif soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def scratch(prefix):
    base = os.environ.get("PAWL_E2E_DIR") or tempfile.gettempdir()
    os.makedirs(base, exist_ok=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix + "-", dir=base))


def binary():
    path = os.environ.get("PAWLD")
    if not path:
        raise RuntimeError("set PAWLD to the pawld binary (ctest does)")
    return path


class Pawld:
    """A pawld on a free port and a data directory of its own. Start it from the main thread."""

    def __init__(
        self, segment_bytes=SEGMENT_MIN, settings="", resp_address="127.0.0.1:0", tls=None
    ):
        self.dir = scratch("pawld")
        self.data = self.dir / "data"
        self.log_path = self.dir / "log"
        self.port_file = self.dir / "port"
        self.config = self.dir / "pawld.toml"
        self.config.write_text(f"{settings}\n[journal]\nsegment_bytes = {segment_bytes}\n")
        self.resp_address = resp_address
        self.environment = {}  # more variables for the next start
        self.tls = tls  # an ssl.SSLContext: how its clients connect
        self.http_address = "127.0.0.1:0"
        self.process = None
        self.port = 0
        self.http_port = 0
        self.last_log = ""

    def command(self, *more):
        return [
            binary(),
            "--data",
            self.data,
            "--resp",
            self.resp_address,
            "--http",
            self.http_address,
            "--port-file",
            self.port_file,
            "--config",
            self.config,
            *more,
        ]

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        """Its log so far; still known after remove()."""
        if self.log_path.exists():
            self.last_log = self.log_path.read_text(errors="replace")
        return self.last_log

    def launch(self, *more, stderr=None):
        """Starts the process and returns at once."""
        assert self.process is None, "already running"
        self.port_file.unlink(missing_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                dies_with_parent(self.command(*more)),
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=stderr or log,
                env={**os.environ, **self.environment},
            )

    def start(self, *more, stderr=None):
        """Starts it and returns once it serves."""
        self.launch(*more, stderr=stderr)
        try:
            wait_until(self._serving, "pawld serves")
        except BaseException:
            self.kill()
            raise
        return self

    def _serving(self):
        code = self.process.poll()
        if code is not None:
            raise AssertionError(
                f"pawld exited with {code} instead of serving:\n{self.log()[-4000:]}"
            )
        try:
            ports = [int(line) for line in self.port_file.read_text().split()]
            self.port, self.http_port = ports[0], ports[1] if len(ports) > 1 else 0
            with Client(self.port, tls=self.tls) as client:
                reply = client.call("INSPECT", "ready")  # Answered only once the store is loaded.
        except (OSError, ValueError, IndexError, Closed):
            return False
        # It is loaded, and knows users.
        return not isinstance(reply, Error) or reply.code == "NOAUTH"

    def wait(self, patience=PATIENCE):
        """Waits for its end; the exit code."""
        code = self.process.wait(timeout=patience)
        self.process = None
        return code

    def kill(self):
        """kill -9. Fails when it had crashed before."""
        if self.process is None:
            return
        crashed = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.process = None
        if crashed is not None:
            raise AssertionError(f"pawld had exited before ({crashed}):\n{self.log()[-2000:]}")

    def terminate(self):
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.wait()

    def restart(self, *more):
        self.kill()
        return self.start(*more)

    def pause(self):
        """SIGSTOP; returns when every thread of it has stopped."""
        process.freeze([self.pid])

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def rss_bytes(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def client(self, protocol=2, **options):
        return Client(self.port, protocol, **{"tls": self.tls, **options})

    def refused(self, *more):
        """Runs it where it must not start: (exit code, output)."""
        self.port_file.unlink(missing_ok=True)
        more = more if "--wait" in more else ("--wait", "0", *more)
        run = subprocess.run(
            dies_with_parent(self.command(*more)),
            cwd=self.dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        text = run.stdout.decode(errors="replace")
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(text)
        return run.returncode, text

    def remove(self):
        self.kill()
        self.log()
        shutil.rmtree(self.dir, ignore_errors=True)


def redis_cli(port, *words, protocol=2, options=(), stdin=None):
    """Runs redis-cli; a CompletedProcess with text."""
    command = [
        "redis-cli",
        "-p",
        str(port),
        f"-{protocol}",
        *options,
        *[str(word) for word in words],
    ]
    feed = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
        **feed,
    )


class PawldCase(unittest.TestCase):
    """One pawld per class. Tests keep apart by the names of their locks: self.lock()."""

    maxDiff = None
    segment_bytes = SEGMENT_MIN
    settings = ""
    _numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.pawld = Pawld(cls.segment_bytes, settings=cls.settings)
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()

    def setUp(self):
        self._servers = [self.pawld] if getattr(self, "pawld", None) else []
        self._log_starts = [len(server.log()) for server in self._servers]

    def tearDown(self):
        server = getattr(self, "pawld", None)
        if server and server.process and server.process.poll() is not None:
            code = server.wait()
            server.start()  # The next test of this class may still pass.
            self.fail(f"pawld exited ({code}) during this test:\n{server.log()[-2000:]}")

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            self._print_logs()

    def _print_logs(self):
        for server, start in zip(getattr(self, "_servers", []), self._log_starts):
            print(
                f"--- log of pawld during {self.id()}\n{server.log()[start:][-8000:]}---",
                file=sys.stderr,
            )

    def own_pawld(self, start=True, **options):
        """A pawld for this test alone."""
        server = Pawld(**options)
        self._servers.append(server)
        self._log_starts.append(0)
        self.addCleanup(server.remove)
        return server.start() if start else server

    def client(self, protocol=2, server=None, **options):
        client = (server or self.pawld).client(protocol, **options)
        self.addCleanup(client.close)
        return client

    def lock(self, suffix=""):
        """A name no other test uses."""
        return f"{self._testMethodName}/{next(self._numbers)}{suffix}"

    def acquire(self, client, lock, *options, ttl=60000):
        """The grant as a dict; fails when the lock was not granted."""
        reply = client.call("ACQUIRE", lock, *options, "TTL", ttl)
        self.assertGranted(reply)
        return fields(reply)

    def inspect(self, client, lock):
        return fields(client.call("INSPECT", lock))

    def holders(self, client, lock):
        return [fields(holder) for holder in self.inspect(client, lock)["holders"]]

    def waiting(self, client, lock, count):
        """Waits until `count` requests queue for the lock."""
        wait_until(
            lambda: self.inspect(client, lock)["waiters"] == count, f"{count} waiters on {lock}"
        )

    def assertGrewLess(self, before, limit, why, server=None):
        """Memory. Not compared under sanitizers, which keep what was freed."""
        grown = (server or self.pawld).rss_bytes() - before
        if os.environ.get("PAWL_SANITIZED", "0") == "0":
            self.assertLess(grown, limit, why)

    def assertGranted(self, reply):
        self.assertIsInstance(reply, (dict, list), reply)
        self.assertRegex(fields(reply)["lease"], LEASE)

    def assertError(self, reply, code, *parts):
        self.assertIsInstance(reply, Error, reply)
        self.assertEqual(reply.code, code, reply)
        for part in parts:
            self.assertIn(part, reply)


def main():
    unittest.main(module="__main__", verbosity=2)
