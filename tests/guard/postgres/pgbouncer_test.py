"""The guard behind PgBouncer in transaction pooling: which ways of carrying a token are clean, and
which one leaks.

The pool has one server connection, so that two clients are sure to meet on it.
"""

import os
import shutil
import subprocess

import psycopg2

from pawltest import postgres
from pawltest.postgres import rows, wait_until
from pawltest.process import dies_with_parent, free_port

TABLE = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO orders VALUES (1, 0);
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
"""
UPDATE = "UPDATE orders SET n = n + 1"


class Pool:
    """A PgBouncer in front of a cluster."""

    def __init__(self, cluster, more=""):
        self.cluster = cluster
        self.port = free_port()
        self.dir = cluster.dir / f"pgbouncer-{self.port}"
        self.dir.mkdir()
        config = self.dir / "pgbouncer.ini"
        config.write_text(
            f"""
[databases]
* = host=127.0.0.1 port={cluster.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
logfile = {self.dir}/log
{more}
"""
        )
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        self.process = subprocess.Popen(
            dies_with_parent(["/usr/sbin/pgbouncer", "-q", config], user="postgres"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def connect(self, dbname, **more):
        # No session settings of the driver's own: they too would be the pool's.
        words = {
            "host": "127.0.0.1",
            "port": self.port,
            "dbname": dbname,
            "user": "postgres",
            **more,
        }
        return psycopg2.connect(" ".join(f"{name}={value}" for name, value in words.items()))

    def serves(self, dbname):
        if self.process.poll() is not None:
            raise AssertionError(
                f"pgbouncer ended: {(self.dir / 'log').read_text(errors='replace')}"
            )
        try:
            self.connect(dbname).close()
        except psycopg2.OperationalError:
            return False
        return True

    def stop(self):
        self.process.kill()
        self.process.wait()


class PoolCase(postgres.ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pool = Pool(cls.cluster)
        cls.addClassCleanup(cls.pool.stop)
        wait_until(lambda: cls.pool.serves("postgres"), "pgbouncer serves")

    def setUp(self):
        super().setUp()
        self.cluster.psql(TABLE, self.db)
        self.mine, self.other = self.pooled(), self.pooled()

    def pooled(self):
        session = self.pool.connect(self.db)
        self.addCleanup(session.close)
        return session

    def server(self, session):
        pid = rows(session, "SELECT pg_backend_pid()")[0][0]
        session.commit()
        return pid

    def written(self):
        return self.value("SELECT n FROM orders")


class TheFormsThatAreClean(PoolCase):
    def assertClean(self, carry, autocommit=False):
        """`carry(session, token)` writes once. Its token is gone with its transaction; a newer one
        refuses it."""
        self.mine.autocommit = autocommit
        self.assertEqual(
            self.server(self.mine),
            self.server(self.other),
            "both clients share one server connection",
        )
        rows(self.other, "SELECT pawl.use('orders', 1)")
        self.other.commit()
        carry(self.mine, 1)
        self.mine.commit()
        self.assertEqual(self.written(), 1)
        for session in (self.other, self.mine):
            self.assertRefused("PW001", rows, session, UPDATE)
            session.rollback()
        rows(self.other, "SELECT pawl.use('orders', 2)")
        self.other.commit()
        self.assertRefused("PW002", carry, self.mine, 1)
        self.mine.rollback()
        self.assertEqual(self.written(), 1)

    def test_use_is_safe_in_a_pool(self):
        self.assertClean(
            lambda session, token: (
                rows(session, "SELECT pawl.use('orders', %s)", token),
                rows(session, UPDATE),
            )
        )

    def test_set_local_is_safe_in_a_pool(self):
        self.assertClean(
            lambda session, token: (
                rows(session, f"SET LOCAL pawl.token.orders = {token}"),
                rows(session, UPDATE),
            )
        )

    def test_transaction_set_config_is_safe_in_a_pool(self):
        self.assertClean(
            lambda session, token: (
                rows(session, "SELECT set_config('pawl.token.orders', %s, true)", str(token)),
                rows(session, UPDATE),
            )
        )

    def test_check_and_write_in_one_message_is_safe_in_a_pool(self):
        self.assertClean(
            lambda session, token: rows(session, f"SELECT pawl.use('orders', {token}); {UPDATE}"),
            autocommit=True,
        )

    def test_function_that_checks_and_writes_is_safe_in_a_pool(self):
        self.cluster.psql(
            "CREATE FUNCTION work(token bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
            f"PERFORM pawl.use('orders', token); {UPDATE}; END $$",
            self.db,
        )
        self.assertClean(
            lambda session, token: rows(session, "SELECT work(%s)", token), autocommit=True
        )


class TheFormThatLeaks(PoolCase):
    def test_a_plain_set_admits_the_next_client_of_the_pool(self):
        """A known gap: no guard can distinguish a setting of this client from one that another left
        behind."""
        self.mine.autocommit = True
        rows(self.mine, "SET pawl.token.orders = 5")
        rows(self.mine, "SELECT pawl.advance('orders', 5)")
        rows(self.other, UPDATE)
        self.other.commit()
        self.assertEqual(self.written(), 1)

    def test_a_plain_set_of_the_bare_token_is_refused_unless_the_policy_accepts_it(self):
        self.mine.autocommit = True
        rows(self.mine, "SET pawl.token = 5")
        rows(self.mine, "SELECT pawl.advance('orders', 5)")
        self.assertRefused("PW001", rows, self.other, UPDATE)
        self.other.rollback()
        self.sql("SELECT pawl.set_policy('orders', bare_token => 'accept')")
        rows(self.other, UPDATE)
        self.other.commit()
        self.assertEqual(self.written(), 1)

    def test_a_token_in_the_startup_options_is_refused_by_the_pool(self):
        with self.assertRaises(psycopg2.OperationalError) as caught:
            psycopg2.connect(
                host="127.0.0.1",
                port=self.pool.port,
                dbname=self.db,
                user="postgres",
                options="-c pawl.token=5",
            )
        self.assertIn("options", str(caught.exception))


class WhatTheConnectionRemembers(PoolCase):
    """That a session has used a token belongs to the connection to the server, which clients of a
    pool share. An old program is one that has never used a token; require_token is off."""

    def setUp(self):
        super().setUp()
        self.sql("SELECT pawl.set_policy('orders', require_token => false)")

    def pool_with(self, more):
        pool = Pool(self.cluster, more)
        self.addCleanup(pool.stop)
        wait_until(lambda: pool.serves(self.db), "pgbouncer serves")
        return pool

    def use(self, session):
        rows(session, "SELECT pawl.use('orders', 5)")
        rows(session, UPDATE)
        session.commit()

    def client_of(self, pool):
        session = pool.connect(self.db)
        self.addCleanup(session.close)
        return session

    def test_an_old_program_writes_until_a_new_one_had_its_connection(self):
        rows(self.other, UPDATE)
        self.other.commit()
        self.use(self.mine)
        self.assertEqual(self.server(self.mine), self.server(self.other))
        error = self.assertRefused("PW001", rows, self.other, UPDATE)
        self.other.rollback()
        self.assertIn("in a session that has used one", error.diag.message_primary)
        self.assertIn("DISCARD ALL", error.diag.message_hint)
        self.assertEqual(self.written(), 2)

    def test_a_refused_token_is_remembered_for_the_next_client(self):
        """Its transaction is rolled back, and the memory is not."""
        self.sql("SELECT pawl.advance('orders', 6)")
        self.assertRefused("PW002", rows, self.mine, "SELECT pawl.use('orders', 5)")
        self.mine.rollback()
        self.assertRefused("PW001", rows, self.other, UPDATE)

    def test_reset_by_the_new_program_lets_the_old_one_write(self):
        self.use(self.mine)
        rows(self.mine, "SELECT pawl.reset()")
        self.mine.commit()
        rows(self.other, UPDATE)
        self.other.commit()
        self.assertEqual(self.written(), 2)

    def test_a_pool_that_discards_after_each_transaction_lets_the_old_one_write(self):
        pool = self.pool_with("server_reset_query = DISCARD ALL\nserver_reset_query_always = 1")
        mine, other = self.client_of(pool), self.client_of(pool)
        self.use(mine)
        self.assertEqual(self.server(mine), self.server(other))
        rows(other, UPDATE)
        other.commit()
        self.assertEqual(self.written(), 2)

    def test_an_old_program_with_a_pool_of_its_own_writes(self):
        other = self.client_of(self.pool_with(""))
        self.use(self.mine)
        rows(other, UPDATE)
        other.commit()
        self.assertEqual(self.written(), 2)

    def test_the_token_itself_never_passes_to_the_next_client(self):
        """Not even where the memory does: with require_token or not, it has to bring its own."""
        self.use(self.mine)
        self.assertEqual(
            rows(self.other, "SELECT nullif(current_setting('pawl.token.orders', true), '')"),
            [(None,)],
        )


if __name__ == "__main__":
    postgres.main()
