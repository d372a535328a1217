"""What a change of tables does to a guard: partitions attached and detached, children, tables that
swap their names. The guard follows, or the change is refused, or problems() names it."""

from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import rows

PARTITIONED = (
    "CREATE TABLE orders (id int NOT NULL, customer int NOT NULL DEFAULT 1, "
    "n int NOT NULL DEFAULT 0) PARTITION BY RANGE (id)"
)
ATTACH = "ALTER TABLE orders ATTACH PARTITION orders_old FOR VALUES FROM (0) TO (1000)"
TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"


class MovedTables(OrdersCase):
    def assertGuarded(self, table="orders", setting="pawl.token.orders", insert=True):
        for sql in (
            f"UPDATE {table} SET n = n + 1 WHERE id = 1",
            f"DELETE FROM {table} WHERE id = 1",
            *([f"INSERT INTO {table} (id) VALUES (500)"] if insert else []),
        ):
            self.assertRefused("PW001", self.write, sql)
            self.assertRefused("PW002", self.carrying, 33, sql, setting=setting)

    def partition(self, *more):
        for sql in ("ALTER TABLE orders RENAME TO orders_old", PARTITIONED, *more, ATTACH):
            self.sql(sql)

    def test_a_table_that_becomes_a_partition_stays_guarded(self):
        for how in ({}, {"by": "customer"}):
            with self.subTest(how=how):
                self.protect(mode="observe", **how)
                self.sql("SELECT pawl.advance(%s, 34)", "orders:1" if how else "orders")
                self.partition()
                if how:  # A guard with keys has one table, and it follows once that is attached.
                    self.assertEqual(self.status()["tables"], ["public.orders"])
                self.sql("SELECT pawl.set_mode('orders', 'enforce')")
                self.assertGuarded()
                self.assertEqual(self.problems(), [])
                self.sql("ALTER TABLE orders DETACH PARTITION orders_old")
                self.assertGuarded("orders_old")
                self.sql("DROP TABLE orders")
                for (table,) in self.sql("SELECT tbl::oid::bigint FROM pawl.protected"):
                    self.sql(f"SELECT pawl.unprotect({table})")
                self.sql("SELECT pawl.unprotect('orders_old')") if how else None
                self.sql("SELECT pawl.drop_guard('orders')")
                self.sql("ALTER TABLE orders_old RENAME TO orders")

    def test_a_table_that_becomes_a_child_stays_guarded(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")
        self.sql("CREATE TABLE parent (id int NOT NULL, n int NOT NULL)")
        self.sql("ALTER TABLE orders INHERIT parent")
        self.assertGuarded("parent")
        self.assertGuarded("orders")
        self.assertEqual((self.status()["tables"], self.problems()), (["public.parent"], []))

    def test_a_change_that_a_guard_cannot_follow_is_refused(self):
        self.protect(by="customer")
        self.sql("CREATE TABLE parent (id int NOT NULL, n int NOT NULL)")
        error = self.assertRefused("55000", self.sql, "ALTER TABLE orders INHERIT parent")
        self.assertIn("would not be judged by the guard orders", error.diag.message_primary)
        self.assertIn("pawl.unprotect", error.diag.message_hint)
        self.sql("ALTER TABLE orders RENAME TO orders_old")
        self.assertRefused("55000", self.sql, "CREATE TABLE orders (id int)")
        self.sql("CREATE TABLE unrelated (id int)")

    def test_an_observing_guard_lets_it_happen_and_reports_it(self):
        self.protect(mode="observe", require_token=False, by="customer")
        self.sql("CREATE TABLE parent (id int NOT NULL, n int NOT NULL)")
        self.sql("ALTER TABLE orders INHERIT parent")
        ((severity, guard, object_, problem),) = self.problems()
        self.assertEqual((severity, guard, object_), ("error", "orders", "public.orders"))
        self.assertIn("a child of public.parent now", problem)
        self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('orders', 'enforce')")

    def test_a_table_that_takes_the_name_is_guarded(self):
        self.protect()
        self.sql("SELECT pawl.advance('orders', 34)")
        self.sql("CREATE TABLE orders_new (LIKE orders INCLUDING ALL)")
        with self.connect() as db:
            rows(db, "ALTER TABLE orders RENAME TO orders_old")
            rows(db, "ALTER TABLE orders_new RENAME TO orders")
        self.assertGuarded("orders")
        self.assertGuarded("orders_old")
        self.assertEqual(self.problems(), [])

    def test_without_the_event_trigger_problems_names_what_happened(self):
        self.protect(require_token=False)
        self.sql("DROP EVENT TRIGGER pawl_partitions")
        self.sql("SELECT pawl.set_mode('orders', 'shadow')")
        self.sql("ALTER TABLE orders RENAME TO orders_old")
        self.sql("CREATE TABLE orders (LIKE orders_old INCLUDING ALL)")
        ((severity, guard, object_, problem),) = self.problems()
        self.assertEqual((severity, guard, object_), ("error", "orders", "public.orders_old"))
        self.assertIn("has lost its name to public.orders", problem)
        self.assertFalse(self.value("SELECT ready FROM pawl.readiness('orders')"))
        self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('orders', 'enforce')")
        self.sql("DROP TABLE orders")
        self.sql(PARTITIONED)
        self.sql(ATTACH)
        self.assertIn("a child of public.orders now", self.problems()[0][3])
        self.sql("SELECT pawl.repair()")
        self.assertEqual([p[0] for p in self.problems() if p[0] == "error"], [])
        self.sql("SELECT pawl.set_mode('orders', 'enforce')")
        self.sql("SELECT pawl.advance('orders', 34)")
        self.assertRefused("PW002", self.carrying, 33, TOUCH)

    def test_a_detached_partition_of_a_row_guard_stays_guarded(self):
        self.cluster.psql(
            """
            CREATE TABLE parts (id int PRIMARY KEY, n int DEFAULT 0) PARTITION BY RANGE (id);
            CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            INSERT INTO parts VALUES (1);""",
            self.db,
        )
        self.protect(table="parts", key="id")
        self.carrying(34, "UPDATE parts SET n = 1", setting="pawl.token.parts")
        self.sql("ALTER TABLE parts DETACH PARTITION part_a")
        self.assertGuarded("part_a", setting="pawl.token.parts", insert=False)
        self.assertEqual([p[2] for p in self.problems()], ["public.part_a"])
        self.sql("SELECT pawl.unprotect('part_a')")
        self.write("UPDATE part_a SET n = 2")

    def fenced_partition(self):
        """A table with a fence per row, whose row 1 has the fence 34 in itself only."""
        self.cluster.psql(
            """
            CREATE TABLE parts (id int PRIMARY KEY, n int DEFAULT 0) PARTITION BY RANGE (id);
            CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            INSERT INTO parts VALUES (1);""",
            self.db,
        )
        self.protect(table="parts", key="id")
        self.carrying(34, "UPDATE parts SET n = 1", setting="pawl.token.parts")
        self.assertEqual(self.sql("SELECT key FROM pawl.keyed_fence"), [])

    def test_the_fences_of_a_detached_partition_stay(self):
        new = "CREATE TABLE part_b PARTITION OF parts FOR VALUES FROM (0) TO (1000)"
        insert = "INSERT INTO parts VALUES (1)"
        for how in ("", " CONCURRENTLY"):
            with self.subTest(how):
                self.fenced_partition()
                self.sql(f"ALTER TABLE parts DETACH PARTITION part_a{how}")
                self.sql(new)
                self.assertRefused("PW002", self.carrying, 33, insert, setting="pawl.token.parts")
                self.sql("DROP TABLE part_a")
                self.carrying(34, insert, setting="pawl.token.parts")
                self.sql("SELECT pawl.unprotect('parts')")
                self.sql("SELECT pawl.drop_guard('parts')")
                self.sql("DROP TABLE parts")

    def test_a_partition_is_not_dropped_with_the_fences_in_its_rows(self):
        self.fenced_partition()
        for drop in ("DROP TABLE part_a", "DROP TABLE IF EXISTS unrelated, part_a CASCADE"):
            error = self.assertRefused("55000", self.sql, drop)
            self.assertIn("DETACH PARTITION public.part_a first", error.diag.message_hint)
        self.sql("CREATE TABLE unrelated (id int)")
        self.sql("DROP TABLE unrelated")
        self.sql("SELECT pawl.set_mode('parts', 'shadow')")
        self.sql("DROP TABLE part_a", on=self.admin)
        self.assertIn("are gone with it", "".join(self.admin.notices))
        self.sql("SELECT pawl.set_mode('parts', 'enforce')")
        self.sql("DROP TABLE parts")

    def test_a_detached_partition_is_not_written_through_another_table(self):
        self.cluster.psql(
            """
            CREATE TABLE parts (id int NOT NULL, n int DEFAULT 0) PARTITION BY RANGE (id);
            CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            INSERT INTO parts VALUES (1);
            CREATE TABLE other (id int NOT NULL, n int DEFAULT 0) PARTITION BY RANGE (id);""",
            self.db,
        )
        self.protect(table="parts", by="id")
        self.sql("SELECT pawl.advance('parts:1', 34)")
        self.sql("ALTER TABLE parts DETACH PARTITION part_a")
        attach = "ALTER TABLE {} ATTACH PARTITION part_a FOR VALUES FROM (0) TO (1000)"
        error = self.assertRefused("55000", self.sql, attach.format("other"))
        self.assertIn("writes through that are not judged", error.diag.message_primary)
        self.sql("SELECT pawl.set_mode('parts', 'shadow')")
        self.sql(attach.format("other"))
        errors = [p[2:] for p in self.problems() if p[0] == "error"]
        self.assertEqual([table for table, _ in errors], ["public.part_a"])
        self.assertIn("is a partition or a child of public.other now", errors[0][1])
        self.sql("ALTER TABLE other DETACH PARTITION part_a")
        self.sql("SELECT pawl.set_mode('parts', 'enforce')")
        self.sql(attach.format("parts"))
        self.assertEqual(self.problems(), [])

    def test_rules_and_views_that_put_writes_elsewhere_are_named(self):
        self.protect()
        self.sql("CREATE RULE none AS ON DELETE TO orders DO INSTEAD NOTHING")
        self.assertEqual(self.problems(), [])
        self.sql("CREATE TABLE side (id int, n int)")
        self.sql(
            "CREATE RULE away AS ON UPDATE TO orders DO INSTEAD "
            "UPDATE side SET n = NEW.n WHERE id = OLD.id"
        )
        ((severity, guard, object_, problem),) = self.problems()
        self.assertEqual((severity, guard, object_), ("warning", "orders", "public.orders"))
        self.assertIn("the rule away of it puts writes elsewhere", problem)
        self.sql("DROP RULE away ON orders")
        self.sql("ALTER TABLE orders RENAME TO orders_t")
        self.sql("CREATE VIEW orders AS SELECT * FROM orders_t")
        self.assertEqual(self.problems(), [])
        self.sql(
            "CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
        )
        self.sql(
            "CREATE TRIGGER away INSTEAD OF UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION away()"
        )
        ((severity, _, _, problem),) = self.problems()
        self.assertEqual(severity, "warning")
        self.assertIn("a view has the name of a table under this guard", problem)

    def test_a_partition_made_with_its_schema_is_guarded(self):
        self.sql("CREATE TABLE parts (id int NOT NULL, n int DEFAULT 0) PARTITION BY RANGE (id)")
        self.protect(table="parts")
        self.sql(
            "CREATE SCHEMA archive CREATE TABLE part_a PARTITION OF public.parts "
            "FOR VALUES FROM (0) TO (9)"
        )
        self.assertRefused("PW001", self.write, "INSERT INTO archive.part_a VALUES (1)")
        self.assertEqual(self.problems(), [])


if __name__ == "__main__":
    postgres.main()
