"""docs/how-to/python.md and node.md: their jobs write invoices to PostgreSQL under a lock and a
guard, once, whatever happens.

Environment: PAWL and PAWLD are the binaries.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

from pawltest import ROOT, harness, node_clients, postgres
from pawltest.postgres import PATIENCE, wait_until
from pawltest.process import dies_with_parent

CUSTOMERS = 3
ROLE = (
    "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') THEN CREATE ROLE app "
    "LOGIN; END IF; END $$;"
)
STALE = 121


def setUpModule():
    """One PostgreSQL and one pawld for both languages."""
    Jobs.cluster, Jobs.pawld = postgres.Cluster(), harness.Pawld()
    for server in (Jobs.cluster, Jobs.pawld):
        unittest.addModuleCleanup(server.remove)
        server.start()


class LostCommit(threading.Thread):
    """Forwards to PostgreSQL, and ends the connection instead of passing on the answer to the
    second COMMIT."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.to, self.commits = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with near, socket.create_connection(("127.0.0.1", self.to)) as far:
                self.forward(near, far)

    def forward(self, near, far):
        """Until the client hangs up, or has sent the second COMMIT."""
        answer = threading.Thread(target=self.copy, args=(far, near), daemon=True)
        answer.start()
        while data := near.recv(65536):
            if b"COMMIT" in data:
                self.commits += 1
                if self.commits == 2:
                    near.shutdown(socket.SHUT_RDWR)  # No answer can be sent any more.
                    far.sendall(data)
                    break
            far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        answer.join()  # Until PostgreSQL has done what was sent.

    @staticmethod
    def copy(source, target):
        while data := source.recv(65536):
            with contextlib.suppress(OSError):
                target.sendall(data)


class Jobs:
    """A subclass says what its page is, and how its programs are started: program(name)."""

    @classmethod
    def setUpClass(cls):
        pass  # Not ClusterCase's: setUpModule has started one.

    def setUp(self):
        super().setUp()
        (tables,) = re.findall(
            r"^```sql\n(.*?)^```$",
            (ROOT / "docs/how-to" / self.page).read_text(encoding="utf-8"),
            re.M | re.S,
        )
        self.cluster.psql(
            ROLE + tables + f"INSERT INTO customers SELECT generate_series(1, {CUSTOMERS})", self.db
        )
        own = {key: value for key, value in os.environ.items() if not key.startswith("PAWL_")}
        self.environment = {
            **own,
            "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}",
            "PAWL_GUARD_DSN": f"postgres://app@127.0.0.1:{self.cluster.port}/{self.db}",
        }

    def start(self, *command):
        process = subprocess.Popen(
            dies_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def assertEnds(self, process, code):
        output = process.communicate(timeout=PATIENCE)[0]
        self.assertEqual(process.returncode, code, output)
        return output

    def run_with_pawl(self, *options):
        return self.start(
            os.environ["PAWL"],
            "run",
            "billing/nightly",
            *options,
            "--guard",
            "postgres:invoices",
            "--",
            *self.program("job"),
            "2026-11",
        )

    def invoices(self):
        return self.value("SELECT count(*) FROM invoices")

    def sessions(self, more=""):
        """The pids of the job's sessions."""
        return [
            row[0]
            for row in self.sql(
                f"SELECT pid FROM pg_stat_activity WHERE datname = '{self.db}' AND usename = 'app' "
                f"{more}"
            )
        ]

    def held_up(self, *command):
        """A job that waits inside its transaction, having inserted its row into runs; and the
        session that holds it up."""
        other = self.connect()
        other.cursor().execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
        job = self.start(*command)
        (session,) = wait_until(
            lambda: self.sessions("AND wait_event_type = 'Lock'"), "the job waits"
        )
        return job, session, other

    def test_job_under_pawl_run_writes_once(self):
        self.assertEnds(self.run_with_pawl(), 0)
        self.assertEqual(self.invoices(), CUSTOMERS)
        self.assertEnds(self.run_with_pawl("--no-wait"), 0)
        self.assertEqual(self.invoices(), CUSTOMERS)
        self.assertEqual(self.value("SELECT pawl.fence('invoices')"), self.last_token())

    def last_token(self):
        with self.pawld.client() as client:
            return harness.fields(client.call("HISTORY", "billing/nightly")[0])["token"]

    def test_job_in_its_own_process_writes_once(self):
        for _ in range(2):
            self.assertEnds(self.start(*self.program("invoices"), "2026-11"), 0)
            self.assertEqual(self.invoices(), CUSTOMERS)

    def test_job_writes_once_over_a_lost_connection(self):
        job, session, other = self.held_up(*self.program("invoices"), "2026-11")
        self.assertTrue(self.value("SELECT pg_terminate_backend(%s)", session))
        wait_until(
            lambda: self.sessions(f"AND wait_event_type = 'Lock' AND pid <> {session}"),
            "it tries again",
        )
        other.rollback()
        self.assertEnds(job, 0)
        self.assertEqual(self.invoices(), CUSTOMERS)

    def test_job_writes_once_when_the_commit_reply_is_lost(self):
        proxy = LostCommit(self.cluster.port)
        self.addCleanup(proxy.listener.close)
        self.environment["PAWL_GUARD_DSN"] = f"postgres://app@127.0.0.1:{proxy.port}/{self.db}"
        self.assertEnds(self.start(*self.program("invoices"), "2026-11"), 0)
        # The fence, the invoices, and the retry that found them written.
        self.assertEqual(proxy.commits, 3)
        self.assertEqual(self.invoices(), CUSTOMERS)

    def test_newer_token_ends_the_job(self):
        self.sql("SELECT pawl.advance('invoices', 1000000)")
        self.assertIn(
            "stale token", self.assertEnds(self.start(*self.program("invoices"), "2026-11"), STALE)
        )
        self.assertEqual(self.invoices(), 0)

    def test_job_frozen_in_its_transaction_is_ended_by_a_timeout(self):
        self.assertEqual(
            self.value(
                "SELECT setconfig FROM pg_db_role_setting JOIN pg_roles ON oid = setrole WHERE "
                "rolname = 'app'"
            ),
            ["idle_in_transaction_session_timeout=10s"],
        )
        # So that nobody waits for 10 s.
        self.sql("ALTER ROLE app SET idle_in_transaction_session_timeout = '1500ms'")
        self.environment["PAWL_TOKEN"] = "1"
        job, session, other = self.held_up(*self.program("job"), "2026-11")
        job.send_signal(signal.SIGSTOP)
        other.rollback()
        wait_until(lambda: session not in self.sessions(), "its session is ended")
        self.sql("SELECT pawl.advance('invoices', 2)")
        job.send_signal(signal.SIGCONT)
        self.assertNotEqual(self.assertEnds(job, 1), "")
        self.assertEqual(self.invoices(), 0)


class Python(Jobs, postgres.ClusterCase):
    page = "python.md"

    def program(self, name):
        return ["/usr/bin/python3", ROOT / f"examples/python-worker/{name}.py"]


class Node(Jobs, postgres.ClusterCase):
    page = "node.md"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.project = harness.scratch("node-worker")
        cls.addClassCleanup(shutil.rmtree, cls.project)
        shutil.copytree(ROOT / "examples/node-worker", cls.project, dirs_exist_ok=True)
        node_clients.link(cls.project, "redis", "pg")

    def program(self, name):
        return ["node", self.project / f"{name}.mjs"]


if __name__ == "__main__":
    postgres.main()
