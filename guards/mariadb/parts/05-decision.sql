-- The decision: locks the fence, compares, raises it.

DELIMITER //

-- The guard and the key that a resource names: `guard`, or `guard:key` where each key has a fence of its own.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._split(IN resource TEXT, OUT g TEXT, OUT k TEXT)
BEGIN
  SET g = SUBSTRING_INDEX(resource, ':', 1);
  SET k = IF(LOCATE(':', resource) > 0, SUBSTRING(resource, LOCATE(':', resource) + 1), NULL);
END//

-- The form under which a key is stored, of a guard whose row _lock_guard() has read. A key that the column would spell otherwise is
-- no key: its fence would be in nobody's way. (_lock_guard() has compared: a pattern in a variable would be compiled once only.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._name_key(IN resource TEXT, INOUT wanted TEXT)
BEGIN
  DECLARE words TEXT;
  IF wanted IS NOT NULL AND NOT @pawl_spelled THEN
    SET words = CONCAT('pawl: unknown resource ', LEFT(QUOTE(resource), 200), ': spell the key as the key column does, like 7 and not 07');
    SIGNAL SQLSTATE 'PW004' SET MESSAGE_TEXT = words;
  END IF;
  IF @pawl_collation IS NOT NULL AND wanted IS NOT NULL THEN
    SET wanted = pawl._fold(wanted, @pawl_collation);
    IF wanted IS NULL THEN
      SET words = CONCAT('pawl: unknown resource ', LEFT(QUOTE(resource), 200), ': the key has characters that the character set of the key column (', @pawl_collation, ') does not have');
      SIGNAL SQLSTATE 'PW004' SET MESSAGE_TEXT = words;
    END IF;
  END IF;
END//

-- Inside an XA transaction: leaves a row that a raise of this fence will wait for. XA START tells where we are, and changes nothing:
-- inside XA it fails with 1399, inside any other transaction with 1400.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._note_xa(IN id BIGINT, IN wanted TEXT)
BEGIN
  DECLARE CONTINUE HANDLER FOR 1400 BEGIN END;
  DECLARE CONTINUE HANDLER FOR 1399
  BEGIN
    SET @pawl_session = IFNULL(@pawl_session, UUID_SHORT());
    INSERT INTO pawl.xa_write (guard, k, session) VALUES (id, wanted, @pawl_session) ON DUPLICATE KEY UPDATE touched = touched + 1;
  END;
  IF @@in_transaction THEN XA START 'pawl'; END IF;
END//

-- Waits for the XA transactions that have written under this fence, prepared ones too. NULL: of the whole guard.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._wait_for_xa(IN id BIGINT, IN wanted TEXT)
  IF wanted IS NULL THEN DELETE FROM pawl.xa_write WHERE guard = id;
  ELSE DELETE FROM pawl.xa_write WHERE guard = id AND k = wanted;
  END IF//

-- A session that has ever used a token of a guard is no old program: from then on it owes one.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._remember_user(IN resource TEXT)
BEGIN
  DECLARE tag VARCHAR(32) DEFAULT CONCAT(';', CONV(LEFT(MD5(SUBSTRING_INDEX(resource, ':', 1)), 13), 16, 10), ';');  -- _guard_id(), without the cost of a call.
  -- ';*;': so many guards that it owes a token to all of them.
  IF NOT IFNULL(LOCATE(tag, @pawl_used), 0) THEN
    SET @pawl_used = IF(LENGTH(@pawl_used) > 60000, ';*;', CONCAT(IFNULL(@pawl_used, ';'), SUBSTRING(tag, 2)));
  END IF;
END//

-- Locks a guard's row and leaves it in session variables of ours: a procedure cannot return a row.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._lock_guard(IN resource TEXT, IN g TEXT, IN k TEXT, IN exclusively BOOLEAN)
BEGIN
  SET @pawl_id = NULL;
  IF exclusively THEN
    SELECT id, kind, fence, mode, percent, require_token, equal, max_step, key_collation, IFNULL(k = '' OR k REGEXP key_pattern, TRUE)
      INTO @pawl_id, @pawl_kind, @pawl_fence, @pawl_mode, @pawl_percent, @pawl_require, @pawl_equal, @pawl_max_step, @pawl_collation, @pawl_spelled
      FROM pawl.guard WHERE name = g FOR UPDATE;
  ELSE
    SELECT id, kind, fence, mode, percent, require_token, equal, max_step, key_collation, IFNULL(k = '' OR k REGEXP key_pattern, TRUE)
      INTO @pawl_id, @pawl_kind, @pawl_fence, @pawl_mode, @pawl_percent, @pawl_require, @pawl_equal, @pawl_max_step, @pawl_collation, @pawl_spelled
      FROM pawl.guard WHERE name = g LOCK IN SHARE MODE;
  END IF;
  IF @pawl_id IS NULL OR (@pawl_kind = 'static') <> (k IS NULL) OR CHAR_LENGTH(k) > 512 THEN CALL pawl._unknown(resource); END IF;
END//

-- Locks the fence of a key; 0 where there is none. The floor of the guard counts as well.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._lock_key(IN wanted TEXT, IN exclusively BOOLEAN, OUT fence BIGINT)
BEGIN
  SET fence = 0;
  IF exclusively THEN
    -- An upsert: a locking read locks nothing where there is no row yet.
    INSERT INTO pawl.fence (guard, k, token) VALUES (@pawl_id, wanted, 0) ON DUPLICATE KEY UPDATE touched = touched + 1;
    SET fence = (SELECT token FROM pawl.fence WHERE guard = @pawl_id AND k = wanted FOR UPDATE);
  ELSE
    SET fence = IFNULL((SELECT token FROM pawl.fence WHERE guard = @pawl_id AND k = wanted LOCK IN SHARE MODE), 0);
  END IF;
  SET fence = GREATEST(fence, @pawl_fence);
END//

-- Whether a plain read, which is as old as the snapshot, sees the fence that a locking read has found. (The plain read
-- comes after the lock: where it takes the snapshot, it takes a new one. It is a SELECT … INTO, because under REPEATABLE
-- READ a subquery of SET is a locking read.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._insist_on_fresh_snapshot(IN resource TEXT, IN g TEXT, IN wanted TEXT, IN token BIGINT, IN carries BOOLEAN)
BEGIN
  DECLARE seen BIGINT;
  IF wanted IS NULL THEN SELECT fence INTO seen FROM pawl.guard WHERE name = g;
  ELSE SELECT f.token INTO seen FROM pawl.fence f WHERE f.guard = @pawl_id AND f.k = wanted;
  END IF;
  IF NOT seen <=> token THEN
    -- Whoever goes on writing is refused again.
    IF carries THEN CALL pawl._carry(CONCAT(@pawl_id, ':', HEX(IFNULL(wanted, ''))), 'moved'); END IF;
    CALL pawl._raise('moved', resource, token, token, NULL);
  END IF;
END//

-- Claims an operation, or under a policy that admits an equal token only once, the token. The primary key makes twins
-- wait for each other; a rollback gives the claim back.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._claim(IN wanted TEXT, IN token BIGINT, IN op BIGINT, INOUT verdict VARCHAR(16))
BEGIN
  IF op IS NOT NULL THEN
    INSERT IGNORE INTO pawl.done (guard, k, token, op) VALUES (@pawl_id, IFNULL(wanted, ''), token, op);
    IF ROW_COUNT() = 0 THEN SET verdict = 'replayed'; END IF;
  END IF;
  IF verdict = 'admitted' AND (@pawl_equal = 'refuse' OR @pawl_equal = 'once' AND op IS NULL) THEN
    INSERT IGNORE INTO pawl.done (guard, k, token, op) VALUES (@pawl_id, IFNULL(wanted, ''), token, 0);
    IF ROW_COUNT() = 0 THEN SET verdict = IF(@pawl_equal = 'once', 'missing', 'stale'); END IF;
  END IF;
END//

-- Notes in @pawl what the triggers shall find for a resource, `id:HEX(key)`, in place of the previous value.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._carry(IN of_resource TEXT, IN carried VARCHAR(32))
BEGIN
  DECLARE tag TEXT DEFAULT CONCAT(of_resource, '=');
  DECLARE old TEXT DEFAULT IF(LOCATE(CONCAT(';', tag), @pawl) > 0, SUBSTRING_INDEX(SUBSTRING_INDEX(@pawl, CONCAT(';', tag), -1), ';', 1), NULL);
  SET @pawl = CONCAT(IFNULL(IF(old IS NULL, @pawl, REPLACE(@pawl, CONCAT(';', tag, old, ';'), ';')), ';'), tag, carried, ';');
  IF LENGTH(@pawl) > 60000 THEN SET @pawl = SUBSTRING(@pawl, LOCATE(';', @pawl, LENGTH(@pawl) - 30000)); END IF;
END//

-- THE DECISION of use(), admit() and begin(), for every kind and mode. Holds what keeps it true until the end of the
-- transaction. `carries` false: only admit(), nothing is carried.
-- The token is carried before it is judged: a write after a refusal is refused again by the trigger.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._admit(IN resource TEXT, IN spelled TEXT, IN op_spelled TEXT, IN carries BOOLEAN, OUT verdict VARCHAR(16)) SQL SECURITY DEFINER
BEGIN
  DECLARE g, wanted TEXT;
  DECLARE token, op, found BIGINT;
  DECLARE emergency INT;
  DECLARE enforced, loose, raises BOOLEAN DEFAULT FALSE;
  IF carries THEN CALL pawl._remember_user(resource); END IF;
  IF @@in_transaction = 0 AND @@autocommit = 1 THEN
    SIGNAL SQLSTATE 'PW006' SET MESSAGE_TEXT = 'pawl: a token is used in a transaction: START TRANSACTION first, or CALL pawl.begin(resource, token)';
  END IF;
  CALL pawl._split(resource, g, wanted);
  SET token = pawl._token(spelled), op = pawl._token(op_spelled);
  -- A first look, so that two first users of a token do not both share the row and then both want it alone. Only where a
  -- plain read does not fix the snapshot of the whole transaction.
  SET loose = @@tx_isolation IN ('READ-COMMITTED', 'READ-UNCOMMITTED');
  IF loose AND wanted IS NULL THEN SET raises = token > IFNULL((SELECT fence FROM pawl.guard WHERE name = g AND kind = 'static'), token); END IF;
  CALL pawl._lock_guard(resource, g, wanted, raises);
  CALL pawl._name_key(resource, wanted);
  CALL pawl._emergency(@pawl_id, emergency);
  SET enforced = pawl._enforced(@pawl_mode, @pawl_percent, CONCAT_WS(':', g, wanted), emergency);
  SET found = @pawl_fence;
  IF token IS NULL OR op_spelled IS NOT NULL AND op IS NULL THEN  -- A bug of the caller, in every mode.
    CALL pawl._count(@pawl_id, 'malformed');
    CALL pawl._raise('malformed', resource, NULL, found, IF(emergency, 'shadow', @pawl_mode));
  END IF;
  IF carries THEN
    CALL pawl._carry(CONCAT(@pawl_id, ':', HEX(IFNULL(wanted, ''))), spelled);
  END IF;
  IF wanted IS NOT NULL THEN
    IF loose THEN SET raises = NOT token <=> (SELECT f.token FROM pawl.fence f WHERE f.guard = @pawl_id AND f.k = wanted) AND token >= found; END IF;
    CALL pawl._lock_key(wanted, raises, found);
  END IF;
  SET verdict = pawl._verdict(token, found, @pawl_max_step);
  IF verdict = 'admitted' AND token > found THEN
    IF @@read_only THEN
      SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'pawl: this server is read-only: a fence raised on a replica protects nothing; use the primary';
    END IF;
    IF found > 0 AND NOT loose AND @@tx_isolation <> 'SERIALIZABLE' THEN
      SIGNAL SQLSTATE 'PW006' SET MESSAGE_TEXT = 'pawl: a new token inside a REPEATABLE READ transaction, which may have read before: CALL pawl.advance(resource, token, wait) before it begins, or CALL pawl.begin(resource, token)';
    END IF;
    IF wanted IS NULL THEN
      UPDATE pawl.guard SET fence = token WHERE name = g;
    ELSE
      INSERT INTO pawl.fence (guard, k, token) VALUES (@pawl_id, wanted, token) ON DUPLICATE KEY UPDATE token = GREATEST(pawl.fence.token, VALUES(token));
    END IF;
    CALL pawl._wait_for_xa(@pawl_id, IFNULL(wanted, ''));
  ELSEIF verdict = 'admitted' THEN
    IF wanted IS NOT NULL AND token = @pawl_fence THEN  -- At the floor: the key needs a row that can be locked.
      INSERT INTO pawl.fence (guard, k, token) VALUES (@pawl_id, wanted, token) ON DUPLICATE KEY UPDATE token = GREATEST(pawl.fence.token, VALUES(token));
    END IF;
    IF enforced THEN CALL pawl._insist_on_fresh_snapshot(resource, g, wanted, token, carries); END IF;
  END IF;
  CALL pawl._note_xa(@pawl_id, IFNULL(wanted, ''));
  IF verdict = 'admitted' AND (op IS NOT NULL OR @pawl_equal <> 'accept') THEN CALL pawl._claim(wanted, token, op, verdict); END IF;
  IF verdict <> 'admitted' THEN
    CALL pawl._count(@pawl_id, verdict);
    IF verdict = 'replayed' THEN
      IF carries THEN CALL pawl._carry(CONCAT(@pawl_id, ':', HEX(IFNULL(wanted, ''))), 'replayed'); END IF;  -- A careless write is refused: PW008.
    ELSEIF enforced THEN
      CALL pawl._raise(verdict, resource, token, found, @pawl_mode);
    ELSEIF @pawl_mode <> 'observe' THEN
      CALL pawl._count(@pawl_id, 'would_refuse');
    END IF;
  END IF;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._answer(IN resource TEXT, IN token TEXT, IN op TEXT, IN carries BOOLEAN)
BEGIN
  DECLARE verdict VARCHAR(16);
  CALL pawl._admit(resource, token, op, carries, verdict);
  SELECT verdict;
END//

DELIMITER ;
