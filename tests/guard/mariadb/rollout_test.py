#!/usr/bin/python3
"""From observe to enforce, privileges, and what `problems` finds."""

import pymysql

from pawltest.mariadb import ServerCase, call, install_script, main, rows, state


class ModeTest(ServerCase):
    def test_observe_records_tokenless_writers(self):
        self.protect(mode="observe")
        self.write(34)
        self.assertEqual(self.write(33), "stale")
        self.assertEqual(self.value("SELECT pawl.fence(%s)", self.orders), 34)
        rows(self.connect(), "UPDATE orders SET n = 4711 WHERE id = 1")
        seen = rows(
            self.connect(),
            "SELECT login, statement FROM pawl.tokenless_writers WHERE guard = %s",
            self.orders,
        )
        self.assertEqual(
            [statement for _, statement in seen], ["UPDATE orders SET n = ? WHERE id = ?"]
        )
        self.assertEqual(
            (self.count("stale"), self.count("missing"), self.count("would_refuse")), (1, 1, 0)
        )

    def test_shadow_counts_what_it_would_refuse(self):
        self.protect(mode="shadow")
        self.write(34)
        self.assertEqual(self.write(33), "stale")
        self.assertEqual((self.count("stale"), self.count("would_refuse")), (1, 1))

    def test_refusals_are_counted_although_they_roll_back(self):
        self.protect()
        self.write(34)
        for _ in range(3):
            self.assertRefused("PW002", self.write, 33)
        self.assertEqual(self.count("stale"), 3)

    def test_change_of_mode_forgets_sightings_older_than_90_days(self):
        self.protect(mode="observe")
        rows(self.connect(), "UPDATE orders SET n = 1")
        other = self.protect("accounts", mode="observe")
        db = self.connect()
        sighted = "INSERT INTO pawl.sightings (at, guard, login, statement) VALUES"
        for guard, days in ((self.orders, 91), (self.orders, 89), (other, 91)):
            rows(
                db, f"{sighted} (NOW() - INTERVAL %s DAY, %s, 'old', 'UPDATE')", days, guard
            )
        call(self.connect(), "set_mode", self.orders, "shadow", None, None)
        kept = "SELECT guard, TIMESTAMPDIFF(DAY, at, NOW()) FROM pawl.sightings ORDER BY 1, 2"
        self.assertEqual(
            rows(self.connect(), kept), sorted([(self.orders, 0), (self.orders, 89), (other, 91)])
        )

    def test_require_token_refuses_a_missing_token(self):
        self.protect()
        rows(self.connect(), "UPDATE orders SET n = 1")
        call(self.connect(), "set_policy", self.orders, True, None, None, "now")
        self.assertRefused("PW001", rows, self.connect(), "UPDATE orders SET n = 2")

    def test_stricter_mode_waits_for_open_transactions(self):
        self.protect(mode="shadow")
        self.write(34)
        old = self.connect()
        rows(old, "START TRANSACTION")
        self.assertEqual(call(old, "use", self.orders, 33), [("stale",)])
        rows(old, "UPDATE orders SET n = 9")
        self.assertRefused(
            "PW007", call, self.connect(), "set_mode", self.orders, "enforce", None, None
        )
        rows(old, "COMMIT")
        call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        self.assertRefused("PW002", self.write, 33)

    def test_emergency_switch_takes_effect_at_once(self):
        self.protect()
        self.write(34)
        writer = self.connect()
        rows(writer, "START TRANSACTION")
        call(writer, "use", self.orders, 34)
        rows(writer, "UPDATE orders SET n = 2 WHERE id = 2")
        old = self.connect(isolation="REPEATABLE READ")
        rows(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        self.assertRefused("PW002", call, old, "use", self.orders, 33)
        call(self.connect(), "emergency", self.orders, "it refuses the wrong ones")
        self.assertEqual(call(old, "use", self.orders, 33), [("stale",)])
        rows(old, "UPDATE orders SET n = 3 WHERE id = 1")
        rows(writer, "COMMIT")
        rows(old, "COMMIT")
        self.assertEqual(
            self.value(
                "SELECT reason FROM pawl.audit WHERE guard = %s AND what = 'emergency'", self.orders
            ),
            "it refuses the wrong ones",
        )
        call(self.connect(), "set_mode", self.orders, "enforce", None, "mended")
        self.assertRefused("PW002", self.write, 33)

    def test_canary_refuses_a_stable_share_of_keys(self):
        guard = self.protect("lines", key="customer", mode="shadow")
        db = self.connect()
        for customer in range(40):
            call(db, "advance", f"{guard}:{customer}", 34, 5)

        def refused():
            found = set()
            for customer in range(40):
                try:
                    self.write(
                        33,
                        f"{guard}:{customer}",
                        f"INSERT INTO `lines` (customer) VALUES ({customer})",
                        on=db,
                    )
                except pymysql.MySQLError as error:
                    self.assertEqual(state(error), "PW002")
                    found.add(customer)
            return found

        call(self.connect(), "set_mode", guard, "canary", 30, None)
        some = refused()
        self.assertTrue(0 < len(some) < 40, some)
        self.assertEqual(refused(), some)
        call(self.connect(), "set_mode", guard, "canary", 70, None)
        self.assertLess(some, refused())


class RightsTest(ServerCase):
    def setUp(self):
        super().setUp()
        self.app = f"app_{self.db}"
        rows(self.connect(), f"CREATE USER {self.app}@localhost")
        rows(
            self.connect(),
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {self.db}.* TO {self.app}@localhost",
        )

    def problems(self):
        return [
            (severity, what)
            for severity, guard, _, what, _ in call(self.connect(), "problems")
            if guard in (self.orders, f"{self.db}.lines", None)
        ]

    def test_a_writer_can_use_tokens_and_nothing_else(self):
        self.protect()
        call(self.connect(), "add_writer", f"{self.app}@localhost")
        db = self.connect(self.app, isolation="READ COMMITTED")
        call(db, "advance", self.orders, 34, 5)
        self.write(34, on=db)
        self.assertRefused("PW002", self.write, 33, on=db)
        trigger = self.value(
            "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = %s AND "
            "event_manipulation = 'INSERT'",
            self.db,
        )
        number = self.value("SELECT id FROM pawl.guard WHERE name = %s", self.orders)
        for sql in (
            "UPDATE pawl.guard SET fence = 0",
            "DELETE FROM pawl.guard",
            "SELECT * FROM pawl.guard",
            f"SELECT NEXTVAL(pawl.emergency_{number})",
            f"CALL pawl.set_mode('{self.orders}', 'observe', NULL, NULL)",
            f"CALL pawl.emergency('{self.orders}', 'x')",
            f"CALL pawl.unprotect('{self.orders}')",
            "CALL pawl.compact('x', 1)",
            f"CALL pawl.add_writer('{self.app}@localhost')",
            "CALL pawl._try_advance('x', 1, 'x', NULL, @a, @b)",
            f"DROP TRIGGER {trigger}",
            "TRUNCATE TABLE orders",
        ):
            with self.assertRaises(pymysql.MySQLError, msg=sql) as caught:
                rows(db, sql)
            self.assertIn(
                caught.exception.args[0], (1142, 1370, 1227, 1044), (sql, caught.exception)
            )

    def test_problems_names_accounts_with_truncate(self):
        """TRUNCATE fires no trigger in MariaDB; the right to it is all there is to look at."""
        self.protect()
        self.assertEqual(self.problems(), [])
        rows(self.connect(), f"GRANT DROP ON {self.db}.* TO {self.app}@localhost")
        (found,) = self.problems()
        self.assertIn(self.app, found[1])
        self.assertIn("TRUNCATE", found[1])
        rows(self.connect(self.app), "TRUNCATE TABLE orders")

    def test_problems_names_foreign_keys_that_bypass_triggers(self):
        rows(
            self.connect(),
            "CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES "
            "orders (id) ON DELETE CASCADE)",
        )
        self.protect("child", guard=self.orders, mode="observe")
        (found,) = self.problems()
        self.assertEqual(found[0], "error")
        self.assertIn("CASCADE", found[1])
        self.protect()
        self.assertEqual(self.problems(), [])

    def test_a_missing_trigger_is_found_and_repaired(self):
        self.protect()
        ((name,),) = rows(
            self.connect(),
            "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = %s AND "
            "event_manipulation = 'UPDATE'",
            self.db,
        )
        rows(self.connect(), f"DROP TRIGGER {self.db}.{name}")
        self.assertEqual([severity for severity, _ in self.problems()], ["error"])
        call(self.connect(), "repair")
        self.assertEqual(self.problems(), [])

    def test_history_that_can_be_deleted_without_a_trigger_is_found(self):
        self.protect()
        rows(self.connect(), "ALTER TABLE orders ADD SYSTEM VERSIONING")
        self.write(34)
        self.assertEqual(rows(self.connect(), "DELETE HISTORY FROM orders"), [])
        ((severity, what),) = self.problems()
        self.assertEqual(severity, "error")
        self.assertIn("DELETE HISTORY", what)
        with self.assertRaisesRegex(pymysql.MySQLError, "DELETE HISTORY"):
            call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        rows(self.connect(), "CREATE TABLE versioned (id INT) WITH SYSTEM VERSIONING")
        with self.assertRaisesRegex(pymysql.MySQLError, "DELETE HISTORY"):
            self.protect("versioned")

    def test_a_column_that_the_triggers_need_is_found_when_it_is_gone(self):
        self.addCleanup(rows, self.connect(), f"DROP DATABASE {self.db}")
        self.protect()
        call(self.connect(), "token_column", self.orders, True)
        rows(self.connect(), "ALTER TABLE orders DROP COLUMN pawl_token")
        ((_, what),) = self.problems()
        self.assertIn("the column pawl_token is gone", what)
        self.protect("lines", key="customer")
        rows(self.connect(), "ALTER TABLE `lines` CHANGE customer other INT")
        self.assertIn("the key column customer is gone", self.problems()[0][1])
        rows(self.connect(), "ALTER TABLE `lines` CHANGE other customer INT")
        call(self.connect(), "token_column", self.orders, True)
        self.assertEqual(self.problems(), [])

    def test_a_table_that_cannot_be_repaired_does_not_keep_others_from_it(self):
        self.addCleanup(rows, self.connect(), f"DROP DATABASE {self.db}")
        for table in ("accounts", "orders"):
            self.protect(table)
        call(self.connect(), "token_column", f"{self.db}.accounts", True)
        rows(self.connect(), "ALTER TABLE accounts DROP COLUMN pawl_token")
        for (name,) in rows(
            self.connect(),
            "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = %s "
            "AND event_object_table = 'orders'",
            self.db,
        ):
            rows(self.connect(), f"DROP TRIGGER {name}")
        with self.assertRaisesRegex(pymysql.MySQLError, f"{self.db}.accounts: Unknown column"):
            call(self.connect(), "repair")
        self.assertEqual(self.problems(), [])
        self.server.install()  # It repairs, too.

    def test_a_table_that_changes_its_engine_is_found(self):
        self.protect()
        rows(self.connect(), "ALTER TABLE orders ENGINE=Aria")
        self.assertIn("error", [severity for severity, _ in self.problems()])

    def test_a_renamed_table_is_found(self):
        self.protect()
        rows(self.connect(), "RENAME TABLE orders TO elsewhere")
        self.assertEqual([severity for severity, _ in self.problems()], ["error", "warning"])

    def test_a_table_that_took_the_name_of_a_guarded_one_is_found_and_covered(self):
        """How online schema changes end."""
        self.protect()
        self.write(34)
        rows(self.connect(), "CREATE TABLE new AS SELECT * FROM orders")
        rows(self.connect(), "RENAME TABLE orders TO old, new TO orders")
        error = next(what for severity, what in self.problems() if severity == "error")
        self.assertIn(f"They are on {self.db}.old", error)
        with self.assertRaises(pymysql.MySQLError) as caught:
            call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        self.assertIn("CALL pawl.repair()", str(caught.exception))
        call(self.connect(), "repair")
        self.assertEqual(self.problems(), [])
        self.assertRefused("PW002", self.write, 33)

    def test_repair_leaves_a_renamed_table_behind_a_view_under_guard(self):
        self.protect()
        admin = self.connect()
        call(admin, "advance", self.orders, 40, 5)
        rows(admin, "RENAME TABLE orders TO orders_base")
        rows(admin, "CREATE VIEW orders AS SELECT * FROM orders_base")
        self.assertIn("a view has the name", str(call(admin, "problems")))
        call(admin, "repair")
        self.assertRefused("PW002", self.write, 33)
        self.assertIn("a view has the name", str(call(admin, "problems")))

    def test_foreign_key_to_another_database_is_named_with_it(self):
        admin = self.connect()
        rows(admin, f"CREATE DATABASE {self.db}_other")
        self.addCleanup(rows, admin, f"DROP DATABASE {self.db}_other")
        rows(admin, f"CREATE TABLE {self.db}_other.customers (id INT PRIMARY KEY)")
        rows(
            admin,
            f"CREATE TABLE kept (id INT, FOREIGN KEY (id) REFERENCES {self.db}_other.customers (id)"
            " ON DELETE CASCADE)",
        )
        self.addCleanup(rows, admin, "DROP TABLE kept")
        self.protect("kept", mode="observe")
        fixes = [row[4] for row in call(admin, "problems") if row[1] == f"{self.db}.kept"]
        self.assertIn(f"put {self.db}_other.customers under the same guard", str(fixes))

    def test_enforce_is_refused_until_what_fires_no_trigger_is_acknowledged(self):
        self.protect(mode="shadow")
        rows(self.connect(), f"GRANT ALTER, DROP ON {self.db}.* TO {self.app}@localhost")
        with self.assertRaises(pymysql.MySQLError) as caught:
            call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        self.assertIn("EXCHANGE PARTITION", str(caught.exception))
        code = f"ddl '{self.app}'@'localhost'"
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "acknowledge", self.orders, code, "")
        with self.assertRaises(pymysql.MySQLError):
            call(self.connect(), "acknowledge", self.orders, "ddl nobody", "a reason")
        call(self.connect(), "acknowledge", self.orders, code, "it runs the migrations")
        call(self.connect(), "set_mode", self.orders, "enforce", None, None)
        ((severity, what),) = self.problems()
        self.assertEqual(severity, "warning")
        self.assertIn("it runs the migrations", what)

    def test_guard_outlives_the_account_that_installed_it(self):
        """Else every write would end with 1449."""
        self.addCleanup(self.server.install)
        rows(self.connect(), "CREATE USER installer@localhost")
        rows(self.connect(), "GRANT ALL ON *.* TO installer@localhost WITH GRANT OPTION")
        done = self.server.client(install_script(), user="installer")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        installer = self.connect("installer")
        call(installer, "protect", self.orders, None, None, "enforce")
        rows(self.connect(), "DROP USER installer@localhost")
        self.assertEqual(self.write(34), "admitted")
        self.assertRefused("PW002", self.write, 33)
        self.assertEqual(self.problems(), [])
        call(self.connect(), "emergency", self.orders, "it works")

    def test_nobody_can_log_in_as_the_account_of_the_guard(self):
        with self.assertRaises(pymysql.MySQLError):
            self.connect("pawl_definer")

    def test_unprotect_drops_triggers_and_keeps_the_fence(self):
        self.protect()
        self.write(34)
        call(self.connect(), "unprotect", self.orders)
        rows(self.connect(), "UPDATE orders SET n = 9")
        self.protect()
        self.assertRefused("PW002", self.write, 33)


if __name__ == "__main__":
    main()
