-- May this file be installed here, over what is here already?

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
