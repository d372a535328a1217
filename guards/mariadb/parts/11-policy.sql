-- Policy: set_mode, set_policy, emergency, compact.

DELIMITER //

-- Takes the guard's row for itself: waits for what was let through under the policy so far, five seconds.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._close_passage(IN g TEXT)
BEGIN
  DECLARE patience INT DEFAULT @@innodb_lock_wait_timeout;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    SET SESSION innodb_lock_wait_timeout = patience;
    SIGNAL SQLSTATE 'PW007' SET MESSAGE_TEXT = 'pawl: the policy waits for transactions that began under the old one; nothing has changed';
  END;
  SET SESSION innodb_lock_wait_timeout = 5;
  SET @pawl_id = NULL;
  SELECT id, mode, percent INTO @pawl_id, @pawl_mode, @pawl_percent FROM pawl.guard WHERE name = g FOR UPDATE;
  CALL pawl._wait_for_xa(@pawl_id, NULL);
  SET SESSION innodb_lock_wait_timeout = patience;
  IF @pawl_id IS NULL THEN CALL pawl._unknown(g); END IF;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.set_mode(IN guard TEXT, IN mode TEXT, IN percent INT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE emergency INT;
  DECLARE would BIGINT;
  DECLARE obstacle TEXT;
  DECLARE mine BOOLEAN DEFAULT NOT @@in_transaction;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF; RESIGNAL; END;
  IF mode IS NULL OR mode NOT IN ('observe', 'shadow', 'canary', 'enforce') THEN CALL pawl._wrong('a mode is observe, shadow, canary or enforce'); END IF;
  IF (mode = 'canary') <> (percent IS NOT NULL) OR percent NOT BETWEEN 1 AND 100 THEN
    CALL pawl._wrong('canary needs a percentage from 1 to 100, and the other modes take none');
  END IF;
  IF mine THEN START TRANSACTION; END IF;
  IF mode IN ('canary', 'enforce') THEN
    SET obstacle = pawl._obstacle(guard);
    IF obstacle IS NOT NULL THEN CALL pawl._wrong(CONCAT('the mode stays as it is: ', obstacle)); END IF;
  END IF;
  CALL pawl._close_passage(guard);
  DELETE FROM pawl.sightings WHERE pawl.sightings.guard = guard COLLATE utf8mb4_bin AND at < SYSDATE() - INTERVAL 90 DAY;
  CALL pawl._counted(CONCAT('count_', @pawl_id, '_would_refuse'), would);
  UPDATE pawl.guard o SET o.mode = mode, o.percent = percent, o.mode_since = SYSDATE(6), o.would_refuse_before = would WHERE o.id = @pawl_id;
  CALL pawl._emergency(@pawl_id, emergency);
  IF emergency AND NOT mine AND NOT @pawl_rehearsal <=> TRUE THEN CALL pawl._wrong('the emergency switch is on, which no ROLLBACK turns on again: set_mode() needs a transaction of its own'); END IF;
  IF emergency AND mine THEN EXECUTE IMMEDIATE CONCAT('DO NEXTVAL(pawl.emergency_', @pawl_id, ')'); END IF;
  CALL pawl._log(guard, 'mode', CONCAT_WS(' ', @pawl_mode, @pawl_percent), CONCAT_WS(' ', mode, percent), reason);
  IF mine THEN COMMIT AND NO CHAIN NO RELEASE; END IF;
END//

-- What is NULL stays as it is.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.set_policy(IN guard TEXT, IN require_token BOOLEAN, IN equal TEXT, IN max_step BIGINT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE was, will TEXT;
  DECLARE mine BOOLEAN DEFAULT NOT @@in_transaction;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF; RESIGNAL; END;
  IF mine THEN START TRANSACTION; END IF;
  CALL pawl._close_passage(guard);
  IF equal NOT IN ('accept', 'once', 'refuse') THEN CALL pawl._wrong('equal is accept, once or refuse'); END IF;
  IF equal <> 'accept' AND (SELECT kind FROM pawl.guard WHERE id = @pawl_id) = 'by' THEN
    CALL pawl._wrong('a guard by a column admits an equal token; give each operation a number instead');
  END IF;
  IF equal <> 'accept' AND EXISTS (SELECT 1 FROM pawl.protected p WHERE p.guard = guard COLLATE utf8mb4_bin AND p.token_column) THEN
    CALL pawl._wrong('a column carries no operation number: with a token column, equal stays accept');
  END IF;
  SET was = (SELECT CONCAT('require_token=', o.require_token, ' equal=', o.equal, ' max_step=', o.max_step) FROM pawl.guard o WHERE o.id = @pawl_id FOR UPDATE);
  UPDATE pawl.guard o SET o.require_token = IFNULL(require_token, o.require_token), o.equal = IFNULL(equal, o.equal), o.max_step = IFNULL(max_step, o.max_step) WHERE o.id = @pawl_id;
  SET will = (SELECT CONCAT('require_token=', o.require_token, ' equal=', o.equal, ' max_step=', o.max_step) FROM pawl.guard o WHERE o.id = @pawl_id FOR UPDATE);
  CALL pawl._log(guard, 'policy', was, will, reason);
  IF mine THEN COMMIT AND NO CHAIN NO RELEASE; END IF;
END//

-- Back to shadow, at once: a sequence is the switch, so it waits for no open transaction and is seen at every isolation level.
-- Odd is on. set_mode() turns it off again. NULL: every guard.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.emergency(IN guard TEXT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE on_ INT;
  IF guard IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pawl.guard o WHERE o.name = guard) THEN CALL pawl._unknown(guard); END IF;
  FOR g IN (SELECT o.id, o.name, o.mode FROM pawl.guard o WHERE (guard IS NULL OR o.name = guard) AND o.mode IN ('canary', 'enforce')) DO
    CALL pawl._emergency(g.id, on_);
    IF NOT on_ THEN
      EXECUTE IMMEDIATE CONCAT('DO NEXTVAL(pawl.emergency_', g.id, ')');
      CALL pawl._log(g.name, 'emergency', g.mode, 'shadow', reason);
    END IF;
  END FOR;
END//

-- Forgets fences and operations below a token. The floor of the guard rises instead, so what is forgotten stays refused.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.compact(IN guard TEXT, IN below TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE token_, most BIGINT;
  DECLARE mine BOOLEAN DEFAULT NOT @@in_transaction;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    IF mine THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF;
    SIGNAL SQLSTATE 'PW007' SET MESSAGE_TEXT = 'pawl: the policy waits for writes under tokens that it would forget; nothing has changed';
  END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK AND NO CHAIN NO RELEASE; END IF; RESIGNAL; END;
  IF mine THEN START TRANSACTION; END IF;
  CALL pawl._close_passage(guard);
  SET token_ = pawl._token(below);
  IF token_ IS NULL THEN CALL pawl._raise('malformed', guard, NULL, 0, @pawl_mode); END IF;
  IF (SELECT kind FROM pawl.guard WHERE id = @pawl_id) <> 'static' THEN
    SET most = GREATEST((SELECT o.fence FROM pawl.guard o WHERE o.id = @pawl_id FOR UPDATE), IFNULL((SELECT MAX(f.token) FROM pawl.fence f WHERE f.guard = @pawl_id), 0));
    IF pawl._verdict(token_, most, (SELECT o.max_step FROM pawl.guard o WHERE o.id = @pawl_id)) = 'ahead' THEN CALL pawl._raise('ahead', guard, token_, most, @pawl_mode); END IF;
    -- The floor comes last: a DELETE may time out waiting for an open write, and in a transaction of the caller's what was done before stays.
    DELETE FROM pawl.fence WHERE pawl.fence.guard = @pawl_id AND token < token_;
    DELETE FROM pawl.done WHERE pawl.done.guard = @pawl_id AND token < token_;
    UPDATE pawl.guard o SET o.fence = GREATEST(o.fence, token_) WHERE o.id = @pawl_id;
  ELSE
    DELETE FROM pawl.done WHERE pawl.done.guard = @pawl_id AND token < LEAST(token_, (SELECT o.fence FROM pawl.guard o WHERE o.id = @pawl_id));
  END IF;
  CALL pawl._log(guard, 'compact', NULL, CONCAT('below ', below), NULL);
  IF mine THEN COMMIT AND NO CHAIN NO RELEASE; END IF;
END//

DELIMITER ;
