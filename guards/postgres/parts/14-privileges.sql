-- Privileges, and the triggers that an upgrade must bring up to date.

-- Nothing is granted by default: triggers run with the rights of the guard's owner, so that a guard in observe does not stop
-- a writer for lack of a privilege. Policy functions run with their owner's rights, so that an owner can hand out
-- one of them: GRANT EXECUTE ON FUNCTION pawl.emergency TO oncall.
DO $$
DECLARE
  writers text := pawl._writers();
  f record;
BEGIN
  GRANT USAGE ON SCHEMA pawl TO PUBLIC;
  FOR f IN SELECT p.oid::regprocedure AS signature, p.proname AS name FROM pg_proc p
            WHERE p.pronamespace = 'pawl'::regnamespace AND p.prokind = 'f' LOOP
    IF f.name IN ('version', 'contract', 'fast_path', '_has_library', '_short', '_status', 'fence', 'check', 'reset') THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.signature);
    ELSIF f.name IN ('use', 'admit', 'advance', 'blockers', '_admit', '_insist_on_op', '_is_alone', '_remember', '_use', '_c_use', '_hold_key') THEN
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f.signature, writers);
    ELSE
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
    END IF;
  END LOOP;
  GRANT SELECT ON pawl.guard, pawl.status TO PUBLIC;
END $$;

DO $$ BEGIN PERFORM pawl._repair(false), pawl._note_functions(); END $$;

DO $$
BEGIN
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    DROP EVENT TRIGGER IF EXISTS pawl_partitions;
    CREATE EVENT TRIGGER pawl_partitions ON ddl_command_end 
      WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE', 'DROP TABLE', 'CREATE SCHEMA', 'ALTER SCHEMA', 'CREATE TRIGGER', 'ALTER TRIGGER',
                   'ALTER INDEX', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'IMPORT FOREIGN SCHEMA', 'ALTER TYPE', 'CREATE FUNCTION', 'ALTER FUNCTION', 'ALTER ROUTINE',
                   'DROP FUNCTION', 'DROP ROUTINE', 'DROP SCHEMA', 'DROP EXTENSION', 'DROP OPERATOR', 'ALTER EXTENSION', 'CREATE VIEW', 'ALTER VIEW',
                   'CREATE OPERATOR', 'ALTER OPERATOR', 'CREATE CAST', 'DROP CAST', 'CREATE PROCEDURE', 'ALTER PROCEDURE', 'DROP PROCEDURE', 'CREATE AGGREGATE', 'ALTER AGGREGATE',
                   'DROP AGGREGATE', 'CREATE DOMAIN', 'ALTER DOMAIN', 'DROP DOMAIN', 'CREATE TYPE', 'DROP TYPE', 'DROP OWNED')
      EXECUTE FUNCTION pawl._on_ddl();
    ALTER EVENT TRIGGER pawl_partitions ENABLE ALWAYS;
    DROP EVENT TRIGGER IF EXISTS pawl_drops;
    CREATE EVENT TRIGGER pawl_drops ON ddl_command_start WHEN TAG IN ('DROP TABLE', 'DROP SCHEMA', 'DROP OWNED', 'DROP EXTENSION') EXECUTE FUNCTION pawl._on_drop();
    ALTER EVENT TRIGGER pawl_drops ENABLE ALWAYS;
  END IF;
END $$;
