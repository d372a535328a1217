"""A private PostgreSQL for a test: its own directory, port and superuser, gone when the test is.

    with Cluster(settings={"track_commit_timestamp": "on"}) as cluster:
        cluster.create_database("shop")                      # with the guard installed
        with cluster.connect("shop", user="app", isolation="repeatable read") as db:
            db.cursor().execute("SELECT pawl.use('orders', 34)")
        cluster.crash()                                      # kill -9 of all its processes
        cluster.restart()

It listens on a free loopback port and on a socket in its own directory; no password is needed.
fsync is on, because crashes are part of what is tested. As root the server runs as the user
postgres, which PostgreSQL insists on. """

import itertools
import os
import pathlib
import re
import shutil
import signal
import sys
import unittest

import psycopg2
import psycopg2.extensions

from pawltest import ROOT
from pawltest.database import DatabaseServer
from pawltest.process import children, freeze, is_alive, send_signal
from pawltest.wait import PATIENCE, wait_until

GUARD = pathlib.Path(os.environ.get("PAWL_GUARD_SQL", ROOT / "guards/postgres/pawl.sql"))
BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
# Another version of the server itself, for versions_test.py; psql and the tools stay Debian's.
SERVER_BIN = pathlib.Path(os.environ.get("PAWL_POSTGRES_BIN") or BIN)
# The C library of the guard (guards/postgres/c). With it the guard must use it, without it it must
# not: CTest runs the same tests both ways.
LIBRARY = os.environ.get("PAWL_POSTGRES_LIBRARY")
# Only a superuser may use it: an installation by another role falls back by itself.
INSTALL_WITH_LIBRARY = """DO $$ BEGIN
  PERFORM set_config('pawl.library', CASE WHEN rolsuper THEN 'required' ELSE 'auto' END, false)
     FROM pg_roles WHERE rolname = current_user;
END $$;
"""

# Disables the triggers of each scratch table as soon as its guard enforces: as if the guard did not
# protect what it says.
DISARM_SCRATCH_TABLES = """
CREATE FUNCTION public.disarm() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  tbl regclass;
BEGIN
  FOR tbl IN SELECT p.tbl FROM pawl.protected p WHERE p.guard = NEW.id LOOP
    EXECUTE format('ALTER TABLE %s DISABLE TRIGGER ALL', tbl);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER disarm AFTER UPDATE ON pawl.guard FOR EACH ROW
  WHEN (NEW.mode = 'enforce' AND NEW.name LIKE 'pawl_conformance%') EXECUTE FUNCTION public.disarm();
"""

ISOLATIONS = ("read committed", "repeatable read", "serializable")


def install_script(library=bool(LIBRARY)):
    """GUARD with the parts that it includes, without other commands of psql: the user of PostgreSQL
    may not read the tree."""
    text = re.sub(r"^\\set .+\n", "", GUARD.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(
        r"^\\ir (.+)$",
        lambda line: (GUARD.parent / line[1]).read_text(encoding="utf-8"),
        (INSTALL_WITH_LIBRARY if library else "SET pawl.library = off;\n") + text,
        flags=re.MULTILINE,
    )


class Cluster(DatabaseServer):
    title = "PostgreSQL"
    user = "postgres"
    death_signal = "QUIT"

    def __init__(self, settings=None, data_from=None):
        """`data_from(directory)` fills the data directory instead of initdb, e.g. with a base
        backup."""
        self.data_from = data_from or self._initdb
        self.installed = False
        # syncfs: after a crash one call instead of an fsync of each file, which takes seconds.
        # deadlock_timeout: races end in deadlocks that are meant to happen, a second each by default.
        super().__init__(
            {
                "max_connections": 120,
                "shared_buffers": "64MB",
                "log_line_prefix": "%m [%p] %q%u@%d %a ",
                "recovery_init_sync_method": "syncfs",
                "max_wal_size": "128MB",
                "deadlock_timeout": "50ms",
                **(settings or {}),
            }
        )

    def create_data(self):
        if LIBRARY:  # The user of PostgreSQL may not read the build directory.
            shutil.copy(LIBRARY, self.dir)
            (self.dir / pathlib.Path(LIBRARY).name).chmod(0o755)
        self.data_from(self.data)

    def _initdb(self, data):
        self.run(
            SERVER_BIN / "initdb",
            *("-D", data, "-A", "trust", "-U", "postgres"),
            *("--no-sync", "--no-locale", "-E", "UTF8"),
        )

    def command(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.dir,
            **({"dynamic_library_path": f"{self.dir}:$libdir"} if LIBRARY else {}),
            **self.settings,
        }
        words = [SERVER_BIN / "postgres", "-D", self.data, "-p", self.port]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        return words

    def accepts_connections(self):
        try:
            psycopg2.connect(self.dsn()).close()
        except psycopg2.OperationalError:
            return False
        return True

    def stop(self):
        """A clean stop: open sessions are ended, a checkpoint is written."""
        self.end(signal.SIGINT)

    def crash(self):
        """kill -9 of the postmaster and of every child at one moment, as a power cut would (but for
        the disk)."""
        postmaster = self.pid
        freeze([postmaster])  # So that it starts no child that we would miss.
        family = children(postmaster)
        send_signal([postmaster, *family], signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)
        self.process = None
        wait_until(lambda: not any(is_alive(pid) for pid in family), "every child has ended")

    def restart(self):
        """Starts it again, after a crash or with a clean stop before."""
        self.stop()
        return self.start()

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
        self.psql(install_script(), dbname)


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
                f"--- server log during "
                f"{self.id()}\n{self.cluster.log_text()[self._log_start:][-6000:]}---",
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
