-- Pawl's guard for MariaDB 10.11 and newer, InnoDB tables: plain SQL, no plugin.
--
--   mariadb < pawl.sql                                                   install, or upgrade in place
--   CALL pawl.protect('shop.orders', NULL, NULL, 'observe');             put a table under guard
--   CALL pawl.advance('shop.orders', 34, 5);                             a new holder, before it reads
--   START TRANSACTION; CALL pawl.use('shop.orders', 34); UPDATE …; COMMIT;   write under token 34
--   CALL pawl.token_column('shop.orders', TRUE);                         or: the write itself carries its token,
--   UPDATE shop.orders SET n = 1, pawl_token = 34 WHERE …;               and no message goes before it
--   CALL pawl.set_mode('shop.orders', 'enforce', NULL, NULL);            from now on an older token is refused
--
-- A guard refuses a write whose fencing token is smaller than the greatest it has seen, in the same transaction as the
-- write, whichever client writes. Three kinds:
--
--   static   one fence for a table, several tables, or anything with a name    protect(table), create_guard(name)
--   by       rows share a resource that a column names (unique: a row each)    protect(table, …, column)
--   keyed    a fence per key, for what lives in no table                       create_guard(name, true)
--
-- HOW IT WORKS, and why it cannot be raced past:
--   * A fence is an InnoDB row. A writer reads it LOCK IN SHARE MODE, which is the newest committed value at every
--     isolation level, and holds that lock to the end of its transaction. A raise writes the row: it waits for every
--     transaction with a smaller token, and every later writer sees the new fence.
--   * The policy of a guard stands in such a row too, so a stricter mode waits for what was let through before.
--   * use() carries the token to the triggers in a user variable. MariaDB keeps those beyond the transaction, and pools
--     hand them to strangers; so a trigger believes it only inside a transaction, and only after it has itself locked and
--     compared the fence. What leaks is at worst an old token, which is refused, or the present holder's own: nothing that
--     a trigger can read distinguishes one transaction from the next. finish(), abandon() and begin() clear the variable.
--   * token_column() does without it: the write carries its token in a column, so there is nothing that could leak.
--   * Under REPEATABLE READ a plain SELECT is as old as the snapshot. A fence that differs between a plain and a locking
--     read has moved since: the transaction ends in 40001 (retry), never in "stale".
--   * Counters and the emergency switch are sequences: no ROLLBACK undoes them, and no snapshot hides them.
--   * XA PREPARE releases shared locks, and a crash those of prepared transactions. What XA keeps is what it has written: so a
--     write inside XA leaves a row in pawl.xa_write, and a raise waits for those rows as well. (_note_xa, _wait_for_xa)
--   * Two keys are the same when the key column calls them equal. A fence is stored under a form of the key that is the same
--     for all equal keys: the text of a number, the weights of a text under the column's collation. (_key_form, _fold_text)
--   * Everything runs as the account pawl_definer@localhost, which nobody can log in to.
--
-- Everything is a procedure, not a function: a function locks every table it might touch, as strictly as it might ever
-- need, for the whole statement, and writers of one token would wait for each other. For the same reason triggers only
-- read fences. Names that begin with an underscore are the inside.

SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
SET NAMES utf8mb4 COLLATE utf8mb4_bin;
-- The guard's own account: routines and triggers stop working when the account that made them is dropped.
CREATE USER IF NOT EXISTS pawl_definer@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK;
ALTER USER pawl_definer@localhost ACCOUNT LOCK;
GRANT ALL PRIVILEGES ON *.* TO pawl_definer@localhost;
CREATE DATABASE IF NOT EXISTS pawl CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
USE pawl;

-- ---------------------------------------------------------------------------------------------------------------------
-- 1. May this file be installed here? And what is remembered

CREATE TABLE IF NOT EXISTS pawl.installation (
  one      TINYINT PRIMARY KEY DEFAULT 1 CHECK (one = 1),
  version  VARCHAR(32) NOT NULL,
  contract INT NOT NULL            -- Grows when callers must change. Clients compare it.
) ENGINE=InnoDB;

DELIMITER //
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._insist_on_upgrade(IN offered VARCHAR(32), IN offered_contract INT)
BEGIN
  DECLARE there VARCHAR(32);
  DECLARE words TEXT;
  SET there = (SELECT version FROM pawl.installation);
  IF VERSION() NOT LIKE '%MariaDB%' OR CAST(SUBSTRING_INDEX(VERSION(), '.', 1) AS INT) * 1000 + CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '.', 2), '.', -1) AS INT) < 10011 THEN
    SET words = CONCAT('pawl: MariaDB 10.11 or newer is needed, this is ', VERSION());
    SIGNAL SQLSTATE '0A000' SET MESSAGE_TEXT = words;
  END IF;
  IF (SELECT contract FROM pawl.installation) > offered_contract
     OR INET_ATON(CONCAT(there, '.0')) > INET_ATON(CONCAT(offered, '.0')) THEN
    SET words = CONCAT('pawl: version ', there, ' is installed, and this file is the older ', offered);
    SIGNAL SQLSTATE '55000' SET MESSAGE_TEXT = words;
  END IF;
  REPLACE INTO pawl.installation (one, version, contract) VALUES (1, offered, offered_contract);
END//
DELIMITER ;
CALL pawl._insist_on_upgrade('0.1.0', 1);

-- One row per guard: what it is, its policy, and for a static one its fence. All in one row, because one locking read
-- must give a writer all of it.
CREATE TABLE IF NOT EXISTS pawl.guard (
  name          VARCHAR(200) PRIMARY KEY CHECK (LENGTH(name) > 0 AND LOCATE(':', name) = 0),
  id            INT NOT NULL AUTO_INCREMENT UNIQUE,
  kind          VARCHAR(8) NOT NULL CHECK (kind IN ('static', 'by', 'keyed')),
  fence         BIGINT NOT NULL DEFAULT 0,  -- static: the fence; 0 is none. Others: the floor below which every token is stale.
  key_column    VARCHAR(64),                -- by
  mode          VARCHAR(8) NOT NULL DEFAULT 'observe' CHECK (mode IN ('observe', 'shadow', 'canary', 'enforce')),
  percent       INT CHECK (percent BETWEEN 1 AND 100),
  require_token BOOLEAN NOT NULL DEFAULT FALSE,
  equal         VARCHAR(8) NOT NULL DEFAULT 'accept' CHECK (equal IN ('accept', 'once', 'refuse')),
  max_step      BIGINT NOT NULL DEFAULT 17592186044416 CHECK (max_step BETWEEN 2199023255552 AND 9007199254740991),
  mode_since    DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  would_refuse_before BIGINT NOT NULL DEFAULT 0,
  touched       BIGINT NOT NULL DEFAULT 0,  -- advance() to an equal token writes too: only then its COMMIT flushes the log.
  CHECK ((mode = 'canary') = (percent IS NOT NULL))
) ENGINE=InnoDB;
-- by: when two keys are the same. Either a key has one spelling, which matches the pattern, or the collation decides.
ALTER TABLE pawl.guard ADD COLUMN IF NOT EXISTS key_pattern VARCHAR(200);
ALTER TABLE pawl.guard ADD COLUMN IF NOT EXISTS key_collation VARCHAR(64);

CREATE TABLE IF NOT EXISTS pawl.protected (
  db    VARCHAR(64) NOT NULL,
  tbl   VARCHAR(64) NOT NULL,
  guard VARCHAR(200) NOT NULL,
  PRIMARY KEY (db, tbl)
) ENGINE=InnoDB;
ALTER TABLE pawl.protected ADD COLUMN IF NOT EXISTS token_column BOOLEAN NOT NULL DEFAULT FALSE;  -- INSERT and UPDATE carry their token in pawl_token.

CREATE TABLE IF NOT EXISTS pawl.fence (
  guard   INT NOT NULL,
  k       VARCHAR(512) NOT NULL,   -- In the form of _fold_text().
  token   BIGINT NOT NULL,
  touched BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (guard, k)
) ENGINE=InnoDB;

-- Operations done under a token, as a set. Op 0 is the token itself, where the policy admits an equal token only once.
CREATE TABLE IF NOT EXISTS pawl.done (
  guard INT NOT NULL,
  k     VARCHAR(512) NOT NULL,
  token BIGINT NOT NULL,
  op    BIGINT NOT NULL,
  PRIMARY KEY (guard, k, token, op)
) ENGINE=InnoDB;

-- Writes inside XA transactions, by resource and session. Unlike a shared lock, the lock on such a row is kept from XA PREPARE
-- to XA COMMIT, over a crash too.
CREATE TABLE IF NOT EXISTS pawl.xa_write (
  guard   INT NOT NULL,
  k       VARCHAR(512) NOT NULL,
  session BIGINT UNSIGNED NOT NULL,
  touched BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (guard, k, session)
) ENGINE=InnoDB;

-- Writers without a token. Append only: an upsert would make old writers wait for each other.
CREATE TABLE IF NOT EXISTS pawl.sightings (
  id        BIGINT AUTO_INCREMENT PRIMARY KEY,
  at        DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  guard     VARCHAR(200) NOT NULL,
  login     VARCHAR(400) NOT NULL,
  statement VARCHAR(500) NOT NULL,   -- Without its values.
  KEY (guard, at)
) ENGINE=InnoDB;

-- Problems that an operator knows of and accepts. Without this they keep a guard from enforcing.
CREATE TABLE IF NOT EXISTS pawl.acknowledged (
  guard  VARCHAR(200) NOT NULL,
  code   VARCHAR(400) NOT NULL,
  at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  login  VARCHAR(400) NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (guard, code)
) ENGINE=InnoDB;

-- Changes of modes and policies.
CREATE TABLE IF NOT EXISTS pawl.audit (
  id     BIGINT AUTO_INCREMENT PRIMARY KEY,
  at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  login  VARCHAR(400) NOT NULL,
  guard  VARCHAR(200),
  what   VARCHAR(32) NOT NULL,
  was    TEXT,
  now    TEXT,
  reason TEXT
) ENGINE=InnoDB;

CREATE OR REPLACE DEFINER=pawl_definer@localhost VIEW pawl._counters AS
  SELECT 'replayed' AS verdict UNION ALL SELECT 'stale' UNION ALL SELECT 'missing' UNION ALL SELECT 'ahead' UNION ALL SELECT 'malformed' UNION ALL SELECT 'would_refuse';

CREATE OR REPLACE DEFINER=pawl_definer@localhost VIEW pawl.tokenless_writers AS
  SELECT guard, login, statement, COUNT(*) AS count, MAX(at) AS last_seen, MIN(at) AS first_seen FROM pawl.sightings GROUP BY guard, login, statement;

DELIMITER //

-- ---------------------------------------------------------------------------------------------------------------------
-- 2. The rules, without a lock and without a side effect

CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl.version() RETURNS VARCHAR(32) DETERMINISTIC NO SQL RETURN '0.1.0'//
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl.contract() RETURNS INT DETERMINISTIC NO SQL RETURN 1//

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
  CASE verdict
    WHEN 'missing' THEN
      SET words = CONCAT('pawl: ', IF(token IS NULL, CONCAT('write to ', name, ' without a token: CALL pawl.use(resource, token) first, in the same transaction'), CONCAT('token ', token, ' was used for ', name, ' before: give the operation a number')), detail);
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

-- ---------------------------------------------------------------------------------------------------------------------
-- 3. Counting, although the transaction rolls back

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._count(IN id INT, IN verdict VARCHAR(16))
  EXECUTE IMMEDIATE CONCAT('DO NEXTVAL(pawl.count_', id, '_', verdict, ')')//

-- What a sequence has counted to: a counter, or the emergency switch (odd is on).
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._counted(IN sequence TEXT, OUT count BIGINT)
BEGIN
  EXECUTE IMMEDIATE CONCAT('SELECT next_not_cached_value INTO @pawl_counted FROM pawl.', sequence);
  SET count = @pawl_counted;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._emergency(IN id INT, OUT emergency INT)
BEGIN
  CALL pawl._counted(CONCAT('emergency_', id), emergency);
  SET emergency = emergency % 2;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 4. Judging

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
  IF @pawl_collation IS NOT NULL THEN SET wanted = pawl._fold(wanted, @pawl_collation); END IF;
END//

-- Inside an XA transaction: leaves a row that a raise of this fence will wait for. XA START tells where we are, and changes nothing:
-- inside XA it fails with 1399, inside any other transaction with 1400.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._note_xa(IN id INT, IN wanted TEXT)
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
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._wait_for_xa(IN id INT, IN wanted TEXT)
  IF wanted IS NULL THEN DELETE FROM pawl.xa_write WHERE guard = id;
  ELSE DELETE FROM pawl.xa_write WHERE guard = id AND k = wanted;
  END IF//

-- A session that has ever used a token of a guard is no old program: from then on it owes one.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._remember_user(IN id INT)
  IF NOT IFNULL(LOCATE(CONCAT(';', id, ';'), @pawl_used), 0) THEN SET @pawl_used = CONCAT(IFNULL(@pawl_used, ';'), id, ';'); END IF//

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
  IF @pawl_id IS NULL OR (@pawl_kind = 'static') <> (k IS NULL) OR LENGTH(k) > 512 THEN CALL pawl._unknown(resource); END IF;
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
    CALL pawl._remember_user(@pawl_id);
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

-- ---------------------------------------------------------------------------------------------------------------------
-- 5. For writers: use, use_op, use_all, admit, admit_op, begin, finish, abandon

-- THE COMMON CASE of use() and begin(): the token is the fence. Locks it, shared, and answers what the triggers shall find in
-- @pawl, or NULL. An equal token is admitted in every mode, so no mode is looked at; whatever else it is, _admit() finds out.
-- LIKE: "=" would call '34 ' and '34' the same.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._recognise(IN resource TEXT, IN token TEXT, OUT entry VARCHAR(1200))
  IF LOCATE(':', resource) = 0 THEN
    SELECT CONCAT(';', id, ':=', token, ';') INTO entry FROM pawl.guard
     WHERE name = resource AND fence > 0 AND token LIKE fence AND kind = 'static' AND equal = 'accept' LOCK IN SHARE MODE;
  ELSE
    SELECT CONCAT(';', o.id, ':', HEX(SUBSTRING(resource, LOCATE(':', resource) + 1)), '=', token, ';') INTO entry
      FROM pawl.guard o STRAIGHT_JOIN pawl.fence f ON f.guard = o.id AND f.k = SUBSTRING(resource, LOCATE(':', resource) + 1)
     WHERE o.name = SUBSTRING_INDEX(resource, ':', 1) AND o.key_collation IS NULL AND LENGTH(f.k) = LENGTH(SUBSTRING(resource, LOCATE(':', resource) + 1)) AND f.token > 0 AND f.token >= o.fence AND token LIKE f.token AND o.kind <> 'static' AND o.equal = 'accept'
      LOCK IN SHARE MODE;
  END IF//

-- Judges now, and carries the token to the statements that follow in this transaction. Answers the verdict.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.use(IN resource TEXT, IN token TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE entry VARCHAR(1200);
  DECLARE seen BIGINT;
  IF @@in_transaction OR NOT @@autocommit THEN CALL pawl._recognise(resource, token, entry); END IF;
  -- A plain read, after the lock: it is as old as the snapshot, which must not be older than the fence.
  IF entry IS NOT NULL AND LOCATE(':', resource) = 0 THEN SELECT fence INTO seen FROM pawl.guard WHERE name = resource;
  ELSEIF entry IS NOT NULL THEN SELECT f.token INTO seen FROM pawl.fence f WHERE f.guard = CAST(SUBSTRING_INDEX(SUBSTRING(entry, 2), ':', 1) AS INT) AND f.k = SUBSTRING(resource, LOCATE(':', resource) + 1);
  END IF;
  IF seen IS NULL OR seen <> token THEN CALL pawl._answer(resource, token, NULL, TRUE);
  ELSE
    IF @pawl IS NULL OR @pawl = entry THEN SET @pawl = entry; ELSE CALL pawl._carry(SUBSTRING_INDEX(SUBSTRING(entry, 2), '=', 1), token); END IF;
    CALL pawl._remember_user(SUBSTRING_INDEX(SUBSTRING(entry, 2), ':', 1));
    CALL pawl._note_xa(SUBSTRING_INDEX(SUBSTRING(entry, 2), ':', 1), IF(LOCATE(':', resource) = 0, '', SUBSTRING(resource, LOCATE(':', resource) + 1)));
    SELECT 'admitted' AS verdict;
  END IF;
END//

-- The same with an operation number: admitted once under its token, however often and in whatever order it arrives.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.use_op(IN resource TEXT, IN token TEXT, IN op TEXT) SQL SECURITY DEFINER
  CALL pawl._answer(resource, token, IFNULL(op, ''), TRUE)//

-- Judges and holds until the end of the transaction, for writes that no trigger checks.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.admit(IN resource TEXT, IN token TEXT) SQL SECURITY DEFINER
  CALL pawl._answer(resource, token, NULL, FALSE)//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.admit_op(IN resource TEXT, IN token TEXT, IN op TEXT) SQL SECURITY DEFINER
  CALL pawl._answer(resource, token, IFNULL(op, ''), FALSE)//

-- Several resources (a JSON array) under one token, taken in a fixed order. All or none: an error of a procedure undoes
-- only its last statement, so what was raised before is taken back here. Answers the worst verdict that was let through.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.use_all(IN resources TEXT, IN token TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE item, found, worst VARCHAR(800);
  DECLARE ended BOOLEAN DEFAULT FALSE;
  DECLARE named CURSOR FOR SELECT DISTINCT r FROM JSON_TABLE(resources, '$[*]' COLUMNS (r VARCHAR(800) PATH '$')) AS list ORDER BY r COLLATE utf8mb4_bin;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET ended = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    BEGIN
      DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;  -- A deadlock has taken everything back already.
      ROLLBACK TO SAVEPOINT pawl_use_all;
    END;
    RESIGNAL;
  END;
  SAVEPOINT pawl_use_all;
  OPEN named;
  taking: LOOP
    FETCH named INTO item;
    IF ended THEN LEAVE taking; END IF;
    CALL pawl._admit(item, token, NULL, TRUE, found);
    SET ended = FALSE;
    IF worst IS NULL OR worst = 'admitted' THEN SET worst = found; END IF;
  END LOOP;
  CLOSE named;
  IF worst IS NULL THEN CALL pawl._unknown(resources); END IF;
  SELECT worst AS verdict;
END//

-- START TRANSACTION and use() in one, at any isolation level: a new token is advanced to first, in a transaction of its
-- own, so that nothing that is read afterwards can be too old.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.begin(IN resource TEXT, IN token TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE entry VARCHAR(1200);
  DECLARE was BIGINT;
  SET @pawl = NULL;
  START TRANSACTION;
  CALL pawl._recognise(resource, token, entry);  -- A locking read takes no snapshot, so there is none yet that could be too old.
  IF entry IS NOT NULL THEN
    SET @pawl = entry;
    CALL pawl._remember_user(SUBSTRING_INDEX(SUBSTRING(entry, 2), ':', 1));
    SELECT 'admitted' AS verdict;
  ELSE
    ROLLBACK;
    IF pawl._token(token) > IFNULL(pawl.fence(resource), 0) THEN CALL pawl._advance(resource, token, 5, was); END IF;
    START TRANSACTION;
    CALL pawl._answer(resource, token, NULL, TRUE);
  END IF;
END//

-- COMMIT, and forget the token: for connections that go back to a pool.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.finish() SQL SECURITY DEFINER
BEGIN
  COMMIT;
  SET @pawl = NULL;
END//

-- ROLLBACK, and the same.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.abandon() SQL SECURITY DEFINER
BEGIN
  ROLLBACK;
  SET @pawl = NULL;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 6. For readers: fence, check

-- The greatest token admitted or advanced to, or the floor; NULL: none yet, or no such guard.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl.fence(resource TEXT) RETURNS BIGINT READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE g TEXT DEFAULT SUBSTRING_INDEX(resource, ':', 1);
  DECLARE wanted TEXT DEFAULT IF(LOCATE(':', resource) > 0, SUBSTRING(resource, LOCATE(':', resource) + 1), '');
  DECLARE fence_ BIGINT;
  SELECT NULLIF(GREATEST(o.fence, IFNULL(f.token, 0)), 0) INTO fence_ FROM pawl.guard o LEFT JOIN pawl.fence f ON f.guard = o.id AND f.k = IF(o.key_collation IS NULL, wanted, pawl._fold(wanted, o.key_collation)) WHERE o.name = g;
  RETURN fence_;
END//

-- Judges without raising, locking or moving anything. (Inside a SERIALIZABLE transaction every read locks.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.check(IN resource TEXT, IN token TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE g, wanted TEXT;
  DECLARE is_id, emergency INT;
  DECLARE now_mode VARCHAR(8);
  DECLARE is_max BIGINT;
  DECLARE verdict VARCHAR(16);
  DECLARE step BIGINT;
  DECLARE required BOOLEAN;
  IF @@in_transaction AND @@tx_isolation = 'SERIALIZABLE' THEN
    SIGNAL SQLSTATE 'PW006' SET MESSAGE_TEXT = 'pawl: check() inside a SERIALIZABLE transaction would lock the fence: ask before it begins, or use()';
  END IF;
  CALL pawl._split(resource, g, wanted);
  SELECT o.id, o.mode, o.max_step, o.require_token INTO is_id, now_mode, step, required FROM pawl.guard o WHERE o.name = g AND (o.kind = 'static') = (wanted IS NULL)
     AND (o.key_pattern IS NULL OR wanted = '' OR wanted REGEXP o.key_pattern);
  IF is_id IS NULL THEN
    SELECT 'unknown' AS verdict, NULL AS max, NULL AS mode, TRUE AS would_refuse;
  ELSE
    CALL pawl._emergency(is_id, emergency);
    SET is_max = pawl.fence(resource);
    SET verdict = IF(token IS NOT NULL AND pawl._token(token) IS NULL, 'malformed', pawl._verdict(pawl._token(token), IFNULL(is_max, 0), step));
    SELECT verdict, is_max AS max, IF(emergency AND now_mode <> 'observe', 'shadow', now_mode) AS mode,
           CASE verdict WHEN 'admitted' THEN FALSE WHEN 'missing' THEN required ELSE TRUE END AS would_refuse;
  END IF;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 7. Taking over: advance, blockers, evict

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
    ROLLBACK;
    SET SESSION innodb_lock_wait_timeout = patience;
    SET words = CONCAT('pawl: advance of ', LEFT(resource, 200), ' to ', token, ' waits for older transactions, open or prepared (XA RECOVER); pawl.blockers(resource) names them');
    SIGNAL SQLSTATE 'PW007' SET MESSAGE_TEXT = words;
  END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
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
  COMMIT;
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

-- ---------------------------------------------------------------------------------------------------------------------
-- 8. The triggers
--
-- Generated for each table, so that nothing has to be looked up. Three, because MariaDB has no statement triggers. Each is one
-- statement that locks the fence, shared, and compares it with the token of the writer. Only when they differ it calls the guard's
-- judge, a procedure: its variables then cost nothing in the common case. (Its tables are opened all the same: MariaDB opens
-- whatever a trigger might touch.)

-- A tokenless writer, noted at most once a minute by each session.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._sight(IN g TEXT, IN given TEXT) SQL SECURITY DEFINER
BEGIN
  SET @pawl_sighted = CONCAT(g, DATE_FORMAT(NOW(), '%Y%m%d%H%i'));
  INSERT INTO pawl.sightings (guard, login, statement)
    VALUES (g, USER(), LEFT(REGEXP_REPLACE(REGEXP_REPLACE(IFNULL(given, ''), '''[^'']*''?|\\b[0-9][0-9.]*', '?'), '\\s+', ' '), 500));
END//

-- THE DECISION of the triggers of a guard, where the given token is not the fence. `given` is the token in a column; where
-- there is none, what use() left for the resource: a token, 'replayed' or nothing. Outside a transaction it left nothing.
-- 'moved': the transaction's snapshot is older than the fence. A session that has used a token is refused a write without one.
-- A token from use() that is greater than the fence is left from a raise that was rolled back: it is not valid. A token at the
-- floor is not enough: only a fence of the row's own can be locked against a raise (use() and advance() make one).
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create_judge(IN id INT, IN g TEXT, IN kind TEXT)
  EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE PROCEDURE pawl._judge_', id, '(IN wanted TEXT, IN spelled TEXT, IN given VARCHAR(32), IN in_column BOOLEAN) SQL SECURITY DEFINER
BEGIN
  DECLARE fence_, own_, token_ BIGINT;
  DECLARE mode_, verdict_ VARCHAR(16);
  DECLARE percent_ INT;
  DECLARE require_, refusable_ BOOLEAN;
  DECLARE tag_ TEXT DEFAULT CONCAT('';', id, ':'', HEX(wanted));
  DECLARE resource_ TEXT DEFAULT ', IF(kind = 'static', QUOTE(g), CONCAT('CONCAT(', QUOTE(CONCAT(g, ':')), ', spelled)')), ';
  DECLARE counted_ TEXT DEFAULT ', IF(kind = 'static', QUOTE(g), CONCAT('CONCAT(', QUOTE(CONCAT(g, ':')), ', wanted)')), ';
  SELECT fence, mode, percent, require_token INTO fence_, mode_, percent_, require_ FROM pawl.guard WHERE name = ', QUOTE(g), ' LOCK IN SHARE MODE;',

  IF(kind = 'static', '
  SET own_ = fence_;', CONCAT('
  SET own_ = IFNULL((SELECT f.token FROM pawl.fence f WHERE f.guard = ', id, ' AND f.k = wanted LOCK IN SHARE MODE), 0);
  SET fence_ = GREATEST(fence_, own_);')), '
  IF NOT in_column AND @@in_transaction AND LOCATE(CONCAT(tag_, ''=''), @pawl) > 0 THEN
    SET given = SUBSTRING_INDEX(SUBSTRING_INDEX(@pawl, CONCAT(tag_, ''=''), -1), '';'', 1);
  END IF;
  SET token_ = pawl._token(given);
  SET verdict_ = CASE WHEN given IN (''replayed'', ''moved'') THEN given WHEN token_ < fence_ THEN ''stale'' WHEN token_ = own_ THEN ''admitted''
                      WHEN in_column AND token_ IS NOT NULL THEN ''early'' WHEN in_column AND given IS NOT NULL THEN ''malformed'' ELSE ''missing'' END;
  IF verdict_ = ''malformed'' THEN  -- A bug of the caller, in every mode.
    DO NEXTVAL(pawl.count_', id, '_malformed);
    CALL pawl._raise(verdict_, resource_, NULL, fence_, mode_);
  ELSEIF verdict_ <> ''admitted'' THEN
    IF (SELECT next_not_cached_value % 2 FROM pawl.emergency_', id, ') AND mode_ <> ''observe'' THEN SET mode_ = ''shadow''; END IF;
    SET refusable_ = verdict_ <> ''missing'' OR require_ OR IFNULL(LOCATE('';', id, ';'', @pawl_used), 0);
    IF refusable_ AND IFNULL(pawl._enforced(mode_, percent_, counted_, 0), TRUE) THEN
      IF verdict_ = ''missing'' THEN DO NEXTVAL(pawl.count_', id, '_missing); ELSEIF verdict_ = ''stale'' THEN DO NEXTVAL(pawl.count_', id, '_stale); END IF;
      CALL pawl._raise(verdict_, resource_, IF(verdict_ = ''missing'', NULL, token_), fence_, mode_);
    END IF;
    IF (in_column OR verdict_ = ''missing'') AND verdict_ <> ''moved'' AND NOT @pawl_noted <=> CONCAT(', id, ', NOW(6)) THEN
      SET @pawl_noted = CONCAT(', id, ', NOW(6));
      IF verdict_ = ''missing'' THEN DO NEXTVAL(pawl.count_', id, '_missing); ELSEIF verdict_ = ''stale'' THEN DO NEXTVAL(pawl.count_', id, '_stale); END IF;
      IF refusable_ AND mode_ <> ''observe'' THEN DO NEXTVAL(pawl.count_', id, '_would_refuse); END IF;
      IF verdict_ = ''missing'' AND NOT @pawl_sighted <=> CONCAT(', QUOTE(g), ', DATE_FORMAT(NOW(), ''%Y%m%d%H%i'')) THEN
        CALL pawl._sight(', QUOTE(g), ', @pawl_statement);
      END IF;
    END IF;
  END IF;
END')//

-- The form of a key, as an expression: equal keys of the key column, and only those, have the same. `collation` NULL: the text itself.
-- Else the weights of the text decide, without the spaces at its end that a comparison ignores; where the collation compares code
-- points, the text without those spaces does.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._fold_text(k TEXT, collation_ VARCHAR(64)) RETURNS TEXT DETERMINISTIC NO SQL
  RETURN CASE WHEN collation_ IS NULL THEN k
              WHEN collation_ LIKE '%nopad%' THEN CONCAT('SHA2(WEIGHT_STRING(', k, ' COLLATE ', collation_, '), 256)')
              WHEN collation_ LIKE '%\_bin' THEN CONCAT('RTRIM(CONVERT(', k, ' USING utf8mb4))')
              ELSE CONCAT('SHA2(WEIGHT_STRING(RTRIM(', k, ') COLLATE ', collation_, '), 256)') END//

-- _fold(key, collation): the same for the key that a writer names. Made anew for each collation that comes into use, because a
-- collation cannot be a parameter.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create_fold()
BEGIN
  DECLARE cases TEXT DEFAULT
    (SELECT GROUP_CONCAT(' WHEN collation_ = ', QUOTE(c.name), ' THEN ', pawl._fold_text(CONCAT('CONVERT(k USING ', SUBSTRING_INDEX(c.name, '_', 1), ')'), c.name) SEPARATOR '')
       FROM (SELECT DISTINCT o.key_collation AS name FROM pawl.guard o WHERE o.key_collation IS NOT NULL) c);
  EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE FUNCTION pawl._fold(k TEXT, collation_ VARCHAR(64)) RETURNS TEXT DETERMINISTIC NO SQL RETURN CASE WHEN collation_ IS NULL THEN k', IFNULL(cases, ''), ' END');
END//

-- When two keys of this column are the same: a pattern of the one spelling each key has, or a collation. Both NULL: cannot be told,
-- because settings of the session or rounding change the text (TIMESTAMP, FLOAT), or the text cannot be named (BINARY, BLOB).
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._key_form(IN db TEXT, IN tbl TEXT, IN col TEXT, OUT pattern VARCHAR(200), OUT collation_ VARCHAR(64))
BEGIN
  SET pattern = NULL, collation_ = NULL;
  SELECT c.collation_name,
         CASE WHEN c.column_type LIKE '%zerofill%' OR c.collation_name IS NOT NULL THEN NULL
              WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') OR c.data_type = 'decimal' AND c.numeric_scale = 0 THEN '^(0|-?[1-9][0-9]*)\\z'
              WHEN c.data_type = 'decimal' THEN CONCAT('^-?(0|[1-9][0-9]*)[.][0-9]{', c.numeric_scale, '}\\z')
              WHEN c.data_type = 'year' THEN '^[0-9]{4}\\z'
              WHEN c.data_type = 'date' THEN '^[0-9]{4}-[0-9]{2}-[0-9]{2}\\z'
              WHEN c.data_type = 'datetime' THEN CONCAT('^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}', IF(c.datetime_precision > 0, CONCAT('[.][0-9]{', c.datetime_precision, '}'), ''), '\\z')
              WHEN c.data_type = 'uuid' THEN '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\z'
         END
    INTO collation_, pattern
    FROM information_schema.columns c WHERE c.table_schema = db AND c.table_name = tbl AND c.column_name = col;
END//

-- The check of one row. `k` is an expression for the form of its key ('' for a static guard), `spelled` for the key itself, `given` for
-- the column with the token, or NULL where use() sets it. Outside a transaction use() has set nothing: what the variable holds is left
-- from earlier. The floor of the guard is not looked at: no fence lies below it, because compact() deletes those before it raises the floor.
-- XA START stands here, and not in a procedure, because a call costs twice as much.
-- A column is believed on a fresh snapshot only, as use() is: a plain SELECT … INTO sees the fence as old as the snapshot.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._check_text(IN g TEXT, IN id INT, IN kind TEXT, IN k TEXT, IN spelled TEXT, IN given TEXT, OUT body TEXT)
BEGIN
  DECLARE fence_ TEXT DEFAULT IF(kind = 'static', 'fence', 'token');
  DECLARE source TEXT DEFAULT IF(kind = 'static', CONCAT('pawl.guard WHERE name = ', QUOTE(g)), CONCAT('pawl.fence WHERE guard = ', id, ' AND k = ', k));
  DECLARE judge TEXT DEFAULT CONCAT('CALL pawl._judge_', id, '(', k, ', ', spelled, ', ');
  SET body = CONCAT('
  IF NOT IFNULL((SELECT ', IF(given IS NULL, CONCAT('@@in_transaction AND LOCATE(CONCAT('';', id, ':'', HEX(', k, '), ''='', ', fence_, ', '';''), @pawl)'),
                                            CONCAT(fence_, ' > 0 AND ', given, ' LIKE ', fence_)), ' FROM ', source, ' LOCK IN SHARE MODE), FALSE) THEN
    -- The statement, for writers without a token. An IF does not name itself, as a SELECT would; and a variable of the trigger would cost every write.
    IF NOT @pawl_sighted <=> CONCAT(', QUOTE(g), ', DATE_FORMAT(NOW(), ''%Y%m%d%H%i'')) AND (@pawl_statement := (SELECT info FROM information_schema.processlist WHERE id = CONNECTION_ID())) IS NULL THEN BEGIN END; END IF;
    ', judge, IF(given IS NULL, 'NULL, FALSE', CONCAT(given, ', TRUE')), ');',
  IF(given IS NULL, '', CONCAT('
  ELSE
    IF NOT IFNULL(LOCATE('';', id, ';'', @pawl_used), 0) THEN SET @pawl_used = CONCAT(IFNULL(@pawl_used, '';''), ''', id, ';''); END IF;
    IF @@in_transaction THEN
      SELECT MAX(', fence_, ') INTO @pawl_seen FROM ', source, ';
      IF NOT IFNULL(', given, ' LIKE @pawl_seen, FALSE) THEN ', judge, '''moved'', TRUE); END IF;
    END IF;')), '
  END IF;
  IF @@in_transaction THEN
    BEGIN
      DECLARE CONTINUE HANDLER FOR 1400 BEGIN END;
      DECLARE CONTINUE HANDLER FOR 1399 CALL pawl._note_xa(', id, ', ', k, ');
      XA START ''pawl'';
    END;
  END IF;');
END//

-- A name belongs to a database, not to a table: a guarded table that was renamed has taken the trigger along.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create_trigger(IN db TEXT, IN tbl TEXT, IN timing TEXT, IN event TEXT, IN body TEXT)
BEGIN
  DECLARE name TEXT DEFAULT CONCAT('pawl_', LOWER(event), IF(timing = 'AFTER', '_after_', '_'), LEFT(MD5(tbl), 12));
  DECLARE quoted TEXT DEFAULT CONCAT('`', REPLACE(db, '`', '``'), '`.`', name, '`');
  IF EXISTS (SELECT 1 FROM information_schema.triggers t WHERE t.trigger_schema = db AND t.trigger_name = name AND t.event_object_table <> tbl) THEN
    EXECUTE IMMEDIATE CONCAT('DROP TRIGGER ', quoted);
  END IF;
  IF body = '' THEN EXECUTE IMMEDIATE CONCAT('DROP TRIGGER IF EXISTS ', quoted);
  ELSE EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', quoted, ' ', timing, ' ', event, ' ON `', REPLACE(db, '`', '``'), '`.`', REPLACE(tbl, '`', '``'), '` FOR EACH ROW
BEGIN', body, '
END');
  END IF;
END//

-- The key that a row gets is judged AFTER it is written: a BEFORE trigger of somebody else may still change it, and AUTO_INCREMENT
-- has not chosen it yet. The key that a row leaves is judged before. A token in a column is consumed before, and handed on.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._cover(IN db TEXT, IN tbl TEXT)
BEGIN
  DECLARE g, kind_, col, form, was, will, gone, given, spent TEXT;
  DECLARE id_ INT;
  SELECT o.name, o.id, o.kind, CONCAT('`', REPLACE(o.key_column, '`', '``'), '`'), o.key_collation, IF(p.token_column, 'NEW.pawl_token', NULL) INTO g, id_, kind_, col, form, given
    FROM pawl.protected p JOIN pawl.guard o ON o.name = p.guard WHERE p.db = db AND p.tbl = tbl;
  CALL pawl._create_judge(id_, g, kind_);
  IF col IS NULL THEN
    CALL pawl._check_text(g, id_, kind_, '\'\'', '\'\'', given, will);
    CALL pawl._check_text(g, id_, kind_, '\'\'', '\'\'', NULL, gone);
    SET spent = IF(given IS NULL, '', '\n  SET NEW.pawl_token = NULL;');  -- Else the next UPDATE without a token would use it again.
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'INSERT', CONCAT(will, spent));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'UPDATE', CONCAT(will, spent));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'DELETE', gone);
  ELSE
    SET was = CONCAT('IFNULL(OLD.', col, ', \'\')'), will = CONCAT('IFNULL(NEW.', col, ', \'\')');
    CALL pawl._check_text(g, id_, kind_, pawl._fold_text(was, form), was, NULL, gone);
    CALL pawl._check_text(g, id_, kind_, pawl._fold_text(was, form), was, given, was);
    CALL pawl._check_text(g, id_, kind_, pawl._fold_text(will, form), will, IF(given IS NULL, NULL, CONCAT('@pawl_column_', id_)), will);
    SET spent = IF(given IS NULL, '', CONCAT('\n  SET @pawl_column_', id_, ' = NEW.pawl_token;\n  SET NEW.pawl_token = NULL;'));
    CALL pawl._create_trigger(db, tbl, 'AFTER', 'INSERT', will);
    CALL pawl._create_trigger(db, tbl, 'AFTER', 'UPDATE', CONCAT('\n  IF NOT OLD.', col, ' <=> NEW.', col, ' THEN ', will, '\n  END IF;'));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'INSERT', spent);
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'UPDATE', CONCAT(was, spent));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'DELETE', gone);
  END IF;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 9. What stands under guard: create_guard, protect, token_column, unprotect, drop_guard

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._log(IN g TEXT, IN what TEXT, IN was TEXT, IN now TEXT, IN reason TEXT)
  INSERT INTO pawl.audit (login, guard, what, was, now, reason) VALUES (USER(), g, what, was, now, reason)//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create(IN g TEXT, IN kind TEXT, IN col TEXT, IN mode TEXT)
BEGIN
  DECLARE id_ INT;
  IF g IS NULL OR CHAR_LENGTH(g) NOT BETWEEN 1 AND 200 OR g REGEXP '[:[:cntrl:]]' THEN
    CALL pawl._wrong('a guard''s name has 1 to 200 characters, without ":" and control characters');
  END IF;
  INSERT INTO pawl.guard (name, kind, key_column, mode) VALUES (g, kind, col, mode);
  SET id_ = (SELECT id FROM pawl.guard WHERE name = g);
  FOR c IN (SELECT 'count_' AS a, verdict AS b FROM pawl._counters
            UNION ALL SELECT 'emergency_', NULL) DO
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE SEQUENCE pawl.', c.a, id_, IF(c.b IS NULL, '', CONCAT('_', c.b)), ' MINVALUE 0 START WITH 0 NOCACHE ENGINE=InnoDB');
  END FOR;
  CALL pawl._log(g, 'create', NULL, CONCAT_WS(' ', kind, col, mode), NULL);
END//

-- A guard without a table: for what admit() protects.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.create_guard(IN name TEXT, IN keyed BOOLEAN) SQL SECURITY DEFINER
BEGIN
  DECLARE wanted TEXT DEFAULT IF(keyed, 'keyed', 'static');
  DECLARE existing TEXT DEFAULT (SELECT o.kind FROM pawl.guard o WHERE o.name = name COLLATE utf8mb4_bin);
  IF existing IS NULL THEN CALL pawl._create(name, wanted, NULL, 'observe');
  ELSEIF existing <> wanted THEN CALL pawl._wrong(CONCAT('the guard ', QUOTE(name), ' exists, and is ', existing));
  END IF;
END//

-- Whether protect() can do this.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._insist_on_protectable(IN tbl TEXT, IN guard TEXT, IN key_column TEXT, IN mode TEXT)
BEGIN
  DECLARE db_ TEXT DEFAULT SUBSTRING_INDEX(tbl, '.', 1);
  DECLARE tbl_ TEXT DEFAULT SUBSTRING(tbl, LOCATE('.', tbl) + 1);
  DECLARE g TEXT DEFAULT IFNULL(guard, tbl);
  DECLARE kind_ TEXT DEFAULT IF(key_column IS NULL, 'static', 'by');
  DECLARE engine_, existing, pattern, collation_ TEXT;
  IF LOCATE('.', tbl) = 0 THEN CALL pawl._wrong('name the table with its database: shop.orders'); END IF;
  SET engine_ = (SELECT t.engine FROM information_schema.tables t WHERE t.table_schema = db_ AND t.table_name = tbl_ AND t.table_type = 'BASE TABLE');
  IF engine_ IS NULL THEN CALL pawl._wrong(CONCAT(tbl, ' is not a table; views need no guard of their own')); END IF;
  IF engine_ <> 'InnoDB' THEN CALL pawl._wrong(CONCAT(tbl, ' is ', engine_, ': only InnoDB can take a refused write back')); END IF;
  IF db_ IN ('pawl', 'mysql', 'sys') THEN CALL pawl._wrong(CONCAT(tbl, ' cannot be put under guard')); END IF;
  IF mode NOT IN ('observe', 'shadow', 'enforce') THEN CALL pawl._wrong('a new guard starts in observe, shadow or enforce'); END IF;
  IF key_column IS NOT NULL AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = key_column) THEN
    CALL pawl._wrong(CONCAT(tbl, ' has no column ', key_column, '; an expression can be a generated column'));
  END IF;
  IF key_column IS NOT NULL THEN
    CALL pawl._key_form(db_, tbl_, key_column, pattern, collation_);
    IF pattern IS NULL AND collation_ IS NULL THEN
      CALL pawl._wrong(CONCAT('the column ', key_column, ' cannot be a key: the text of ', (SELECT c.column_type FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = key_column),
                              ' depends on the session, is rounded, or cannot be named; add a generated column with a number or a text'));
    END IF;
  END IF;
  IF EXISTS (SELECT 1 FROM pawl.protected p WHERE p.db = db_ AND p.tbl = tbl_ AND p.guard <> g) THEN CALL pawl._wrong(CONCAT(tbl, ' is under another guard: pawl.unprotect() first')); END IF;
  SET existing = (SELECT CONCAT_WS(' ', o.kind, o.key_column) FROM pawl.guard o WHERE o.name = g);
  IF existing <> CONCAT_WS(' ', kind_, key_column) THEN CALL pawl._wrong(CONCAT('the guard ', QUOTE(g), ' exists, and is ', existing));
  ELSEIF kind_ = 'by' AND EXISTS (SELECT 1 FROM pawl.protected p WHERE p.guard = g AND (p.db, p.tbl) <> (db_, tbl_)) THEN
    CALL pawl._wrong(CONCAT('the guard ', QUOTE(g), ' has its table; only a guard with one fence is shared by several'));
  END IF;
END//

-- Remembers when two keys of a guard by a column are the same, and stores its fences under the form that follows. A guard of an
-- older version has stored them under the text; of several that are now one, the greatest token counts.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._settle_keys(IN g TEXT, IN db TEXT, IN tbl TEXT)
BEGIN
  DECLARE col, pattern, collation_, before_ TEXT;
  DECLARE id_ INT;
  SELECT o.id, o.key_column, o.key_collation INTO id_, col, before_ FROM pawl.guard o WHERE o.name = g;
  IF col IS NOT NULL THEN
    CALL pawl._key_form(db, tbl, col, pattern, collation_);
    IF before_ IS NOT NULL AND NOT before_ <=> collation_ THEN
      CALL pawl._wrong(CONCAT('the collation of ', col, ' was ', before_, ' when its fences were stored, and is another now: pawl.unprotect() the table, pawl.drop_guard(), and protect it again'));
    END IF;
    UPDATE pawl.guard o SET o.key_pattern = pattern, o.key_collation = collation_ WHERE o.id = id_;
    CALL pawl._create_fold();
    IF before_ IS NULL AND collation_ IS NOT NULL THEN
      CREATE OR REPLACE TEMPORARY TABLE pawl._refold (k VARCHAR(512) NOT NULL, token BIGINT NOT NULL, op BIGINT);
      START TRANSACTION;
      INSERT INTO pawl._refold (k, token) SELECT pawl._fold(f.k, collation_), MAX(f.token) FROM pawl.fence f WHERE f.guard = id_ GROUP BY 1;
      DELETE FROM pawl.fence WHERE guard = id_;
      INSERT INTO pawl.fence (guard, k, token) SELECT id_, r.k, r.token FROM pawl._refold r;
      DELETE FROM pawl._refold;
      INSERT INTO pawl._refold (k, token, op) SELECT DISTINCT pawl._fold(d.k, collation_), d.token, d.op FROM pawl.done d WHERE d.guard = id_;
      DELETE FROM pawl.done WHERE guard = id_;
      INSERT INTO pawl.done (guard, k, token, op) SELECT id_, r.k, r.token, r.op FROM pawl._refold r;
      COMMIT;
      DROP TEMPORARY TABLE pawl._refold;
    END IF;
  END IF;
END//

-- Puts a table (`db.table`) under guard. Doing it twice changes nothing. Answers the guard's name.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.protect(IN tbl TEXT, IN guard TEXT, IN key_column TEXT, IN mode TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE db_ TEXT DEFAULT SUBSTRING_INDEX(tbl, '.', 1);
  DECLARE tbl_ TEXT DEFAULT SUBSTRING(tbl, LOCATE('.', tbl) + 1);
  DECLARE g TEXT DEFAULT IFNULL(guard, tbl);
  DECLARE fresh BOOLEAN DEFAULT NOT EXISTS (SELECT 1 FROM pawl.guard o WHERE o.name = g);
  DECLARE obstacle TEXT;
  CALL pawl._insist_on_protectable(tbl, guard, key_column, mode);
  IF fresh THEN CALL pawl._create(g, IF(key_column IS NULL, 'static', 'by'), key_column, IF(mode = 'enforce', 'shadow', IFNULL(mode, 'observe'))); END IF;
  CALL pawl._settle_keys(g, db_, tbl_);
  INSERT IGNORE INTO pawl.protected (db, tbl, guard) VALUES (db_, tbl_, g);
  IF ROW_COUNT() = 1 THEN CALL pawl._log(g, 'protect', NULL, tbl, NULL); END IF;
  CALL pawl._cover(db_, tbl_);
  IF fresh AND mode = 'enforce' THEN
    SET obstacle = pawl._obstacle(g);
    IF obstacle IS NOT NULL THEN CALL pawl._wrong(CONCAT(g, ' is in shadow, not in enforce: ', obstacle)); END IF;
    UPDATE pawl.guard o SET o.mode = 'enforce' WHERE o.name = g;
  END IF;
  SELECT g AS guard;
END//

-- From now on every INSERT and UPDATE of the table carries its token in itself, in the column `pawl_token`, and nothing that was
-- set before counts: there is nothing that a pool could hand to a stranger, and no message of its own. FALSE: back to use().
-- The column is INVISIBLE (no SELECT *, no INSERT without a column list meets it), and always NULL when it is read.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.token_column(IN tbl TEXT, IN wanted BOOLEAN) SQL SECURITY DEFINER
BEGIN
  DECLARE db_ TEXT DEFAULT SUBSTRING_INDEX(tbl, '.', 1);
  DECLARE tbl_ TEXT DEFAULT SUBSTRING(tbl, LOCATE('.', tbl) + 1);
  DECLARE place TEXT DEFAULT CONCAT('`', REPLACE(db_, '`', '``'), '`.`', REPLACE(tbl_, '`', '``'), '`');
  DECLARE g TEXT DEFAULT (SELECT p.guard FROM pawl.protected p WHERE p.db = db_ AND p.tbl = tbl_);
  IF g IS NULL THEN CALL pawl._unknown(tbl); END IF;
  IF wanted AND (SELECT o.equal FROM pawl.guard o WHERE o.name = g) <> 'accept' THEN
    CALL pawl._wrong('a column carries no operation number: with a token column, equal stays accept');
  END IF;
  -- The column comes before the triggers that name it, and goes after them.
  IF wanted THEN EXECUTE IMMEDIATE CONCAT('ALTER TABLE ', place, ' ADD COLUMN IF NOT EXISTS pawl_token VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL INVISIBLE'); END IF;
  UPDATE pawl.protected p SET p.token_column = wanted WHERE p.db = db_ AND p.tbl = tbl_;
  CALL pawl._cover(db_, tbl_);
  IF NOT wanted THEN EXECUTE IMMEDIATE CONCAT('ALTER TABLE ', place, ' DROP COLUMN IF EXISTS pawl_token'); END IF;
  CALL pawl._log(g, 'token_column', NULL, CONCAT(tbl, IF(wanted, ' on', ' off')), NULL);
END//

-- Takes a table out of its guard. The guard stays, with its fence.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.unprotect(IN tbl TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE db_ TEXT DEFAULT SUBSTRING_INDEX(tbl, '.', 1);
  DECLARE tbl_ TEXT DEFAULT SUBSTRING(tbl, LOCATE('.', tbl) + 1);
  DECLARE g TEXT DEFAULT (SELECT p.guard FROM pawl.protected p WHERE p.db = db_ AND p.tbl = tbl_);
  IF g IS NULL THEN CALL pawl._unknown(tbl); END IF;
  IF (SELECT p.token_column FROM pawl.protected p WHERE p.db = db_ AND p.tbl = tbl_) THEN CALL pawl.token_column(tbl, FALSE); END IF;
  FOR t IN (SELECT trigger_name AS name FROM information_schema.triggers WHERE trigger_schema = db_ AND event_object_table = tbl_ AND trigger_name REGEXP '^pawl_(insert|update|delete)_') DO
    EXECUTE IMMEDIATE CONCAT('DROP TRIGGER `', REPLACE(db_, '`', '``'), '`.`', t.name, '`');
  END FOR;
  DELETE FROM pawl.protected WHERE db = db_ AND pawl.protected.tbl = tbl_;
  CALL pawl._log(g, 'unprotect', tbl, NULL, NULL);
END//

-- Forgets a guard, its fences and its counters.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.drop_guard(IN guard TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE id_ INT DEFAULT (SELECT o.id FROM pawl.guard o WHERE o.name = guard);
  IF id_ IS NULL THEN CALL pawl._unknown(guard); END IF;
  IF EXISTS (SELECT 1 FROM pawl.protected p WHERE p.guard = guard COLLATE utf8mb4_bin) THEN CALL pawl._wrong('tables are under this guard: pawl.unprotect() each of them first'); END IF;
  CALL pawl._log(guard, 'drop', (SELECT CONCAT_WS(' ', o.kind, o.mode, 'fence', o.fence) FROM pawl.guard o WHERE o.id = id_), NULL, NULL);
  DELETE FROM pawl.fence WHERE pawl.fence.guard = id_;
  DELETE FROM pawl.done WHERE pawl.done.guard = id_;
  DELETE FROM pawl.xa_write WHERE pawl.xa_write.guard = id_;
  DELETE FROM pawl.acknowledged WHERE pawl.acknowledged.guard = guard COLLATE utf8mb4_bin;
  DELETE FROM pawl.guard WHERE id = id_;
  EXECUTE IMMEDIATE CONCAT('DROP PROCEDURE IF EXISTS pawl._judge_', id_);
  FOR c IN (SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'pawl' AND table_name REGEXP CONCAT('^(count_', id_, '_.*|emergency_', id_, ')$')) DO
    EXECUTE IMMEDIATE CONCAT('DROP SEQUENCE pawl.`', c.name, '`');
  END FOR;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 10. Policy: set_mode, set_policy, emergency, compact

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
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK; END IF; RESIGNAL; END;
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
  IF mine THEN COMMIT; END IF;
END//

-- What is NULL stays as it is.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.set_policy(IN guard TEXT, IN require_token BOOLEAN, IN equal TEXT, IN max_step BIGINT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE was, will TEXT;
  DECLARE mine BOOLEAN DEFAULT NOT @@in_transaction;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK; END IF; RESIGNAL; END;
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
  IF mine THEN COMMIT; END IF;
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
    IF mine THEN ROLLBACK; END IF;
    SIGNAL SQLSTATE 'PW007' SET MESSAGE_TEXT = 'pawl: the policy waits for writes under tokens that it would forget; nothing has changed';
  END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF mine THEN ROLLBACK; END IF; RESIGNAL; END;
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
  IF mine THEN COMMIT; END IF;
END//

-- ---------------------------------------------------------------------------------------------------------------------
-- 11. What people look at: status, problems

-- One line per guard. Counters grow only; admitted writes are not counted, because that would cost each of them.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.status(IN guard TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE sql_ LONGTEXT;
  FOR g IN (SELECT o.id, o.name FROM pawl.guard o WHERE guard IS NULL OR o.name = guard) DO
    SET sql_ = CONCAT(IFNULL(CONCAT(sql_, ' UNION ALL '), ''), '(SELECT ', g.id, ' AS id, ',
      (SELECT GROUP_CONCAT('(SELECT next_not_cached_value FROM pawl.count_', g.id, '_', verdict, ') AS `', verdict, '`' SEPARATOR ', ')
         FROM pawl._counters),
      ', (SELECT next_not_cached_value % 2 FROM pawl.emergency_', g.id, ') AS emergency)');
  END FOR;
  EXECUTE IMMEDIATE CONCAT('SELECT g.name AS guard, g.kind,
      IFNULL((SELECT GROUP_CONCAT(CONCAT(p.db, ''.'', p.tbl) ORDER BY 1 SEPARATOR ''\\n'') FROM pawl.protected p WHERE p.guard = g.name), '''') AS tables,
      IF(s.emergency AND g.mode IN (''canary'', ''enforce''), ''shadow'', g.mode) AS mode, IF(s.emergency, NULL, g.percent) AS percent, g.require_token, g.equal, g.max_step,
      IF(g.kind = ''static'', NULLIF(g.fence, 0), NULL) AS fence, IF(g.kind = ''static'', 0, g.fence) AS floor,
      s.replayed, s.stale, s.missing, s.ahead, s.malformed, s.would_refuse, s.emergency, g.mode_since,
      s.would_refuse - g.would_refuse_before AS would_refuse_since,
      (SELECT COUNT(*) FROM pawl.sightings w WHERE w.guard = g.name AND w.at >= g.mode_since) AS tokenless_since,
      g.fence > 0 OR EXISTS (SELECT 1 FROM pawl.fence f WHERE f.guard = g.id) AS has_fence
    FROM pawl.guard g JOIN (', IFNULL(sql_, 'SELECT 0 AS id, 0 AS replayed, 0 AS stale, 0 AS missing, 0 AS ahead, 0 AS malformed, 0 AS would_refuse, 0 AS emergency'), ') s ON s.id = g.id ORDER BY g.name');
END//

-- What keeps the guards from doing their work, and what to do about it. Empty: healthy. With a `code` an operator may acknowledge it.
CREATE OR REPLACE DEFINER=pawl_definer@localhost VIEW pawl._problems AS
  SELECT 'error' AS severity, p.guard, CONCAT(p.db, '.', p.tbl) AS object, NULL AS code,
         CONCAT('a trigger of the guard is missing: writes are not judged',
                IFNULL(CONCAT('. They are on ', (SELECT GROUP_CONCAT(DISTINCT x.event_object_schema, '.', x.event_object_table SEPARATOR ', ') FROM information_schema.triggers x
                                                  WHERE x.trigger_schema = p.db AND x.event_object_table <> p.tbl AND x.trigger_name REGEXP CONCAT('^pawl_(insert|update|delete)_(after_)?', LEFT(MD5(p.tbl), 12), '$')),
                              ': the table was renamed, and another one has its name'), '')) AS problem,
         'CALL pawl.repair()' AS fix
    FROM pawl.protected p
    JOIN pawl.guard o ON o.name = p.guard
    JOIN information_schema.tables t ON t.table_schema = p.db AND t.table_name = p.tbl
   WHERE (SELECT COUNT(*) FROM information_schema.triggers x WHERE x.event_object_schema = p.db AND x.event_object_table = p.tbl AND x.trigger_name REGEXP '^pawl_(insert|update|delete)_')
         < IF(o.kind = 'static', 3, IF(p.token_column, 5, 4))
  UNION ALL
  SELECT 'error', p.guard, CONCAT(p.db, '.', p.tbl), NULL, 'the table is gone or no longer InnoDB', CONCAT('CALL pawl.unprotect(''', p.db, '.', p.tbl, ''')')
    FROM pawl.protected p LEFT JOIN information_schema.tables t ON t.table_schema = p.db AND t.table_name = p.tbl
   WHERE t.engine IS NULL OR t.engine <> 'InnoDB'
  UNION ALL
  SELECT 'warning', o.name, CONCAT(x.event_object_schema, '.', x.event_object_table), NULL,
         'it has triggers of a guard, but is not under guard by this name: was it renamed?', CONCAT('CALL pawl.protect() it under this name, or drop the trigger ', x.trigger_name, ' and its like')
    FROM information_schema.triggers x LEFT JOIN pawl.protected p ON p.db = x.event_object_schema AND p.tbl = x.event_object_table
    LEFT JOIN pawl.guard o ON x.action_statement LIKE CONCAT('%pawl.\\_judge\\_', o.id, '(%')
   WHERE p.db IS NULL AND x.trigger_name REGEXP '^pawl_update_[0-9a-f]{12}$'
  UNION ALL
  SELECT 'error', p.guard, CONCAT(p.db, '.', p.tbl), NULL, CONCAT('two keys of ', o.key_column, ' cannot be told apart by their text: its type is ', IFNULL(c.column_type, 'gone'),
                IF(o.key_collation IS NULL, '', CONCAT(', and was a text with ', o.key_collation))),
         'unprotect it, add a generated column with a number or a text, and protect it by that'
    FROM pawl.protected p JOIN pawl.guard o ON o.name = p.guard AND o.kind = 'by'
    LEFT JOIN information_schema.columns c ON c.table_schema = p.db AND c.table_name = p.tbl AND c.column_name = o.key_column
   WHERE o.key_pattern IS NULL AND o.key_collation IS NULL OR NOT c.collation_name <=> o.key_collation
  UNION ALL
  SELECT 'error', p.guard, CONCAT(p.db, '.', p.tbl), CONCAT('foreign_key ', r.constraint_name),
         CONCAT('foreign key ', r.constraint_name, ' changes rows by ', IF(r.delete_rule IN ('CASCADE', 'SET NULL'), CONCAT('ON DELETE ', r.delete_rule), CONCAT('ON UPDATE ', r.update_rule)), ': InnoDB fires no trigger for that'),
         CONCAT('put ', r.constraint_schema, '.', r.referenced_table_name, ' under the same guard, or use RESTRICT')
    FROM pawl.protected p JOIN information_schema.referential_constraints r ON r.constraint_schema = p.db AND r.table_name = p.tbl
   WHERE (r.delete_rule IN ('CASCADE', 'SET NULL') OR r.update_rule IN ('CASCADE', 'SET NULL'))
     AND NOT EXISTS (SELECT 1 FROM pawl.protected q JOIN pawl.guard o ON o.name = q.guard AND o.kind = 'static' WHERE q.db = r.unique_constraint_schema AND q.tbl = r.referenced_table_name AND q.guard = p.guard)
  UNION ALL
  SELECT 'warning', p.guard, CONCAT(p.db, '.', p.tbl), CONCAT('ddl ', w.grantee),
         CONCAT(w.grantee, ' has the rights ', GROUP_CONCAT(DISTINCT w.privilege_type ORDER BY 1 SEPARATOR ', '), ': TRUNCATE, RENAME, EXCHANGE PARTITION and DROP fire no trigger'),
         CONCAT('REVOKE ', GROUP_CONCAT(DISTINCT w.privilege_type ORDER BY 1 SEPARATOR ', '), ' ON ', MIN(w.place), ' FROM ', w.grantee)
    FROM pawl.protected p JOIN (
      SELECT grantee, '%' AS db, '%' AS tbl, '*.*' AS place, privilege_type FROM information_schema.user_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')
        AND grantee NOT IN (SELECT s.grantee FROM information_schema.user_privileges s WHERE s.privilege_type = 'SUPER')
      UNION ALL SELECT grantee, table_schema, '%', CONCAT(table_schema, '.*'), privilege_type FROM information_schema.schema_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')
      UNION ALL SELECT grantee, table_schema, table_name, CONCAT(table_schema, '.', table_name), privilege_type FROM information_schema.table_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')) w
      ON p.db LIKE w.db AND (p.tbl = w.tbl OR w.tbl = '%')
   GROUP BY p.guard, p.db, p.tbl, w.grantee//

-- Those, and what is wrong with the server. (A view cannot ask for variables.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.problems() SQL SECURITY DEFINER
  SELECT IF(a.code IS NULL, p.severity, 'warning') AS severity, p.guard, p.object,
         CONCAT(p.problem, IFNULL(CONCAT(' (acknowledged by ', a.login, ': ', a.reason, ')'), '')) AS problem,
         CONCAT(p.fix, IF(p.code IS NULL OR a.code IS NOT NULL, '', CONCAT('; or CALL pawl.acknowledge(', QUOTE(p.guard), ', ', QUOTE(p.code), ', reason)'))) AS fix
    FROM pawl._problems p LEFT JOIN pawl.acknowledged a ON a.guard = p.guard AND a.code = CONVERT(p.code USING utf8mb4) COLLATE utf8mb4_bin
  UNION ALL
  SELECT 'error', NULL, NULL, 'innodb_flush_log_at_trx_commit is not 1: an acknowledged advance() does not survive a crash', 'SET GLOBAL innodb_flush_log_at_trx_commit = 1'
    FROM DUAL WHERE @@global.innodb_flush_log_at_trx_commit <> 1
  UNION ALL
  SELECT 'warning', NULL, NULL, 'binlog_format is STATEMENT: replicas run the triggers again, and counters differ there', 'SET GLOBAL binlog_format = ROW'
    FROM DUAL WHERE @@global.log_bin AND @@global.binlog_format = 'STATEMENT'
  UNION ALL
  SELECT 'warning', NULL, NULL, 'this server is read_only: tokens are admitted on the primary', 'ask the primary' FROM DUAL WHERE @@global.read_only//

-- What keeps a guard from enforcing: a problem of its own that nobody has acknowledged. NULL: nothing.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._obstacle(g TEXT) RETURNS TEXT READS SQL DATA
  RETURN (SELECT CONCAT(p.object, ': ', p.problem, '. ', p.fix, IF(p.code IS NULL, '', CONCAT('; or CALL pawl.acknowledge(', QUOTE(p.guard), ', ', QUOTE(p.code), ', reason)')))
            FROM pawl._problems p LEFT JOIN pawl.acknowledged a ON a.guard = p.guard AND a.code = CONVERT(p.code USING utf8mb4) COLLATE utf8mb4_bin
           WHERE p.guard = g COLLATE utf8mb4_bin AND a.code IS NULL AND (p.severity = 'error' OR p.code IS NOT NULL) LIMIT 1)//

-- Accepts a problem that has a code. It is still shown.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.acknowledge(IN guard TEXT, IN code TEXT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pawl._problems p WHERE p.guard = guard COLLATE utf8mb4_bin AND CONVERT(p.code USING utf8mb4) = code COLLATE utf8mb4_bin) THEN
    CALL pawl._wrong(CONCAT('no problem of ', IFNULL(guard, 'NULL'), ' has the code ', IFNULL(code, 'NULL'), ': CALL pawl.problems()'));
  END IF;
  IF IFNULL(reason, '') = '' THEN CALL pawl._wrong('an acknowledgement needs a reason'); END IF;
  REPLACE INTO pawl.acknowledged (guard, code, login, reason) VALUES (guard, code, USER(), reason);
  CALL pawl._log(guard, 'acknowledge', NULL, LEFT(code, 400), reason);
END//

-- Puts missing triggers back, behind those that others have made since, and brings what an older version has stored up to date.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.repair() SQL SECURITY DEFINER
BEGIN
  FOR p IN (SELECT q.db, q.tbl, q.guard FROM pawl.protected q JOIN information_schema.tables t ON t.table_schema = q.db AND t.table_name = q.tbl) DO
    CALL pawl._settle_keys(p.guard, p.db, p.tbl);
    CALL pawl._cover(p.db, p.tbl);
  END FOR;
END//
DELIMITER ;

-- ---------------------------------------------------------------------------------------------------------------------
-- 12. Privileges, and what an upgrade brings up to date. Everyone may write with tokens; no one else may change a
-- fence downwards or a policy. Hand out more one by one: GRANT EXECUTE ON PROCEDURE pawl.emergency TO oncall.

CALL pawl._create_fold();
GRANT EXECUTE ON PROCEDURE pawl.use TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.use_op TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.use_all TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.admit TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.admit_op TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.begin TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.finish TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.abandon TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.advance TO PUBLIC;
GRANT EXECUTE ON PROCEDURE pawl.check TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.fence TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.version TO PUBLIC;
GRANT EXECUTE ON FUNCTION pawl.contract TO PUBLIC;
CALL pawl.repair();
