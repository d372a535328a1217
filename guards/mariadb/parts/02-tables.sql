-- What is remembered: guards, fences, operations, sightings, changes of policy.

-- One row per guard: what it is, its policy, and for a static one its fence. All in one row, because one locking read
-- must give a writer all of it.
CREATE TABLE IF NOT EXISTS pawl.guard (
  name          VARCHAR(200) PRIMARY KEY CHECK (LENGTH(name) > 0 AND LOCATE(':', name) = 0),
  id            BIGINT NOT NULL UNIQUE,     -- _guard_id(name): the same wherever and whenever the guard is made, because triggers name it.
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
ALTER TABLE pawl.guard ADD COLUMN IF NOT EXISTS key_expression TEXT;  -- by: of a generated column; '' for any other.
ALTER TABLE pawl.guard MODIFY id BIGINT NOT NULL;  -- Guards of an older version keep their small numbers.

CREATE TABLE IF NOT EXISTS pawl.protected (
  db    VARCHAR(64) NOT NULL,
  tbl   VARCHAR(64) NOT NULL,
  guard VARCHAR(200) NOT NULL,
  PRIMARY KEY (db, tbl)
) ENGINE=InnoDB;
ALTER TABLE pawl.protected ADD COLUMN IF NOT EXISTS token_column BOOLEAN NOT NULL DEFAULT FALSE;  -- INSERT and UPDATE carry their token in pawl_token.
ALTER TABLE pawl.protected ADD COLUMN IF NOT EXISTS triggers CHAR(32);  -- _triggers_now() when they were made.

CREATE TABLE IF NOT EXISTS pawl.fence (
  guard   BIGINT NOT NULL,
  k       VARCHAR(512) NOT NULL,   -- In the form of _fold_text().
  token   BIGINT NOT NULL,
  touched BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (guard, k)
) ENGINE=InnoDB;

-- Operations done under a token, as a set. Op 0 is the token itself, where the policy admits an equal token only once.
CREATE TABLE IF NOT EXISTS pawl.done (
  guard BIGINT NOT NULL,
  k     VARCHAR(512) NOT NULL,
  token BIGINT NOT NULL,
  op    BIGINT NOT NULL,
  PRIMARY KEY (guard, k, token, op)
) ENGINE=InnoDB;

-- Writes inside XA transactions, by resource and session. Unlike a shared lock, the lock on such a row is kept from XA PREPARE
-- to XA COMMIT, over a crash too.
CREATE TABLE IF NOT EXISTS pawl.xa_write (
  guard   BIGINT NOT NULL,
  k       VARCHAR(512) NOT NULL,
  session BIGINT UNSIGNED NOT NULL,
  touched BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (guard, k, session)
) ENGINE=InnoDB;

ALTER TABLE pawl.fence MODIFY guard BIGINT NOT NULL;
ALTER TABLE pawl.done MODIFY guard BIGINT NOT NULL;
ALTER TABLE pawl.xa_write MODIFY guard BIGINT NOT NULL;

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
