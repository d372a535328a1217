-- Refuses to install where it cannot work, creates the schema, and drops what an upgrade replaces.

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
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ '^_' LOOP
    BEGIN
      EXECUTE format('DROP FUNCTION %s', f);
    EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
    END;
  END LOOP;
END $$;
