"""A private PostgreSQL for a test: its own directory, port and superuser, gone when the test is.

    with Cluster(settings={"track_commit_timestamp": "on"}) as cluster:
        cluster.create_database("shop")                      # with the guard installed
        with cluster.connect("shop", user="app", isolation="repeatable read") as db:
            db.cursor().execute("SELECT pawl.use('orders', 34)")
        cluster.crash()                                      # kill -9 of the postmaster and all its children
        cluster.restart()

It listens on a free loopback port and on a socket in its own directory; nobody needs a password.
fsync is on, because crashes are part of what is tested. As root the server runs as the user
postgres, which PostgreSQL insists on. """

import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import psycopg2
import psycopg2.extensions

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

# Noqa: E402  (PATIENCE: also for those who import it from here)
from harness import PATIENCE, wait_until

GUARD = pathlib.Path(os.environ.get("PAWL_GUARD_SQL", ROOT / "guards/postgres/pawl.sql"))
BIN = pathlib.Path("/usr/lib/postgresql/15/bin")

ISOLATIONS = ("read committed", "repeatable read", "serializable")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_postgres(command):
    """The command as a user that PostgreSQL accepts (it refuses root). It dies with the thread that
    starts it."""
    words = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid() == 0:
        words += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return [*words, *[str(word) for word in command]]


def children(pid):
    try:
        return [
            int(child)
            for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def alive(pid):
    try:
        return (
            pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        )
    except OSError:
        return False


class Cluster:
    """Starts when it is entered, or by start(). Start it from the main thread."""

    def __init__(self, settings=None, data_from=None):
        """`data_from(directory)` fills the data directory instead of initdb, e.g. with a base
        backup."""
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pawl-pg-"))
        self.data = self.dir / "data"
        self.log_path = self.dir / "log"
        # syncfs: after a crash one call instead of an fsync of each file, which takes seconds.
        self.settings = {
            "max_connections": 120,
            "shared_buffers": "64MB",
            "log_line_prefix": "%m [%p] %q%u@%d %a ",
            "recovery_init_sync_method": "syncfs",
            **(settings or {}),
        }
        self.process = None
        self.port = 0
        self.said = ""
        self.installed = False
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        try:
            (data_from or self._initdb)(self.data)
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise

    def _initdb(self, data):
        self.run(
            BIN / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        )

    def run(self, *command, check=True, **options):
        """Runs a program as the server's user in the cluster's directory; a CompletedProcess with
        text."""
        done = subprocess.run(
            as_postgres(command),
            cwd=self.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
            **options,
        )
        if check and done.returncode:
            raise AssertionError(
                f"{command[0]} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done

    # -- life and death

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Returns once it takes connections. Keeps its port over restarts."""
        for _ in range(5):
            if not self.port:
                self.port = free_port()
            if self._launch():
                return self
            self.port = 0  # Somebody else was given that port meanwhile.
        raise AssertionError(f"PostgreSQL does not start:\n{self.log_text()[-4000:]}")

    def _launch(self):
        words = [
            BIN / "postgres",
            "-D",
            self.data,
            "-p",
            self.port,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            f"unix_socket_directories={self.dir}",
        ]
        for name, value in self.settings.items():
            words += ["-c", f"{name}={value}"]
        start = len(self.log_text())
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                as_postgres(words), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            return wait_until(lambda: self._serving(start), "PostgreSQL serves") == "serves"
        except BaseException:
            self._end(signal.SIGQUIT)
            raise

    def _serving(self, log_start):
        if self.process.poll() is not None:
            said = self.log_text()[log_start:]
            self.process = None
            if "could not bind" in said or "Address already in use" in said:
                return "port taken"
            raise AssertionError(f"PostgreSQL ended instead of serving:\n{said[-4000:]}")
        try:
            psycopg2.connect(self.dsn()).close()
        except psycopg2.OperationalError:
            return None
        return "serves"

    def _end(self, sign):
        if self.process is None:
            return
        self.process.send_signal(sign)
        self.process.wait(timeout=PATIENCE)
        self.process = None

    def stop(self):
        """A clean stop: open sessions are ended, a checkpoint is written."""
        self._end(signal.SIGINT)

    def crash(self):
        """kill -9 of the postmaster and of every child at one moment, as a power cut would (but for
        the disk)."""
        postmaster = self.pid
        self.process.send_signal(signal.SIGSTOP)  # So that it starts no child that we would miss.
        wait_until(lambda: _stopped(postmaster), "the postmaster stopped")
        family = children(postmaster)
        for pid in [postmaster, *family]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=PATIENCE)
        self.process = None
        wait_until(lambda: not any(alive(pid) for pid in family), "every child is gone")

    def restart(self):
        """Starts it again, after a crash or with a clean stop before."""
        self.stop()
        return self.start()

    def remove(self):
        self._end(signal.SIGQUIT)
        self.log_text()
        shutil.rmtree(self.dir, ignore_errors=True)

    # -- talking to it

    def dsn(self, dbname="postgres", user="postgres", **more):
        words = {"host": "127.0.0.1", "port": self.port, "dbname": dbname, "user": user, **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def connect(
        self,
        dbname="postgres",
        user="postgres",
        isolation=None,
        autocommit=False,
        application_name="test",
        **more,
    ):
        """A psycopg2 connection; `with` it commits or rolls back, and close() is yours."""
        connection = psycopg2.connect(
            self.dsn(dbname, user, application_name=application_name, connect_timeout=60, **more)
        )
        connection.set_session(
            isolation_level=isolation.upper() if isolation else None, autocommit=autocommit
        )
        return connection

    def psql(self, sql, dbname="postgres", user="postgres", check=True, options=()):
        """Runs psql on the text; a CompletedProcess. Rows come as plain lines with | between
        columns."""
        command = [
            BIN / "psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=verbose",
            *options,
            "-d",
            self.dsn(dbname, user),
            "-f",
            "-",
        ]
        return self.run(*command, check=check, input=sql)

    def tool(self, name, *words, check=True, **options):
        """pg_dump, pg_restore, pg_basebackup … against this cluster."""
        return self.run(
            BIN / name,
            "-h",
            "127.0.0.1",
            "-p",
            self.port,
            "-U",
            "postgres",
            *words,
            check=check,
            **options,
        )

    def create_database(self, name, guard=True):
        """An empty database, by default with the guard installed (once: the others are copies of
        the first)."""
        if guard and not self.installed:
            self.psql("CREATE DATABASE guarded")
            self.install("guarded")
            self.installed = True
        self.psql(f'CREATE DATABASE "{name}" TEMPLATE {"guarded" if guard else "template1"}')
        return name

    def install(self, dbname):
        """As users do it: psql -f guards/postgres/pawl.sql."""
        self.psql(GUARD.read_text(encoding="utf-8"), dbname)

    def log_text(self):
        """All the server has said so far; still known after remove()."""
        if self.log_path.exists():
            self.said = self.log_path.read_text(errors="replace")
        return self.said


def _stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"


class ClusterCase(unittest.TestCase):
    """One cluster per class in self.cluster, one guarded database per test in self.db. A failed
    test prints the server's log."""

    maxDiff = None
    settings = {}
    _numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.settings)
        cls.addClassCleanup(cls.cluster.remove)
        cls.cluster.start()

    def setUp(self):
        self._log_start = len(self.cluster.log_text())
        self.db = self.cluster.create_database(f"t{next(self._numbers)}")

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if (
            result
            and len(result.failures) + len(result.errors) > before
            and hasattr(self, "_log_start")
        ):
            print(
                f"--- server log during {self.id()}\n{self.cluster.log_text()[self._log_start:][-6000:]}---",
                file=sys.stderr,
            )

    def connect(self, user="postgres", **options):
        connection = self.cluster.connect(self.db, user, **options)
        self.addCleanup(connection.close)
        return connection

    def sql(self, text, *values, on=None):
        """Runs it in a transaction of its own (on a connection of its own unless `on` is given) and
        returns the rows."""
        if on is not None:
            return rows(on, text, *values)
        connection = self.cluster.connect(self.db, autocommit=True)
        try:
            return rows(connection, text, *values)
        finally:
            connection.close()

    def value(self, text, *values, on=None):
        """The first column of the only row."""
        (row,) = self.sql(text, *values, on=on)
        return row[0]

    def assertRefused(self, code, call, *values, **more):
        """The call fails with that SQLSTATE; returns the error."""
        with self.assertRaises(psycopg2.Error) as caught:
            call(*values, **more)
        self.assertEqual(caught.exception.pgcode, code, caught.exception)
        return caught.exception


def rows(connection, text, *values):
    """Runs one statement; what it returned, or None."""
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return cursor.fetchall() if cursor.description else None


def detail(error):
    """The `token=… max=… mode=… resource=…` of a refusal as a dict."""
    return dict(re.findall(r"(\w+)=(\S+)", error.diag.message_detail or ""))


def main():
    unittest.main(module="__main__", verbosity=2)
