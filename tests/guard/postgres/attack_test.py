"""What an ordinary writer can and cannot do to a guard. It may write the table and call the check,
nothing else.

Guards stop delays and mistakes, not malice: a writer can read the fence and claim it. But it can
neither lower a fence, nor change a mode, nor slip past the check by what its session looks like.
"""

import psycopg2

from pawltest import postgres
from pawltest.postgres import rows

NULL = "NULL"
SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO orders VALUES (1, 0);
SELECT pawl.protect('orders', mode => 'enforce');
SELECT pawl.set_policy('orders', require_token => true);
SELECT pawl.create_guard('k', keyed => true);
SELECT pawl.set_mode('k', 'enforce');
SELECT pawl.advance('orders', 34);
SELECT pawl.advance('k:1', 34);
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') THEN CREATE ROLE app LOGIN; END IF; END $$;
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON orders TO app;
GRANT CREATE ON SCHEMA public TO app;
SELECT pawl.allow('k', 'app');
"""

# Everything that a guard might call without saying whose it is, each lying in the caller's favour.
EVIL = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.yes(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION evil.no(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION evil.yes(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION evil.no(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.yes);
CREATE OPERATOR evil.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.no);
CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.no);
CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.no);
CREATE OPERATOR evil.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.yes);
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.yes);
CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no);
CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '34'::text $$;
CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'read committed'::text $$;
CREATE FUNCTION evil.pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint $$;
CREATE FUNCTION evil.pg_try_advisory_xact_lock_shared(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION evil.pg_advisory_xact_lock_shared(bigint) RETURNS void LANGUAGE sql AS $$ SELECT $$;
CREATE FUNCTION evil.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$;
CREATE TABLE evil.guard AS SELECT * FROM pawl.guard;
UPDATE evil.guard SET mode = 'observe';
GRANT USAGE ON SCHEMA evil TO app;
GRANT ALL ON ALL TABLES IN SCHEMA evil TO app;
"""


class AttackCase(postgres.ClusterCase):
    def setUp(self):
        super().setUp()
        self.cluster.psql(SHOP, self.db)
        self.app = self.connect(user="app", autocommit=True)

    def assertStillGuarded(self, session=None):
        session = session or self.app
        self.assertRefused("PW001", rows, session, "UPDATE public.orders SET n = 666")
        self.assertRefused("PW002", rows, session, "SELECT pawl.use('orders', 33)")
        self.assertRefused("PW002", rows, session, "SELECT pawl.use('k:1', 33)")
        self.assertEqual(self.value("SELECT pawl.fence('orders')"), 34)
        self.assertEqual(self.value("SELECT pawl.fence('k:1')"), 34)
        self.assertEqual(
            self.value("SELECT mode FROM pawl.status WHERE guard = 'orders'"), "enforce"
        )
        self.assertEqual(self.value("SELECT max(n) FROM orders WHERE n = 666"), None)


class OrdinaryWriters(AttackCase):
    def test_writer_needs_no_extra_privilege(self):
        session = self.connect(user="app")
        self.assertEqual(rows(session, "SELECT pawl.use('orders', 34)"), [("admitted",)])
        rows(session, "UPDATE orders SET n = 1")
        session.commit()
        self.assertEqual(
            rows(self.app, "SELECT verdict FROM pawl.check('orders', 33)"), [("stale",)]
        )
        self.assertEqual(rows(self.app, "SELECT pawl.advance('orders', 35)"), [(34,)])

    def test_a_writer_cannot_change_policy(self):
        for call in (
            "set_mode('orders', 'observe')",
            "set_policy('orders', require_token => false)",
            "emergency('me')",
            "compact('orders', 1)",
            "evict('orders', 99)",
            "unprotect('orders')",
            "drop_guard('orders')",
            "protect('orders')",
            "create_guard('mine')",
            "allow('k', 'app')",
            "disallow('k', 'app')",
        ):
            with self.subTest(call):
                self.assertRefused("42501", rows, self.app, f"SELECT pawl.{call}")
        self.assertStillGuarded()

    def test_writer_cannot_change_the_guards_tables(self):
        relations = self.sql(
            "SELECT c.relname, c.relkind FROM pg_class c WHERE c.relnamespace = "
            "'pawl'::regnamespace"
        )
        self.assertTrue(relations)
        for name, kind in relations:
            with self.subTest(name):
                attempts = {
                    "S": [f"SELECT setval('pawl.{name}', 1)", f"SELECT nextval('pawl.{name}')"],
                    "r": [
                        f'DELETE FROM pawl."{name}"',
                        f'TRUNCATE pawl."{name}"',
                        f'DROP TABLE pawl."{name}"',
                        f'INSERT INTO pawl."{name}" DEFAULT VALUES',
                    ],
                    "v": [f'DELETE FROM pawl."{name}"'],
                }.get(chr(kind) if isinstance(kind, int) else kind, [])
                for attempt in attempts:
                    with self.assertRaises(psycopg2.Error, msg=attempt) as caught:
                        rows(self.app, attempt)
                    self.assertIn(caught.exception.pgcode, ("42501", "55000"), caught.exception)
        self.assertStillGuarded()

    def test_writer_cannot_create_in_the_schema(self):
        for attempt in (
            "CREATE TABLE pawl.mine ()",
            "CREATE FUNCTION pawl.version() RETURNS text LANGUAGE sql AS 'SELECT 1'",
            "ALTER TABLE orders DISABLE TRIGGER ALL",
            "DROP FUNCTION pawl.version()",
        ):
            self.assertRefused("42501", rows, self.app, attempt)

    def test_writer_cannot_use_internal_functions(self):
        """Called with whatever fits, none lowers a fence, changes a mode, or admits this
        session."""
        internals = self.sql(
            """
            SELECT p.oid::regprocedure::text, array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) t)
            FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
              AND p.prorettype <> 'event_trigger'::regtype AND p.proname NOT IN ('use', 'admit', 'advance')"""
        )
        self.assertTrue(internals)
        samples = {
            "text": "'orders'",
            "bigint": "1",
            "integer": "1",
            "boolean": "true",
            "interval": "'0 s'",
            "regclass": "'orders'",
            "name": "'orders'",
            "oid": "1",
            "text[]": "'{orders}'",
            "xid8": "'1'",
            "jsonb": "'{}'",
            "bigint[]": "'{1}'",
        }
        for signature, types in internals:
            name = signature.partition("(")[0]
            call = (
                f"SELECT "
                f"{name}({', '.join(f'{samples.get(kind, NULL)}::{kind}' for kind in types)})"
            )
            session = self.connect(user="app")
            with self.subTest(call):
                try:
                    rows(session, call)
                    with self.assertRaises(psycopg2.Error, msg=f"{call} admitted the session"):
                        rows(session, "UPDATE orders SET n = 666")
                except psycopg2.Error:
                    pass
            session.close()
        self.assertStillGuarded()


class Strangers(AttackCase):
    """A role that may connect, and nothing else."""

    def setUp(self):
        super().setUp()
        self.cluster.psql(
            """
            CREATE TABLE acc (id int PRIMARY KEY, n int NOT NULL);
            INSERT INTO acc VALUES (7, 0);
            SELECT pawl.protect('acc', key => 'id', mode => 'enforce');
            CREATE TABLE lines (id int PRIMARY KEY, customer int NOT NULL);
            SELECT pawl.protect('lines', by => 'customer', mode => 'enforce');
            DO $$ BEGIN IF to_regrole('intern') IS NULL THEN CREATE ROLE intern LOGIN; END IF; END $$;
            """,
            self.db,
        )
        self.intern = self.connect(user="intern", autocommit=True)

    def test_no_internal_function_that_moves_a_fence_may_be_called_by_others(self):
        harmless = {"_status", "_is_alone", "_insist_on_op", "_remember", "_admit"}
        harmless |= {"_use", "_c_use", "_hold_key", "_has_library", "_short"}
        granted = self.sql(
            "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND "
            "p.proname ~ '^(_|guard_)' AND has_function_privilege('intern', p.oid, 'EXECUTE')"
        )
        self.assertEqual({name for (name,) in granted} - harmless, set())

    def test_who_may_not_write_the_table_cannot_raise_its_fence(self):
        self.sql("INSERT INTO acc VALUES (8, 0)")
        self.sql("SELECT pawl.create_guard('mail')")
        self.sql("SELECT pawl.set_mode('mail', 'enforce')")
        before = self.sql("SELECT guard, key, token FROM pawl.keyed_fence ORDER BY 1, 2")
        most = 2**53 - 1
        for resource, token in (
            ("orders", 34 + 2**44),
            ("k:1", 35),
            ("k:new", most),
            ("acc:8", most),
            ("acc:9", most),
            ("lines:1", most),
            ("mail", most),
        ):
            for call in (
                f"advance('{resource}', {token})",
                f"use('{resource}', {token})",
                f"use('{resource}', {token}, 1)",
                f"use(ARRAY['{resource}'], {token})",
                f"admit('{resource}', {token})",
            ):
                with self.subTest(call):
                    error = self.assertRefused(
                        "42501", rows, self.intern, f"BEGIN; SELECT pawl.{call}; COMMIT"
                    )
                    self.assertIn("pawl.allow(", error.diag.message_hint)
                    rows(self.intern, "ROLLBACK")
        self.assertEqual(self.value("SELECT pawl.fence('orders')"), 34)
        self.assertEqual(self.value("SELECT pawl.fence('mail')"), None)
        after = self.sql("SELECT guard, key, token FROM pawl.keyed_fence ORDER BY 1, 2")
        self.assertEqual(after, before)

    def test_who_may_write_or_was_allowed_may_raise_the_fence(self):
        self.sql("GRANT UPDATE (n) ON acc TO intern")
        rows(self.intern, "SELECT pawl.advance('acc:7', 40)")
        self.assertRefused("42501", rows, self.intern, "SELECT pawl.advance('k:1', 35)")
        self.sql("SELECT pawl.allow('k', 'intern')")
        rows(self.intern, "SELECT pawl.advance('k:1', 35)")
        self.sql("SELECT pawl.disallow('k', 'intern')")
        self.assertRefused("42501", rows, self.intern, "SELECT pawl.advance('k:1', 36)")
        self.sql("GRANT app TO intern")
        rows(self.intern, "SELECT pawl.advance('k:1', 36)")
        self.sql("REVOKE app FROM intern")

    def test_an_observing_guard_warns_and_tells_readiness(self):
        self.sql("SELECT pawl.set_mode('orders', 'observe')")
        rows(self.intern, "SELECT pawl.advance('orders', 40)")
        rows(self.intern, "BEGIN; SELECT pawl.use('orders', 41); COMMIT")
        self.assertIn("may not write what 'orders' guards", "".join(self.intern.notices))
        self.assertEqual(self.value("SELECT pawl.fence('orders')"), 34)
        because = self.value("SELECT because FROM pawl.readiness('orders')")
        self.assertIn("SELECT pawl.allow('orders', 'intern')", " ".join(because))

    def test_a_lock_that_somebody_else_holds_ends_in_an_error_that_names_it(self):
        for guard, lock in (
            ("orders", "SELECT pg_advisory_lock(lock_key) FROM pawl.guard WHERE name = 'orders'"),
            ("orders", "SELECT pg_advisory_lock(7295, id) FROM pawl.guard WHERE name = 'orders'"),
        ):
            with self.subTest(lock):
                self.sql("SELECT pawl.set_mode('orders', 'enforce')")
                rows(self.intern, lock)
                db = self.connect(user="app")
                rows(db, "SET LOCAL pawl.token.orders = 35")
                error = self.assertRefused("PW007", rows, db, "UPDATE orders SET n = 1")
                self.assertIn("role=intern", error.diag.message_detail)
                (warning,) = self.sql("SELECT severity, guard, problem FROM pawl.problems()")
                self.assertEqual(warning[:2], ("warning", guard))
                self.assertIn("role=intern", warning[2])
                db.rollback()
                self.sql("SELECT pawl.set_mode('orders', 'observe')")
                rows(db, "SET LOCAL pawl.token.orders = 35")
                rows(db, "UPDATE orders SET n = 1")
                db.rollback()
                rows(self.intern, "SELECT pg_advisory_unlock_all()")
                self.assertEqual(self.sql("SELECT * FROM pawl.problems()"), [])

    def test_a_trigger_on_a_table_of_its_own_moves_no_fence(self):
        before = self.sql("SELECT s.guard, pawl.fence('acc:7'), s.fence FROM pawl.status s")
        for number, call in enumerate(
            (
                "pawl._row_leaves(2, '7', 9007199254740991)",
                "pawl._row_stays(2, '7', 9007199254740991)",
                "pawl._row_arrives(2, '7')",
                "pawl._on_statement(1, pg_current_snapshot())",
                "pawl._on_truncate(2)",
            )
        ):
            rows(
                self.intern,
                f"CREATE FUNCTION pg_temp.f{number}() RETURNS trigger LANGUAGE plpgsql AS $$ "
                f"BEGIN PERFORM {call}; RETURN NEW; END $$",
            )
            rows(self.intern, f"CREATE TEMP TABLE t{number} (n int)")
            rows(
                self.intern,
                f"CREATE TRIGGER t BEFORE INSERT ON t{number} FOR EACH ROW "
                f"EXECUTE FUNCTION pg_temp.f{number}()",
            )
            rows(self.intern, f"SET pawl.token.orders = {34 + 2**44}")
            rows(self.intern, "SET pawl.token.acc = 40")
            with self.subTest(call):
                self.assertRefused("42501", rows, self.intern, f"INSERT INTO t{number} VALUES (1)")
        after = self.sql("SELECT s.guard, pawl.fence('acc:7'), s.fence FROM pawl.status s")
        self.assertEqual(after, before)

    def test_the_trigger_function_of_a_guard_cannot_be_put_on_another_table(self):
        rows(self.intern, "CREATE TEMP TABLE fake (id int, pawl_token bigint)")
        for (function,) in self.sql(
            "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.proname ~ '^guard_[0-9]'"
        ):
            with self.subTest(function):
                self.assertRefused(
                    "42501",
                    rows,
                    self.intern,
                    f"CREATE TRIGGER t BEFORE INSERT ON fake FOR EACH ROW EXECUTE FUNCTION {function}",
                )


class OwnersOfTables(AttackCase):
    """The owner of a table that a superuser has put under guard: none of its code runs with the
    rights of the guard's owner, in nobody's session."""

    def setUp(self):
        super().setUp()
        self.cluster.psql(
            """
            DO $$ BEGIN IF to_regrole('shop') IS NULL THEN CREATE ROLE shop LOGIN; END IF; END $$;
            DO $$ BEGIN IF to_regrole('other') IS NULL THEN CREATE ROLE other LOGIN; END IF; END $$;
            CREATE SCHEMA shop AUTHORIZATION shop;
            CREATE TABLE public.seen (who text);
            GRANT INSERT ON public.seen TO PUBLIC;
            SET SESSION AUTHORIZATION shop;
            CREATE FUNCTION shop.note() RETURNS void LANGUAGE sql
              AS 'INSERT INTO public.seen VALUES (current_user)';
            CREATE FUNCTION shop.as_check(int) RETURNS boolean LANGUAGE plpgsql
              AS 'BEGIN PERFORM shop.note(); RETURN true; END';
            CREATE FUNCTION shop.as_trigger() RETURNS trigger LANGUAGE plpgsql
              AS 'BEGIN PERFORM shop.note(); RETURN coalesce(NEW, OLD); END';
            CREATE FUNCTION shop.as_key(int) RETURNS int LANGUAGE plpgsql
              AS 'BEGIN PERFORM shop.note(); RETURN $1; END';
            CREATE TABLE shop.acc (id int PRIMARY KEY, n int CHECK (shop.as_check(n)));
            INSERT INTO shop.acc VALUES (7, 0);
            CREATE TABLE shop.lines (id int PRIMARY KEY, customer int NOT NULL);
            INSERT INTO shop.lines VALUES (1, 1);
            GRANT USAGE ON SCHEMA shop TO PUBLIC;
            GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON shop.acc, shop.lines TO app;
            RESET SESSION AUTHORIZATION;
            SELECT pawl.protect('shop.acc', key => 'id', mode => 'enforce');
            SELECT pawl.protect('shop.lines', by => 'shop.as_key(customer)', mode => 'enforce');
            """,
            self.db,
        )
        self.sql("TRUNCATE public.seen")

    def assertRanAs(self, *roles):
        seen = {who for (who,) in self.sql("SELECT who FROM public.seen")}
        self.assertEqual(seen, set(roles))
        self.sql("TRUNCATE public.seen")

    def advance_and_use(self, token):
        rows(self.app, f"SELECT pawl.advance('shop.acc:7', {token})")
        rows(self.app, f"BEGIN; SELECT pawl.use('shop.acc:7', {token + 1}); COMMIT")
        self.assertEqual(self.value("SELECT pawl_token FROM shop.acc"), token + 1)

    def test_constraints_triggers_and_rules_run_as_the_owner_of_the_table(self):
        self.advance_and_use(40)
        self.assertRanAs("shop")
        self.cluster.psql(
            """
            CREATE TRIGGER t BEFORE UPDATE ON shop.acc FOR EACH ROW
              EXECUTE FUNCTION shop.as_trigger();
            CREATE RULE r AS ON UPDATE TO shop.acc DO ALSO SELECT shop.note();
            CREATE INDEX ON shop.acc ((n + pawl_token));
            """,
            self.db,
            user="shop",
        )
        self.advance_and_use(50)
        self.assertRanAs("shop")

    def test_a_new_owner_is_followed_at_once(self):
        self.sql("DROP EVENT TRIGGER pawl_partitions")  # What a guard without one does itself.
        self.sql("GRANT ALL ON SCHEMA shop TO other; ALTER TABLE shop.acc OWNER TO other")
        self.sql("GRANT ALL ON shop.acc TO other")
        self.advance_and_use(40)
        self.assertRanAs("other")

    def test_the_owner_cannot_make_it_run_with_other_rights(self):
        owner = self.connect(user="shop", autocommit=True)
        signature = self.value(
            "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.proname ~ '^touch_'"
        )
        rows(owner, f"ALTER FUNCTION {signature} SECURITY INVOKER")
        self.assertRefused(
            "42501",
            rows,
            owner,
            "CREATE OR REPLACE FUNCTION pawl.touch_9() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        )
        self.advance_and_use(40)  # Put right by the guard.
        self.assertRanAs("shop")
        rows(owner, f"ALTER FUNCTION {signature} SECURITY INVOKER")
        self.assertRefused(
            "55000",
            self.sql,
            f"SELECT {signature.partition('(')[0]}('shop.acc', 'id = 7', 50)",
        )
        self.assertRanAs()

    def test_a_function_in_by_runs_as_the_owner_of_the_table(self):
        for sql in (
            "INSERT INTO shop.lines VALUES (2, 2)",
            "UPDATE shop.lines SET customer = 3 WHERE id = 2",
            "DELETE FROM shop.lines WHERE id = 2",
            "TRUNCATE shop.lines",
        ):
            with self.subTest(sql):
                rows(self.app, sql)
                self.assertRanAs("shop")
        (judge,) = self.sql("SELECT p.proname FROM pg_proc p WHERE p.proname ~ '^judge_'")[0]
        self.assertRefused("42501", rows, self.app, f"SELECT pawl.{judge}('INSERT', '{{1}}')")

    def test_a_cast_of_the_keys_type_does_not_run_at_all(self):
        self.cluster.psql(
            """
            DROP TABLE shop.lines CASCADE;
            CREATE TYPE shop.pair AS (a int);
            CREATE FUNCTION shop.as_cast(shop.pair) RETURNS bigint LANGUAGE plpgsql
              AS 'BEGIN PERFORM shop.note(); RETURN 7; END';
            CREATE FUNCTION shop.as_text(shop.pair) RETURNS text LANGUAGE plpgsql
              AS 'BEGIN PERFORM shop.note(); RETURN 7; END';
            CREATE CAST (shop.pair AS bigint) WITH FUNCTION shop.as_cast(shop.pair) AS IMPLICIT;
            CREATE CAST (shop.pair AS text) WITH FUNCTION shop.as_text(shop.pair) AS IMPLICIT;
            """,
            self.db,
            user="shop",
        )
        self.sql("DROP EVENT TRIGGER pawl_partitions")
        self.sql("ALTER TABLE shop.acc DROP CONSTRAINT acc_n_check")
        self.sql("ALTER TABLE shop.acc ALTER id TYPE shop.pair USING row(id)::shop.pair")
        self.sql("TRUNCATE public.seen")
        for call in ("fence('shop.acc:7')", "check('shop.acc:7', 5)", "advance('shop.acc:7', 5)"):
            try:
                rows(self.app, f"SELECT pawl.{call}")
            except psycopg2.Error:
                pass
        for sql in (
            "BEGIN; SELECT pawl.use('shop.acc:7', 5)",
            "UPDATE shop.acc SET n = 1",
            "BEGIN; SET LOCAL \"pawl.token.shop.acc\" = 5; DELETE FROM shop.acc; COMMIT",
        ):
            try:
                rows(self.app, sql)
            except psycopg2.Error:
                pass
            rows(self.app, "ROLLBACK")
        self.assertRanAs()


class HostileSessions(AttackCase):
    def test_hostile_search_path_changes_nothing(self):
        self.cluster.psql(EVIL, self.db)
        for path in (
            "evil, pg_catalog, public",
            "evil, public",
            "pg_temp, evil, pg_catalog, public",
        ):
            with self.subTest(path):
                session = self.connect(user="app", autocommit=True)
                rows(session, f"SET search_path = {path}")
                rows(session, "SET pawl.token.orders = 33")
                self.assertRefused("PW002", rows, session, "UPDATE public.orders SET n = 666")
                rows(session, "RESET pawl.token.orders")
                self.assertStillGuarded(session)

    def test_temporary_objects_do_not_shadow_the_guard(self):
        for name in ("guard", "pg_class", "pg_locks", "pg_proc"):
            rows(
                self.app,
                f"CREATE TEMP TABLE {name} AS SELECT 'orders'::text AS name, 'observe'::text AS "
                f"mode",
            )
        self.assertStillGuarded()

    def test_session_replication_role_does_not_switch_the_guard_off(self):
        session = self.connect(autocommit=True)  # Only a superuser may set it.
        rows(session, "SET session_replication_role = replica")
        self.assertStillGuarded(session)

    def test_advisory_unlock_all_does_not_unblock_advance(self):
        old = self.connect(user="app")
        rows(old, "SELECT pawl.use('orders', 34)")
        rows(old, "UPDATE orders SET n = 1")
        rows(old, "SELECT pg_advisory_unlock_all()")
        rows(old, "DISCARD PLANS")
        self.assertRefused("PW007", self.sql, "SELECT pawl.advance('orders', 35, '50 ms')")
        old.commit()

    def test_foreign_advisory_lock_can_delay_but_not_admit(self):
        holder = self.connect(user="app")
        rows(holder, "SELECT pawl.use('orders', 34)")
        keys = self.sql(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = "
            "'advisory' AND pid = %s",
            holder.info.backend_pid,
        )
        holder.commit()
        for (key,) in keys:
            rows(self.app, "SELECT pg_advisory_lock_shared(%s)", key)
        self.assertStillGuarded()

    def test_invalid_settings_are_malformed(self):
        for text in (
            "0",
            "-1",
            "+34",
            "034",
            " 34",
            "34 ",
            "3.4e1",
            "0x22",
            "thirty-four",
            "9007199254740992",
            "18446744073709551650",
            "34; DROP TABLE orders",
            "\u0663\u0664",
        ):
            with self.subTest(text):
                session = self.connect(user="app")
                rows(session, "SELECT set_config('pawl.token.orders', %s, true)", text)
                self.assertRefused("PW003", rows, session, "UPDATE orders SET n = 666")
        self.assertStillGuarded()

    def test_forged_settings_admit_nothing(self):
        """Whatever the guard keeps in settings, a session can write there too, on purpose. A stale
        token stays stale."""
        session = self.connect(user="app")
        rows(session, "SELECT pawl.use('orders', 34)")
        rows(session, "UPDATE orders SET n = 1")
        kept = [
            row[0] for row in rows(session, "SELECT name FROM pg_settings WHERE name LIKE 'pawl.%'")
        ]
        session.rollback()
        self.sql("SELECT pawl.advance('orders', 35)")
        for name in kept:
            with self.subTest(name):
                session = self.connect(user="app")
                for lie in ("34", "on", "true", "1", ""):
                    rows(session, "SELECT set_config(%s, %s, true)", name, lie)
                    rows(session, "SAVEPOINT s")
                    with self.assertRaises(psycopg2.Error, msg=lie):
                        rows(session, "UPDATE orders SET n = 666")
                    rows(session, "ROLLBACK TO SAVEPOINT s")
                session.rollback()


if __name__ == "__main__":
    postgres.main()
