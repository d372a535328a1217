-- Privileges, and the triggers that an upgrade must bring up to date.

-- Nothing is granted by default, except what a trigger calls with the privileges of the writer: a guard in observe must
-- not stop a writer for lack of a privilege. Policy functions run with their owner's rights, so that an owner can hand out
-- one of them: GRANT EXECUTE ON FUNCTION pawl.emergency TO oncall.
DO $$
DECLARE
  writers text := (SELECT CASE upper(i.writers) WHEN 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(i.writers) END FROM pawl.installation i);
  f record;
BEGIN
  GRANT USAGE ON SCHEMA pawl TO PUBLIC;
  FOR f IN SELECT p.oid::regprocedure AS signature, p.proname AS name FROM pg_proc p
            WHERE p.pronamespace = 'pawl'::regnamespace AND p.prokind = 'f' LOOP
    IF f.name IN ('version', 'contract', '_on_statement', '_row_stays', '_row_leaves', '_row_arrives', '_on_keys', '_on_truncate', '_status', 'fence', 'check') THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.signature);
    ELSIF f.name IN ('use', 'admit', 'advance', 'blockers', '_admit', '_insist_on_op') THEN
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f.signature, writers);
    ELSE
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
    END IF;
  END LOOP;
  GRANT SELECT ON pawl.guard, pawl.status TO PUBLIC;
END $$;

DO $$ BEGIN PERFORM pawl.repair(); END $$;

DO $$
BEGIN
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    DROP EVENT TRIGGER IF EXISTS pawl_partitions;
    CREATE EVENT TRIGGER pawl_partitions ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'ALTER TABLE')
      EXECUTE FUNCTION pawl._on_ddl();
    ALTER EVENT TRIGGER pawl_partitions ENABLE ALWAYS;
  END IF;
END $$;
