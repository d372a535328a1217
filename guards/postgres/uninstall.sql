-- Takes Pawl's guard out of this database: every table is written without a check from then on, and every fence is
-- forgotten. Columns named pawl_token stay in the tables that have one; dropping them is yours.
--
--   psql -d shop -f uninstall.sql

\set ON_ERROR_STOP on
BEGIN;
SET LOCAL client_min_messages = warning;

DO $$
DECLARE
  t record;
BEGIN
  IF to_regnamespace('pawl') IS NULL OR to_regprocedure('pawl.contract()') IS NULL THEN
    RAISE EXCEPTION 'pawl: no guard is installed in the database %', current_database() USING ERRCODE = '55000';
  END IF;
  DROP EVENT TRIGGER IF EXISTS pawl_partitions;
  DROP EVENT TRIGGER IF EXISTS pawl_drops;
  -- By the function, not by the list of protected tables: that one may have been damaged. Copies that PostgreSQL made in
  -- partitions go with the original.
  FOR t IN SELECT x.tgname, x.tgrelid::regclass AS tbl FROM pg_trigger x JOIN pg_proc p ON p.oid = x.tgfoid
            WHERE p.pronamespace = 'pawl'::regnamespace AND x.tgparentid = 0 LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.tbl);
  END LOOP;
  DROP SCHEMA pawl CASCADE;
END $$;

COMMIT;
