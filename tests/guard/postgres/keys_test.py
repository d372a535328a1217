"""Which keys are the same: those that the unique index of the resource calls equal, whatever the
settings of a session are. And a fence that is acknowledged has reached its row."""

from orders_case import OrdersCase
from pawltest import postgres
from pawltest.postgres import rows


class Spellings(OrdersCase):
    def make(self, type_, **how):
        self.sql("DROP TABLE IF EXISTS acc CASCADE")
        self.sql(f"CREATE TABLE acc (id {type_} PRIMARY KEY, n int NOT NULL DEFAULT 0)")
        self.protect(table="acc", **(how or {"key": "id"}))

    def assertOneKey(self, type_, stored, spelled, settings="SELECT 1", **how):
        """The row `stored` is deleted under token 40; no spelling brings it back under 33."""
        self.make(type_, **how)
        self.carrying(34, f"INSERT INTO acc VALUES ({stored})", setting="pawl.token.acc")
        self.carrying(40, "DELETE FROM acc", setting="pawl.token.acc")
        db = self.connect()
        try:
            rows(db, settings)
            rows(db, "SET LOCAL pawl.token.acc = 33")
            self.assertRefused("PW002", rows, db, f"INSERT INTO acc VALUES ({spelled})")
            db.rollback()
            rows(db, settings)
            key = spelled.strip("'")
            self.assertRefused("PW002", rows, db, "SELECT pawl.use('acc:' || %s, 33)", key)
        finally:
            db.close()
        self.sql("SELECT pawl.unprotect('acc')")
        self.sql("SELECT pawl.drop_guard('acc')")

    def test_spellings_of_one_key_are_one_key(self):
        berlin = "SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'SQL, DMY'"
        for how in ({"key": "id"}, {"by": "id"}):
            for type_, stored, spelled, settings in (
                ("numeric", "7", "7.0", "SELECT 1"),
                ("numeric(10,2)", "7", "7.00", "SELECT 1"),
                ("int", "7", "007", "SELECT 1"),
                ("char(5)", "'a'", "'a  '", "SELECT 1"),
                ("date", "'2025-03-02'", "'2025-03-02'", berlin),
                ("timestamptz", "'2025-03-01 12:00+00'", "'2025-03-01 13:00+01'", berlin),
                ("bytea", "'\\x01ff'", "'\\x01ff'", "SET bytea_output = 'escape'"),
                ("uuid", f"'{'ab' * 16}'", f"'{'AB' * 16}'", "SELECT 1"),
            ):
                with self.subTest(type=type_, how=how):
                    self.assertOneKey(type_, stored, spelled, settings, **how)

    def test_an_expression_is_computed_the_same_in_every_session(self):
        self.make("timestamptz", by="date_trunc('day', id) || ''")
        self.under(
            40,
            "INSERT INTO acc VALUES ('2025-03-01 23:30+00')",
            resource="acc:2025-03-01 00:00:00+00",
        )
        db = self.connect()
        rows(db, "SET TimeZone = 'Europe/Berlin'")
        rows(db, "SET LOCAL pawl.token.acc = 33")
        self.assertRefused("PW002", rows, db, "INSERT INTO acc VALUES ('2025-03-02 00:45+01')")

    def test_no_setting_of_a_session_changes_what_an_expression_means(self):
        self.cluster.psql(
            """
            CREATE TABLE acc (id int PRIMARY KEY, words text, tbl regclass, day text, n int);
            INSERT INTO acc VALUES (1, 'the cats', 'orders', '1 Mar 2025 10:00 IST', NULL);
            """,
            self.db,
        )
        for by, setting in (
            ("to_tsvector(words)::text", "default_text_search_config = 'simple'"),
            ("tbl::text", "quote_all_identifiers = on"),
            ("day::timestamptz", "timezone_abbreviations = 'India'"),
            ("CASE WHEN n = NULL THEN 'none' ELSE 'some' END", "transform_null_equals = on"),
            ("('{1,NULL}' || left(words, 0))::text[]::text", "array_nulls = off"),
        ):
            with self.subTest(by):
                self.protect(table="acc", by=by)
                update = "UPDATE acc SET id = 1"
                self.carrying(34, update, setting="pawl.token.acc")
                change = (f"SET LOCAL {setting}", update)
                self.assertRefused(
                    "PW002", self.carrying, 33, *change, setting="pawl.token.acc"
                )
                self.sql("SELECT pawl.unprotect('acc')")
                self.sql("SELECT pawl.drop_guard('acc')")

    def test_what_would_be_meant_instead_of_a_part_of_a_key_is_refused(self):
        self.cluster.psql(
            """
            CREATE TYPE colour AS ENUM ('red', 'green');
            CREATE FUNCTION region(bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'r' || $1 $$;
            CREATE FUNCTION mix(bigint, bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'm' || $1 $$;
            CREATE FUNCTION mix(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'M' || $1 $$;
            CREATE FUNCTION mix(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'M' || $1 $$;
            CREATE OPERATOR ### (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = mix);
            CREATE FUNCTION paint(colour) RETURNS text LANGUAGE sql AS $$ SELECT 'paint' $$;
            CREATE FUNCTION paint_number(colour) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
            CREATE TABLE acc (id int PRIMARY KEY, paint colour DEFAULT 'red');
            INSERT INTO acc VALUES (1);
            """,
            self.db,
        )
        nearer = "CREATE FUNCTION region({}) RETURNS text LANGUAGE sql AS $$ SELECT 'R' || $1 $$"
        for by, key, harmless, change, undo in (
            (
                "public.region(id)",
                "r1",
                (nearer.format("date"), "DROP FUNCTION region(date)"),
                nearer.format("int"),
                "DROP FUNCTION region(int)",
            ),
            (
                "public.region(id)",
                "r1",
                (
                    "CREATE AGGREGATE other(int) (SFUNC = int4pl, STYPE = int)",
                    "CREATE DOMAIN one AS text",
                ),
                "CREATE AGGREGATE region(int) (SFUNC = int4pl, STYPE = int)",
                "DROP AGGREGATE region(int)",
            ),
            (
                "public.region(id)",
                "r1",
                ("CREATE TYPE two AS (n int)", "CREATE PROCEDURE region() LANGUAGE sql AS ''"),
                "CREATE DOMAIN region AS text",
                "DROP DOMAIN region",
            ),
            (
                "id OPERATOR(public.###) 10",
                "m1",
                (
                    "CREATE OPERATOR ### (LEFTARG = text, RIGHTARG = text, FUNCTION = mix)",
                    "DROP OPERATOR ### (text, text)",
                ),
                "CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = mix)",
                "DROP OPERATOR ### (int, int)",
            ),
            (
                "paint::text",
                "red",
                (
                    "CREATE CAST (colour AS int) WITH FUNCTION paint_number(colour)",
                    "DROP CAST (colour AS int)",
                ),
                "CREATE CAST (colour AS text) WITH FUNCTION paint(colour)",
                "DROP CAST (colour AS text)",
            ),
        ):
            with self.subTest(by):
                self.protect(table="acc", by=by)
                self.sql("SELECT pawl.advance(%s, 34)", f"acc:{key}")
                for sql in harmless:
                    self.sql(sql)
                    self.assertEqual(self.problems(), [])
                error = self.assertRefused("55000", self.sql, change)
                self.assertIn("the key may mean something else", error.diag.message_primary)
                update = "UPDATE acc SET id = 1"
                self.assertRefused("PW002", self.carrying, 33, update, setting="pawl.token.acc")
                self.sql("SELECT pawl.set_mode('acc', 'observe')")
                self.sql(change)
                self.write(update)
                ((severity, _, _, problem),) = self.problems()
                self.assertEqual(severity, "error")
                self.assertIn("the key may mean something else", problem)
                self.sql(undo)
                self.assertEqual(self.problems(), [])
                self.sql("SELECT pawl.unprotect('acc')")
                self.sql("SELECT pawl.drop_guard('acc')")

    def test_types_with_several_spellings_of_one_key_are_refused_by_protect(self):
        self.sql("CREATE EXTENSION IF NOT EXISTS citext")
        self.sql(
            "CREATE COLLATION IF NOT EXISTS ci (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        for type_ in ("citext", "float8", "interval", "jsonb", "int[]", "text COLLATE ci"):
            self.sql("DROP TABLE IF EXISTS acc")
            self.sql(f"CREATE TABLE acc (id {type_} PRIMARY KEY)")
            for how in ("key", "by"):
                with self.subTest(type=type_, how=how):
                    error = self.assertRefused(
                        "0A000", self.sql, f"SELECT pawl.protect('acc', {how} => 'id')"
                    )
                    self.assertIn("equal keys have several spellings", error.diag.message_primary)

    def test_a_generated_column_is_refused_as_a_key(self):
        self.sql("CREATE TABLE acc (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY)")
        error = self.assertRefused("0A000", self.sql, "SELECT pawl.protect('acc', key => 'id')")
        self.assertIn("generated", error.diag.message_primary)
        self.sql("INSERT INTO acc VALUES (1)")

    def test_a_token_for_one_row_is_quick_and_holds_for_that_row_only(self):
        self.make("text")
        self.carrying(34, """INSERT INTO acc VALUES ('a'), ('b": "1", "a')""", setting="pawl.token.acc")
        for _ in range(2):
            self.under(34, "UPDATE acc SET n = n + 1 WHERE id = 'a'", resource="acc:a")
        for other in ("""'b": "1", "a'""", "'a'"):
            key = "a" if other != "'a'" else 'b": "1", "a'
            self.assertRefused(
                "PW001",
                self.under,
                34,
                f"UPDATE acc SET n = 9 WHERE id = {other}",
                resource=f"acc:{key}",
            )
        self.assertEqual(self.sql("SELECT n FROM acc ORDER BY id"), [(2,), (0,)])


    def test_problems_names_a_guard_on_a_column_that_can_no_longer_be_a_key(self):
        """As an older version made it, which noted nothing; or as ALTER TABLE did later."""
        for how, why in (
            ({"key": "id"}, "its key id cannot be one as double precision"),
            ({"by": "id"}, "no one spelling for equal values"),
        ):
            for noted in (True, False):
                with self.subTest(how=how, noted=noted):
                    self.make("int", mode="observe", **how)
                    self.assertEqual(self.problems(), [])
                    self.sql("ALTER TABLE acc ALTER COLUMN id TYPE float8")
                    if not noted:
                        self.sql("UPDATE pawl.guard SET key_type = NULL")
                    for _ in range(2):
                        ((severity, guard, table, problem),) = self.problems()
                        self.assertEqual((severity, guard, table), ("error", "acc", "public.acc"))
                        self.assertIn(why, problem)
                        self.sql("SELECT pawl.repair()")
                    self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('acc', 'enforce')")
                    self.sql("SELECT pawl.unprotect('acc')")
                    self.sql("SELECT pawl.drop_guard('acc')")

    def test_key_column_of_another_type_is_named_until_it_is_repaired(self):
        """Where there is no event trigger that follows it."""
        self.make("int", mode="observe", key="id")
        self.sql("ALTER EVENT TRIGGER pawl_partitions DISABLE")
        self.sql("ALTER TABLE acc ALTER COLUMN id TYPE numeric")
        (problem,) = [p[3] for p in self.problems() if p[0] == "error"]
        self.assertIn("was integer and is numeric", problem)
        self.sql("SELECT pawl.repair()")
        (warning,) = self.problems()
        self.assertEqual(warning[0], "warning")
        self.assertIn("is not followed", warning[3])

    def test_a_key_that_is_another_one_for_each_writer_is_refused_by_protect(self):
        for key, why in (
            ("current_user", "the time or the session"),
            ("current_date", "the time or the session"),
            ("now()", "now()"),
            ("random()::text", "random()"),
            ("gen_random_uuid()", "gen_random_uuid()"),
            ("pg_backend_pid()", "pg_backend_pid()"),
            ("n || current_setting('a.b', true)", "current_setting(text,boolean)"),
            ("(SELECT 1)", "more than the row"),
            ("max(n)", "more than the row"),
            ("xmin::text", "a system column"),
        ):
            with self.subTest(key):
                error = self.assertRefused(
                    "0A000", self.sql, "SELECT pawl.protect('orders', by => %s)", key
                )
                self.assertIn(why, error.diag.message_primary)
        for key in ("orders.customer", "public.orders.customer", "(orders.*)::text"):
            with self.subTest(key):  # A trigger has other names for the rows.
                self.assertRefused(
                    "42P01", self.sql, "SELECT pawl.protect('orders', by => %s)", key
                )
        for key in ("n % 3", "lower('X' || n)", "date_trunc('day', to_timestamp(n))::date"):
            self.protect(by=key)
            self.sql("SELECT pawl.unprotect('orders')")
            self.sql("SELECT pawl.drop_guard('orders')")

    def test_a_key_of_an_enum_is_one_under_quote_all_identifiers(self):
        self.sql("CREATE TYPE colour AS ENUM ('red', 'green')")
        self.make("colour", key="id")
        self.carrying(34, "INSERT INTO acc VALUES ('red')", setting="pawl.token.acc")
        db = self.connect(autocommit=True)
        rows(db, "SET quote_all_identifiers = on")
        rows(db, "BEGIN")
        rows(db, "SELECT pawl.use('acc:red', 34)")
        rows(db, "UPDATE acc SET n = 1")
        rows(db, "COMMIT")
        rows(db, "ALTER TABLE acc ADD more int")
        self.assertEqual(rows(db, "SELECT * FROM pawl.problems()"), [])



class Reach(OrdersCase):
    """A row is fenced when advance() says so."""

    def setUp(self):
        super().setUp()
        self.sql("CREATE TABLE acc (id int PRIMARY KEY, n int NOT NULL DEFAULT 0)")
        self.sql("INSERT INTO acc VALUES (7)")

    def test_advance_fails_when_a_trigger_keeps_it_from_the_row(self):
        self.protect(table="acc", key="id", require_token=False)
        self.sql(
            "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF current_setting('application_name') = 'app' THEN RETURN NEW; END IF; "
            "RETURN NULL; END $$"
        )
        self.sql("CREATE TRIGGER mine BEFORE UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION mine()")
        error = self.assertRefused("55000", self.sql, "SELECT pawl.advance('acc:7', 40)")
        self.assertIn("did not reach the row acc:7", error.diag.message_primary)
        self.assertIsNone(self.fence("acc:7"))

    def test_triggers_that_name_no_schema_do_not_stop_advance(self):
        """They run with the search_path of a session of the table's owner; what the caller has
        made does not come before that."""
        self.cluster.psql(
            """
            CREATE SCHEMA bank; CREATE TABLE bank.log (n bigint); CREATE TABLE log (n bigint);
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              INSERT INTO log VALUES (NEW.pawl_token); RETURN NEW; END $$;
            ALTER TABLE acc SET SCHEMA bank;
            DO $$ BEGIN IF to_regrole('teller') IS NULL THEN CREATE ROLE teller; END IF; END $$;
            GRANT ALL ON SCHEMA bank TO teller; GRANT ALL ON bank.log, log TO teller;
            ALTER TABLE bank.acc OWNER TO teller;""",
            self.db,
        )
        guard = self.protect(table="bank.acc", key="id", require_token=False)
        self.sql(
            "CREATE TRIGGER note AFTER UPDATE ON bank.acc FOR EACH ROW EXECUTE FUNCTION note()"
        )
        caller = self.connect(autocommit=True)
        rows(caller, "CREATE TEMP TABLE log (n bigint)")
        rows(caller, "SET search_path = pg_temp, bank, pg_catalog")
        for token, path, found in ((40, None, "public.log"), (41, "bank", "bank.log")):
            if path:
                self.sql(f"ALTER ROLE teller IN DATABASE {self.db} SET search_path = {path}")
            rows(caller, "SELECT pawl.advance(%s, %s)", f"{guard}:7", token)
            self.assertEqual(self.sql(f"SELECT n FROM {found}"), [(token,)])
        self.assertEqual(rows(caller, "SELECT n FROM pg_temp.log"), [])

    def test_a_key_that_may_be_null_is_refused_or_fails_no_write(self):
        guard = self.protect(table="acc", key="id", require_token=False)
        self.sql("ALTER TABLE acc DROP CONSTRAINT acc_pkey")
        change = "ALTER TABLE acc ALTER id DROP NOT NULL"
        error = self.assertRefused("55000", self.sql, change)
        self.assertIn("its key id may be NULL", error.diag.message_primary)
        self.sql("SELECT pawl.set_mode(%s, 'observe')", guard)
        self.sql(change)
        for sql in (
            "INSERT INTO acc VALUES (NULL)",
            "UPDATE acc SET n = n + 1",
            "UPDATE acc SET id = NULL",
            "DELETE FROM acc",
        ):
            self.carrying(34, sql, setting="pawl.token.acc")
        ((severity, _, object_, problem),) = self.problems()
        self.assertEqual((severity, object_), ("error", "public.acc"))
        self.assertIn("its key id may be NULL", problem)

    def test_a_token_that_is_set_for_a_role_or_a_function_is_named(self):
        self.protect(table="acc", key="id", require_token=False)
        role = f"role_of_{self.db}"
        for make, who, undo in (
            (
                f"CREATE ROLE {role}; ALTER ROLE {role} SET pawl.token.acc = 40",
                f"role {role}",
                f"DROP ROLE {role}",
            ),
            (
                f"ALTER DATABASE {self.db} SET pawl.token.acc = 40",
                f"database {self.db}",
                f"ALTER DATABASE {self.db} RESET pawl.token.acc",
            ),
            (
                "CREATE FUNCTION f() RETURNS void LANGUAGE sql SET pawl.token.acc = '40' AS ''",
                "function public.f()",
                "DROP FUNCTION f()",
            ),
        ):
            with self.subTest(who):
                self.sql(make)
                ((severity, guard, object_, problem),) = self.problems()
                self.assertEqual((severity, guard, object_), ("warning", "acc", who))
                self.assertIn("carry that token without a lease", problem)
                self.sql(undo)
                self.assertEqual(self.problems(), [])

    def test_row_security_that_hides_rows_from_the_guard_is_refused(self):
        self.cluster.psql(
            f"CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE {self.db} TO tenant;"
            "DROP SCHEMA pawl CASCADE; ALTER TABLE acc OWNER TO tenant;"
            "GRANT ALL ON SCHEMA public TO tenant; DROP EVENT TRIGGER IF EXISTS pawl_partitions",
            self.db,
        )
        try:
            self.cluster.psql(postgres.install_script(), self.db, user="tenant")
            owner = self.connect("tenant", autocommit=True)
            rows(owner, "SELECT pawl.protect('acc', key => 'id', mode => 'enforce')")
            rows(owner, "ALTER TABLE acc ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
            error = self.assertRefused("55000", rows, owner, "SELECT pawl.advance('acc:7', 40)")
            self.assertIn("row security hides rows", error.diag.message_primary)
            self.assertIn(
                "row security hides rows",
                rows(owner, "SELECT problem FROM pawl.problems() WHERE severity = 'error'")[0][0],
            )
            rows(owner, "CREATE TABLE more (id int PRIMARY KEY)")
            rows(owner, "ALTER TABLE more ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
            self.assertRefused("0A000", rows, owner, "SELECT pawl.protect('more', key => 'id')")
        finally:
            self.cluster.psql("DROP OWNED BY tenant CASCADE", self.db)
            self.cluster.psql("DROP ROLE tenant")

    def test_a_trigger_that_would_change_the_key_after_the_guard_is_refused(self):
        self.protect(table="acc", key="id", mode="observe", require_token=False)
        self.sql(
            "CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "NEW.id := NEW.id + 1; RETURN NEW; END $$"
        )
        late = "CREATE TRIGGER zzzz BEFORE UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION move()"
        self.sql(late)  # An observing guard warns.
        self.assertEqual(
            [(p[0], p[2], p[3]) for p in self.problems()],
            [
                (
                    "error",
                    "public.acc",
                    "the trigger zzzz fires after the guard, and can change what it has judged",
                )
            ],
        )
        error = self.assertRefused("55000", self.sql, "SELECT pawl.set_mode('acc', 'enforce')")
        self.assertIn("the trigger zzzz fires after the guard", error.diag.message_primary)
        self.assertEqual(self.value("SELECT pawl.acknowledge('acc', 'it leaves the key alone')"), 1)
        self.sql("SELECT pawl.set_mode('acc', 'enforce')")
        self.sql("DROP TRIGGER zzzz ON acc")
        self.assertRefused("55000", self.sql, late)
        self.sql(late.replace("zzzz", "aaaa"))
        self.assertRefused(
            "55000", self.sql, "ALTER TRIGGER aaaa ON acc RENAME TO zzzz_pawl_after"
        )
        self.assertEqual(self.problems(), [])


if __name__ == "__main__":
    postgres.main()
