-- The interface for writers: use, use_op, use_all, admit, admit_op, begin, finish, abandon.

DELIMITER //

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
  CALL pawl._remember_user(resource);  -- First: also a session whose use() fails, by a lock timeout too, owes a token.
  IF @@in_transaction OR NOT @@autocommit THEN CALL pawl._recognise(resource, token, entry); END IF;
  -- A plain read, after the lock: it is as old as the snapshot, which must not be older than the fence.
  IF entry IS NOT NULL AND LOCATE(':', resource) = 0 THEN SELECT fence INTO seen FROM pawl.guard WHERE name = resource;
  ELSEIF entry IS NOT NULL THEN SELECT f.token INTO seen FROM pawl.fence f WHERE f.guard = CAST(SUBSTRING_INDEX(SUBSTRING(entry, 2), ':', 1) AS INT) AND f.k = SUBSTRING(resource, LOCATE(':', resource) + 1);
  END IF;
  IF seen IS NULL OR seen <> token THEN CALL pawl._answer(resource, token, NULL, TRUE);
  ELSE
    IF @pawl IS NULL OR @pawl = entry THEN SET @pawl = entry; ELSE CALL pawl._carry(SUBSTRING_INDEX(SUBSTRING(entry, 2), '=', 1), token); END IF;
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
  FOR each_ IN (SELECT r FROM JSON_TABLE(resources, '$[*]' COLUMNS (r VARCHAR(800) PATH '$')) AS list) DO CALL pawl._remember_user(each_.r); END FOR;
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
  CALL pawl._remember_user(resource);
  START TRANSACTION;
  CALL pawl._recognise(resource, token, entry);  -- A locking read takes no snapshot, so there is none yet that could be too old.
  IF entry IS NOT NULL THEN
    SET @pawl = entry;
    SELECT 'admitted' AS verdict;
  ELSE
    ROLLBACK AND NO CHAIN NO RELEASE;
    IF pawl._token(token) > IFNULL(pawl.fence(resource), 0) THEN CALL pawl._advance(resource, token, 5, was); END IF;
    START TRANSACTION;
    CALL pawl._answer(resource, token, NULL, TRUE);
  END IF;
END//

-- COMMIT, and forget the token: for connections that go back to a pool.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.finish() SQL SECURITY DEFINER
BEGIN
  COMMIT AND NO CHAIN NO RELEASE;
  SET @pawl = NULL;
END//

-- ROLLBACK, and the same.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.abandon() SQL SECURITY DEFINER
BEGIN
  ROLLBACK AND NO CHAIN NO RELEASE;
  SET @pawl = NULL;
END//

DELIMITER ;
