-- The rules that compare tokens and fences, and the words of a refusal. They take no lock and have no side effect.

DELIMITER //

CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl.version() RETURNS VARCHAR(32) DETERMINISTIC NO SQL RETURN '0.1.0'//
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl.contract() RETURNS INT DETERMINISTIC NO SQL RETURN 1//

-- The number of a guard: of its name alone. A guard that is made again, in whatever order, is the one that the triggers of a restored
-- table name.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._guard_id(name TEXT) RETURNS BIGINT DETERMINISTIC NO SQL
  RETURN CONV(LEFT(MD5(name), 13), 16, 10)//

-- A token as text. NULL when it is not one.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._token(spelled TEXT) RETURNS BIGINT DETERMINISTIC NO SQL
BEGIN
  IF spelled IS NULL OR NOT spelled REGEXP '^[1-9][0-9]{0,15}\\z' THEN RETURN NULL; END IF;
  IF CAST(spelled AS UNSIGNED) > 9007199254740991 THEN RETURN NULL; END IF;
  RETURN CAST(spelled AS SIGNED);
END//

-- The one place that compares a token with a fence. A fence of 0 is none: any first token is good.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._verdict(token BIGINT, fence BIGINT, max_step BIGINT) RETURNS VARCHAR(16) DETERMINISTIC NO SQL
  RETURN CASE WHEN token IS NULL THEN 'missing'
              WHEN fence = 0 THEN 'admitted'
              WHEN token < fence THEN 'stale'
              WHEN token - fence > max_step THEN 'ahead'
              WHEN token >= fence THEN 'admitted'
              ELSE 'stale' END//  -- A NULL somewhere: fail closed.

-- Whether this resource is refused its stale writes. Canary takes a stable share of the resources.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._enforced(mode VARCHAR(8), percent INT, resource TEXT, emergency INT) RETURNS BOOLEAN DETERMINISTIC NO SQL
  RETURN emergency = 0 AND (mode = 'enforce' OR mode = 'canary' AND CRC32(resource) % 100 < percent)//

-- Ends the statement with the verdict's own SQLSTATE. The part in brackets has a fixed spelling: programs read it.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._raise(IN verdict VARCHAR(16), IN resource TEXT, IN token BIGINT, IN fence BIGINT, IN mode VARCHAR(8)) SQL SECURITY DEFINER NO SQL
BEGIN
  DECLARE detail TEXT DEFAULT CONCAT(' [token=', IFNULL(token, 'none'), ' max=', IF(fence > 0, fence, 'none'), ' mode=', mode, ']');
  DECLARE name TEXT DEFAULT LEFT(resource, 200);
  DECLARE words TEXT;
  -- Whoever came with a token is no old program, also when it was refused.
  IF verdict NOT IN ('missing', 'generated') THEN CALL pawl._remember_user(resource); END IF;
  CASE verdict
    WHEN 'missing' THEN
      SET words = CONCAT('pawl: ', IF(token IS NULL, CONCAT('write to ', name, ' without a token: CALL pawl.use(resource, token) first, in the same transaction'), CONCAT('token ', token, ' was used for ', name, ' before: give the operation a number')), detail);
      SIGNAL SQLSTATE 'PW001' SET MESSAGE_TEXT = words;
    WHEN 'generated' THEN
      SET words = CONCAT('pawl: write to ', name, ' without a token: AUTO_INCREMENT will choose the key of the new row, so no token can be for it. Name the key in the INSERT', detail);
      SIGNAL SQLSTATE 'PW001' SET MESSAGE_TEXT = words;
    WHEN 'stale' THEN
      -- MESSAGE_TEXT holds 512 characters; a longer one would be another error than PW002.
      SET words = CONCAT('pawl: stale token ', token, ' for ', LEFT(name, 120), ': ', IF(fence > token, CONCAT('token ', fence), 'it'), ' has been here. Stop; a retry cannot succeed',
                         IF(fence > token, CONCAT(': a newer holder has taken over, or a holder of another lock writes here (if pawld still grants tokens below ',
                                                  fence, ': pawl raise ', fence, ' --reason TEXT)'), ''), detail);
      SIGNAL SQLSTATE 'PW002' SET MESSAGE_TEXT = words;
    WHEN 'malformed' THEN
      SET words = CONCAT('pawl: malformed token for ', name, ': an integer from 1 to 9007199254740991', detail);
      SIGNAL SQLSTATE 'PW003' SET MESSAGE_TEXT = words;
    WHEN 'ahead' THEN
      SET words = CONCAT('pawl: token ', token, ' for ', name, ' is further ahead than the guard allows: forged or corrupt', detail);
      SIGNAL SQLSTATE 'PW005' SET MESSAGE_TEXT = words;
    WHEN 'early' THEN
      SET words = CONCAT('pawl: a new token ', token, ' for ', name, ' in a column, where the fence cannot be raised: CALL pawl.advance(resource, token, wait) first', detail);
      SIGNAL SQLSTATE 'PW006' SET MESSAGE_TEXT = words;
    WHEN 'moved' THEN
      SET words = CONCAT('pawl: the fence of ', name, ' moved', IF(fence > 0, CONCAT(' to ', fence), ''), ' after this snapshot was taken; retry the transaction');
      SIGNAL SQLSTATE '40001' SET MESSAGE_TEXT = words;
    WHEN 'replayed' THEN
      SET words = CONCAT('pawl: this operation on ', name, ' was already done', detail);
      SIGNAL SQLSTATE 'PW008' SET MESSAGE_TEXT = words;
  END CASE;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._unknown(IN resource TEXT) NO SQL
BEGIN
  DECLARE words TEXT DEFAULT CONCAT('pawl: unknown resource ', LEFT(IFNULL(QUOTE(resource), 'NULL'), 200));
  SIGNAL SQLSTATE 'PW004' SET MESSAGE_TEXT = words;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._wrong(IN words TEXT) NO SQL
BEGIN
  SET words = CONCAT('pawl: ', words);
  SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = words;
END//

DELIMITER ;
