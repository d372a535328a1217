-- What Pawl's guard remembers in a SQLite file. `pawl guard install sqlite` runs this; so may a migration tool, in one
-- transaction. The rules themselves are in the extension (libpawl_sqlite): triggers on protected tables call it, so a
-- connection without it cannot write to them at all.
--
-- Everything here is written in the very transaction that it is about, under SQLite's one write lock.

CREATE TABLE IF NOT EXISTS pawl_installation (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  id       INTEGER NOT NULL,   -- Triggers name it, so that in a connection with several files each finds its own.
  version  TEXT NOT NULL,
  contract INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS pawl_guard (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200 AND instr(name, ':') = 0),
  kind          TEXT NOT NULL CHECK (kind IN ('static', 'keyed', 'row', 'expression')),
  key           TEXT,          -- row: the column. expression: the expression.
  mode          TEXT NOT NULL DEFAULT 'observe' CHECK (mode IN ('observe', 'shadow', 'canary', 'enforce')),
  percent       INTEGER CHECK (percent BETWEEN 1 AND 100),
  require_token INTEGER NOT NULL DEFAULT 0 CHECK (require_token IN (0, 1)),
  equal         TEXT NOT NULL DEFAULT 'accept' CHECK (equal IN ('accept', 'once', 'refuse')),
  max_step      INTEGER NOT NULL DEFAULT 17592186044416 CHECK (max_step BETWEEN 2199023255552 AND 9007199254740991),
  floor         INTEGER NOT NULL DEFAULT 0,  -- Every token below is stale, whatever the key.
  generation    INTEGER NOT NULL DEFAULT 1,  -- Of the mode. An emergency is about one generation; set_mode begins the next.
  mode_since    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  would_refuse_before INTEGER NOT NULL DEFAULT 0,  -- The counter when the mode changed.
  CHECK ((mode = 'canary') = (percent IS NOT NULL))
) STRICT;

CREATE TABLE IF NOT EXISTS pawl_protected (
  tbl   TEXT PRIMARY KEY COLLATE NOCASE,
  guard INTEGER NOT NULL
) STRICT;

-- How the keys of a guard by a column were spelled when its fences were stored: `text NOCASE`, `number BINARY`; of several tables, all.
CREATE TABLE IF NOT EXISTS pawl_key_form (
  guard INTEGER PRIMARY KEY,
  form  TEXT NOT NULL
) STRICT;

-- The fences. Rows come and go; these stay, so that a deleted row is not written anew by an old holder.
CREATE TABLE IF NOT EXISTS pawl_fence (
  guard INTEGER NOT NULL,
  key   TEXT NOT NULL,         -- static: ''
  token INTEGER NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY (guard, key)
) STRICT, WITHOUT ROWID;

-- Operations done under a token. Op 0 stands for the token itself, where the policy admits an equal token only once.
CREATE TABLE IF NOT EXISTS pawl_done (
  guard INTEGER NOT NULL,
  key   TEXT NOT NULL,
  token INTEGER NOT NULL,
  op    INTEGER NOT NULL CHECK (op >= 0),
  PRIMARY KEY (guard, key, token, op)
) STRICT, WITHOUT ROWID;

-- Verdicts other than admitted. What was refused is written after its transaction was rolled back.
CREATE TABLE IF NOT EXISTS pawl_count (
  guard   INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY (guard, verdict)
) STRICT, WITHOUT ROWID;

-- The last refusals; older ones make room.
CREATE TABLE IF NOT EXISTS pawl_refusal (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  resource    TEXT NOT NULL,
  verdict     TEXT NOT NULL,
  token       INTEGER,
  max         INTEGER,
  application TEXT NOT NULL
) STRICT;

-- Writers without a token, and those whose settings weaken the durability of a commit.
CREATE TABLE IF NOT EXISTS pawl_sighting (
  guard       INTEGER NOT NULL,
  what        TEXT NOT NULL CHECK (what IN ('tokenless', 'synchronous')),
  login       TEXT NOT NULL,
  application TEXT NOT NULL,
  n           INTEGER NOT NULL,
  last_seen   TEXT NOT NULL,
  PRIMARY KEY (guard, what, login, application)
) STRICT, WITHOUT ROWID;

-- Changes of modes and policies.
CREATE TABLE IF NOT EXISTS pawl_audit (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  login       TEXT NOT NULL,
  application TEXT NOT NULL,
  guard       TEXT,
  what        TEXT NOT NULL,
  detail      TEXT,
  reason      TEXT
) STRICT;

INSERT INTO pawl_installation (one, id, version, contract) VALUES (1, abs(random() / 2) + 1, '0.1.0', 1)
  ON CONFLICT (one) DO UPDATE SET version = excluded.version, contract = excluded.contract;
