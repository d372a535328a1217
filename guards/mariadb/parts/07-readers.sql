-- The interface for readers: fence, check.

DELIMITER //

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
  DECLARE is_id BIGINT;
  DECLARE emergency INT;
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
     AND (o.key_pattern IS NULL OR wanted = '' OR wanted REGEXP o.key_pattern)
     AND (o.key_collation IS NULL OR wanted IS NULL OR pawl._fold(wanted, o.key_collation) IS NOT NULL);
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

DELIMITER ;
