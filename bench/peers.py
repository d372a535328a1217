"""The servers that the benchmark compares: how each is started, found ready and stopped.

Every durable peer keeps its files under one directory on a real file system, because what is
measured is mostly the price of getting bytes onto a disk. """

import pathlib
import shutil
import signal
import socket
import subprocess
import time


class Missing(Exception):
    """The peer cannot run here: its binary is not there."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, *words, timeout=2.0):
    """One RESP command on a connection of its own; the first line of the reply, without its line
    end."""
    request = b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words
    )
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(request)
        reply = b""
        while b"\r\n" not in reply:
            got = connection.recv(4096)
            if not got:
                raise ConnectionError("closed without a reply")
            reply += got
    return reply.split(b"\r\n", 1)[0].decode()


class Server:
    """A server process under test. `dialect` is what pawl_bench_load has to speak to it."""

    name = ""
    dialect = ""

    def __init__(self, bin_dir, work_dir):
        self.bin_dir = pathlib.Path(bin_dir)
        self.dir = pathlib.Path(work_dir) / self.name
        self.port = 0
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        raise NotImplementedError

    def ready(self):
        """True once it serves. Raises OSError while nobody listens."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=2.0):
            return True

    def prepare(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.port = free_port()

    def start(self, timeout=60.0):
        self.prepare()
        return self.launch(timeout)

    def launch(self, timeout=60.0):
        """Starts the process on what is already there; seconds until it was ready."""
        command = [str(word) for word in self.command()]
        if shutil.which(command[0]) is None:
            raise Missing(f"{self.name}: no {command[0]}")
        began = time.monotonic()
        with open(self.dir / "output", "ab") as output:
            self.process = subprocess.Popen(
                command, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        while True:
            try:
                if self.ready():
                    return time.monotonic() - began
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() - began > timeout:
                tail = (self.dir / "output").read_text(errors="replace")[-2000:]
                self.stop()
                raise RuntimeError(f"{self.name} did not start:\n{tail}")
            time.sleep(0.002)

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None


class Pawld(Server):
    name = "pawl"
    dialect = "pawl"

    def command(self):
        return [
            self.bin_dir / "pawld",
            "--data",
            self.dir / "data",
            "--resp",
            f"127.0.0.1:{self.port}",
            "--http",
            "off",
        ]

    def ready(self):
        # INSPECT, not PING: the handshake is answered while the store is still being loaded.
        return not ask(self.port, "INSPECT", "ready").startswith("-LOADING")


class Redis(Server):
    dialect = "redis"
    options = ()

    def command(self):
        return [
            "redis-server",
            "--port",
            self.port,
            "--bind",
            "127.0.0.1",
            "--dir",
            self.dir,
            "--save",
            "",
            "--daemonize",
            "no",
            *self.options,
        ]

    def ready(self):
        return ask(self.port, "PING") == "+PONG"


class RedisAlways(Redis):
    name = "redis-always"
    # Rewrites would add work that is not part of a lock; without them redis is measured at its
    # best.
    options = (
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--no-appendfsync-on-rewrite",
        "yes",
        "--auto-aof-rewrite-percentage",
        "0",
    )


class RedisMemory(Redis):
    name = "redis-memory"
    options = ("--appendonly", "no")


class Echo(Server):
    name = "echo"
    dialect = "echo"

    def command(self):
        return [self.bin_dir / "pawl_bench_echo", "--port", self.port]


class EchoLog(Echo):
    name = "echo+log"
    dialect = "echolog"

    def command(self):
        return [*super().command(), "--log", self.dir / "log"]


EVERY = (Pawld, RedisAlways, RedisMemory, Echo, EchoLog)
