"""What a change of names, keys, types, functions, triggers and owners does to a guard. One that
refuses follows it or refuses it; one that observes follows it, or problems() names what happened,
and no write fails."""

from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import BIN, SERVER_BIN, rows

TOUCH = "UPDATE orders SET n = n + 1 WHERE id = 1"
FOREIGN = """
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far (id int NOT NULL, n int) SERVER files OPTIONS (filename '/dev/null');
CREATE TABLE parts (id int NOT NULL, n int) PARTITION BY RANGE (id);
CREATE TABLE near PARTITION OF parts FOR VALUES FROM (0) TO (10);
"""
ATTACH = "ALTER TABLE parts ATTACH PARTITION far FOR VALUES FROM (10) TO (20)"


class Changes(OrdersCase):
    def guard(self, mode="enforce", **how):
        """Protects orders, with the fence of order 1 at 34."""
        self.protect(mode=mode, require_token=False, **how)
        self.sql("SELECT pawl.advance(%s, 34)", "orders:1" if how else "orders")

    def one_transaction(self, *statements):
        with self.connect() as db:
            for statement in statements:
                rows(db, statement)

    def assertStale(self, sql=TOUCH):
        self.assertRefused("PW002", self.carrying, 33, sql)

    def assertProblem(self, text, object_="public.orders"):
        found = [p for p in self.problems() if p[0] == "error"]
        self.assertEqual([p[1:3] for p in found], [("orders", object_)])
        self.assertIn(text, found[0][3])
        self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('orders', 'enforce')")

    def assertNoProblem(self):
        self.assertEqual(self.problems(), [])

    NEW = "CREATE TABLE orders_new (LIKE orders INCLUDING ALL)"
    FILL = "INSERT INTO orders_new SELECT * FROM orders"

    def test_a_guard_follows_a_table_that_is_dropped_and_replaced_in_one_transaction(self):
        for how in ({}, {"by": "customer"}):
            with self.subTest(how=how):
                self.guard(**how)
                self.sql(self.NEW)
                self.sql(self.FILL)
                self.one_transaction("DROP TABLE orders", "ALTER TABLE orders_new RENAME TO orders")
                self.assertStale()
                self.assertNoProblem()
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_fences_in_rows_do_not_go_unnoticed_with_their_table(self):
        self.guard(key="id")
        self.sql(self.NEW)
        error = self.assertRefused(
            "55000",
            self.one_transaction,
            "DROP TABLE orders",
            "ALTER TABLE orders_new RENAME TO orders",
        )
        self.assertIn("the fences in the rows are gone", error.diag.message_primary)
        self.assertStale()

    def test_a_guard_follows_a_schema_that_takes_the_name_of_another(self):
        self.sql("CREATE SCHEMA shop; ALTER TABLE orders SET SCHEMA shop")
        self.sql("CREATE SCHEMA shop_new; CREATE TABLE shop_new.orders (LIKE shop.orders)")
        self.sql("INSERT INTO shop_new.orders SELECT * FROM shop.orders")
        self.protect(table="shop.orders", require_token=False)
        self.sql("SELECT pawl.advance('shop.orders', 34)")
        self.one_transaction(
            "ALTER SCHEMA shop RENAME TO shop_old", "ALTER SCHEMA shop_new RENAME TO shop"
        )
        stale = "UPDATE shop.orders SET n = 1"
        setting = "pawl.token.shop.orders"
        self.assertRefused("PW002", self.carrying, 33, stale, setting=setting)
        self.assertNoProblem()

    def test_a_guard_follows_a_table_that_alter_index_has_renamed(self):
        self.guard()
        self.sql(self.NEW)
        self.sql(self.FILL)
        self.one_transaction(
            "ALTER INDEX orders RENAME TO orders_old", "ALTER INDEX orders_new RENAME TO orders"
        )
        self.assertStale()

    def test_a_renamed_table_with_a_fence_per_row_can_be_used(self):
        self.guard(key="id")
        self.sql("ALTER TABLE orders RENAME TO sales")
        for token in (34, 35):
            self.under(token, "UPDATE sales SET n = 1 WHERE id = 1", resource="orders:1")

    def test_a_second_parent_is_refused_unless_it_is_guarded_too(self):
        for how in ({}, {"by": "customer"}):
            with self.subTest(how=how):
                self.guard(**how)
                self.sql("CREATE TABLE child () INHERITS (orders)")
                self.sql("CREATE TABLE parent (id int NOT NULL, customer int, n int NOT NULL)")
                add = "ALTER TABLE child INHERIT parent"
                error = self.assertRefused("55000", self.sql, add)
                self.assertIn("is a child of public.parent, too", error.diag.message_primary)
                self.sql("SELECT pawl.set_mode('orders', 'observe')")
                self.sql(add)
                self.assertProblem("is a child of public.parent, too", "public.child")
                self.sql("DROP TABLE child; DROP TABLE parent")
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_detached_partition_is_a_table_of_its_guard(self):
        self.sql("CREATE TABLE parts (id int NOT NULL, n int) PARTITION BY RANGE (id)")
        self.sql("CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (10)")
        self.protect(table="parts")
        self.sql("ALTER TABLE parts DETACH PARTITION part_a")
        self.assertEqual(self.status("parts")["tables"], ["public.part_a", "public.parts"])
        self.assertRefused("PW001", self.write, "INSERT INTO part_a VALUES (1)")
        self.assertNoProblem()
        self.sql("DROP TABLE part_a")
        self.assertNoProblem()

    def test_a_foreign_partition_is_refused(self):
        self.cluster.psql(FOREIGN, self.db)
        self.protect(table="parts")
        error = self.assertRefused("55000", self.sql, ATTACH)
        self.assertIn("far: is a foreign table", error.diag.message_primary)

    def test_a_foreign_partition_keeps_a_guard_from_enforcing_until_it_is_acknowledged(self):
        self.cluster.psql(FOREIGN, self.db)
        self.protect(table="parts", mode="observe", require_token=False)
        self.sql(ATTACH)
        self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('parts', 'enforce')")
        self.sql("SELECT pawl.acknowledge('parts', 'nobody writes there')")
        self.sql("SELECT pawl.set_mode('parts', 'enforce')")
        ((severity, _, object_, problem),) = self.problems()
        self.assertEqual((severity, object_), ("warning", "public.far"))
        self.assertIn("(acknowledged by postgres: nobody writes there)", problem)
        self.sql("ALTER TABLE parts ALTER n SET DEFAULT 1")  # Not refused for what is known.

    def test_a_foreign_partition_fails_no_write_under_an_observing_guard(self):
        self.cluster.psql(FOREIGN, self.db)
        self.protect(table="parts", mode="observe", require_token=False, by="n")
        self.sql(ATTACH)
        self.write("INSERT INTO parts VALUES (1, 1)")
        self.write("UPDATE parts SET n = 2 WHERE id = 1")
        self.assertIn("is a foreign table", self.problems()[0][3])
        self.sql("SELECT pawl.unprotect('parts')")
        self.assertRefused(
            "0A000", self.sql, "SELECT pawl.protect('parts', by => 'n', guard => 'other')"
        )

    def test_a_guard_follows_its_key_to_a_new_name_and_a_wider_type(self):
        for how in ({"key": "id"}, {"by": "id"}):
            with self.subTest(how=how):
                self.guard(**how)
                self.sql("ALTER TABLE orders ALTER id TYPE numeric(10, 2)")
                self.assertStale()
                self.sql("ALTER TABLE orders ALTER id TYPE int")
                self.sql("ALTER TABLE orders RENAME id TO number")
                self.assertStale("UPDATE orders SET n = 1 WHERE number = 1")
                self.under(
                    34, "UPDATE orders SET n = 1 WHERE number = 1", resource="orders:1"
                )
                self.assertNoProblem()
                self.sql("ALTER TABLE orders RENAME number TO id")
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_change_that_spells_keys_otherwise_is_refused(self):
        self.cluster.psql(
            """
            CREATE TYPE colour AS ENUM ('red', 'green');
            CREATE FUNCTION public.region(int) RETURNS text LANGUAGE sql AS $$ SELECT 'r' || $1 $$;
            ALTER TABLE orders ADD paint colour NOT NULL DEFAULT 'red';
            """,
            self.db,
        )
        replaced = (
            "CREATE OR REPLACE FUNCTION public.region(int) RETURNS text LANGUAGE sql "
            "AS $$ SELECT 'R' || $1 $$"
        )
        for how, key, harmless, change, undo in (
            (
                "paint",
                "red",
                "ALTER TYPE colour ADD VALUE IF NOT EXISTS 'blue'",
                "ALTER TYPE colour RENAME VALUE 'red' TO 'rot'",
                "ALTER TYPE colour RENAME VALUE 'rot' TO 'red'",
            ),
            (
                "customer",
                "1",
                "ALTER TABLE orders ALTER customer TYPE bigint",
                "ALTER TABLE orders ALTER customer TYPE text USING 'c' || customer",
                "ALTER TABLE orders ALTER customer TYPE int USING substr(customer, 2)::int",
            ),
            (
                "customer || '-' || id",
                "1-1",
                "ALTER TABLE orders ALTER n TYPE bigint",
                "ALTER TABLE orders ALTER customer TYPE numeric(10, 2)",
                "ALTER TABLE orders ALTER customer TYPE int",
            ),
            (
                "public.region(customer)",
                "r1",
                "CREATE FUNCTION public.other(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
                replaced,
                replaced.replace("'R'", "'r'"),
            ),
        ):
            with self.subTest(how):
                self.sql("ALTER TABLE orders ALTER customer DROP DEFAULT")
                self.protect(require_token=False, by=how)
                self.sql("SELECT pawl.advance(%s, 34)", f"orders:{key}")
                self.sql(harmless)
                self.assertNoProblem()
                error = self.assertRefused("55000", self.sql, change)
                self.assertIn("has changed since the table was protected", str(error))
                self.assertStale()
                self.sql("SELECT pawl.set_mode('orders', 'observe')")
                self.sql(change)
                self.write()
                self.assertProblem("has changed since the table was protected")
                self.sql("SELECT pawl.repair()")
                self.assertNoProblem()
                self.sql(undo)
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_key_that_is_dropped_is_refused_or_fails_no_write(self):
        for how, change in (
            ({"key": "id"}, "ALTER TABLE orders DROP COLUMN id"),
            ({"key": "id"}, "ALTER TABLE orders DROP COLUMN pawl_token"),
            ({"by": "customer"}, "ALTER TABLE orders DROP COLUMN customer"),
            ({"by": "customer % 2"}, "ALTER TABLE orders RENAME customer TO buyer"),
            ({"by": "public.f(customer)"}, "DROP FUNCTION public.f"),
        ):
            with self.subTest(how=how, change=change):
                self.sql("DROP TABLE orders")
                self.cluster.psql(
                    "CREATE TABLE orders (id int PRIMARY KEY, customer int, n int); "
                    "INSERT INTO orders VALUES (1, 1, 1); DROP FUNCTION IF EXISTS public.f; "
                    "CREATE FUNCTION public.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
                    self.db,
                )
                self.protect(require_token=False, **how)
                error = self.assertRefused("55000", self.sql, change)
                self.assertIn("writes are not judged: ", error.diag.message_primary)
                self.sql("SELECT pawl.set_mode('orders', 'observe')")
                self.sql(change)
                self.write("UPDATE orders SET n = n + 1")
                self.assertProblem("writes are not judged: ")
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_key_of_any_length_fails_no_write_and_has_its_fence(self):
        self.sql("CREATE TABLE docs (id int PRIMARY KEY, name text)")
        for mode in ("observe", "enforce"):
            self.protect(table="docs", mode=mode, require_token=False, by="name")
            db = self.connect()
            rows(db, "SET LOCAL pawl.token.docs = 34")
            rows(db, "INSERT INTO docs SELECT 1, string_agg(md5(i::text), '') FROM "
                     "generate_series(1, 1000) i")
            db.commit()
            rows(db, "SET LOCAL pawl.token.docs = 33")
            if mode == "enforce":
                self.assertRefused("PW002", rows, db, "UPDATE docs SET id = 2")
                db.rollback()
                name = self.value("SELECT name FROM docs")
                self.assertEqual(self.fence(f"docs:{name}"), 34)
            db.rollback()
            self.sql("SELECT pawl.unprotect('docs')")
            self.sql("SELECT pawl.drop_guard('docs'); ")
            self.sql("TRUNCATE docs")

    LATE = """
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
    CREATE TRIGGER zzzz BEFORE UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION late();
    """

    def test_a_trigger_behind_the_guard_is_refused_when_it_is_enabled(self):
        self.cluster.psql(self.LATE.format("orders"), self.db)
        self.sql("ALTER TABLE orders DISABLE TRIGGER zzzz")
        self.guard(key="id")
        error = self.assertRefused("55000", self.sql, "ALTER TABLE orders ENABLE TRIGGER zzzz")
        self.assertIn("the trigger zzzz fires after the guard", error.diag.message_primary)

    def test_a_trigger_behind_the_guard_is_refused_when_it_comes_with_a_partition(self):
        self.sql("CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)")
        self.protect(table="parts", key="id")
        self.sql("CREATE TABLE part_a (LIKE parts INCLUDING ALL)")
        self.cluster.psql(self.LATE.format("part_a"), self.db)
        attach = "ALTER TABLE parts ATTACH PARTITION part_a FOR VALUES FROM (0) TO (10)"
        self.assertRefused("55000", self.sql, attach)
        self.sql("ALTER TRIGGER zzzz ON part_a RENAME TO early")
        self.sql(attach)

    def test_a_table_with_such_a_trigger_is_not_put_under_enforce_at_once(self):
        self.cluster.psql(self.LATE.format("orders"), self.db)
        self.assertRefused(
            "55000", self.sql, "SELECT pawl.protect('orders', key => 'id', mode => 'enforce')"
        )

    def test_a_new_owner_can_make_partitions(self):
        self.cluster.psql(
            """
            DO $$ BEGIN IF to_regrole('seller') IS NULL THEN CREATE ROLE seller LOGIN; END IF; END $$;
            GRANT CREATE ON SCHEMA public TO seller;
            CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
            """,
            self.db,
        )
        self.protect(table="parts", mode="observe", require_token=False, key="id")
        self.sql("ALTER TABLE parts OWNER TO seller")
        seller = self.connect(user="seller", autocommit=True)
        rows(seller, "CREATE TABLE part_a PARTITION OF parts FOR VALUES FROM (0) TO (10)")
        rows(seller, "INSERT INTO parts VALUES (1, 1)")
        rows(seller, "UPDATE part_a SET n = 2")
        self.assertNoProblem()


    def test_a_function_of_a_key_that_moves_away_is_refused(self):
        self.cluster.psql(
            """
            CREATE SCHEMA tools; CREATE SCHEMA away;
            CREATE FUNCTION tools.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
            """,
            self.db,
        )
        self.guard(by="tools.f(customer)")
        for change in (
            "ALTER FUNCTION tools.f RENAME TO g",
            "ALTER ROUTINE tools.f SET SCHEMA away",
            "ALTER SCHEMA tools RENAME TO gear",
        ):
            with self.subTest(change):
                error = self.assertRefused("55000", self.sql, change)
                self.assertIn("writes are not judged: ", error.diag.message_primary)
                self.assertStale()

    def test_a_key_whose_collation_calls_several_spellings_equal_is_refused(self):
        self.sql("ALTER TABLE orders ADD who text NOT NULL DEFAULT 'a'")
        self.sql(
            "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        self.protect(by="who")
        change = "ALTER TABLE orders ALTER who TYPE text COLLATE ci"
        error = self.assertRefused("55000", self.sql, change)
        self.assertIn("has no one spelling for equal values", error.diag.message_primary)

    def test_a_view_that_takes_the_name_is_refused_unless_it_reads_a_guarded_table(self):
        self.guard()
        self.sql("CREATE TABLE orders_new (LIKE orders INCLUDING ALL)")
        away = "ALTER TABLE orders RENAME TO orders_old"
        elsewhere = "CREATE VIEW orders AS SELECT * FROM orders_new"
        error = self.assertRefused("55000", self.one_transaction, away, elsewhere)
        self.assertIn("it is a view or a foreign table", error.diag.message_primary)
        error = self.assertRefused(
            "55000",
            self.one_transaction,
            elsewhere.replace("orders AS", "other AS"),
            away,
            "ALTER VIEW other RENAME TO orders",
        )
        self.assertIn("it is a view or a foreign table", error.diag.message_primary)
        self.one_transaction(away, elsewhere.replace("_new", "_old"))
        self.assertStale()
        self.assertNoProblem()
        self.sql("SELECT pawl.set_mode('orders', 'observe')")
        self.sql("CREATE OR REPLACE VIEW orders AS SELECT * FROM orders_new")
        self.write("INSERT INTO orders VALUES (77)")
        self.assertProblem("has lost its name to public.orders", "public.orders_old")

    def test_an_unlogged_table_cannot_keep_the_fences_of_its_rows(self):
        self.guard(key="id")
        error = self.assertRefused("55000", self.sql, "ALTER TABLE orders SET UNLOGGED")
        self.assertIn("is UNLOGGED", error.diag.message_primary)
        self.sql("SELECT pawl.set_mode('orders', 'observe')")
        self.sql("ALTER TABLE orders SET UNLOGGED")
        self.assertProblem("is UNLOGGED")
        self.sql("ALTER TABLE orders SET LOGGED")
        self.assertNoProblem()

    def test_a_trigger_that_does_not_fire_for_every_write_counts_as_missing(self):
        put = "CREATE OR REPLACE TRIGGER {} ON orders {} EXECUTE FUNCTION pawl.guard_{}()"
        before = "pawl_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE"
        in_rows = "zzz_pawl_guard BEFORE INSERT OR DELETE OR UPDATE"
        for how, trigger, each in (
            ({}, before, "FOR EACH STATEMENT WHEN (current_user <> 'app')"),
            ({}, "pawl_guard BEFORE INSERT OR UPDATE OR DELETE", "FOR EACH STATEMENT"),
            ({"key": "id"}, in_rows + " OF id", "FOR EACH ROW"),
        ):
            with self.subTest(trigger=trigger, each=each):
                self.guard(mode="observe", **how)
                self.sql(put.format(trigger, each, self.value("SELECT id FROM pawl.guard")))
                name = trigger.split()[0]
                self.sql(f"ALTER TABLE orders ENABLE ALWAYS TRIGGER {name}")
                self.assertProblem("is missing: writes are not judged")
                self.assertEqual(self.value("SELECT pawl.repair()"), 1)
                self.assertNoProblem()
                self.sql("SELECT pawl.unprotect('orders')")
                self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_function_of_the_guard_that_somebody_has_changed_is_named(self):
        self.guard()
        replace = (
            "CREATE OR REPLACE FUNCTION pawl.guard_1() RETURNS trigger LANGUAGE plpgsql "
            "AS 'BEGIN RETURN NULL; END'"
        )
        for change, function, guard in (
            (replace, "guard_1()", "orders"),
            ("ALTER FUNCTION pawl.guard_1() SET pawl.token.orders = '34'", "guard_1()", "orders"),
            ("ALTER FUNCTION pawl._read_committed() IMMUTABLE", "_read_committed()", None),
        ):
            with self.subTest(change):
                self.sql(change)
                ((severity, of, object_, problem),) = self.problems()
                self.assertEqual((severity, of, object_), ("error", guard, f"pawl.{function}"))
                self.assertIn("somebody has changed this function", problem)
                if guard:
                    self.sql("SELECT pawl.repair()")
                else:
                    self.cluster.install(self.db)
                self.assertNoProblem()
                self.assertStale()

    def test_a_setting_of_the_owner_does_not_hide_a_change(self):
        self.guard(key="id")
        db = self.connect(autocommit=True)
        for value in ("on", "true", ""):
            rows(db, f"SET pawl.following = '{value}'")
            change = "ALTER TABLE orders DROP COLUMN pawl_token"
            self.assertRefused("55000", rows, db, change)

    def test_a_copy_of_a_database_notices_a_change_of_its_keys(self):
        self.cluster.psql(
            """
            CREATE TYPE colour AS ENUM ('red', 'green');
            CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
            CREATE FUNCTION g(int) RETURNS int IMMUTABLE RETURN f($1);
            CREATE TABLE a AS SELECT 1 AS k, 'red'::colour AS paint, 'x' COLLATE "C" AS t, 1 AS n;
            CREATE TABLE b AS TABLE a; CREATE TABLE c AS TABLE a; CREATE TABLE d AS TABLE a;
            SELECT pawl.protect('a', by => 'k', mode => 'enforce'), pawl.advance('a:1', 34);
            SELECT pawl.protect('b', by => 'paint', mode => 'enforce'), pawl.advance('b:red', 34);
            SELECT pawl.protect('c', by => 'public.f(k)', mode => 'enforce');
            SELECT pawl.advance('c:1', 34);
            SELECT pawl.protect('d', by => 'public.g(k) || t', mode => 'enforce');
            SELECT pawl.advance('d:1x', 34);
            """,
            self.db,
        )
        self.admin.close()
        copied = f"{self.db}_copied"
        self.cluster.psql(f"CREATE DATABASE {copied} TEMPLATE {self.db}")
        copies = [copied]
        if SERVER_BIN == BIN:  # pg_dump does not read servers that are newer than itself.
            copies.append(self.cluster.create_database(f"{self.db}_restored", guard=False))
            dump = self.cluster.dir / f"{self.db}.dump"
            self.cluster.tool("pg_dump", "-Fc", "-f", dump, self.db)
            self.cluster.tool("pg_restore", "--exit-on-error", "-d", copies[-1], dump)
        for self.db in copies:
            self.admin = self.connect(autocommit=True)
            for adopted in (False, True):
                if adopted:
                    self.sql("SELECT pawl.adopt()")
                self.assertNoProblem()
                for table, change in (
                    ("a", "ALTER TABLE a ALTER k TYPE text USING 'k' || k"),
                    ("b", "ALTER TYPE colour RENAME VALUE 'red' TO 'rot'"),
                    (
                        "c",
                        "CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE "
                        "AS 'SELECT 2 * $1'",
                    ),
                    ("d", "ALTER TABLE d ALTER t TYPE varchar(1)"),
                    ("d", "CREATE OR REPLACE FUNCTION g(int) RETURNS int IMMUTABLE RETURN 7"),
                ):
                    with self.subTest(db=self.db, adopted=adopted, change=change):
                        self.assertRefused("55000", self.sql, change)
                        write = f"UPDATE {table} SET n = 2"
                        setting = f"pawl.token.{table}"
                        self.assertRefused("PW002", self.carrying, 33, write, setting=setting)
            self.sql("ALTER TABLE a RENAME k TO kk")  # Adopted, it is followed again.
            self.assertNoProblem()


if __name__ == "__main__":
    postgres.main()
