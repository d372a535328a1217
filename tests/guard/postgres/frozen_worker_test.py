"""A worker frozen past its lease wakes up and writes to PostgreSQL, and the table refuses.

Real pawld, real `pawl run`, real PostgreSQL; plain psql, and C++ with libpawl.
See pawltest/frozen_worker.py.

Environment: PAWL and PAWLD are the binaries, FROZEN_WORKER the worker in C++.
"""


from pawltest import frozen_worker, postgres


SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO orders VALUES (1, 0);
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
"""
PSQL = """
write() { psql -d "$DSN" $OPTIONS -c BEGIN -c "SELECT pawl.use('orders', $PAWL_TOKEN)" -c "UPDATE orders SET n = $1" -c COMMIT; }
"""
ADVANCES = """psql -d "$DSN" $OPTIONS -c "SELECT pawl.advance('orders', $PAWL_TOKEN)" """


class FrozenWorker(frozen_worker.FrozenWorkerTest, postgres.ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_pawld()

    def setUp(self):
        super().setUp()
        self.cluster.psql(SHOP, self.db)
        self.dsn = self.cluster.dsn(self.db, application_name="worker")
        self.prepare(DSN=self.dsn, OPTIONS="-X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose")

    def n(self):
        return self.value("SELECT n FROM orders")

    def assertRefusedAndCounted(self, old_token, new_token, met):
        self.assertIn("stale token", met)
        self.assertEqual(self.value("SELECT stale FROM pawl.status WHERE guard = 'orders'"), 1)
        self.assertEqual(
            self.sql("SELECT guard, verdict, token, max FROM pawl.refusals"),
            [("orders", "stale", old_token, new_token)],
        )
        self.assertRegex(
            self.cluster.log_text()[self._log_start :], r"pawl: refused \{.*" + str(old_token)
        )

    def test_shell_worker_is_refused(self):
        old_token, new_token, met = self.run_shell_workers(PSQL, "write 2")
        self.assertIn("PW002", met)
        self.assertIn(f"token={old_token} max={new_token} mode=enforce resource=orders", met)
        self.assertRefusedAndCounted(old_token, new_token, met)
        self.assertEqual(self.n(), 2)

    def test_worker_is_refused_before_the_new_holder_writes(self):
        self.assertRefusedAndCounted(*self.run_shell_workers(PSQL, ADVANCES))
        self.assertEqual(self.n(), 1)

    def test_cpp_worker_is_stopped_by_its_lease_and_by_the_table(self):
        self.assertRefusedAndCounted(*self.run_cpp_workers("postgres", self.dsn, "orders"))


if __name__ == "__main__":
    postgres.main()
