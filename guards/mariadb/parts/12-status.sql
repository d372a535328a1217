-- What people look at: status, problems, acknowledge, repair.

DELIMITER //

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

-- What keeps the guard of a table from doing its work, and what to do about it, as a JSON array. With a `code` an operator may acknowledge it.
-- One table at a time: information_schema answers a question about one table at once, and opens all tables of the server for any other.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._problems_of(g TEXT, db_ TEXT, tbl_ TEXT) RETURNS LONGTEXT READS SQL DATA
BEGIN
  DECLARE kind_, col, pattern, collation_, expression_, made, engine_, type_, column_type_, now_pattern, now_collation, others TEXT;
  DECLARE has_column BOOLEAN;
  DECLARE triggers_ INT;
  DECLARE found LONGTEXT DEFAULT '[]';
  SELECT o.kind, o.key_column, o.key_pattern, o.key_collation, o.key_expression, p.token_column, p.triggers INTO kind_, col, pattern, collation_, expression_, has_column, made
    FROM pawl.protected p JOIN pawl.guard o ON o.name = p.guard WHERE p.db = db_ AND p.tbl = tbl_;
  SELECT t.engine, t.table_type INTO engine_, type_ FROM information_schema.tables t WHERE t.table_schema = db_ AND t.table_name = tbl_;
  IF type_ = 'VIEW' THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', CONCAT('CALL pawl.unprotect(''', db_, '.', tbl_, '''), and protect what is behind the view'),
      'problem', 'a view has the name of the table, which was renamed: writes are judged only where what is behind the view is under guard'));
  ELSEIF engine_ IS NULL OR engine_ <> 'InnoDB' THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'problem', 'the table is gone or no longer InnoDB', 'fix', CONCAT('CALL pawl.unprotect(''', db_, '.', tbl_, ''')')));
  END IF;
  IF engine_ IS NULL THEN RETURN found; END IF;
  SET triggers_ = (SELECT COUNT(*) FROM information_schema.triggers x WHERE x.event_object_schema = db_ AND x.event_object_table = tbl_ AND x.trigger_name REGEXP '^pawl_(insert|update|delete)_');
  IF triggers_ < IF(kind_ = 'static', 3, 5) THEN
    SET others = (SELECT GROUP_CONCAT(DISTINCT x.event_object_schema, '.', x.event_object_table SEPARATOR ', ') FROM information_schema.triggers x
                   WHERE x.event_object_schema = db_ AND x.event_object_table <> tbl_ AND x.trigger_name REGEXP CONCAT('^pawl_(insert|update|delete)_(after_)?', LEFT(MD5(tbl_), 12), '$'));
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'CALL pawl.repair()', 'problem',
      CONCAT('a trigger of the guard is missing: writes are not judged', IFNULL(CONCAT('. They are on ', others, ': the table was renamed, and another one has its name'), ''))));
  ELSEIF NOT made <=> pawl._triggers_now(db_, tbl_) THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'CALL pawl.repair()', 'problem',
      'its triggers are not those of this guard, as after a dump was restored: writes are judged by another guard, or otherwise than it says'));
  END IF;
  IF type_ = 'SYSTEM VERSIONED' THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'code', 'system_versioning', 'fix', CONCAT('ALTER TABLE ', db_, '.', tbl_, ' DROP SYSTEM VERSIONING'),
      'problem', 'the table has system versioning: DELETE HISTORY deletes rows without firing a trigger'));
  END IF;
  IF has_column AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = 'pawl_token') THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', CONCAT('CALL pawl.token_column(''', db_, '.', tbl_, ''', TRUE)'),
      'problem', 'the column pawl_token is gone: every INSERT and UPDATE fails with 1054'));
  END IF;
  IF has_column AND @@global.log_bin AND @@global.binlog_format = 'MIXED' THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'warning', 'fix', 'SET GLOBAL binlog_format = ROW, and let all sessions connect anew; or let holders begin each transaction after advance()',
      'problem', 'binlog_format is MIXED, where a trigger reads the newest fence only: a token in pawl_token is admitted also in a REPEATABLE READ transaction that has read before the fence was raised'));
  END IF;
  -- Of a guard that an older version has made, or of a column that has another type since then.
  IF kind_ = 'by' AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = col) THEN
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'give the column its name back; or unprotect the table, drop the guard, and protect it by another column',
      'problem', CONCAT('the key column ', col, ' is gone: every write fails with 1054')));
  ELSEIF kind_ = 'by' THEN
    SELECT c.column_type, c.collation_name, pawl._key_pattern(c.column_type, c.data_type, c.collation_name, c.numeric_scale, c.datetime_precision) INTO column_type_, now_collation, now_pattern
      FROM information_schema.columns c WHERE c.table_schema = db_ AND c.table_name = tbl_ AND c.column_name = col;
    IF now_pattern IS NULL AND now_collation IS NULL OR NOT pawl._has_weights(now_collation) THEN
      SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'unprotect it, add a generated column with a number or a text, and protect it by that', 'problem',
        CONCAT('two keys of ', col, ' cannot be told apart by their text: its type is ', column_type_, IFNULL(CONCAT(' with ', now_collation), ''), IFNULL(CONCAT(', and was a text with ', collation_), ''))));
    ELSEIF NOT now_pattern <=> pattern OR NOT now_collation <=> collation_ THEN
      SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'CALL pawl.repair()', 'problem',
        CONCAT('the keys of ', col, ' are spelled otherwise than when it was protected: its type is ', column_type_, IFNULL(CONCAT(' with ', now_collation), ''), IFNULL(CONCAT(', and was a text with ', collation_), ''),
               '. repair() makes tokens stale that are smaller than the greatest seen')));
    ELSEIF expression_ <> pawl._key_expression(db_, tbl_, col) THEN
      SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'fix', 'CALL pawl.repair()', 'problem',
        CONCAT('the column ', col, ' is computed otherwise than when it was protected, so rows have keys whose fences are not theirs. repair() makes tokens stale that are smaller than the greatest seen')));
    END IF;
  END IF;
  FOR r IN (SELECT k.constraint_name AS name, k.referenced_table_name AS parent, k.unique_constraint_schema AS parent_db,
                   IF(k.delete_rule IN ('CASCADE', 'SET NULL'), CONCAT('ON DELETE ', k.delete_rule), CONCAT('ON UPDATE ', k.update_rule)) AS rule
              FROM information_schema.referential_constraints k WHERE k.constraint_schema = db_ AND k.table_name = tbl_ AND (k.delete_rule IN ('CASCADE', 'SET NULL') OR k.update_rule IN ('CASCADE', 'SET NULL'))) DO
    IF NOT EXISTS (SELECT 1 FROM pawl.protected q JOIN pawl.guard o ON o.name = q.guard AND o.kind = 'static' WHERE q.db = r.parent_db AND q.tbl = r.parent AND q.guard = g) THEN
      SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'error', 'code', CONCAT('foreign_key ', r.name),
        'problem', CONCAT('foreign key ', r.name, ' changes rows by ', r.rule, ': InnoDB fires no trigger for that'),
        'fix', IF(kind_ = 'static', CONCAT('put ', r.parent_db, '.', r.parent, ' under the same guard, or use RESTRICT'), 'use RESTRICT')));
    END IF;
  END FOR;
  FOR w IN (SELECT v.grantee, MIN(v.place) AS place, GROUP_CONCAT(DISTINCT v.privilege_type ORDER BY 1 SEPARATOR ', ') AS rights FROM (
      SELECT grantee, '%' AS db, '%' AS tbl, '*.*' AS place, privilege_type FROM information_schema.user_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')
        AND grantee NOT IN (SELECT s.grantee FROM information_schema.user_privileges s WHERE s.privilege_type = 'SUPER')
      UNION ALL SELECT grantee, table_schema, '%', CONCAT(table_schema, '.*'), privilege_type FROM information_schema.schema_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')
      UNION ALL SELECT grantee, table_schema, table_name, CONCAT(table_schema, '.', table_name), privilege_type FROM information_schema.table_privileges WHERE privilege_type IN ('ALTER', 'DROP', 'TRIGGER')) v
     WHERE db_ LIKE v.db AND (tbl_ = v.tbl OR v.tbl = '%') GROUP BY v.grantee) DO
    SET found = JSON_ARRAY_APPEND(found, '$', JSON_OBJECT('severity', 'warning', 'code', CONCAT('ddl ', w.grantee),
      'problem', CONCAT(w.grantee, ' has the rights ', w.rights, ': TRUNCATE, RENAME, EXCHANGE PARTITION and DROP fire no trigger'),
      'fix', CONCAT('REVOKE ', w.rights, ' ON ', w.place, ' FROM ', w.grantee)));
  END FOR;
  RETURN found;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost VIEW pawl._table_problems AS
  SELECT j.severity, p.guard, CONCAT(p.db, '.', p.tbl) AS object, j.code, j.problem, j.fix
    FROM pawl.protected p JOIN JSON_TABLE(pawl._problems_of(p.guard, p.db, p.tbl), '$[*]' COLUMNS (
           severity VARCHAR(16) CHARACTER SET utf8mb4 PATH '$.severity', code VARCHAR(400) CHARACTER SET utf8mb4 PATH '$.code', problem TEXT CHARACTER SET utf8mb4 PATH '$.problem', fix TEXT CHARACTER SET utf8mb4 PATH '$.fix')) AS j//

-- Those of all tables, and what is wrong with the server. (A view cannot ask for variables.)
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.problems() SQL SECURITY DEFINER
  SELECT IF(a.code IS NULL, p.severity, 'warning') AS severity, p.guard, p.object,
         CONCAT(p.problem, IFNULL(CONCAT(' (acknowledged by ', a.login, ': ', a.reason, ')'), '')) AS problem,
         CONCAT(p.fix, IF(p.code IS NULL OR a.code IS NOT NULL, '', CONCAT('; or CALL pawl.acknowledge(', QUOTE(p.guard), ', ', QUOTE(p.code), ', reason)'))) AS fix
    FROM pawl._table_problems p LEFT JOIN pawl.acknowledged a ON a.guard = p.guard AND a.code = CONVERT(p.code USING utf8mb4) COLLATE utf8mb4_bin
  UNION ALL
  SELECT 'warning', o.name, CONCAT(x.event_object_schema, '.', x.event_object_table),
         'it has triggers of a guard, but is not under guard by this name: was it renamed?', CONCAT('CALL pawl.protect() it under this name, or drop the trigger ', x.trigger_name, ' and its like')
    FROM information_schema.triggers x LEFT JOIN pawl.protected p ON p.db = x.event_object_schema AND p.tbl = x.event_object_table
    LEFT JOIN pawl.guard o ON x.action_statement LIKE CONCAT('%pawl.\\_judge\\_', o.id, '(%')
   WHERE p.db IS NULL AND x.trigger_name REGEXP '^pawl_update_[0-9a-f]{12}$'
  UNION ALL
  SELECT 'error', NULL, NULL, 'innodb_flush_log_at_trx_commit is not 1: an acknowledged advance() does not survive a crash', 'SET GLOBAL innodb_flush_log_at_trx_commit = 1'
    FROM DUAL WHERE @@global.innodb_flush_log_at_trx_commit <> 1
  UNION ALL
  SELECT 'error', NULL, NULL, pawl._statement_format(), 'SET GLOBAL binlog_format = MIXED, and let all sessions connect anew' FROM DUAL WHERE pawl._statement_format() IS NOT NULL
  UNION ALL
  SELECT 'warning', NULL, NULL, 'this server is read_only: tokens are admitted on the primary', 'ask the primary' FROM DUAL WHERE @@global.read_only//

-- What keeps a guard from enforcing: a problem of its own that nobody has acknowledged. NULL: nothing.
CREATE OR REPLACE DEFINER=pawl_definer@localhost FUNCTION pawl._obstacle(g TEXT) RETURNS TEXT READS SQL DATA
  RETURN IFNULL(pawl._statement_format(),
         (SELECT CONCAT(p.object, ': ', p.problem, '. ', p.fix, IF(p.code IS NULL, '', CONCAT('; or CALL pawl.acknowledge(', QUOTE(p.guard), ', ', QUOTE(p.code), ', reason)')))
            FROM pawl._table_problems p LEFT JOIN pawl.acknowledged a ON a.guard = p.guard AND a.code = CONVERT(p.code USING utf8mb4) COLLATE utf8mb4_bin
           WHERE p.guard = g COLLATE utf8mb4_bin AND a.code IS NULL AND (p.severity = 'error' OR p.code IS NOT NULL) LIMIT 1))//

-- Accepts a problem that has a code. It is still shown.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.acknowledge(IN guard TEXT, IN code TEXT, IN reason TEXT) SQL SECURITY DEFINER
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pawl._table_problems p WHERE p.guard = guard COLLATE utf8mb4_bin AND CONVERT(p.code USING utf8mb4) = code COLLATE utf8mb4_bin) THEN
    CALL pawl._wrong(CONCAT('no problem of ', IFNULL(guard, 'NULL'), ' has the code ', IFNULL(code, 'NULL'), ': CALL pawl.problems()'));
  END IF;
  IF IFNULL(reason, '') = '' THEN CALL pawl._wrong('an acknowledgement needs a reason'); END IF;
  REPLACE INTO pawl.acknowledged (guard, code, login, reason) VALUES (guard, code, USER(), reason);
  CALL pawl._log(guard, 'acknowledge', NULL, LEFT(code, 400), reason);
END//

-- Puts missing triggers back, behind those that others have made since, and brings what an older version has stored up to date.
-- A table that cannot be repaired does not keep the others from it; problems() names it. `failed` says which and why, or is NULL.
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._repair(OUT failed TEXT) SQL SECURITY DEFINER
BEGIN
  DECLARE why TEXT;
  FOR p IN (SELECT q.db, q.tbl, q.guard FROM pawl.protected q JOIN information_schema.tables t ON t.table_schema = q.db AND t.table_name = q.tbl AND t.table_type <> 'VIEW') DO
    BEGIN
      DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
        GET DIAGNOSTICS CONDITION 1 why = MESSAGE_TEXT;
        SET failed = CONCAT_WS('; ', failed, CONCAT(p.db, '.', p.tbl, ': ', why));
      END;
      CALL pawl._settle_keys(p.guard, p.db, p.tbl);
      CALL pawl._cover(p.db, p.tbl);
    END;
  END FOR;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl.repair() SQL SECURITY DEFINER
BEGIN
  DECLARE failed TEXT;
  CALL pawl._repair(failed);
  IF failed IS NOT NULL THEN CALL pawl._wrong(LEFT(CONCAT('not everything could be repaired: ', failed), 400)); END IF;
END//

DELIMITER ;
