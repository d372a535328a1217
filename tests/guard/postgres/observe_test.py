"""A guard in observe changes nothing: the same workload, at every isolation level, fails exactly as
often with it as without; nobody waits; and putting a table under guard makes no queue."""

import collections
import random
import threading

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, rows

TABLES = """
CREATE TABLE {name}_table (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE {name}_row (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
CREATE TABLE {name}_by (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
INSERT INTO {name}_table SELECT generate_series(1, 24000);
INSERT INTO {name}_row SELECT generate_series(1, 24000);
INSERT INTO {name}_by SELECT generate_series(1, 24000);
"""
GUARDS = """
SELECT pawl.protect('{name}_table');
SELECT pawl.protect('{name}_row', key => 'id');
SELECT pawl.protect('{name}_by', by => 'id % 5');
"""
WRITERS = 6


class Observe(OrdersCase):
    def workload(self, name, level, rounds=20):
        """Writers that never touch each other's rows, so that PostgreSQL itself has no reason to
        fail any of them; in SERIALIZABLE each reads only what it writes. Returns the SQLSTATEs."""
        failures = collections.Counter()
        together = threading.Barrier(WRITERS)

        def write(number):
            chance = random.Random(number)
            db = self.cluster.connect(self.db, isolation=level, application_name=f"w{number}")
            for turn in range(rounds):
                key = number * 4000 + turn + 1000
                try:
                    together.wait(timeout=120)
                    rows(db, "SELECT 1")
                    if number % 2 and chance.random() < 0.5:  # Half of them know tokens already.
                        token = 1 + turn // 4
                        for table in ("table", "row", "by"):
                            rows(db, f"SET LOCAL pawl.token.{name}_{table} = {token}")
                    for table in ("table", "row", "by"):
                        rows(db, f"UPDATE {name}_{table} SET n = n + 1 WHERE id = {key}")
                        rows(db, f"DELETE FROM {name}_{table} WHERE id = {key}")
                        rows(db, f"INSERT INTO {name}_{table} (id) VALUES ({key})")
                    together.wait(timeout=120)  # All are open at once.
                    db.commit()
                except postgres.psycopg2.Error as error:
                    failures[error.pgcode] += 1
                    db.rollback()
            db.close()

        threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failures

    def test_a_mixed_workload_fails_as_often_with_the_guard_as_without(self):
        self.cluster.psql(TABLES.format(name="plain") + TABLES.format(name="seen"), self.db)
        self.cluster.psql(GUARDS.format(name="seen"), self.db)
        # Sequential scans of small tables would lock all of them in SERIALIZABLE.
        self.sql(f"ALTER DATABASE {self.db} SET enable_seqscan = off")
        for level in ISOLATIONS:
            with self.subTest(level=level):
                self.assertEqual(self.workload("plain", level), self.workload("seen", level))

    def test_writers_without_a_token_do_not_fail_in_serializable(self):
        self.protect(mode="observe", require_token=False)
        self.sql(f"ALTER DATABASE {self.db} SET enable_seqscan = off")
        for turn in range(10):
            one, two = (
                self.connect(isolation="serializable", application_name=f"w{turn}-{n}")
                for n in (1, 2)
            )
            for db, row in ((one, 1), (two, 2)):
                rows(db, f"UPDATE orders SET n = n + 1 WHERE id = {row}")
            one.commit()
            two.commit()

    def test_a_transaction_older_than_the_guard_is_not_disturbed(self):
        self.sql("CREATE TABLE lines (id int PRIMARY KEY, n int)")
        self.sql("CREATE TABLE acct (id int PRIMARY KEY, n int)")
        for level in ISOLATIONS:
            with self.subTest(level=level):
                early = self.connect(isolation=level)
                rows(early, "SELECT 1")
                self.protect(mode="observe", require_token=False)
                self.protect(table="lines", mode="observe", require_token=False, by="n")
                self.protect(table="acct", mode="observe", require_token=False, key="id")
                rows(early, "UPDATE orders SET n = 5 WHERE id = 1")
                for table in ("lines", "acct"):
                    rows(early, f"INSERT INTO {table} VALUES (1, 1)")
                    rows(early, f"TRUNCATE {table}")
                early.commit()
                for table in ("orders", "lines", "acct"):
                    self.sql(f"SELECT pawl.unprotect('{table}')")
                    self.sql(f"SELECT pawl.drop_guard('{table}')")

    def test_a_transaction_older_than_an_enforcing_guard_is_to_retry(self):
        early = self.connect(isolation="repeatable read")
        rows(early, "SELECT 1")
        self.protect()
        self.assertRefused("40001", rows, early, "UPDATE orders SET n = 5 WHERE id = 1")

    def test_first_tokens_of_one_key_do_not_wait_for_each_other(self):
        self.protect(mode="observe", require_token=False, by="customer")
        one, two = self.connect(), self.connect()
        for db, first, second in ((one, 1, 2), (two, 2, 1)):
            rows(db, "SET LOCAL pawl.token.orders = 34")
        rows(one, "INSERT INTO orders VALUES (101, 501)")
        rows(two, "INSERT INTO orders VALUES (102, 502)")
        for db, number, customer in ((one, 103, 502), (two, 104, 501)):
            step = Later(self.admin, db, rows, f"INSERT INTO orders VALUES ({number}, {customer})")
            step.result()
        one.commit()
        two.commit()

    def test_upserts_that_touch_nothing_do_not_wait_for_each_other(self):
        self.protect(mode="observe", require_token=False, key="id")
        one, two = self.connect(), self.connect()
        for db in (one, two):
            step = Later(
                self.admin, db, rows, "INSERT INTO orders VALUES (1) ON CONFLICT DO NOTHING"
            )
            self.assertFalse(step.waits())
            step.result()

    def test_protect_makes_no_queue_behind_a_long_transaction(self):
        reader = self.connect()
        rows(reader, "UPDATE orders SET n = 1 WHERE id = 1")
        for how in ("", ", key => 'id'"):
            with self.subTest(how=how):
                change = Later(
                    self.admin,
                    self.connect(autocommit=True, application_name="migration"),
                    rows,
                    f"SELECT pawl.protect('orders'{how})",
                )
                for row in range(2, 6):  # Others go on.
                    self.write(f"UPDATE orders SET n = 1 WHERE id = {row}")
                error = self.assertRefused("PW007", change.result)
                self.assertIn("application_name='test'", error.diag.message_detail)
        reader.commit()
        self.protect(mode="observe", require_token=False)

    def test_shadow_after_observe_disturbs_no_open_transaction(self):
        self.protect(mode="observe", require_token=False)
        early = self.connect(isolation="repeatable read")
        rows(early, "SELECT 1")
        old = self.connect()
        rows(old, "UPDATE orders SET n = 1 WHERE id = 2")
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.sql("SELECT pawl.set_policy('orders', require_token => true)")
        rows(early, "UPDATE orders SET n = 5 WHERE id = 1")
        early.commit()
        old.commit()

    def test_old_sightings_are_forgotten(self):
        self.protect(mode="observe", require_token=False)
        self.sql(
            "INSERT INTO pawl.sightings (at, guard, login, role, application_name, pid, "
            "fingerprint, statement) SELECT now() - interval '31 days', 'orders', 'x', 'x', 'x', "
            "1, 'x', 'x' FROM generate_series(1, 150)"
        )
        db = self.connect(autocommit=True)
        for number in range(400):
            if not self.value("SELECT count(*) FROM pawl.sightings WHERE login = 'x'"):
                break
            rows(db, f"SET application_name = 'w{number}'")
            rows(db, "DISCARD ALL")
            rows(db, f"/* {chr(97 + number % 26)}{number} */ UPDATE orders SET n = 1 WHERE id = 1")
        else:
            self.fail("sightings of last month are still there")


    def test_no_setting_of_a_session_fails_its_writes(self):
        self.cluster.psql(TABLES.format(name="seen"), self.db)
        self.cluster.psql(GUARDS.format(name="seen"), self.db)
        for setting in ("standard_conforming_strings = off", "quote_all_identifiers = on"):
            with self.subTest(setting):
                db = self.connect(autocommit=True)
                rows(db, f"SET {setting}")
                for table in ("table", "row", "by"):
                    rows(db, f"UPDATE seen_{table} SET n = n + 1 WHERE id = 7 /* \"x, 1\" */")
                    rows(db, f"DELETE FROM seen_{table} WHERE id = 8")
                    rows(db, f"INSERT INTO seen_{table} VALUES (8)")

    def test_no_cast_of_the_database_fails_its_writes(self):
        # Databases of long ago have such casts: without them PostgreSQL 8.3 refused old programs.
        self.cluster.psql(TABLES.format(name="seen"), self.db)
        self.cluster.psql(GUARDS.format(name="seen"), self.db)
        for type_ in ("int", "bigint"):
            self.sql(f"CREATE CAST ({type_} AS text) WITH INOUT AS IMPLICIT")
        for mode in ("observe", "shadow", "enforce"):
            db = self.connect(autocommit=True)
            for table, resource in (("table", ""), ("row", ":7"), ("by", ":2")):
                with self.subTest(mode=mode, table=table):
                    self.sql("SELECT pawl.set_mode(%s, %s)", f"seen_{table}", mode)
                    write = f"UPDATE seen_{table} SET n = n + 1 WHERE id = 7"
                    if mode != "enforce":
                        rows(db, write)
                    rows(db, "SELECT pawl.advance(%s, 34)", f"seen_{table}{resource}")
                    rows(db, "BEGIN")
                    rows(db, "SELECT pawl.use(%s, 34)", f"seen_{table}{resource}")
                    rows(db, write)
                    rows(db, "COMMIT")
        self.sql("ALTER TABLE seen_by ADD more int")
        self.assertEqual(self.problems(), [])
        stale = "SELECT pawl.use('seen_table', 33)"
        self.assertRefused("PW002", rows, self.connect(), stale)

    def test_a_row_whose_key_cannot_be_computed_is_written_all_the_same(self):
        self.protect(mode="observe", require_token=False, by="10 / n")
        for mode in ("observe", "shadow"):
            self.sql("SELECT pawl.set_mode('orders', %s)", mode)
            self.write("INSERT INTO orders (id, n) VALUES (%d, 0)" % (70 + len(mode)))
            self.write("UPDATE orders SET n = 0 WHERE id = 1")
            ready, because = self.sql("SELECT * FROM pawl.readiness('orders')")[0]
            self.assertFalse(ready)
            self.assertIn("writes rows whose key cannot be computed: division", str(because))
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        self.assertRefused("22012", self.write, "UPDATE orders SET n = 0 WHERE id = 2")


if __name__ == "__main__":
    postgres.main()
