-- Taking over: advance, blockers, evict.

DELIMITER //

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._try_advance(IN resource TEXT, IN spelled TEXT, IN g TEXT, INOUT wanted TEXT, OUT was BIGINT, OUT verdict VARCHAR(16))
BEGIN
  DECLARE token BIGINT DEFAULT pawl._token(spelled);
  CALL pawl._lock_guard(resource, g, wanted, wanted IS NULL);
  CALL pawl._name_key(resource, wanted);
  SET was = @pawl_fence;
  IF wanted IS NOT NULL THEN CALL pawl._lock_key(wanted, TRUE, was); END IF;
  SET verdict = IF(token IS NULL, 'malformed', pawl._verdict(token, was, @pawl_max_step));
  IF verdict <> 'admitted' THEN
    IF wanted IS NOT NULL THEN DELETE FROM pawl.fence WHERE guard = @pawl_id AND k = wanted AND pawl.fence.token = 0; END IF;
  ELSEIF wanted IS NULL THEN
    UPDATE pawl.guard SET fence = token, touched = touched + 1 WHERE name = g;
  ELSE
    UPDATE pawl.fence f SET f.token = GREATEST(f.token, token), f.touched = f.touched + 1 WHERE f.guard = @pawl_id AND f.k = wanted;
  END IF;
  IF verdict = 'admitted' THEN
    DELETE FROM pawl.done WHERE guard = @pawl_id AND k = IFNULL(wanted, '') AND pawl.done.token < token;
    CALL pawl._wait_for_xa(@pawl_id, IFNULL(wanted, ''));
  END IF;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._advance(IN resource TEXT, IN token TEXT, IN wait INT, OUT was BIGINT)
BEGIN
  DECLARE g, wanted, words TEXT;
  DECLARE verdict VARCHAR(16);
  DECLARE emergency INT;
  DECLARE patience INT DEFAULT @@innodb_lock_wait_timeout;
  DECLARE EXIT HANDLER FOR 1205
  BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = patience;
    CALL pawl._remember_user(resource);
    SET words = CONCAT('pawl: advance of ', LEFT(resource, 200), ' to ', token, ' waits for older transactions, open or prepared (XA RECOVER); pawl.blockers(resource) names them');
    SIGNAL SQLSTATE 'PW007' SET MESSAGE_TEXT = words;
  END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = patience;
    RESIGNAL;
  END;
  CALL pawl._split(resource, g, wanted);
  -- The definer may write to a replica, and the caller may not know that it is one.
  IF @@read_only THEN
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'pawl: this server is read-only: a fence raised on a replica protects nothing; use the primary';
  END IF;
  SET SESSION innodb_lock_wait_timeout = GREATEST(1, IFNULL(wait, 5));
  START TRANSACTION;
  CALL pawl._try_advance(resource, token, g, wanted, was, verdict);
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION innodb_lock_wait_timeout = patience;
  IF verdict <> 'admitted' THEN
    CALL pawl._emergency(@pawl_id, emergency);
    CALL pawl._count(@pawl_id, verdict);
    IF verdict = 'malformed' OR pawl._enforced(@pawl_mode, @pawl_percent, CONCAT_WS(':', g, wanted), emergency) THEN
      CALL pawl._raise(verdict, resource, pawl._token(token), was, @pawl_mode);
    ELSEIF @pawl_mode <> 'observe' THEN
      CALL pawl._count(@pawl_id, 'would_refuse');
    END IF;
  END IF;
  SET was = NULLIF(was, 0);
END//

-- Raises the fence for a new holder, before it reads what it will build on, in a transaction of its own, and answers the
-- fence before. When it has answered, every transaction with a smaller token has ended. Waits up to `wait` seconds.
-- A guard that refuses nothing does not refuse here either: look at what it answers.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.advance(IN resource TEXT, IN token TEXT, IN wait INT) SQL SECURITY DEFINER
BEGIN
  DECLARE was BIGINT;
  IF @@in_transaction THEN
    SIGNAL SQLSTATE 'PW006' SET MESSAGE_TEXT = 'pawl: advance() needs a transaction of its own: COMMIT or ROLLBACK first';
  END IF;
  CALL pawl._advance(resource, token, wait, was);
  SELECT was AS `before`;
END//

-- The transactions that advance() would wait for now: those that hold a lock on a fence of this guard and block others.
-- (InnoDB shows locks only while a session waits for them; otherwise these are all open transactions.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.blockers(IN resource TEXT) SQL SECURITY DEFINER
BEGIN
  IF pawl.fence(resource) IS NULL AND NOT EXISTS (SELECT 1 FROM pawl.guard WHERE name = SUBSTRING_INDEX(resource, ':', 1)) THEN CALL pawl._unknown(resource); END IF;
  SELECT t.trx_mysql_thread_id AS pid, p.user AS login, p.host, t.trx_started AS since,
         IF(t.trx_mysql_thread_id = 0, 'a prepared XA transaction without a session: XA RECOVER names it, XA COMMIT or XA ROLLBACK ends it', LEFT(t.trx_query, 200)) AS query
    FROM information_schema.innodb_trx t LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
   WHERE t.trx_mysql_thread_id <> CONNECTION_ID() AND (t.trx_rows_locked > 0 OR t.trx_mysql_thread_id = 0) AND t.trx_state <> 'LOCK WAIT';
END//

DELIMITER ;
