"""The optional C library of the guard: it is used where it is, and where it is not or goes away, no
write gets past the guard. That both decide alike, the other tests say: they run with and without.

Environment: PAWL_POSTGRES_LIBRARY is the library. """

import pathlib

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

    def assertAdmittedByC(self, use, touch=TOUCH):
        """The second transaction of a session: the first one notes that it uses tokens."""
        db = self.connect()
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
        made = {name for name in after if after[name] > before.get(name, 0)}
        self.assertFalse(made.intersection(DECISIONS), made)
        self.assertTrue(any(name.startswith("_c_") for name in made), made)

    def test_each_kind_of_guard_is_judged_by_c(self):
        kinds = (({}, "orders"), ({"key": "id"}, "orders:1"), ({"by": "id"}, "orders:1"))
        for how, resource in kinds:
            with self.subTest(how):
                self.protect(**how)
                self.sql(f"SELECT pawl.advance('{resource}', 34)")
                self.assertAdmittedByC(f"SELECT pawl.use('{resource}', 34)")
                self.assertAdmittedByC("SELECT set_config('pawl.token.orders', '34', true)")
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_the_guard_says_which_is_in_force(self):
        self.assertEqual(self.fast_path(), "C")
        self.install("off")
        self.assertEqual(self.fast_path(), "PL/pgSQL")
        self.install("auto")
        self.assertEqual(self.fast_path(), "C")

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
