-- Privileges, and what an upgrade brings up to date. Nobody may do anything until an administrator says so: add_writer() lets an account
-- write with tokens. Hand out more one by one: GRANT EXECUTE ON PROCEDURE pawl.emergency TO oncall.

DELIMITER //

-- What programs call. It may raise any fence, so it is for the accounts of programs that hold locks.
CREATE OR REPLACE DEFINER=pawl_definer@localhost VIEW pawl._for_writers AS
  SELECT r.routine_type AS kind, r.routine_name AS name FROM information_schema.routines r WHERE r.routine_schema = 'pawl'
     AND r.routine_name IN ('use', 'use_op', 'use_all', 'admit', 'admit_op', 'begin', 'finish', 'abandon', 'advance', 'check', 'fence')//

-- The account `app@host` as GRANT spells it. Without a host it is a role of that name, if there is one, else app@%.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._grantee(account TEXT) RETURNS TEXT READS SQL DATA
BEGIN
  DECLARE user_ TEXT DEFAULT IF(LOCATE('@', account) > 0, SUBSTRING(account, 1, CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), account);
  DECLARE host_ TEXT DEFAULT IF(LOCATE('@', account) > 0, SUBSTRING_INDEX(account, '@', -1), '%');
  DECLARE words TEXT;
  IF LOCATE('@', account) = 0 AND EXISTS (SELECT 1 FROM mysql.user u WHERE u.user = user_ AND u.is_role = 'Y') THEN RETURN QUOTE(user_); END IF;
  IF EXISTS (SELECT 1 FROM mysql.user u WHERE u.user = user_ AND u.host = host_ AND u.is_role = 'N') THEN RETURN CONCAT(QUOTE(user_), '@', QUOTE(host_)); END IF;
  SET words = CONCAT('pawl: there is no account ', LEFT(IFNULL(CONCAT(user_, '@', host_), 'NULL'), 200), ': CREATE USER first, or name its host: app@localhost');
  SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = words;
END//

-- Lets an account, `app@host`, or a role write with tokens and raise fences, of every guard.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.add_writer(IN account TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE grantee TEXT DEFAULT pawl._grantee(account);
  FOR r IN (SELECT kind, name FROM pawl._for_writers) DO
    EXECUTE IMMEDIATE CONCAT('GRANT EXECUTE ON ', r.kind, ' pawl.`', r.name, '` TO ', grantee);
  END FOR;
  CALL pawl._log(NULL, 'add_writer', NULL, grantee, NULL);
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.remove_writer(IN account TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE grantee TEXT DEFAULT pawl._grantee(account);
  DECLARE CONTINUE HANDLER FOR 1141, 1147, 1403 BEGIN END;  -- It may not do this anyway.
  FOR r IN (SELECT kind, name FROM pawl._for_writers) DO
    EXECUTE IMMEDIATE CONCAT('REVOKE EXECUTE ON ', r.kind, ' pawl.`', r.name, '` FROM ', grantee);
  END FOR;
  CALL pawl._log(NULL, 'remove_writer', grantee, NULL, NULL);
END//

-- An older version let everyone.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._close_to_public()
BEGIN
  DECLARE CONTINUE HANDLER FOR 1141, 1147, 1403 BEGIN END;
  FOR r IN (SELECT kind, name FROM pawl._for_writers) DO
    EXECUTE IMMEDIATE CONCAT('REVOKE EXECUTE ON ', r.kind, ' pawl.`', r.name, '` FROM PUBLIC');
  END FOR;
END//

DELIMITER ;
CALL pawl._create_fold();
GRANT EXECUTE ON FUNCTION pawl.version TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.contract TO PUBLIC;
CALL pawl._close_to_public();
CALL pawl._repair(@pawl_not_repaired);
