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
  -- Of a guard that an older version has made, or of a column that has another type since then.
  SELECT 'error', p.guard, CONCAT(p.db, '.', p.tbl), NULL,
         IF(k.respelled, CONCAT('the keys of ', k.key_column, ' are spelled otherwise than when it was protected: its type is ', k.column_type),
            CONCAT('two keys of ', k.key_column, ' cannot be told apart by their text: its type is ', IFNULL(k.column_type, 'gone'),
                   IF(k.key_collation IS NULL, '', CONCAT(', and was a text with ', k.key_collation)))),
         IF(k.respelled, 'CALL pawl.repair()', 'unprotect it, add a generated column with a number or a text, and protect it by that')
    FROM pawl.protected p JOIN (
      SELECT f.*, f.now_pattern IS NOT NULL AND f.key_collation IS NULL AND NOT f.now_pattern <=> f.key_pattern AS respelled FROM (
        SELECT q.db, q.tbl, o.key_column, o.key_pattern, o.key_collation, c.column_type, c.collation_name,
               pawl._key_pattern(c.column_type, c.data_type, c.collation_name, c.numeric_scale, c.datetime_precision) AS now_pattern
          FROM pawl.protected q JOIN pawl.guard o ON o.name = q.guard AND o.kind = 'by'
          LEFT JOIN information_schema.columns c ON c.table_schema = q.db AND c.table_name = q.tbl AND c.column_name = o.key_column) f) k
      ON k.db = p.db AND k.tbl = p.tbl
   WHERE k.now_pattern IS NULL AND k.collation_name IS NULL OR NOT k.collation_name <=> k.key_collation OR NOT k.now_pattern <=> k.key_pattern
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
