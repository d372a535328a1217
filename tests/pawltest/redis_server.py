"""A private Redis for a test: its own directory and port, gone when the test is.

    with Server() as server:
        server.install()                          # as from guards/redis/pawl.lua
        db = server.connect()
        protect(db, "orders", "orders:*")
        write(db, "orders", 34, "SET", "orders:7", "shipped")    # "admitted"
        server.crash()                            # kill -9
        server.start()

Every write is synced to the append-only file before it is answered, unless the settings say
otherwise. As root the server runs as the user redis. """

import os
import pathlib
import shutil
import signal
import unittest

import redis

from pawltest import ROOT
from pawltest.database import DatabaseServer

GUARD = pathlib.Path(os.environ.get("PAWL_GUARD_LUA", ROOT / "guards/redis/pawl.lua"))


def library():
    return GUARD.read_text(encoding="utf-8")


def eval_script():
    """The same for EVAL: without the first line."""
    return library().partition("\n")[2]


class Server(DatabaseServer):
    title = "Redis"
    user = "redis"

    def __init__(self, settings=None):
        super().__init__(
            {"save": "", "appendonly": "yes", "appendfsync": "always", **(settings or {})}
        )

    def create_data(self):
        self.data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self.data, self.user, self.user)

    def command(self):
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1"]
        words += ["--dir", str(self.data), "--daemonize", "no"]
        for name, value in self.settings.items():
            words += [f"--{name}", str(value)]
        return words

    def accepts_connections(self):
        try:
            return self.connect().ping()
        except redis.exceptions.BusyLoadingError:
            return False
        except redis.exceptions.ConnectionError:
            return False

    def stop(self):
        self.end(signal.SIGTERM)

    def crash(self):
        """kill -9, as a power cut would (but for the disk)."""
        self.end(signal.SIGKILL)

    def dsn(self, **more):
        words = {"host": "127.0.0.1", "port": self.port, **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def connect(self, **options):
        return redis.Redis(
            host="127.0.0.1", port=self.port, decode_responses=True, socket_timeout=120, **options
        )

    def install(self):
        self.connect().execute_command("FUNCTION", "LOAD", "REPLACE", library())


def guard_key(resource):
    return "{" + resource.partition(":")[0] + "}:pawl"


def fcall(db, function, resource, *arguments):
    """FCALL with the key of the resource's guard."""
    return db.execute_command("FCALL", function, 1, guard_key(resource), *arguments)


def protect(db, guard, pattern, kind="static", by="", mode="enforce"):
    return fcall(db, "pawl_protect", guard, pattern, kind, by, mode, "change")


def write(db, resource, token, *command, op=""):
    """One guarded write; the verdict. A refusal is an exception, whose word refusal() tells."""
    return fcall(db, "pawl_write", resource, resource, token, op, *command)[0]


def refusal(error):
    """The first word of an error: PAWLSTALE."""
    return str(error).split(" ", 1)[0]


class ServerCase(unittest.TestCase):
    """One server per class in self.server, empty but for the guard before each test; a connection
    in self.db."""

    maxDiff = None
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.settings)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()

    def setUp(self):
        self.db = self.connect()
        self.db.flushall()
        self.server.install()

    def connect(self, **options):
        connection = self.server.connect(**options)
        self.addCleanup(connection.close)
        return connection

    def assertRefused(self, word, work, *values, **more):
        with self.assertRaises(redis.exceptions.ResponseError) as caught:
            work(*values, **more)
        self.assertEqual(refusal(caught.exception), word, caught.exception)
        return caught.exception


def main():
    unittest.main(module="__main__", verbosity=2)
