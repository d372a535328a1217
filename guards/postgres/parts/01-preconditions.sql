-- Refuses to install where it cannot work, creates the schema, drops what an upgrade replaces, and looks for the C library.

DO $$
DECLARE
  offered text := current_setting('pawl.installing_version');
  installed text;
BEGIN
  PERFORM pg_advisory_xact_lock(7295, 0);  -- Two installations at once would trip over each other's catalog rows.
  IF current_setting('server_version_num')::int < 150000 THEN
    RAISE EXCEPTION 'pawl: PostgreSQL 15 or newer is needed, this is %', current_setting('server_version') USING ERRCODE = '0A000';
  END IF;
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'pawl: this server is a replica; install on the primary' USING ERRCODE = '25006';
  END IF;
  IF to_regnamespace('pawl') IS NULL THEN
    CREATE SCHEMA pawl;
  ELSIF NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'pawl'), 'USAGE') THEN
    RAISE EXCEPTION 'pawl: the schema pawl belongs to another role' USING ERRCODE = '42501';
  END IF;
  IF to_regprocedure('pawl.version()') IS NOT NULL THEN
    EXECUTE 'SELECT pawl.version()' INTO installed;
    IF string_to_array(installed, '.')::int[] > string_to_array(offered, '.')::int[] THEN
      RAISE EXCEPTION 'pawl: version % is installed, and this file is the older %', installed, offered
        USING ERRCODE = '55000', HINT = 'Install the newer file; fences written by it may mean more than this one knows.';
    END IF;
  END IF;
  EXECUTE format('CREATE OR REPLACE FUNCTION pawl.version() RETURNS text LANGUAGE sql IMMUTABLE AS %L',
                 format('SELECT %L::pg_catalog.text', offered));
  EXECUTE format('CREATE OR REPLACE FUNCTION pawl.contract() RETURNS int LANGUAGE sql IMMUTABLE AS %L',
                 format('SELECT %s', current_setting('pawl.installing_contract')::int));
END $$;

-- An upgrade may change what its inside takes and returns, which CREATE OR REPLACE does not allow. What a view or an event
-- trigger stands on stays; the interface stays, and with it whatever was granted on it.
DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ '^(_|hold_[0-9])' LOOP
    BEGIN
      EXECUTE format('DROP FUNCTION %s', f);
    EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
    END;
  END LOOP;
END $$;

-- THE C LIBRARY (guards/postgres/c) is optional. Where the server has it and the installer is a superuser, the fast paths are
-- one call of it; what it does not admit at once, and everything else, is decided by the same PL/pgSQL as without it.
-- PGOPTIONS='-c pawl.library=off' does without, '-c pawl.library=required' fails where it cannot be used.
DO $$
DECLARE
  wanted text := coalesce(nullif(current_setting('pawl.library', true), ''), 'auto');
  c record;
BEGIN
  IF wanted NOT IN ('auto', 'off', 'required') THEN
    RAISE EXCEPTION 'pawl: pawl.library is auto, off or required, not %', quote_literal(wanted) USING ERRCODE = '22023';
  END IF;
  IF wanted = 'off' THEN RETURN; END IF;
  BEGIN
    FOR c IN SELECT * FROM (VALUES
        ('_c_use',       'pawl_use_2',       'resource text, token bigint', 'boolean'),
        ('_c_statement', 'pawl_statement_1', 'setting text, fence regclass, lock_key bigint, raiser regclass, guard_id int', 'boolean'),
        ('_c_row',       'pawl_row_2',       'setting text, token bigint, old_key text, new_key text, floor regclass, lock_key bigint, guard_id int', 'boolean'),
        ('_c_keys',      'pawl_keys_1',      'setting text, low text, high text, floor regclass, lock_key bigint, guard_id int', 'boolean'),
        ('_c_touched',   'pawl_touched_1',   'setting text, key_column text, has_old boolean, has_new boolean, floor regclass, lock_key bigint, guard_id int', 'SETOF boolean')
      ) AS v(name, symbol, arguments, result) LOOP
      EXECUTE format('CREATE FUNCTION pawl.%I(%s) RETURNS %s LANGUAGE c STRICT AS ''pawl_guard'', %L', c.name, c.arguments, c.result, c.symbol);
    END LOOP;
  EXCEPTION WHEN OTHERS THEN  -- Not there, of another version, or no superuser.
    IF wanted = 'required' THEN RAISE; END IF;
  END;
END $$;

CREATE OR REPLACE FUNCTION pawl._has_library() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT to_regprocedure('pawl._c_use(text, bigint)') IS NOT NULL $$;

-- Which of both is in force: 'C', or 'PL/pgSQL'.
CREATE OR REPLACE FUNCTION pawl.fast_path() RETURNS text
LANGUAGE sql STABLE AS $$ SELECT CASE WHEN pawl._has_library() THEN 'C' ELSE 'PL/pgSQL' END $$;
