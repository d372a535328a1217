"""A private MariaDB for a test: its own directory, socket and port, gone when the test is.

    with Server() as server:
        server.install()                             # as from guards/mariadb/pawl.sql
        db = server.connect(isolation="REPEATABLE READ")
        call(db, "use", "shop.orders", 34)
        server.crash()                               # kill -9
        server.start()

It listens on a free loopback port and on a socket in its own directory; root needs no password.
Logs are written at every commit, because crashes are part of what is tested; they are not synced to
the disk, because what is written outlives kill -9. As root the server runs as the user mysql. """

import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import pymysql

from pawltest import ROOT
from pawltest.database import DatabaseServer
from pawltest.wait import PATIENCE, wait_until  # noqa: F401  (tests import them from here)

GUARD = pathlib.Path(os.environ.get("PAWL_GUARD_SQL", ROOT / "guards/mariadb/pawl.sql"))
NO_SYNC = {"innodb_flush_method": "nosync", "debug_no_sync": 1}
ISOLATIONS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


def install_script():
    """GUARD with the parts that it includes, as the build makes it."""
    return re.sub(
        r"^source (.+)$",
        lambda line: (GUARD.parent / line[1]).read_text(encoding="utf-8"),
        GUARD.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )


class Server(DatabaseServer):
    title = "MariaDB"
    user = "mysql"

    def __init__(self, settings=None):
        super().__init__(
            {
                "innodb_buffer_pool_size": "64M",
                "innodb_log_file_size": "16M",
                "max_connections": 120,
                **NO_SYNC,
                **(settings or {}),
            }
        )

    @property
    def socket(self):
        return self.dir / "socket"

    def create_data(self):
        self.run(
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--tmpdir={self.dir}",  # See command().
            *[f"--{name}={value}" for name, value in NO_SYNC.items()],
        )

    def command(self):
        return [
            shutil.which("mariadbd", path="/usr/sbin:/usr/bin"),
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--pid-file={self.dir}/pid",
            # Not /tmp: a server that starts deletes there what looks like its own.
            f"--tmpdir={self.dir}",
            *[f"--{name}={value}" for name, value in self.settings.items()],
        ]

    def accepts_connections(self):
        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def stop(self):
        self.end(signal.SIGTERM)

    def crash(self):
        """kill -9, as a power cut would (but for the disk)."""
        self.end(signal.SIGKILL)

    def dsn(self, user="root", **more):
        words = {"host": "127.0.0.1", "port": self.port, "user": user, **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def connect(self, user="root", isolation=None, autocommit=True, **more):
        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=user,
            autocommit=autocommit,
            charset="utf8mb4",
            connect_timeout=60,
            **more,
        )
        if isolation:
            rows(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
        return connection

    def client(self, text, user="root", options=()):
        """Runs the mariadb client on the text; a CompletedProcess."""
        return subprocess.run(
            [
                "mariadb",
                "--no-defaults",
                f"--socket={self.socket}",
                f"--user={user}",
                "--default-character-set=utf8mb4",
                "--batch",
                "--skip-column-names",
                *options,
            ],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )

    def install(self):
        done = self.client(install_script())
        if done.returncode:
            raise AssertionError(f"the guard does not install:\n{done.stderr}")


def rows(connection, text, *values):
    """Runs one statement; the rows of its last result, or of the only one."""
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return list(cursor.fetchall())


def call(connection, procedure, *values):
    """CALL pawl.procedure(values); the rows it answers."""
    with connection.cursor() as cursor:
        cursor.execute(f"CALL pawl.{procedure}({', '.join(['%s'] * len(values))})", values)
        answered = list(cursor.fetchall()) if cursor.description else []
        while cursor.nextset():
            pass
        return answered


def state(error):
    """The verdict's SQLSTATE as the guard has spelled it. PyMySQL drops SQLSTATEs, so it is
    derived from the message."""
    words = str(error.args[1])
    for begin, code in (
        ("pawl: stale", "PW002"),
        ("pawl: malformed", "PW003"),
        ("pawl: unknown", "PW004"),
        ("pawl: this operation", "PW008"),
        ("pawl: advance of", "PW007"),
        ("pawl: the policy", "PW007"),
        ("pawl: the fence", "40001"),
        ("pawl: a new token", "PW006"),
        ("pawl: a token", "PW006"),
        ("pawl: advance()", "PW006"),
        ("pawl: check()", "PW006"),
    ):
        if words.startswith(begin):
            return code
    if words.startswith("pawl: ") and "forged or corrupt" in words:
        return "PW005"
    if words.startswith("pawl: write") or words.startswith("pawl: token"):
        return "PW001"
    return {1213: "40001", 1205: "1205"}.get(error.args[0], words)


def detail(error):
    return dict(re.findall(r"(\w+)=(\w+)", str(error.args[1]).rpartition("[")[2]))


class ServerCase(unittest.TestCase):
    """One server per class in self.server; one database per test, in self.db, with the tables
    orders, accounts and lines."""

    maxDiff = None
    settings = {}
    _numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.settings)
        cls.addClassCleanup(cls.server.remove)
        cls.server.start()
        cls.server.install()

    def setUp(self):
        self.db = f"t{next(self._numbers)}"
        self.orders = f"{self.db}.orders"
        admin = self.connect(database=None)
        rows(admin, f"CREATE DATABASE {self.db}")
        for table, key in (("orders", "id"), ("accounts", "id"), ("lines", "customer")):
            rows(
                admin,
                f"CREATE TABLE {self.db}.`{table}` (id INT AUTO_INCREMENT PRIMARY KEY, "
                f"{'n' if key == 'id' else 'customer INT, n'} INT NOT NULL DEFAULT 0)",
            )
        rows(admin, f"INSERT INTO {self.db}.orders (id, n) VALUES (1, 0), (2, 0)")

    def connect(self, user="root", **options):
        connection = self.server.connect(user, **{"database": self.db, **options})
        self.addCleanup(connection.close)
        return connection

    def protect(self, table="orders", key=None, mode="enforce", guard=None):
        return call(self.connect(), "protect", f"{self.db}.{table}", guard, key, mode)[0][0]

    def write(
        self, token, resource=None, sql="UPDATE orders SET n = n + 1 WHERE id = 1", on=None, op=None
    ):
        """One whole transaction, READ COMMITTED unless `on` says otherwise; the verdict."""
        db = on or self.connect(isolation="READ COMMITTED")
        rows(db, "START TRANSACTION")
        try:
            verdict = call(
                db,
                *(
                    ("use", resource or self.orders, token)
                    if op is None
                    else ("use_op", resource or self.orders, token, op)
                ),
            )[0][0]
            if verdict != "replayed":
                rows(db, sql)
            rows(db, "COMMIT")
            return verdict
        except pymysql.MySQLError:
            rows(db, "ROLLBACK")
            raise

    def value(self, text, *values, on=None):
        (row,) = rows(on or self.connect(), text, *values)
        return row[0]

    def count(self, verdict, guard=None):
        with self.connect().cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("CALL pawl.status(%s)", (guard or self.orders,))
            return cursor.fetchone()[verdict]

    def assertRefused(self, code, work, *values, **more):
        with self.assertRaises(pymysql.MySQLError) as caught:
            work(*values, **more)
        self.assertEqual(state(caught.exception), code, caught.exception)
        return caught.exception


def main():
    unittest.main(module="__main__", verbosity=2)
