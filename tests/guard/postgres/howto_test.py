"""docs/how-to/guard-postgres.md: its SQL does what it says, from the first block to the last, as
one person would type it."""

import os
import re
import subprocess

import psycopg2

from pawltest import ROOT, postgres
from pawltest.harness import Pawld
from pawltest.postgres import BIN

PAWL = os.environ["PAWL"]
PAGE = ROOT / "docs/how-to/guard-postgres.md"
TABLES = """
CREATE ROLE app LOGIN; CREATE ROLE shop_owner LOGIN;
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1);
CREATE TABLE items (id int);
CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); INSERT INTO accounts VALUES (7);
CREATE TABLE lines (customer_id int, n int NOT NULL DEFAULT 0); INSERT INTO lines VALUES (1), (2);
"""


def sql_blocks():
    blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) > 8
    return blocks


class HowTo(postgres.ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pawld = Pawld()
        cls.addClassCleanup(cls.pawld.remove)
        cls.pawld.start()
        # So that an invented number in the page would be refused.
        with cls.pawld.client() as client:
            client.call("RAISE", 1000, "REASON", "test")

    def pawl(self, *words, code=0, **options):
        done = subprocess.run(
            [PAWL, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PAWL_ADDR": f"127.0.0.1:{self.pawld.port}"},
            **options,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def psql_under_a_lease(self, text, code=0):
        return self.pawl(
            "run",
            "orders",
            "--",
            BIN / "psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=verbose",
            "-d",
            self.cluster.dsn(self.db),
            "-f",
            "-",
            input=text,
            code=code,
        )

    def test_every_block_of_the_page_works(self):
        self.cluster.psql(TABLES, self.db)
        self.addCleanup(self.sql, "DROP OWNED BY app, shop_owner; DROP ROLE app, shop_owner")
        # As the page says: psql under a lease.
        page = self.psql_under_a_lease("\n".join(sql_blocks()))
        self.assertEqual(
            page.stdout.splitlines()[1:3],
            ["", "admitted"],
            "advance answers the fence before it; use answers admitted",
        )
        token = self.value("SELECT pawl.fence('orders')")
        self.assertGreater(token, 1000)
        self.assertEqual(self.sql("SELECT n FROM orders"), [(4,)])
        self.assertEqual(self.sql("SELECT token FROM runs"), [(token,)])
        self.assertEqual(self.sql("SELECT n, pawl_token FROM accounts"), [(1, token)])
        self.assertEqual(self.sql("SELECT * FROM pawl.problems()"), [])
        with self.subTest("the block that says what happens once, run again under the next lease"):
            once = next(block for block in sql_blocks() if "INSERT INTO runs" in block)
            again = once.partition("\n")[2]  # The table is there.
            self.assertIn(
                "23505",
                self.psql_under_a_lease("\\set token `echo $PAWL_TOKEN`\n" + again, code=3).stderr,
            )
            self.assertEqual(self.sql("SELECT n FROM orders"), [(4,)])

    def test_documented_grants_allow_evict_without_superuser(
        self,
    ):
        grants = next(block for block in sql_blocks() if "pg_signal_backend" in block)
        self.cluster.psql("CREATE ROLE app LOGIN; CREATE ROLE shop_owner LOGIN")
        self.addCleanup(self.cluster.psql, "DROP ROLE app, shop_owner")
        self.cluster.psql("CREATE DATABASE owned OWNER shop_owner")
        self.addCleanup(self.cluster.psql, "DROP DATABASE owned WITH (FORCE)")
        owner = self.cluster.dsn("owned", "shop_owner")
        self.cluster.psql(
            "CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL DEFAULT 0); GRANT ALL ON "
            "orders TO app",
            "owned",
            "shop_owner",
        )
        for words in (
            ["install", "postgres"],
            ["protect", "postgres", "orders", "--mode", "enforce"],
        ):
            self.pawl("guard", *words, "--dsn", owner)
        frozen = self.cluster.connect("owned", "app", application_name="frozen")
        self.addCleanup(frozen.close)
        postgres.rows(frozen, "SELECT pawl.use('orders', 1)")
        run = [
            "run",
            "orders",
            "--guard",
            "postgres:orders",
            "--guard-dsn",
            self.cluster.dsn("owned", "app"),
            "--guard-wait",
            "50ms",
            "--guard-evict",
            "--",
            "echo",
            "ran",
        ]
        self.assertIn("permission denied", self.pawl(*run, code=125).stderr)
        self.cluster.psql(grants, "owned")
        self.assertEqual(self.pawl(*run).stdout, "ran\n")
        with self.assertRaises(psycopg2.Error):
            frozen.commit()
        self.assertEqual(
            self.cluster.psql(
                "SHOW idle_in_transaction_session_timeout", "owned", "app"
            ).stdout.strip(),
            "10s",
        )

    def test_page_names_every_sqlstate(self):
        states = set(re.findall(r"PW\d{3}", postgres.install_script()))
        self.assertEqual(
            set(re.findall(r"^\| `(PW\d{3})`", PAGE.read_text(encoding="utf-8"), re.M)), states
        )


if __name__ == "__main__":
    postgres.main()
