-- Takes Pawl's guard out of this MariaDB: every trigger, every fence, every counter. From then on every old token can write.

DELIMITER //
FOR c IN (SELECT DISTINCT c.table_schema AS db, c.table_name AS tbl FROM information_schema.columns c JOIN information_schema.triggers t
            ON t.event_object_schema = c.table_schema AND t.event_object_table = c.table_name AND t.trigger_name REGEXP '^pawl_(insert|update|delete)_(after_)?[0-9a-f]{12}$'
           WHERE c.column_name = 'pawl_token' AND c.extra LIKE '%INVISIBLE%') DO
  EXECUTE IMMEDIATE CONCAT('ALTER TABLE `', REPLACE(c.db, '`', '``'), '`.`', REPLACE(c.tbl, '`', '``'), '` DROP COLUMN pawl_token');
END FOR//
FOR t IN (SELECT trigger_schema AS db, trigger_name AS name FROM information_schema.triggers
           WHERE trigger_name REGEXP '^pawl_(insert|update|delete)_(after_)?[0-9a-f]{12}$') DO
  EXECUTE IMMEDIATE CONCAT('DROP TRIGGER `', REPLACE(t.db, '`', '``'), '`.`', t.name, '`');
END FOR//
-- One by one: DROP DATABASE would leave the rights behind.
FOR r IN (SELECT routine_type AS kind, routine_name AS name FROM information_schema.routines WHERE routine_schema = 'pawl') DO
  EXECUTE IMMEDIATE CONCAT('DROP ', r.kind, ' pawl.`', r.name, '`');
END FOR//
DELIMITER ;
DROP DATABASE IF EXISTS pawl;
DROP USER IF EXISTS pawl_definer@localhost;
