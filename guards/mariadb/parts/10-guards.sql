-- The interface for owners of tables: create_guard, protect, token_column, unprotect, drop_guard.

DELIMITER //

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._log(IN g TEXT, IN what TEXT, IN was TEXT, IN now TEXT, IN reason TEXT)
  INSERT INTO pawl.audit (login, guard, what, was, now, reason) VALUES (USER(), g, what, was, now, reason)//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create(IN g TEXT, IN kind TEXT, IN col TEXT, IN mode TEXT)
BEGIN
  DECLARE id_ BIGINT DEFAULT pawl._guard_id(g);
  IF g IS NULL OR CHAR_LENGTH(g) NOT BETWEEN 1 AND 200 OR g REGEXP '[:[:cntrl:]]' THEN
    CALL pawl._wrong('a guard''s name has 1 to 200 characters, without ":" and control characters');
  END IF;
  INSERT INTO pawl.guard (name, id, kind, key_column, mode) VALUES (g, id_, kind, col, mode);
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

-- Why a table under guard could not be written to at all, or NULL. Triggers count in sequences, which MariaDB logs by row only.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._statement_format() RETURNS TEXT NO SQL
  RETURN IF(@@global.log_bin AND @@global.binlog_format = 'STATEMENT', 'binlog_format is STATEMENT: every write to a protected table fails with 1665', NULL)//

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
  IF engine_ IS NULL AND EXISTS (SELECT 1 FROM information_schema.tables t WHERE t.table_schema = db_ AND t.table_name = tbl_ AND t.table_type = 'SYSTEM VERSIONED') THEN
    CALL pawl._wrong(CONCAT(tbl, ' has system versioning: DELETE HISTORY deletes rows without firing a trigger'));
  END IF;
  IF engine_ IS NULL THEN CALL pawl._wrong(CONCAT(tbl, ' is not a table; views need no guard of their own')); END IF;
  IF engine_ <> 'InnoDB' THEN CALL pawl._wrong(CONCAT(tbl, ' is ', engine_, ': only InnoDB can take a refused write back')); END IF;
  IF pawl._statement_format() IS NOT NULL THEN CALL pawl._wrong(CONCAT(pawl._statement_format(), '; first: SET GLOBAL binlog_format = MIXED, and let all sessions connect anew')); END IF;
  IF db_ IN ('pawl', 'mysql', 'sys') THEN CALL pawl._wrong(CONCAT(tbl, ' cannot be put under guard')); END IF;
  IF mode NOT IN ('observe', 'shadow', 'enforce') THEN CALL pawl._wrong('a new guard starts in observe, shadow or enforce'); END IF;
  IF key_column IS NOT NULL AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = key_column) THEN
    CALL pawl._wrong(CONCAT(tbl, ' has no column ', key_column, '; an expression can be a generated column'));
  END IF;
  IF key_column IS NOT NULL THEN
    CALL pawl._key_form(db_, tbl_, key_column, pattern, collation_);
    IF pattern IS NULL AND collation_ IS NULL THEN
      CALL pawl._wrong(CONCAT('the column ', key_column, ' cannot be a key: the text of ', (SELECT c.column_type FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = key_column),
                              IFNULL(CONCAT(' with the collation ', (SELECT c.collation_name FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = key_column),
                                            ' does not tell which keys are equal; add a generated column with a _bin collation'),
                                     ' depends on the session, is rounded, or cannot be named; add a generated column with a number or a text')));
    END IF;
  END IF;
  IF EXISTS (SELECT 1 FROM pawl.protected p WHERE p.db = db_ AND p.tbl = tbl_ AND p.guard <> g) THEN CALL pawl._wrong(CONCAT(tbl, ' is under another guard: pawl.unprotect() first')); END IF;
  SET existing = (SELECT CONCAT_WS(' ', o.kind, o.key_column) FROM pawl.guard o WHERE o.name = g);
  IF existing <> CONCAT_WS(' ', kind_, key_column) THEN CALL pawl._wrong(CONCAT('the guard ', QUOTE(g), ' exists, and is ', existing));
  ELSEIF kind_ = 'by' AND EXISTS (SELECT 1 FROM pawl.protected p WHERE p.guard = g AND (p.db, p.tbl) <> (db_, tbl_)) THEN
    CALL pawl._wrong(CONCAT('the guard ', QUOTE(g), ' has its table; only a guard with one fence is shared by several'));
  END IF;
END//

-- Fences that are stored under a form of their keys that is no longer theirs, and cannot be computed from it: they are forgotten, and the
-- floor of the guard rises to the greatest of them, so that no older token is admitted for any key. Where operations were numbered, it
-- rises above that one, because they are forgotten as well. Notes the new form.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._renew_keys(IN g TEXT, IN pattern TEXT, IN collation_ TEXT, IN expression_ TEXT)
BEGIN
  DECLARE floor_ BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  START TRANSACTION;
  CALL pawl._close_passage(g);
  SET floor_ = IFNULL((SELECT MAX(f.token) FROM pawl.fence f WHERE f.guard = @pawl_id FOR UPDATE), 0);
  IF EXISTS (SELECT 1 FROM pawl.done d WHERE d.guard = @pawl_id) THEN SET floor_ = floor_ + 1; END IF;
  DELETE FROM pawl.fence WHERE guard = @pawl_id;
  DELETE FROM pawl.done WHERE guard = @pawl_id;
  CALL pawl._log(g, 'keys', (SELECT CONCAT_WS(' ', o.key_pattern, o.key_collation, o.key_expression) FROM pawl.guard o WHERE o.id = @pawl_id),
                 CONCAT_WS(' ', pattern, collation_, expression_), CONCAT('the key column was changed: every token below ', floor_, ' is stale now'));
  UPDATE pawl.guard o SET o.key_pattern = pattern, o.key_collation = collation_, o.key_expression = expression_, o.fence = GREATEST(o.fence, floor_) WHERE o.id = @pawl_id;
  COMMIT AND NO CHAIN NO RELEASE;
END//

-- Stores fences that have the text of their keys under the form that a collation gives them; of several that are now one, the greatest
-- token counts. What the column cannot spell was never the key of a row.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._refold(IN id_ BIGINT, IN collation_ TEXT)
BEGIN
  CREATE OR REPLACE TEMPORARY TABLE pawl._refold (k VARCHAR(512) NOT NULL, token BIGINT NOT NULL, op BIGINT);
  START TRANSACTION;
  INSERT INTO pawl._refold (k, token) SELECT pawl._fold(f.k, collation_), MAX(f.token) FROM pawl.fence f WHERE f.guard = id_ AND pawl._fold(f.k, collation_) IS NOT NULL GROUP BY 1;
  DELETE FROM pawl.fence WHERE guard = id_;
  INSERT INTO pawl.fence (guard, k, token) SELECT id_, r.k, r.token FROM pawl._refold r;
  DELETE FROM pawl._refold;
  INSERT INTO pawl._refold (k, token, op) SELECT DISTINCT pawl._fold(d.k, collation_), d.token, d.op FROM pawl.done d WHERE d.guard = id_ AND pawl._fold(d.k, collation_) IS NOT NULL;
  DELETE FROM pawl.done WHERE guard = id_;
  INSERT INTO pawl.done (guard, k, token, op) SELECT id_, r.k, r.token, r.op FROM pawl._refold r;
  COMMIT AND NO CHAIN NO RELEASE;
  DROP TEMPORARY TABLE pawl._refold;
END//

-- Remembers when two keys of a guard by a column are the same, and stores its fences under the form that follows. A guard of an
-- older version has stored them under the text, and so has one by a number that is a text now.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._settle_keys(IN g TEXT, IN db TEXT, IN tbl TEXT)
settling: BEGIN
  DECLARE col, pattern, collation_, expression_, old_pattern, old_collation, old_expression TEXT;
  DECLARE id_ BIGINT;
  SELECT o.id, o.key_column, o.key_pattern, o.key_collation, o.key_expression INTO id_, col, old_pattern, old_collation, old_expression FROM pawl.guard o WHERE o.name = g;
  IF col IS NULL THEN LEAVE settling; END IF;
  CALL pawl._key_form(db, tbl, col, pattern, collation_);
  IF pattern IS NULL AND collation_ IS NULL THEN LEAVE settling; END IF;  -- It cannot be a key any more, or is gone; problems() reports it.
  SET expression_ = pawl._key_expression(db, tbl, col);
  IF old_collation <> IFNULL(collation_, '') OR old_collation IS NULL AND old_pattern <> pattern OR old_expression <> expression_ THEN
    CALL pawl._renew_keys(g, pattern, collation_, expression_);
    CALL pawl._create_fold();
  ELSE
    UPDATE pawl.guard o SET o.key_pattern = pattern, o.key_collation = collation_, o.key_expression = expression_ WHERE o.id = id_;
    CALL pawl._create_fold();
    IF old_collation IS NULL AND collation_ IS NOT NULL THEN CALL pawl._refold(id_, collation_); END IF;
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
  DECLARE id_ BIGINT DEFAULT (SELECT o.id FROM pawl.guard o WHERE o.name = guard);
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

DELIMITER ;
