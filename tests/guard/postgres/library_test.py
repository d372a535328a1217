"""The optional C library of the guard: it is used where it is, and where it is not or goes away, no
write gets past the guard. That both decide alike, the other tests say: they run with and without.

Environment: PAWL_POSTGRES_LIBRARY is the library, PAWL the program. """

import json
import os
import pathlib
import re
import subprocess

import psycopg2

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import LIBRARY, install_script, rows

TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"
# Functions of PL/pgSQL that decide; an admitted write calls none of them when C admits it.
DECISIONS = ("_use", "_admit", "_decide", "_on_statement", "_row_stays", "_on_keys")


class Library(OrdersCase):
    settings = {"track_functions": "all"}

    def file(self):
        return self.cluster.dir / pathlib.Path(LIBRARY).name

    def take_away(self):
        gone = self.file().with_suffix(".gone")
        self.file().rename(gone)
        self.addCleanup(gone.rename, self.file())

    def install(self, wanted):
        self.cluster.psql(
            f"SET pawl.library = {wanted};\n"
            + install_script(library=False).replace("SET pawl.library = off;\n", ""),
            self.db,
        )

    def fast_path(self):
        return self.value("SELECT pawl.fast_path()")

    def problems(self):
        return [problem for (problem,) in self.sql("SELECT problem FROM pawl.problems()")]

    def calls(self):
        return dict(self.sql("SELECT funcname, calls FROM pg_stat_user_functions"))

    def functions_called(self, use, touch=TOUCH, isolation=None):
        """By the third transaction of a session: the first one notes that it uses tokens."""
        db = self.connect(isolation=isolation)
        for _ in range(2):
            rows(db, use)
            rows(db, touch)
            db.commit()
            rows(db, "SELECT pg_stat_reset(), pg_stat_force_next_flush()")
            db.commit()
        before = self.calls()
        rows(db, use)
        rows(db, touch)
        db.commit()
        rows(db, "SELECT pg_stat_force_next_flush()")
        db.commit()
        after = self.calls()
        return {name for name in after if after[name] > before.get(name, 0)}

    def decided(self, made):
        return {name for name in made if name in DECISIONS or re.match("(use|judge)_[0-9]", name)}

    def assertAdmittedByC(self, use, touch=TOUCH):
        made = self.functions_called(use, touch)
        self.assertEqual(self.decided(made), set())
        self.assertTrue(any(name.startswith("_c_") for name in made), made)

    def test_each_kind_of_guard_is_judged_by_c(self):
        kinds = (({}, "orders"), ({"key": "id"}, "orders:1"), ({"by": "id"}, "orders:1"))
        for how, resource in (*kinds, ({"by": "id % 5"}, "orders:1")):
            with self.subTest(how):
                self.protect(**how)
                self.sql(f"SELECT pawl.advance('{resource}', 34)")
                self.assertAdmittedByC(f"SELECT pawl.use('{resource}', 34)")
                self.assertAdmittedByC("SELECT set_config('pawl.token.orders', '34', true)")
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_c_decides_nothing_on_a_snapshot_that_may_be_old(self):
        for isolation in ("repeatable read", "serializable"):
            for carry in ("SELECT pawl.use('orders:1', 34)", "SET LOCAL pawl.token.orders = 34"):
                for how in ({"key": "id"}, {"by": "id"}):
                    with self.subTest(isolation, carry=carry, **how):
                        self.setUp()
                        self.admitted_once(how)
                        made = self.functions_called(carry, isolation=isolation)
                        self.assertNotEqual(self.decided(made), set(), made)

    def test_keys_of_each_common_type_are_judged_by_c(self):
        uuid = "6f1c2a7e-0d4b-4c39-9a55-0b6f7e8d9c01"
        keys = (("smallint", "-3"), ("bigint", "5000000000"), ("uuid", uuid), ("text", 'a"b: ü'))
        for number, (kind, key) in enumerate((*keys, ("varchar(40)", "7"))):
            for how in ("key", "by"):
                with self.subTest(kind, how=how):
                    name = f"typed_{how}_{number}"
                    self.sql(f"CREATE TABLE {name} (k {kind} PRIMARY KEY, n int DEFAULT 0)")
                    self.sql(f"INSERT INTO {name} VALUES (%s)", key)
                    self.protect(table=name, **{how: "k"})
                    self.sql("SELECT pawl.advance(%s, 34)", f"{name}:{key}")
                    self.assertAdmittedByC(
                        f"SELECT pawl.use('{name}:{key}', 34)", f"UPDATE {name} SET n = n + 1"
                    )

    def test_a_key_in_another_spelling_is_the_same_key(self):
        self.protect(key="id")
        self.assertEqual(self.under(34, TOUCH, resource="orders:1"), "admitted")
        self.assertEqual(self.under(34, TOUCH, resource="orders:+001"), "admitted")
        self.assertRefused("PW002", self.under, 33, TOUCH, resource="orders:+001")
        self.assertRefused("22003", self.under, 34, resource="orders:99999999999999999999")
        self.assertRefused("22P02", self.under, 34, resource="orders:1x")

    def admitted_once(self, how, resource="orders:1"):
        """A session in which C admits the token 34 from now on."""
        self.protect(**how)
        db = self.connect()
        for _ in range(2):
            rows(db, f"SELECT pawl.use('{resource}', 34)")
            rows(db, TOUCH)
            db.commit()
        return db

    def test_a_statement_that_touches_a_second_key_is_not_admitted_for_the_first(self):
        for how in ({"key": "id"}, {"by": "id"}, {"by": "id % 5"}):
            with self.subTest(how):
                self.setUp()
                db = self.admitted_once(how)
                self.sql("SELECT pawl.advance('orders:2', 35)")
                for statement in (
                    "UPDATE orders SET n = n + 1 WHERE id IN (1, 2)",
                    "UPDATE orders SET id = 12 WHERE id = 1",
                    "UPDATE orders SET n = n + 1 WHERE id = 2",
                    "DELETE FROM orders WHERE id <= 2",
                    "INSERT INTO orders (id) VALUES (12)",
                ):
                    rows(db, "SELECT pawl.use('orders:1', 34)")
                    self.assertRefused("PW001", rows, db, statement)
                    db.rollback()

    def test_a_smaller_token_is_refused_where_c_admitted_it_before(self):
        """The fence is raised by a write, so that for a row guard only the row has it."""
        for how in ({"key": "id"}, {"by": "id"}, {"by": "id % 5"}):
            with self.subTest(how):
                self.setUp()
                db = self.admitted_once(how)
                self.carrying(35, TOUCH)
                for carry in (
                    "SELECT pawl.use('orders:1', 34)",
                    "SET LOCAL pawl.token.orders = 34",
                    """SET LOCAL pawl.token.orders = '{"1": "34"}'""",
                ):
                    with self.assertRaises(psycopg2.Error, msg=carry) as refused:
                        rows(db, carry)
                        rows(db, TOUCH)
                    self.assertEqual(refused.exception.pgcode, "PW002", carry)
                    if "use" in carry:
                        self.assertIn("pawl._use(", refused.exception.diag.context)
                    db.rollback()

    def test_use_waits_for_who_raises_the_fence_of_its_row(self):
        for how in ({"key": "id"}, {"by": "id"}):
            with self.subTest(how):
                self.setUp()
                db = self.admitted_once(how)
                raiser = self.connect()
                rows(raiser, "SELECT pawl.use('orders:1', 35)")
                rows(raiser, TOUCH)
                later = Later(self.admin, db, rows, "SELECT pawl.use('orders:1', 34)").settled()
                self.assertFalse(later.ended)
                raiser.commit()
                self.assertRefused("PW002", later.result)
                db.rollback()

    def test_a_fence_that_is_kept_beside_the_row_counts(self):
        db = self.admitted_once({"key": "id"})
        self.under(
            35, "INSERT INTO orders (id) VALUES (1) ON CONFLICT DO NOTHING", resource="orders:1"
        )
        self.sql("ALTER TABLE orders DISABLE TRIGGER zzz_pawl_guard")
        self.sql("UPDATE orders SET pawl_token = 34 WHERE id = 1")
        self.sql("ALTER TABLE orders ENABLE ALWAYS TRIGGER zzz_pawl_guard")
        self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders:1', 34)")
        db.rollback()
        rows(db, "SET LOCAL pawl.token.orders = 34")
        self.assertRefused("PW002", rows, db, TOUCH)

    def test_a_fence_that_was_raised_after_the_snapshot_counts(self):
        """A statement waits after its snapshot was taken, then calls use(). The second raise does
        not reach the row: only the fence that is kept for its key tells."""
        raises = (
            ("SELECT pawl.advance('orders:1', 35)",),
            (
                "SET LOCAL pawl.token.orders = 35",
                "INSERT INTO orders (id) VALUES (1) ON CONFLICT DO NOTHING",
            ),
        )
        for how in ({"key": "id"}, {"by": "id"}):
            for raising in raises:
                if how == {"by": "id"} and len(raising) == 2:
                    continue  # A statement without rows has no key.
                with self.subTest(how, raising=raising):
                    self.setUp()
                    db = self.admitted_once(how)
                    rows(self.admin, "SELECT pg_advisory_lock(99)")
                    waiting = "SELECT pawl.use('orders:1', 34) FROM pg_advisory_lock_shared(99)"
                    watch = self.connect(autocommit=True)
                    later = Later(watch, db, rows, waiting).settled()
                    self.assertFalse(later.ended)
                    with self.connect() as raiser:
                        for statement in raising:
                            rows(raiser, statement)
                    rows(self.admin, "SELECT pg_advisory_unlock(99)")
                    self.assertRefused("PW002", later.result)
                    db.rollback()

    def test_a_row_is_not_locked_where_nothing_is_refused(self):
        db = self.admitted_once({"key": "id"})
        for relax in (
            "SELECT pawl.set_mode('orders', 'observe')",
            "SELECT pawl.set_mode('orders', 'enforce'), pawl.emergency('a test', 'orders')",
        ):
            self.sql(relax)
            rows(db, "SELECT pawl.use('orders:1', 34)")
            self.sql("SELECT FROM orders WHERE id = 1 FOR UPDATE NOWAIT")
            db.commit()

    def test_a_change_of_the_table_is_noticed_by_sessions_that_used_it(self):
        """Nothing that C looks up is remembered from one call to the next."""
        for change in (
            "ALTER TABLE orders ALTER id TYPE bigint",
            "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
            "ALTER TABLE orders RENAME TO others",
            "ALTER TABLE orders ADD COLUMN more int; ALTER TABLE orders DROP COLUMN customer",
            "SELECT pawl.drop_guard('orders') FROM pawl.unprotect('orders')",
        ):
            with self.subTest(change):
                self.setUp()
                db = self.admitted_once({"key": "id"})
                self.sql(change)
                table = "others" if "others" in change else "orders"
                touch = f"UPDATE {table} SET n = n + 1 WHERE id = 1"
                if "drop_guard" in change:
                    self.assertRefused("PW004", rows, db, "SELECT pawl.use('orders:1', 34)")
                    continue
                rows(db, "SELECT pawl.use('orders:1', 34)")
                rows(db, touch)
                db.commit()
                self.sql("SELECT pawl.advance('orders:1', 35)")
                self.assertRefused("PW002", rows, db, "SELECT pawl.use('orders:1', 34)")
                db.rollback()
                rows(db, "SET LOCAL pawl.token.orders = 34")
                self.assertRefused("PW002", rows, db, touch)
                db.rollback()

    def test_the_guard_says_which_is_in_force(self):
        self.assertEqual(self.fast_path(), "C")
        self.install("off")
        self.assertEqual(self.fast_path(), "PL/pgSQL")
        self.install("auto")
        self.assertEqual(self.fast_path(), "C")

    def guard(self, verb, *words, **environment):
        done = subprocess.run(
            [os.environ["PAWL"], "guard", verb, "postgres", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**os.environ, "PAWL_GUARD_DSN": self.cluster.dsn(self.db), **environment},
        )
        return done.stdout

    def test_pawl_guard_says_which_is_in_force(self):
        self.protect()
        self.assertIn("fast path: C\n", self.guard("check"))
        self.assertIn(
            "fast path in PL/pgSQL", self.guard("install", PGOPTIONS="-c pawl.library=off")
        )
        self.assertEqual(json.loads(self.guard("check", "--json"))["fast_path"], "PL/pgSQL")
        self.assertIn("fast path in C", self.guard("install"))

    def test_a_server_without_the_library_gets_the_guard_without_it(self):
        self.protect()
        self.take_away()
        self.install("auto")
        self.assertEqual(self.fast_path(), "PL/pgSQL")
        self.assertEqual(self.under(34, TOUCH), "admitted")
        self.assertRefused("PW002", self.under, 33, TOUCH)
        self.assertEqual(self.problems(), [])

    def test_an_installation_that_requires_it_fails_without_it(self):
        self.take_away()
        with self.assertRaisesRegex(AssertionError, "58P01"):
            self.install("required")

    def test_no_write_passes_when_the_library_is_lost(self):
        self.protect()
        self.under(34, TOUCH)
        self.take_away()
        self.assertRefused("58P01", self.under, 34, TOUCH)
        self.assertRefused("58P01", self.carrying, 33, TOUCH)
        self.assertRefused("58P01", self.write)
        self.assertIn("pawl_guard cannot be loaded", " ".join(self.problems()))
        self.install("auto")
        self.assertRefused("PW002", self.carrying, 33, TOUCH)
        self.assertEqual(self.under(34, TOUCH), "admitted")

    def test_a_dump_restored_where_the_library_is_not_lets_no_write_pass(self):
        self.protect()
        self.under(34, TOUCH)
        dump = self.cluster.tool("pg_dump", self.db).stdout
        self.take_away()
        self.cluster.psql("CREATE DATABASE restored")
        self.addCleanup(self.cluster.psql, "DROP DATABASE restored")
        lines = [line for line in dump.splitlines() if not line.startswith("\\restrict")]
        self.cluster.psql(
            "\\set ON_ERROR_STOP off\n" + "\n".join(lines), "restored", check=False
        )
        self.db = "restored"
        self.assertRefused("42883", self.write)
        self.assertIn("pawl_guard cannot be loaded", " ".join(self.problems()))
        self.install("auto")
        self.assertRefused("PW002", self.carrying, 33, TOUCH)
        self.assertEqual(self.value("SELECT n FROM orders WHERE id = 1"), 1)


if __name__ == "__main__":
    postgres.main()
