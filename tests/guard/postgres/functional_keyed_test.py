"""Resources with a key: a row (key =>), rows that share one (by =>), names without a table (keyed).
Design rule 8: a fence outlives what it guards."""

from later import Later
from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import ISOLATIONS, detail, rows


class Rows(OrdersCase):
    """Each row of `orders` is a resource."""

    def setUp(self):
        super().setUp()
        self.protect(key="id")

    def touch(self, row=1):
        return f"UPDATE orders SET n = n + 1 WHERE id = {row}"

    def tokens(self):
        return dict(
            self.sql("SELECT id, pawl_token FROM orders WHERE pawl_token > 0", on=self.admin)
        )

    def test_each_row_has_a_fence_of_its_own(self):
        self.assertEqual(self.under(34, self.touch(1), resource="orders:1"), "admitted")
        self.assertEqual(self.under(20, self.touch(2), resource="orders:2"), "admitted")
        error = self.assertRefused("PW002", self.under, 33, self.touch(1), resource="orders:1")
        self.assertEqual(
            detail(error), {"token": "33", "max": "34", "mode": "enforce", "resource": "orders:1"}
        )
        self.assertEqual(self.tokens(), {1: 34, 2: 20})

    def test_token_for_one_row_does_not_cover_another(self):
        self.assertRefused("PW001", self.under, 34, self.touch(2), resource="orders:1")
        self.assertRefused("PW001", self.under, 34, "UPDATE orders SET n = 1", resource="orders:1")
        self.assertEqual(self.tokens(), {})

    def test_a_plain_setting_holds_for_every_row(self):
        self.sql("SELECT pawl.advance('orders:2', 35)")
        self.carrying(34, self.touch(1), self.touch(3))
        self.assertRefused("PW002", self.carrying, 34, "UPDATE orders SET n = 1")
        self.assertEqual(self.tokens(), {1: 34, 2: 35, 3: 34})

    def test_writer_cannot_set_the_token_column(self):
        self.under(34, "UPDATE orders SET pawl_token = 1 WHERE id = 1", resource="orders:1")
        self.under(34, "UPDATE orders SET pawl_token = 99 WHERE id = 1", resource="orders:1")
        self.carrying(34, "INSERT INTO orders (id, pawl_token) VALUES (10, 7)")
        self.assertEqual(self.tokens(), {1: 34, 10: 34})

    def test_deleted_row_keeps_its_fence(self):
        self.under(34, "DELETE FROM orders WHERE id = 1", resource="orders:1")
        self.assertEqual(self.fence("orders:1"), 34)
        self.assertRefused("PW002", self.under, 33, resource="orders:1")
        self.assertRefused("PW002", self.carrying, 33, "INSERT INTO orders VALUES (1)")
        self.under(34, "INSERT INTO orders VALUES (1)", resource="orders:1")
        self.assertEqual(self.tokens(), {1: 34})

    def test_changing_the_key_is_checked_for_both_keys(self):
        self.carrying(34, "UPDATE orders SET id = 20 WHERE id = 1")
        self.assertEqual((self.fence("orders:1"), self.fence("orders:20")), (34, 34))
        self.assertRefused("PW002", self.carrying, 33, "UPDATE orders SET id = 1 WHERE id = 2")
        self.assertRefused(
            "PW001", self.under, 35, "UPDATE orders SET id = 30 WHERE id = 2", resource="orders:2"
        )

    def test_a_row_that_does_not_exist_yet_can_be_advanced(self):
        self.sql("SELECT pawl.advance('orders:77', 34)")
        self.assertRefused("PW002", self.carrying, 33, "INSERT INTO orders VALUES (77)")
        self.carrying(34, "INSERT INTO orders VALUES (77)")
        self.assertEqual(self.tokens(), {77: 34})

    def test_key_is_normalised_by_its_type(self):
        self.sql("SELECT pawl.advance('orders:007', 34)")
        self.assertEqual(self.fence("orders:7"), 34)
        self.under(34, self.touch(7), resource="orders: 7")
        self.assertEqual(self.n(7), 1)

    def test_insert_on_conflict_and_merge_are_checked_per_row(self):
        self.sql("SELECT pawl.advance('orders:2', 35)")
        upsert = "INSERT INTO orders VALUES (1), (2), (30) ON CONFLICT (id) DO UPDATE SET n = 5"
        self.assertRefused("PW002", self.carrying, 34, upsert)
        self.carrying(35, upsert)
        self.assertEqual(self.tokens(), {1: 35, 2: 35, 30: 35})
        merge = (
            "MERGE INTO orders o USING (VALUES (1), (31)) v(id) ON o.id = v.id WHEN MATCHED THEN "
            "DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)"
        )
        self.assertRefused("PW002", self.carrying, 34, merge)
        self.carrying(36, merge)
        self.assertEqual(self.tokens(), {2: 35, 30: 35, 31: 36})

    def test_truncate_needs_the_greatest_token_and_keeps_fences(self):
        self.under(34, self.touch(1), resource="orders:1")
        self.assertRefused("PW001", self.write, "TRUNCATE orders")
        self.assertRefused("PW001", self.under, 40, "TRUNCATE orders", resource="orders:1")
        self.assertRefused("PW002", self.carrying, 33, "TRUNCATE orders")
        self.carrying(40, "TRUNCATE orders")
        self.assertEqual(self.fence("orders:1"), 40)
        self.assertRefused("PW002", self.carrying, 39, "INSERT INTO orders VALUES (1)")

    def test_writes_let_through_do_not_move_the_fence(self):
        self.under(34, self.touch(1), resource="orders:1")
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.assertEqual(self.under(33, self.touch(1), resource="orders:1"), "stale")
        self.write(self.touch(1))
        self.carrying(33, "DELETE FROM orders WHERE id = 1")
        self.write("INSERT INTO orders VALUES (1)")
        self.assertEqual((self.tokens(), self.fence("orders:1")), ({1: 34}, 34))

    def test_compact_raises_a_floor_for_what_it_forgets(self):
        self.carrying(34, "DELETE FROM orders WHERE id < 5")
        self.carrying(40, "DELETE FROM orders WHERE id = 5")
        self.assertEqual(self.value("SELECT pawl.compact('orders', 35)"), 4)
        self.assertEqual(self.status()["floor"], 35)
        self.assertRefused("PW002", self.carrying, 34, "INSERT INTO orders VALUES (1)")
        self.assertRefused("PW002", self.carrying, 34, self.touch(9))
        self.assertRefused("PW002", self.carrying, 39, "INSERT INTO orders VALUES (5)")
        self.carrying(35, "INSERT INTO orders VALUES (1)")
        self.assertRefused("PW005", self.sql, "SELECT pawl.compact('orders', %s)", 2**50)
        self.assertRefused("PW003", self.sql, "SELECT pawl.compact('orders', 0)")

    def test_a_snapshot_without_the_row_still_meets_its_fence(self):
        for row, level in enumerate(ISOLATIONS, 50):
            with self.subTest(level=level):
                early = self.connect(isolation=level)
                rows(early, "SELECT 1")
                self.carrying(35, f"INSERT INTO orders VALUES ({row})")
                self.assertRefused(
                    "PW002" if level == "read committed" else "40001",
                    rows,
                    early,
                    f"SELECT pawl.use('orders:{row}', 34)",
                )
                early.rollback()
                self.assertRefused("PW002", rows, early, f"SELECT pawl.use('orders:{row}', 34)")

    def test_a_fence_that_did_not_reach_the_row_is_obeyed(self):
        # ON CONFLICT DO NOTHING: the write was admitted under 35, and the row still has 34.
        self.carrying(34, self.touch())
        self.carrying(35, "INSERT INTO orders VALUES (1) ON CONFLICT (id) DO NOTHING")
        self.assertEqual((self.fence("orders:1"), self.tokens()), (35, {1: 34}))
        for level in ISOLATIONS:
            with self.subTest(level=level):
                at = {"isolation": level}
                self.assertRefused("PW002", self.carrying, 34, self.touch(), **at)
                delete = "DELETE FROM orders WHERE id = 1"
                self.assertRefused("PW002", self.carrying, 34, delete, **at)
                self.assertRefused("PW002", self.under, 34, resource="orders:1", **at)
                self.carrying(35, self.touch(), **at)
        self.assertEqual((self.n(), self.tokens()), (4, {1: 35}))

    def test_a_snapshot_from_before_such_a_fence_meets_it(self):
        for row, level in enumerate(ISOLATIONS, 1):
            with self.subTest(level=level):
                self.carrying(34, self.touch(row))
                early = self.connect(isolation=level)
                rows(early, "SELECT 1")
                self.carrying(35, f"INSERT INTO orders VALUES ({row}) ON CONFLICT (id) DO NOTHING")
                rows(early, "SET LOCAL pawl.token.orders = '34'")
                expected = "PW002" if level == "read committed" else "40001"
                self.assertRefused(expected, rows, early, self.touch(row))
                early.rollback()

    def test_an_open_write_of_the_row_is_waited_for_by_an_insert_of_its_key(self):
        self.carrying(34, self.touch())
        old, new = self.connect(), self.connect()
        rows(old, "SET LOCAL pawl.token.orders = '34'")
        rows(old, self.touch())
        rows(new, "SET LOCAL pawl.token.orders = '35'")
        insert = "INSERT INTO orders VALUES (1) ON CONFLICT (id) DO NOTHING"
        later = Later(self.admin, new, rows, insert)
        self.assertTrue(later.waits())
        old.commit()
        later.result()
        new.commit()
        self.assertRefused("PW002", self.carrying, 34, self.touch())

    def test_rows_with_one_key_have_one_fence(self):
        # A child table has no unique index with its parent, and an owner may drop the index.
        self.carrying(35, self.touch())
        self.sql("CREATE TABLE more_orders () INHERITS (orders)", on=self.admin)
        insert = "INSERT INTO more_orders (id) VALUES (1)"
        self.assertRefused("PW002", self.carrying, 34, insert)
        self.sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey", on=self.admin)
        self.assertRefused("PW002", self.carrying, 34, "INSERT INTO orders (id) VALUES (1)")

    def test_rows_with_one_key_raise_one_fence(self):
        for place, change in (
            ("more_orders", "CREATE TABLE more_orders () INHERITS (orders)"),
            ("orders", "ALTER TABLE orders DROP CONSTRAINT orders_pkey CASCADE"),
        ):
            with self.subTest(change):
                self.sql(change, on=self.admin)
                first = self.fence("orders:1") or 40
                insert = f"INSERT INTO {place} (id, n) VALUES (1, 5)"
                self.carrying(first + 1, insert)
                self.carrying(first + 3, f"UPDATE {place} SET n = 6 WHERE id = 1 AND n = 5")
                other = "UPDATE ONLY orders SET n = 7 WHERE id = 1 AND n < 5"
                for token in (first, first + 1, first + 2):
                    self.assertRefused("PW002", self.carrying, token, other)
                self.assertRefused("PW002", self.under, first + 2, other, resource="orders:1")

    def test_a_writer_of_one_row_waits_for_one_of_the_same_key(self):
        self.carrying(34, self.touch())
        self.sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey", on=self.admin)
        self.carrying(34, "INSERT INTO orders (id, n) VALUES (1, 50)")
        new, old = self.connect(), self.connect()
        rows(new, "SET LOCAL pawl.token.orders = 35")
        rows(new, "UPDATE orders SET n = 51 WHERE n = 50")
        rows(old, "SET LOCAL pawl.token.orders = 34")
        later = Later(self.admin, old, rows, "UPDATE orders SET n = 7 WHERE id = 1 AND n < 50")
        self.assertTrue(later.waits())
        new.commit()
        self.assertRefused("PW002", later.result)

    def test_a_row_that_comes_back_without_its_token_is_fenced(self):
        # As the hint for changes of a table says: unprotect, change, protect in one transaction.
        self.carrying(35, "DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (1)")
        with self.connect() as db:
            rows(db, "SELECT pawl.unprotect('orders')")
            rows(db, "CREATE TABLE changed AS SELECT id, n FROM orders")
            rows(db, "ALTER TABLE changed ADD PRIMARY KEY (id)")
            rows(db, "DROP TABLE orders")
            rows(db, "ALTER TABLE changed RENAME TO orders")
            rows(db, "SELECT pawl.protect('orders', key => 'id', mode => 'enforce')")
        self.assertRefused("PW002", self.carrying, 34, self.touch())

    def test_advance_waits_for_the_writer_of_the_row_and_names_it(self):
        old = self.connect(application_name="frozen")
        rows(old, "SELECT pawl.use('orders:1', 34)")
        rows(old, self.touch(1))
        error = self.assertRefused(
            "PW007", self.sql, "SELECT pawl.advance('orders:1', 35, '300 ms')"
        )
        self.assertIn("application_name='frozen'", error.diag.message_detail)
        self.sql("SELECT pawl.advance('orders:2', 35, '300 ms')")  # Another row is not held up.
        self.assertEqual(
            self.value("SELECT application_name FROM pawl.blockers('orders:1') LIMIT 1"), "frozen"
        )
        self.assertEqual(self.value("SELECT pawl.evict('orders:1', 35)"), 1)
        self.sql("SELECT pawl.advance('orders:1', 35)")
        self.assertEqual(self.n(), 0)

    def test_advance_moves_the_fence_of_a_row_in_every_mode(self):
        for token, mode in ((34, "shadow"), (35, "observe")):
            self.sql("SELECT pawl.set_mode('orders', %s)", mode)
            self.sql("SELECT pawl.advance('orders:1', %s)", token)
            self.assertEqual((self.fence("orders:1"), self.tokens()), (token, {1: token}))

    def test_guard_without_its_table_is_reported(self):
        self.under(34, self.touch(1), resource="orders:1")
        self.sql("SELECT pawl.unprotect('orders')")
        self.assertRefused("PW004", self.under, 34, resource="orders:1")
        self.assertEqual(self.fence("orders:1"), 34)
        self.sql("SELECT pawl.protect('orders', key => 'id', mode => 'enforce')")
        self.assertRefused("PW002", self.under, 33, resource="orders:1")

    def test_a_hundred_thousand_rows_are_written_without_running_out_of_locks(self):
        self.cluster.psql(
            "SET session_replication_role = replica; ALTER TABLE orders DISABLE TRIGGER ALL;"
            "INSERT INTO orders SELECT generate_series(1000, 100999); SELECT pawl.repair()",
            self.db,
        )
        self.carrying(34, "UPDATE orders SET n = 1")
        self.assertEqual(self.value("SELECT count(*) FROM orders WHERE pawl_token = 34"), 100009)

    def test_a_key_that_names_no_single_row_is_refused(self):
        self.sql("CREATE TABLE loose (id int, n int)")
        for key in ("id", "n", "nothing"):
            self.assertRefused("42830", self.sql, "SELECT pawl.protect('loose', key => %s)", key)
        self.sql("CREATE TABLE taken (id int PRIMARY KEY, pawl_token text)")
        self.assertRefused("42701", self.sql, "SELECT pawl.protect('taken', key => 'id')")


class SharedByRows(OrdersCase):
    """Orders of one customer are one resource."""

    def setUp(self):
        super().setUp()
        self.protect(by="customer")

    def test_rows_of_one_customer_share_a_fence(self):
        self.under(34, "UPDATE orders SET n = 1 WHERE customer = 1", resource="orders:1")
        self.assertRefused("PW002", self.under, 33, resource="orders:1")
        self.under(20, "DELETE FROM orders WHERE id = 2", resource="orders:2")
        self.assertRefused(
            "PW001", self.under, 34, "DELETE FROM orders WHERE id = 5", resource="orders:1"
        )
        self.assertEqual(
            (self.fence("orders:1"), self.fence("orders:2"), self.fence("orders:0")), (34, 20, None)
        )

    def test_moving_a_row_touches_both_resources(self):
        move = "UPDATE orders SET customer = 2 WHERE id = 1"
        self.assertRefused("PW001", self.under, 34, move, resource="orders:1")
        self.under(34, move, resource=["orders:1", "orders:2"])
        self.assertEqual((self.fence("orders:1"), self.fence("orders:2")), (34, 34))

    def test_every_way_to_write_is_checked(self):
        self.sql("SELECT pawl.advance('orders:1', 34)")
        for sql in (
            "INSERT INTO orders VALUES (10, 1)",
            "UPDATE orders SET n = 1 WHERE id = 1",
            "DELETE FROM orders WHERE id = 1",
            "TRUNCATE orders",
            "INSERT INTO orders VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = 5",
            "MERGE INTO orders o USING (VALUES (1)) v(id) ON o.id = v.id WHEN MATCHED THEN DELETE",
        ):
            with self.subTest(sql=sql):
                self.assertRefused("PW001", self.write, sql)
                self.assertRefused("PW002", self.carrying, 33, sql)
                with self.connect() as db:
                    rows(db, "SET LOCAL pawl.token.orders = 34")
                    rows(db, sql)
                    db.rollback()

    def test_one_statement_over_many_resources_is_refused_as_a_whole(self):
        self.sql("SELECT pawl.advance('orders:2', 35)")
        self.assertRefused("PW002", self.carrying, 34, "UPDATE orders SET n = 1")
        self.assertEqual(self.fence("orders:1"), None)
        self.carrying(35, "UPDATE orders SET n = 1")
        self.carrying(35, "UPDATE orders SET n = 2")
        self.assertEqual([self.fence(f"orders:{i}") for i in range(3)], [35, 35, 35])

    def test_an_expression_that_is_null_is_a_resource_too(self):
        self.sql("CREATE TABLE notes (who text, n int)")
        self.protect(table="notes", by="lower(who)")
        self.assertRefused("PW001", self.write, "INSERT INTO notes VALUES (NULL, 1)")
        self.under(34, "INSERT INTO notes VALUES (NULL, 1)", resource="notes:")
        self.under(9, "INSERT INTO notes VALUES ('Ann', 1)", resource="notes:ann")

    def test_invalid_expression_is_refused_by_protect(self):
        self.sql("CREATE TABLE notes (who text)")
        self.assertRefused("42703", self.sql, "SELECT pawl.protect('notes', by => 'nobody')")
        self.assertEqual(self.sql("SELECT * FROM pawl.guard WHERE name = 'notes'"), [])

    def test_use_of_a_key_in_a_read_only_transaction_is_refused(self):
        self.sql("SELECT pawl.advance('orders:1', 34)")
        db = self.connect()
        for read_only in (False, True):
            rows(db, f"SET TRANSACTION READ {'ONLY' if read_only else 'WRITE'}")
            rows(db, "SELECT 1")
            if read_only:
                self.assertRefused("25006", rows, db, "SELECT pawl.use('orders:1', 34)")
            else:
                rows(db, "SELECT pawl.use('orders:1', 34)")
            db.rollback() if read_only else db.commit()

    def test_by_reads_columns_with_the_names_of_the_trigger_s_own_variables(self):
        self.sql("CREATE TABLE notes (held int, keys int, k int)")
        for column in ("held", "keys", "k"):
            self.protect(table="notes", by=column)
            self.under(34, "INSERT INTO notes VALUES (1, 1, 1)", resource="notes:1")
            self.under(34, "UPDATE notes SET held = 1", resource="notes:1")
            self.assertRefused(
                "PW002", self.under, 33, "DELETE FROM notes", resource="notes:1"
            )
            self.sql("SELECT pawl.unprotect('notes')")
            self.sql("SELECT pawl.drop_guard('notes')")

    def test_by_a_generated_column_holds_or_is_refused_by_protect(self):
        """Triggers do not see VIRTUAL ones, which PostgreSQL has from 18 on."""
        self.sql("CREATE TABLE notes (n int, g int GENERATED ALWAYS AS (n % 3) STORED)")
        self.protect(table="notes", by="g")
        self.under(34, "INSERT INTO notes VALUES (4)", resource="notes:1")
        self.assertRefused("PW002", self.under, 33, "DELETE FROM notes", resource="notes:1")
        if self.admin.server_version < 180000:
            return
        self.sql("CREATE TABLE v (n int, g int GENERATED ALWAYS AS (n % 3) VIRTUAL)")
        self.assertRefused("0A000", self.sql, "SELECT pawl.protect('v', by => 'g + 1')")
        self.protect(table="v", by="n % 3")
        self.under(34, "INSERT INTO v VALUES (4)", resource="v:1")

    def test_holders_of_one_token_do_not_wait_for_each_other(self):
        self.sql("SELECT pawl.advance('orders:1', 34)")
        one, two = self.connect(), self.connect()
        for db, row in ((one, 1), (two, 4)):
            rows(db, "SELECT pawl.use('orders:1', 34)")
            rows(db, f"UPDATE orders SET n = 1 WHERE id = {row}")
        two.commit()
        one.commit()

    def test_a_new_token_waits_for_the_transactions_of_the_old_one(self):
        self.sql("SELECT pawl.advance('orders:1', 34)")
        old = self.connect()
        rows(old, "SELECT pawl.use('orders:1', 34)")
        new = Later(self.admin, self.connect(), rows, "SELECT pawl.use('orders:1', 35)")
        self.assertTrue(new.waits())
        rows(old, "UPDATE orders SET n = 1 WHERE id = 1")
        old.commit()
        self.assertEqual(new.result(), [("admitted",)])


class Keys(OrdersCase):
    """Resources without a table."""

    def setUp(self):
        super().setUp()
        self.sql("SELECT pawl.create_guard('mail', keyed => true)")
        self.sql("SELECT pawl.set_mode('mail', 'enforce')")

    def admit(self, key, token):
        return self.value("SELECT pawl.admit(%s, %s)", f"mail:{key}", token)

    def test_each_key_has_a_fence_of_its_own_whatever_its_name(self):
        for key in ("a", "a:b", "", "Größe", "{", "x" * 512):
            with self.subTest(key=key):
                self.assertEqual(
                    (self.admit(key, 34), self.admit(key, 34)), ("admitted", "admitted")
                )
                self.assertRefused("PW002", self.admit, key, 33)
        self.assertEqual(self.admit("b", 1), "admitted")
        self.assertRefused("PW004", self.admit, "x" * 513, 1)
        self.assertRefused("PW004", self.sql, "SELECT pawl.admit('mail', 34)")

    def test_a_raise_that_is_rolled_back_is_undone_with_what_it_admitted(self):
        db = self.connect()
        rows(db, "SELECT pawl.admit('mail:a', 35)")
        db.rollback()
        self.assertEqual((self.fence("mail:a"), self.admit("a", 34)), (None, "admitted"))

    def test_raise_in_repeatable_read_is_refused(self):
        self.admit("a", 34)
        for level in ISOLATIONS[1:]:
            with self.subTest(level=level):
                db = self.connect(isolation=level)
                error = self.assertRefused("PW006", rows, db, "SELECT pawl.admit('mail:a', 35)")
                self.assertIn("pawl.advance('mail:a', token) before BEGIN", error.diag.message_hint)
                db.rollback()
                self.assertEqual(rows(db, "SELECT pawl.admit('mail:a', 34)"), [("admitted",)])
                # Nobody had it before.
                self.assertEqual(
                    rows(db, f"SELECT pawl.admit('mail:{level}', 35)"), [("admitted",)]
                )

    def test_blocker_of_a_new_key_is_named(self):
        first = self.connect(application_name="first")
        rows(first, "SELECT pawl.admit('mail:new', 34)")
        error = self.assertRefused(
            "PW007", self.sql, "SELECT pawl.advance('mail:new', 35, '100 ms')"
        )
        self.assertIn("application_name='first'", error.diag.message_detail)

    def test_shadow_never_waits(self):
        self.admit("a", 34)
        self.sql("SELECT pawl.set_mode('mail', 'shadow')")
        old = self.connect()
        rows(old, "SELECT * FROM pawl.keyed_fence FOR UPDATE")
        for token, verdict in ((33, "stale"), (34, "admitted"), (35, "admitted")):
            self.assertEqual(self.admit("a", token), verdict)
        old.rollback()
        self.assertEqual((self.admit("a", 36), self.fence("mail:a")), ("admitted", 36))


if __name__ == "__main__":
    postgres.main()
