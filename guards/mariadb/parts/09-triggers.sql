-- The triggers of a table, and when two of its keys are the same.
--
-- Triggers are generated for each table, so that nothing has to be looked up. Three, because MariaDB has no statement triggers. Each is one
-- statement that locks the fence, shared, and compares it with the token of the writer. Only when they differ it calls the guard's
-- judge, a procedure: its variables then cost nothing in the common case. (Its tables are opened all the same: MariaDB opens
-- whatever a trigger might touch.)

DELIMITER //

-- A tokenless writer, noted at most once a minute by each session.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._sight(IN g TEXT, IN given TEXT) SQL SECURITY DEFINER
BEGIN
  SET @pawl_sighted = CONCAT(g, DATE_FORMAT(NOW(), '%Y%m%d%H%i'));
  INSERT INTO pawl.sightings (guard, login, statement)
    VALUES (g, USER(), LEFT(REGEXP_REPLACE(REGEXP_REPLACE(IFNULL(given, ''), '''[^'']*''?|\\b[0-9][0-9.]*', '?'), '\\s+', ' '), 500));
END//

-- Whether this session has used a token of the guard (_remember_user()), as an expression.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._has_used(g TEXT) RETURNS TEXT DETERMINISTIC NO SQL
  RETURN CONCAT('IFNULL(LOCATE('';', pawl._guard_id(g), ';'', @pawl_used) OR LOCATE('';*;'', @pawl_used), FALSE)')//

-- Refuses a write. `late`: the row is written already. The error of a trigger undoes the whole statement, but inside a stored function
-- or a trigger of somebody else's a handler may catch it, and would keep the row. No handler catches KILL QUERY, which undoes the
-- outermost statement; the client sees 1317, and finds the reason in @pawl_refusal.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._refuse(IN late BOOLEAN, IN verdict VARCHAR(16), IN resource TEXT, IN token BIGINT, IN fence BIGINT, IN mode VARCHAR(8)) SQL SECURITY DEFINER
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT late THEN RESIGNAL; END IF;
    GET DIAGNOSTICS CONDITION 1 @pawl_refusal_state = RETURNED_SQLSTATE, @pawl_refusal = MESSAGE_TEXT;
    KILL QUERY CONNECTION_ID();
  END;
  CALL pawl._raise(verdict, resource, token, fence, mode);
END//

-- THE DECISION of the triggers of a guard, where the given token is not the fence. `given` is the token in a column; where
-- there is none, what use() left for the resource: a token, 'replayed' or nothing. Outside a transaction it left nothing.
-- 'moved': the transaction's snapshot is older than the fence. A session that has used a token is refused a write without one.
-- A token from use() that is greater than the fence is left from a raise that was rolled back: it is not valid. A token at the
-- floor is not enough: only a fence of the row's own can be locked against a raise (use() and advance() make one).
-- `wanted` NULL: AUTO_INCREMENT will choose the key. A writer with a token is refused before the row is there.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create_judge(IN id BIGINT, IN g TEXT, IN kind TEXT)
BEGIN
  DECLARE used TEXT DEFAULT pawl._has_used(g);
  EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE PROCEDURE pawl._judge_', id, '(IN wanted TEXT, IN spelled TEXT, IN given VARCHAR(32), IN in_column BOOLEAN, IN late BOOLEAN) SQL SECURITY DEFINER
judging: BEGIN
  DECLARE fence_, own_, token_ BIGINT;
  DECLARE mode_, verdict_ VARCHAR(16);
  DECLARE percent_ INT;
  DECLARE require_, refusable_ BOOLEAN;
  DECLARE used_ BOOLEAN DEFAULT ', used, ';
  DECLARE tag_ TEXT DEFAULT CONCAT('';', id, ':'', HEX(wanted));
  DECLARE resource_ TEXT DEFAULT ', IF(kind = 'static', QUOTE(g), CONCAT('CONCAT(', QUOTE(CONCAT(g, ':')), ', spelled)')), ';
  DECLARE counted_ TEXT DEFAULT ', IF(kind = 'static', QUOTE(g), CONCAT('CONCAT(', QUOTE(CONCAT(g, ':')), ', wanted)')), ';
  SELECT fence, mode, percent, require_token INTO fence_, mode_, percent_, require_ FROM pawl.guard WHERE name = ', QUOTE(g), ' LOCK IN SHARE MODE;
  IF wanted IS NULL THEN
    IF mode_ = ''enforce'' AND (require_ OR used_ OR given IS NOT NULL) AND (SELECT next_not_cached_value % 2 FROM pawl.emergency_', id, ') = 0 THEN
      DO NEXTVAL(pawl.count_', id, '_missing);
      CALL pawl._raise(''generated'', ', QUOTE(g), ', NULL, fence_, mode_);
    END IF;
    LEAVE judging;
  END IF;',

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
    CALL pawl._refuse(late, verdict_, resource_, NULL, fence_, mode_);
  ELSEIF verdict_ <> ''admitted'' THEN
    IF (SELECT next_not_cached_value % 2 FROM pawl.emergency_', id, ') AND mode_ <> ''observe'' THEN SET mode_ = ''shadow''; END IF;
    SET refusable_ = verdict_ <> ''missing'' OR require_ OR used_;
    IF refusable_ AND IFNULL(pawl._enforced(mode_, percent_, counted_, 0), TRUE) THEN
      IF verdict_ = ''missing'' THEN DO NEXTVAL(pawl.count_', id, '_missing); ELSEIF verdict_ = ''stale'' THEN DO NEXTVAL(pawl.count_', id, '_stale); END IF;
      CALL pawl._refuse(late, verdict_, resource_, IF(verdict_ = ''missing'', NULL, token_), fence_, mode_);
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
END');
END//

-- The form of a key, as an expression: equal keys of the key column, and only those, have the same. `collation` NULL: the text itself.
-- Else the weights of the text decide, without those at its end that are a space's: a comparison ignores them. (Not without the
-- spaces at its end: behind them may be characters that have no weight.) Where the collation compares code points, the text without
-- those spaces does.
-- The text is converted, in case the column has got another character set since then: COLLATE alone would fail every write.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._fold_text(k TEXT, collation_ VARCHAR(64)) RETURNS TEXT DETERMINISTIC NO SQL
BEGIN
  DECLARE as_ TEXT DEFAULT CONCAT(' USING ', SUBSTRING_INDEX(collation_, '_', 1), ') COLLATE ', collation_);
  RETURN CASE WHEN collation_ IS NULL THEN k
              WHEN collation_ LIKE '%nopad%' THEN CONCAT('SHA2(WEIGHT_STRING(CONVERT(', k, as_, '), 256)')
              WHEN collation_ LIKE '%\_bin' THEN CONCAT('RTRIM(CONVERT(', k, ' USING utf8mb4))')
              ELSE CONCAT('SHA2(TRIM(TRAILING WEIGHT_STRING(CONVERT('' ''', as_, ') FROM WEIGHT_STRING(CONVERT(', k, as_, ')), 256)') END;
END//

-- Whether two texts are equal under a collation exactly when their weights are. Not where weights have several levels, one behind the
-- other; nor where MariaDB's own comparison and weights differ.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._has_weights(collation_ TEXT) RETURNS BOOLEAN DETERMINISTIC NO SQL
  RETURN NOT (collation_ LIKE '%uca1400%' AND collation_ NOT LIKE '%\_ai\_ci' OR collation_ LIKE '%\_w2' OR collation_ LIKE '%\_czech\_cs'
              OR collation_ LIKE 'tis620%nopad%' OR collation_ LIKE 'big5\_chinese%')//

-- _fold(key, collation): the same for the key that a writer names. NULL for a key that the column's character set cannot spell: it
-- would become a question mark, and so another key. Made anew for each collation that comes into use, because a collation cannot be
-- a parameter.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._create_fold()
BEGIN
  DECLARE cases TEXT DEFAULT
    (SELECT GROUP_CONCAT(' WHEN collation_ = ', QUOTE(c.name), ' THEN IF(BINARY CONVERT(', c.converted, ' USING utf8mb4) = BINARY k, ', pawl._fold_text(c.converted, c.name), ', NULL)' SEPARATOR '')
       FROM (SELECT DISTINCT o.key_collation AS name, CONCAT('CONVERT(k USING ', SUBSTRING_INDEX(o.key_collation, '_', 1), ')') AS converted
               FROM pawl.guard o WHERE o.key_collation IS NOT NULL) c);
  EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE FUNCTION pawl._fold(k TEXT, collation_ VARCHAR(64)) RETURNS TEXT DETERMINISTIC NO SQL BEGIN
    DECLARE EXIT HANDLER FOR 1977 RETURN NULL;  -- Cannot convert: an error in strict mode, a question mark otherwise.
    RETURN CASE WHEN collation_ IS NULL THEN k', IFNULL(cases, ''), ' END;
  END');
END//

-- The pattern of the one spelling that each key of a column has. NULL: a collation decides which are equal; or that cannot be told,
-- because settings of the session or rounding change the text (TIMESTAMP, FLOAT), or the text cannot be named (BINARY, BLOB).
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._key_pattern(column_type TEXT, data_type TEXT, collation_ TEXT, scale INT, fraction INT) RETURNS VARCHAR(200) DETERMINISTIC NO SQL
  RETURN CASE WHEN column_type LIKE '%zerofill%' OR collation_ IS NOT NULL THEN NULL
              WHEN data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') OR data_type = 'decimal' AND scale = 0 THEN '^(0|-?[1-9][0-9]*)\\z'
              WHEN data_type = 'decimal' THEN CONCAT('^-?(0|[1-9][0-9]*)[.][0-9]{', scale, '}\\z')
              WHEN data_type = 'year' THEN '^[0-9]{4}\\z'
              WHEN data_type = 'date' THEN '^[0-9]{4}-[0-9]{2}-[0-9]{2}\\z'
              WHEN data_type = 'datetime' THEN CONCAT('^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}', IF(fraction > 0, CONCAT('[.][0-9]{', fraction, '}'), ''), '\\z')
              WHEN data_type = 'uuid' THEN '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\z'
         END//

-- When two keys of this column are the same: a pattern, or a collation. Both NULL: it cannot be a key.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._key_form(IN db TEXT, IN tbl TEXT, IN col TEXT, OUT pattern VARCHAR(200), OUT collation_ VARCHAR(64))
BEGIN
  SET pattern = NULL, collation_ = NULL;
  -- Not SET: its members may be named in any order.
  SELECT IF(c.data_type = 'set', NULL, c.collation_name), pawl._key_pattern(c.column_type, c.data_type, c.collation_name, c.numeric_scale, c.datetime_precision)
    INTO collation_, pattern
    FROM information_schema.columns c WHERE c.table_schema = db AND c.table_name = tbl AND c.column_name = col;
  IF NOT pawl._has_weights(collation_) THEN SET collation_ = NULL; END IF;
END//

-- What a generated column is computed by; '' for any other.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._key_expression(db TEXT, tbl TEXT, col TEXT) RETURNS TEXT READS SQL DATA
  RETURN (SELECT IFNULL(c.generation_expression, '') FROM information_schema.columns c WHERE c.table_schema = db AND c.table_name = tbl AND c.column_name = col)//

-- The check of one row. `k` is an expression for the form of its key ('' for a static guard), `spelled` for the key itself, `given` for
-- the column with the token, or NULL where use() sets it. Outside a transaction use() has set nothing: what the variable holds is left
-- from earlier. The floor of the guard is not looked at: no fence lies below it, because compact() deletes those before it raises the floor.
-- XA START stands here, and not in a procedure, because a call costs twice as much.
-- @pawl_statement is the statement of a writer without a token: read by an IF, because a SELECT would name itself, and a variable of the
-- trigger would cost every write. (No comment stands in the body: the mariadb client removes comments when it restores a dump.)
-- A column is believed on a fresh snapshot only, as use() is: a plain SELECT … INTO sees the fence as old as the snapshot.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._check_text(IN g TEXT, IN id BIGINT, IN kind TEXT, IN k TEXT, IN spelled TEXT, IN given TEXT, IN late BOOLEAN, OUT body TEXT)
BEGIN
  DECLARE fence_ TEXT DEFAULT IF(kind = 'static', 'fence', 'token');
  DECLARE source TEXT DEFAULT IF(kind = 'static', CONCAT('pawl.guard WHERE name = ', QUOTE(g)), CONCAT('pawl.fence WHERE guard = ', id, ' AND k = ', k));
  DECLARE judge TEXT DEFAULT CONCAT('CALL pawl._judge_', id, '(', k, ', ', spelled, ', ');
  SET body = CONCAT('
  IF NOT IFNULL((SELECT ', IF(given IS NULL, CONCAT('@@in_transaction AND LOCATE(CONCAT('';', id, ':'', HEX(', k, '), ''='', ', fence_, ', '';''), @pawl)'),
                                            CONCAT(fence_, ' > 0 AND ', given, ' LIKE ', fence_)), ' FROM ', source, ' LOCK IN SHARE MODE), FALSE) THEN
    IF NOT @pawl_sighted <=> CONCAT(', QUOTE(g), ', DATE_FORMAT(NOW(), ''%Y%m%d%H%i'')) AND (@pawl_statement := (SELECT info FROM information_schema.processlist WHERE id = CONNECTION_ID())) IS NULL THEN BEGIN END; END IF;
    ', judge, IF(given IS NULL, 'NULL, FALSE', CONCAT(given, ', TRUE')), IF(late, ', TRUE);', ', FALSE);'),
  IF(given IS NULL, '', CONCAT('
  ELSE
    IF NOT ', pawl._has_used(g), ' THEN SET @pawl_used = CONCAT(IFNULL(@pawl_used, '';''), ''', pawl._guard_id(g), ';''); END IF;
    IF @@in_transaction THEN
      SELECT MAX(', fence_, ') INTO @pawl_seen FROM ', source, ';
      IF NOT IFNULL(', given, ' LIKE @pawl_seen, FALSE) THEN ', judge, '''moved'', TRUE', IF(late, ', TRUE', ', FALSE'), '); END IF;
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

-- What the triggers of a table are, whatever their spaces: a dump that is restored changes those.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._triggers_now(db TEXT, tbl TEXT) RETURNS CHAR(32) READS SQL DATA
  RETURN (SELECT MD5(GROUP_CONCAT(x.trigger_name, REGEXP_REPLACE(x.action_statement, '[[:space:]]+', ' ') ORDER BY x.trigger_name SEPARATOR '\n'))
            FROM information_schema.triggers x WHERE x.event_object_schema = db AND x.event_object_table = tbl AND x.trigger_name REGEXP '^pawl_(insert|update|delete)_')//

-- The triggers of a table with a fence per key. The key that a row leaves and the one that it gets are judged before the row is written,
-- and the latter again afterwards where it has become another one: AUTO_INCREMENT has chosen it, or a BEFORE trigger of somebody else.
-- @pawl_judged_… is what was judged before. A token in a column is consumed before, and handed on.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._cover_keys(IN db TEXT, IN tbl TEXT, IN g TEXT, IN id BIGINT, IN key_column TEXT, IN form TEXT, IN given TEXT)
BEGIN
  DECLARE col TEXT DEFAULT CONCAT('`', REPLACE(key_column, '`', '``'), '`');
  DECLARE was TEXT DEFAULT CONCAT('IFNULL(OLD.', col, ', \'\')');
  DECLARE will TEXT DEFAULT CONCAT('IFNULL(NEW.', col, ', \'\')');
  DECLARE changes TEXT DEFAULT CONCAT('NOT OLD.', col, ' <=> NEW.', col);
  DECLARE judged TEXT DEFAULT CONCAT('@pawl_judged_', id);
  DECLARE this_key TEXT DEFAULT CONCAT('HEX(', pawl._fold_text(will, form), ')');
  DECLARE spent TEXT DEFAULT IF(given IS NULL, '', CONCAT('\n  SET @pawl_column_', id, ' = NEW.pawl_token;\n  SET NEW.pawl_token = NULL;'));
  DECLARE leaving, staying, coming, late TEXT;
  DECLARE generated BOOLEAN DEFAULT (SELECT c.extra LIKE '%auto_increment%' FROM information_schema.columns c WHERE c.table_schema = db AND c.table_name = tbl AND c.column_name = key_column);
  CALL pawl._check_text(g, id, 'by', pawl._fold_text(was, form), was, NULL, FALSE, leaving);
  CALL pawl._check_text(g, id, 'by', pawl._fold_text(was, form), was, given, FALSE, staying);
  CALL pawl._check_text(g, id, 'by', pawl._fold_text(will, form), will, given, FALSE, coming);
  CALL pawl._check_text(g, id, 'by', pawl._fold_text(will, form), will, IF(given IS NULL, NULL, CONCAT('@pawl_column_', id)), TRUE, late);
  SET coming = CONCAT(coming, '\n  SET ', judged, ' = ', this_key, ';');
  SET late = CONCAT('\n  IF NOT ', judged, ' <=> ', this_key, ' THEN', late, '\n  END IF;');
  CALL pawl._create_trigger(db, tbl, 'BEFORE', 'INSERT', CONCAT(IF(generated, CONCAT('
  IF IFNULL(NEW.', col, ', 0) = 0 THEN
    SET ', judged, ' = NULL;
    IF ', IF(given IS NULL, '', 'NEW.pawl_token IS NOT NULL OR '), pawl._has_used(g), ' OR (SELECT require_token FROM pawl.guard WHERE name = ', QUOTE(g), ' LOCK IN SHARE MODE) THEN
      CALL pawl._judge_', id, '(NULL, '''', ', IF(given IS NULL, 'NULL, FALSE', 'NEW.pawl_token, TRUE'), ', FALSE);
    END IF;
  ELSE'), ''), coming, IF(generated, '\n  END IF;', ''), spent));
  CALL pawl._create_trigger(db, tbl, 'AFTER', 'INSERT', late);
  CALL pawl._create_trigger(db, tbl, 'BEFORE', 'UPDATE', CONCAT(staying, '\n  IF ', changes, ' THEN', coming, '\n  ELSE SET ', judged, ' = NULL;\n  END IF;', spent));
  CALL pawl._create_trigger(db, tbl, 'AFTER', 'UPDATE', CONCAT('\n  IF ', changes, ' THEN', late, '\n  END IF;'));
  CALL pawl._create_trigger(db, tbl, 'BEFORE', 'DELETE', leaving);
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._cover(IN db TEXT, IN tbl TEXT)
BEGIN
  DECLARE g, kind_, key_column, form, will, gone, given, spent TEXT;
  DECLARE id_ BIGINT;
  SELECT o.name, o.id, o.kind, o.key_column, o.key_collation, IF(p.token_column, 'NEW.pawl_token', NULL) INTO g, id_, kind_, key_column, form, given
    FROM pawl.protected p JOIN pawl.guard o ON o.name = p.guard WHERE p.db = db AND p.tbl = tbl;
  CALL pawl._create_judge(id_, g, kind_);
  IF key_column IS NOT NULL THEN CALL pawl._cover_keys(db, tbl, g, id_, key_column, form, given);
  ELSE
    CALL pawl._check_text(g, id_, kind_, '\'\'', '\'\'', given, FALSE, will);
    CALL pawl._check_text(g, id_, kind_, '\'\'', '\'\'', NULL, FALSE, gone);
    SET spent = IF(given IS NULL, '', '\n  SET NEW.pawl_token = NULL;');  -- Else the next UPDATE without a token would use it again.
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'INSERT', CONCAT(will, spent));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'UPDATE', CONCAT(will, spent));
    CALL pawl._create_trigger(db, tbl, 'BEFORE', 'DELETE', gone);
  END IF;
  UPDATE pawl.protected p SET p.triggers = pawl._triggers_now(db, tbl) WHERE p.db = db AND p.tbl = tbl;
END//

DELIMITER ;
