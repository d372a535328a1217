-- Counters and the emergency switch, which no ROLLBACK undoes.

DELIMITER //

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._count(IN id BIGINT, IN verdict VARCHAR(16))
  EXECUTE IMMEDIATE CONCAT('DO NEXTVAL(pawl.count_', id, '_', verdict, ')')//

-- What a sequence has counted to: a counter, or the emergency switch (odd is on).
CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._counted(IN sequence TEXT, OUT count BIGINT)
BEGIN
  EXECUTE IMMEDIATE CONCAT('SELECT next_not_cached_value INTO @pawl_counted FROM pawl.', sequence);
  SET count = @pawl_counted;
END//

CREATE OR REPLACE DEFINER=pawl_definer@localhost PROCEDURE pawl._emergency(IN id BIGINT, OUT emergency INT)
BEGIN
  CALL pawl._counted(CONCAT('emergency_', id), emergency);
  SET emergency = emergency % 2;
END//

DELIMITER ;
