"""One protected table, written by Python, Node.js and psql: the guard is in the table, so it holds
for each of them."""

import json
import pathlib
import subprocess

from pawltest import node_clients, postgres

HERE = pathlib.Path(__file__).resolve().parent

SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO orders VALUES (1, 0);
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') THEN CREATE ROLE app LOGIN; END IF; END $$;
GRANT SELECT, UPDATE ON orders TO app;
"""


class Languages(postgres.ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node_modules = node_clients.installed()

    def setUp(self):
        super().setUp()
        self.cluster.psql(SHOP, self.db)

    def python(self, token, value=1):
        return self.program(["/usr/bin/python3", HERE / "clients/write.py"], token, value)

    def node(self, token, value=1):
        return self.program(
            ["node", HERE / "clients/write.mjs"], token, value, cwd=self.node_modules
        )

    def program(self, command, token, value, cwd=None):
        done = subprocess.run(
            [*command, str(self.cluster.port), self.db, str(token), str(value)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def psql(self, token, value=1):
        use = "" if token == "none" else f"SELECT pawl.use('orders', {token});"
        done = self.cluster.psql(
            f"BEGIN; {use} UPDATE orders SET n = {value}; COMMIT;", self.db, user="app", check=False
        )
        return {"wrote": done.returncode == 0, "message": done.stderr}

    def test_newer_token_in_one_language_fences_the_others(self):
        for token, (newer, older) in enumerate(
            ((self.python, self.node), (self.node, self.psql), (self.psql, self.python)), 34
        ):
            with self.subTest(newer=newer.__name__, older=older.__name__):
                self.assertEqual(
                    newer(token, token),
                    {"wrote": True} if newer != self.psql else {"wrote": True, "message": ""},
                )
                met = older(token - 1, 666)
                self.assertFalse(met["wrote"])
                self.assertIn("stale", met["message"])
                if "code" in met:
                    self.assertEqual(met["code"], "PW002")
                    self.assertIn(
                        f"token={token - 1} max={token} mode=enforce resource=orders", met["detail"]
                    )
                self.assertEqual(self.value("SELECT n FROM orders"), token)

    def test_a_write_without_a_token_is_refused_in_every_language(self):
        for write in (self.python, self.node):
            self.assertEqual(write("none")["code"], "PW001")
        self.assertIn("PW001", self.psql("none")["message"])
        self.assertEqual(self.value("SELECT n FROM orders"), 0)

    def test_greatest_token_is_exact_in_every_language(self):
        most = 2**53 - 1
        self.sql("SELECT pawl.set_policy('orders', max_step => %s)", most)
        for write in (self.python, self.node, self.psql):
            self.assertTrue(write(most)["wrote"])
            self.assertFalse(write(most - 1)["wrote"])
        self.assertEqual(self.value("SELECT pawl.fence('orders')"), most)


if __name__ == "__main__":
    postgres.main()
