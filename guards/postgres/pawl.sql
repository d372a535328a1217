-- Pawl's guard for PostgreSQL 15 and newer: plain SQL and PL/pgSQL, no extension.
--
--   psql -d shop -f pawl.sql                                     install, or upgrade in place
--   SELECT pawl.protect('orders');                               put a table under guard (mode: observe)
--   BEGIN; SELECT pawl.use('orders', 34); UPDATE orders …; COMMIT;   write under token 34
--   SELECT pawl.set_mode('orders', 'enforce');                   from now on an older token is refused
--
-- A guard refuses a write whose fencing token is smaller than the greatest it has seen, in the same transaction as the
-- write, whichever client writes. Four kinds, because one mechanism cannot serve all:
--
--   static   one fence for a table, several tables, or anything with a name        protect(tbl), create_guard(name)
--   row      every row is a resource of its own, and carries its fence in a column protect(tbl, key => 'id')
--   by       rows share a resource that an expression over the row names           protect(tbl, by => 'customer_id')
--   keyed    a fence per key, for what lives in no table                           create_guard(name, keyed => true)
--
-- HOW A STATIC FENCE WORKS, and why it cannot be raced past:
--   * The fence is a SEQUENCE. Its value is read outside MVCC, so it is the newest in every isolation level; a raise is
--     not undone by ROLLBACK, which is the safe direction.
--   * Whoever writes holds the guard's advisory lock, shared, from the check to the end of its transaction. Raising the
--     fence takes it exclusively: a raise waits until every transaction with a smaller token has ended, and whoever
--     comes later sees the new fence. A smaller token needs no lock to be refused: it is stale for ever.
--   * A second sequence holds the transaction id of who raised the fence. A statement whose snapshot does not see that
--     transaction may have read what an older holder has since changed, and ends in 40001 (retry), never in "stale".
--
-- Names that begin with an underscore are the inside; everything else is the interface. Functions that run with their
-- owner's rights pin search_path; functions that run with the caller's rights qualify every name and every operator.
-- Whatever compares must fail closed on NULL.
--
-- Settings read while installing:   PGOPTIONS='-c pawl.writers=app'   who may call use(), admit(), advance(), …: everyone
-- (PUBLIC) unless it names a role.

BEGIN;
SET LOCAL pawl.installing_version = '0.1.0';
SET LOCAL pawl.installing_contract = '1';  -- Grows when callers must change. Whoever talks to a guard compares it.
SET LOCAL client_min_messages = warning;

-- ---------------------------------------------------------------------------------------------------------------------
-- 1. May this file be installed here?

DO $$
DECLARE
  offered text := current_setting('pawl.installing_version');
  installed text;
BEGIN
  PERFORM pg_advisory_xact_lock(7295, 0);  -- Two installations at once would trip over each other's catalog rows.
  IF current_setting('server_version_num')::int < 150000 THEN
    RAISE EXCEPTION 'pawl: PostgreSQL 15 or newer is needed, this is %', current_setting('server_version') USING ERRCODE = '0A000';
  END IF;
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'pawl: this server is a replica; install on the primary' USING ERRCODE = '25006';
  END IF;
  IF to_regnamespace('pawl') IS NULL THEN
    CREATE SCHEMA pawl;
  ELSIF NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'pawl'), 'USAGE') THEN
    RAISE EXCEPTION 'pawl: the schema pawl belongs to another role' USING ERRCODE = '42501';
  END IF;
  IF to_regprocedure('pawl.version()') IS NOT NULL THEN
    EXECUTE 'SELECT pawl.version()' INTO installed;
    IF string_to_array(installed, '.')::int[] > string_to_array(offered, '.')::int[] THEN
      RAISE EXCEPTION 'pawl: version % is installed, and this file is the older %', installed, offered
        USING ERRCODE = '55000', HINT = 'Install the newer file; fences written by it may mean more than this one knows.';
    END IF;
  END IF;
  EXECUTE format('CREATE OR REPLACE FUNCTION pawl.version() RETURNS text LANGUAGE sql IMMUTABLE AS %L',
                 format('SELECT %L::pg_catalog.text', offered));
  EXECUTE format('CREATE OR REPLACE FUNCTION pawl.contract() RETURNS int LANGUAGE sql IMMUTABLE AS %L',
                 format('SELECT %s', current_setting('pawl.installing_contract')::int));
END $$;

-- An upgrade may change what its inside takes and returns, which CREATE OR REPLACE does not allow. What a view or an event
-- trigger stands on stays; the interface stays, and with it whatever was granted on it.
DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ '^_' LOOP
    BEGIN
      EXECUTE format('DROP FUNCTION %s', f);
    EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
    END;
  END LOOP;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 2. What is remembered

-- One row per guard: what it is, and its policy. The fence is not here but in the sequence pawl.fence_<id>: a row would
-- be read as old as the reader's snapshot, and a writer could not tell.
CREATE TABLE IF NOT EXISTS pawl.guard (
  id            int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name          text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200 AND name !~ '[:[:cntrl:]]'),
  kind          text NOT NULL CHECK (kind IN ('static', 'row', 'by', 'keyed')),
  setting       text NOT NULL UNIQUE,    -- What carries the token from use() to the trigger: SET LOCAL <setting> = 34.
  lock_key      bigint NOT NULL,         -- The advisory lock: shared by who was admitted, exclusive to raise.
  fence         regclass NOT NULL,       -- static: the fence. Others: the floor below which every token is stale.
  raiser        regclass NOT NULL,       -- The transaction that raised it last.
  tightened     regclass NOT NULL,       -- The transaction that made the policy stricter last.
  emergency     regclass NOT NULL,       -- 2 while the emergency switch is on. A sequence: seen at once, without waiting for open transactions.
  key           text,                    -- row: the key column. by: the expression.
  mode          text NOT NULL DEFAULT 'observe' CHECK (mode IN ('observe', 'shadow', 'canary', 'enforce')),
  percent       int CHECK (percent BETWEEN 1 AND 100),
  require_token boolean NOT NULL DEFAULT false,
  equal         text NOT NULL DEFAULT 'accept' CHECK (equal IN ('accept', 'once', 'refuse')),
  max_step      bigint NOT NULL DEFAULT 17592186044416 CHECK (max_step BETWEEN 2199023255552 AND 9007199254740991),
  bare_token    text NOT NULL DEFAULT 'refuse' CHECK (bare_token IN ('refuse', 'accept')),
  mode_since    timestamptz NOT NULL DEFAULT clock_timestamp(),
  would_refuse_before bigint NOT NULL DEFAULT 0,  -- The counter when the mode changed: readiness looks at what came since.
  CHECK ((mode = 'canary') = (percent IS NOT NULL))
);

-- Which table is under which guard. Partitions and children are not listed: they follow their root.
CREATE TABLE IF NOT EXISTS pawl.protected (
  tbl   regclass PRIMARY KEY,
  guard int NOT NULL REFERENCES pawl.guard
);

-- Fences of keyed resources. keyed and by: the fences. row: what is left of rows that were deleted, what was advanced before
-- there was a row, and a memory of rows that came or were used; where there is a row, its own column counts as well.
CREATE TABLE IF NOT EXISTS pawl.keyed_fence (
  guard int NOT NULL REFERENCES pawl.guard,
  key   text NOT NULL,
  token bigint NOT NULL CHECK (token >= 0),
  PRIMARY KEY (guard, key)
);

-- Operations done under a token, as a set: two connections may finish op 8 before op 7, and 7 is then not a repetition.
-- Op 0 stands for "the token itself", where the policy admits an equal token only once.
CREATE TABLE IF NOT EXISTS pawl.done (
  guard int NOT NULL REFERENCES pawl.guard,
  key   text NOT NULL,
  token bigint NOT NULL,
  op    bigint NOT NULL CHECK (op >= 0),
  at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (guard, key, token, op)
);

-- Who writes without a token. Append only, without a unique key: an upsert would make all old writers wait for each
-- other, and would end in 40001 under REPEATABLE READ.
CREATE TABLE IF NOT EXISTS pawl.sightings (
  at               timestamptz NOT NULL DEFAULT clock_timestamp(),
  guard            text NOT NULL,
  login            text NOT NULL,
  role             text NOT NULL,
  application_name text NOT NULL,
  addr             inet,
  pid              int NOT NULL,
  fingerprint      text NOT NULL,
  statement        text NOT NULL   -- Without its values.
);
CREATE INDEX IF NOT EXISTS sightings_recent ON pawl.sightings (guard, fingerprint, at);

-- Who changed which mode or policy.
CREATE TABLE IF NOT EXISTS pawl.audit (
  at               timestamptz NOT NULL DEFAULT clock_timestamp(),
  login            text NOT NULL DEFAULT session_user,
  role             text NOT NULL DEFAULT current_setting('role'),
  application_name text NOT NULL DEFAULT current_setting('application_name'),
  addr             inet DEFAULT inet_client_addr(),
  guard            text,
  what             text NOT NULL,
  before           text,
  after            text,
  reason           text
);

-- The last 16 refusals. A refused transaction rolls back, and takes with it every row it wrote; setval() is the one
-- write that stays. So each slot of the ring is a handful of sequences (63 bits each; strings in pieces of 7 bytes).
CREATE SEQUENCE IF NOT EXISTS pawl.ring;
DO $$
BEGIN
  FOR slot IN 0..15 LOOP
    FOR field IN 0..10 LOOP
      EXECUTE format('CREATE SEQUENCE IF NOT EXISTS pawl.ring_%s_%s MINVALUE 0', slot, field);
    END LOOP;
  END LOOP;
END $$;

-- What the installation is: who may use it, and in which cluster it was made (a restore into another one is noticed).
CREATE TABLE IF NOT EXISTS pawl.installation (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  writers  text NOT NULL,
  cluster  bigint NOT NULL
);
INSERT INTO pawl.installation (writers, cluster)
  VALUES (coalesce(nullif(current_setting('pawl.writers', true), ''), 'PUBLIC'), (pg_control_system()).system_identifier)
  ON CONFLICT (one) DO UPDATE SET writers = coalesce(nullif(current_setting('pawl.writers', true), ''), pawl.installation.writers);

-- ---------------------------------------------------------------------------------------------------------------------
-- 3. The rules, without a lock and without a side effect

-- The one place that compares a token with a fence. A fence of NULL is none: any first token is good.
CREATE OR REPLACE FUNCTION pawl._verdict(token bigint, max bigint, max_step bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN token IS NULL THEN 'missing'
              WHEN max IS NULL THEN 'admitted'
              WHEN token < max THEN 'stale'
              WHEN token - max > max_step THEN 'ahead'
              WHEN token >= max THEN 'admitted'
              ELSE 'stale' END  -- A NULL somewhere: fail closed.
$$;

-- A token as text, as a setting or a caller gives it. NULL when it is not one.
CREATE OR REPLACE FUNCTION pawl._token(spelled text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN spelled ~ '^[1-9][0-9]{0,15}$' AND spelled::bigint <= 9007199254740991 THEN spelled::bigint END
$$;

-- The mode that holds now: the emergency switch turns what refuses into shadow.
CREATE OR REPLACE FUNCTION pawl._mode(g pawl.guard) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN g.mode IN ('canary', 'enforce') AND pg_catalog.pg_sequence_last_value(g.emergency) = 2 THEN 'shadow' ELSE g.mode END
$$;

-- Whether this resource is refused its stale writes now. Canary takes a stable share of the resources.
CREATE OR REPLACE FUNCTION pawl._enforced(g pawl.guard, resource text) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT CASE pawl._mode(g)
           WHEN 'observe' THEN false
           WHEN 'shadow' THEN false
           WHEN 'canary' THEN (pg_catalog.hashtextextended(resource, 7295) & 9223372036854775807) % 100 < g.percent
           ELSE true END
$$;

CREATE OR REPLACE FUNCTION pawl._resource(g pawl.guard, key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE g.kind WHEN 'static' THEN g.name ELSE pg_catalog.concat_ws(':', g.name, key) END $$;

-- The guard and the key that a resource names: `guard`, or `guard:key` where each key has a fence of its own.
CREATE OR REPLACE FUNCTION pawl._find(resource text, OUT g pawl.guard, OUT key text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT * INTO g FROM pawl.guard WHERE name = split_part(resource, ':', 1);
  IF g.id IS NULL THEN
    RAISE EXCEPTION 'pawl: unknown resource %', coalesce(quote_literal(resource), 'NULL')
      USING ERRCODE = 'PW004', HINT = 'pawl.protect(table) or pawl.create_guard(name) makes one; pawl.status lists them.';
  END IF;
  IF g.kind = 'static' THEN
    IF resource <> g.name THEN
      RAISE EXCEPTION 'pawl: unknown resource %: the guard % has one fence and no keys', quote_literal(resource), quote_literal(g.name)
        USING ERRCODE = 'PW004';
    END IF;
    key := '';
  ELSE
    IF position(':' IN resource) = 0 THEN
      RAISE EXCEPTION 'pawl: unknown resource %: each key of this guard has a fence of its own', quote_literal(resource)
        USING ERRCODE = 'PW004', HINT = format('Name the key: %L.', g.name || ':' || 'key');
    END IF;
    key := pawl._canonical_key(g, substr(resource, length(g.name) + 2));
  END IF;
END $$;

-- '007' and '7' are one row of an integer key: the key as the column's type spells it.
CREATE OR REPLACE FUNCTION pawl._canonical_key(g pawl.guard, key text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE spelled text;
BEGIN
  IF length(key) > 512 THEN
    RAISE EXCEPTION 'pawl: a key has at most 512 characters' USING ERRCODE = 'PW004';
  END IF;
  IF g.kind <> 'row' OR pawl._key_type(g) IS NULL THEN RETURN key; END IF;
  EXECUTE format('SELECT ($1::%s)::text', pawl._key_type(g)) INTO spelled USING key;
  RETURN spelled;
END $$;

CREATE OR REPLACE FUNCTION pawl._key_type(g pawl.guard) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.format_type(a.atttypid, a.atttypmod)
    FROM pawl.protected p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key
   WHERE p.guard = g.id
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 4. Snapshots, and transactions that may be gone

CREATE OR REPLACE FUNCTION pawl._read_committed() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT pg_catalog.current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') $$;

-- Whether the transaction that `mark` names is seen by `snapshot`. False when nothing is noted there (fail closed), or
-- when it lies in the future: then it comes from another cluster, by a restore, and would come true at some random
-- moment. Such a mark is set to this transaction, so that the retry, on a newer snapshot, sees it.
CREATE OR REPLACE FUNCTION pawl._sees(snapshot pg_snapshot, mark regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  x xid8 := pg_sequence_last_value(mark)::text::xid8;
  foreign_mark boolean := x IS NULL;
BEGIN
  IF pg_visible_in_snapshot(x, snapshot) THEN RETURN true; END IF;
  IF x IS NOT NULL THEN
    BEGIN
      foreign_mark := pg_xact_status(x) IS NULL;
    EXCEPTION WHEN invalid_parameter_value THEN
      foreign_mark := true;
    END;
  END IF;
  IF foreign_mark AND current_setting('transaction_read_only') = 'off' THEN
    PERFORM setval(mark, pg_current_xact_id()::text::bigint);
  END IF;
  RETURN false;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 5. Counting and telling, although the transaction rolls back

-- nextval() is not undone. (After a crash a counter may have jumped by up to 32.) A read-only transaction cannot count.
CREATE OR REPLACE FUNCTION pawl._count(g pawl.guard, verdict text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_read_only') = 'off' THEN
    PERFORM nextval(format('pawl.count_%s_%s', g.id, verdict)::regclass);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl._counted(guard_id int, verdict text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(pg_sequence_last_value(format('pawl.count_%s_%s', guard_id, verdict)::regclass), 0)
$$;

-- 7 bytes of a text as a number, and back. Only ASCII survives: a cut inside a character would not decode.
CREATE OR REPLACE FUNCTION pawl._piece(words text, n int) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ('x' || rpad(encode(substring(convert_to(regexp_replace(words, '[^ -~]', '?', 'g'), 'UTF8') FROM n * 7 + 1 FOR 7), 'hex'), 14, '0'))::bit(56)::bigint
$$;
CREATE OR REPLACE FUNCTION pawl._unpiece(pieces bigint[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(convert_from(rtrim(decode(string_agg(lpad(to_hex(p), 14, '0'), '' ORDER BY n), 'hex'), '\x00'::bytea), 'UTF8'), '')
    FROM unnest(pieces) WITH ORDINALITY AS u(p, n)
$$;

CREATE OR REPLACE FUNCTION pawl._verdicts() RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$ SELECT '{admitted,replayed,stale,missing,ahead,malformed}'::pg_catalog.text[] $$;
CREATE OR REPLACE FUNCTION pawl._modes() RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$ SELECT '{observe,shadow,canary,enforce}'::pg_catalog.text[] $$;

CREATE OR REPLACE FUNCTION pawl._into_ring(g pawl.guard, key text, verdict text, token bigint, max bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  slot bigint := nextval('pawl.ring') % 16;
  app text := current_setting('application_name');
  login bigint := (SELECT oid FROM pg_roles WHERE rolname = session_user)::bigint;
  fields bigint[] := ARRAY[
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    ((g.id::bigint * 10 + array_position(pawl._verdicts(), verdict)) * 10 + array_position(pawl._modes(), pawl._mode(g))) * 10000000
      + pg_backend_pid() % 10000000,
    coalesce(token, 0),
    coalesce(max, 0),
    login * 2147483648 + (hashtextextended(pawl._normalised(coalesce(current_query(), '')), 0) & 2147483647),
    pawl._piece(app, 0), pawl._piece(app, 1), pawl._piece(app, 2),
    pawl._piece(coalesce(key, ''), 0), pawl._piece(coalesce(key, ''), 1), pawl._piece(coalesce(key, ''), 2)];
BEGIN
  FOR field IN 0..10 LOOP
    PERFORM setval(format('pawl.ring_%s_%s', slot, field)::regclass, fields[field + 1]);
  END LOOP;
END $$;

-- A statement without its values, so that a thousand customers are one line: who writes, not what.
CREATE OR REPLACE FUNCTION pawl._normalised(query text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT left(btrim(
    regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(query, 2000),
      '''([^'']|'''')*(''|$)', '?', 'g'),             -- strings, also one that was cut off
      '\m[0-9][0-9a-zA-Z_.]*', '?', 'g'),             -- numbers
      '\?(\s*,\s*\?)+', '?, …', 'g'),                 -- lists of them
      '\s+', ' ', 'g')), 500)
$$;

-- The full story of a refusal goes to the server's log, which no rollback undoes.
CREATE OR REPLACE FUNCTION pawl._log(what text, g pawl.guard, resource text, verdict text, token bigint, max bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE LOG 'pawl: % %', what, json_build_object(
    'guard', g.name, 'resource', resource, 'verdict', verdict, 'token', token, 'max', max, 'mode', pawl._mode(g),
    'login', session_user, 'role', current_setting('role'), 'application_name', current_setting('application_name'),
    'addr', host(inet_client_addr()), 'pid', pg_backend_pid(), 'query', left(current_query(), 2000));
END $$;

-- Records a writer without a token: at most one row per session, statement and minute, and one per minute for sessions
-- that come and go. A new mode starts afresh: readiness() looks at what came since. The session remembers, in a setting,
-- the period, the text of its last statement (as a hash: most write the same again and again), and what it has recorded.
CREATE OR REPLACE FUNCTION pawl._sight(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  memory text := 'pawl.sighted._' || g.id;
  remembered text := coalesce(current_setting(memory, true), '');
  period text := to_char(clock_timestamp(), 'YYYYMMDDHH24MI') || to_char(g.mode_since, 'MISSUS') || ' ';
  query text := coalesce(current_query(), '');
  start text := period || to_hex(hashtextextended(query, 0)) || ' ';
  recorded text; normalised text; print text;
BEGIN
  IF starts_with(remembered, start) THEN RETURN; END IF;
  recorded := CASE WHEN starts_with(remembered, period) THEN substr(remembered, position(' ' IN substr(remembered, length(period) + 1)) + length(period) + 1) ELSE '' END;
  normalised := pawl._normalised(query);
  print := to_hex(hashtextextended(normalised, 0));
  IF position(print IN recorded) > 0 OR length(recorded) > 600 THEN  -- About 36 statements a minute are enough.
    PERFORM set_config(memory, start || recorded, false);
    RETURN;
  END IF;
  PERFORM set_config(memory, start || recorded || print || ' ', false);
  IF EXISTS (SELECT FROM pawl.sightings s
              WHERE s.guard = g.name AND s.fingerprint = print AND s.at > greatest(g.mode_since, clock_timestamp() - interval '1 minute')
                AND s.login = session_user AND s.application_name = current_setting('application_name')) THEN
    RETURN;
  END IF;
  INSERT INTO pawl.sightings (guard, login, role, application_name, addr, pid, fingerprint, statement)
    VALUES (g.name, session_user, current_setting('role'), current_setting('application_name'), inet_client_addr(),
            pg_backend_pid(), print, normalised);
END $$;

-- Ends the statement with the verdict's own SQLSTATE. DETAIL has a fixed spelling: programs read it.
CREATE OR REPLACE FUNCTION pawl._raise(verdict text, resource text, token bigint, max bigint, mode text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state text; message text; hint text;
BEGIN
  CASE verdict
    WHEN 'missing' THEN
      state := 'PW001';
      message := CASE WHEN token IS NULL THEN format('write to %s without a token', resource)
                      ELSE format('token %s was used for %s before, and %s admits it again only with an operation number', token, resource, resource) END;
      hint := CASE WHEN token IS NULL THEN format('SELECT pawl.use(%L, token) first in the transaction.', resource)
                   ELSE format('SELECT pawl.use(%L, %s, op) with an op of its own for each operation.', resource, token) END;
    WHEN 'stale' THEN
      state := 'PW002';
      message := format('stale token %s for %s: %s has been here', token, resource,
                        CASE WHEN max > token THEN 'token ' || max ELSE 'it' END);
      hint := CASE WHEN max > token
        THEN format('Stop; a retry cannot succeed. A newer holder has taken over, or a holder of another lock writes here: one guarded '
                    'resource needs one lock. If pawld still grants tokens below %s, run: pawl raise %s --reason TEXT', max, max)
        ELSE 'Stop; a retry cannot succeed. The policy of this guard admits each token once.' END;
    WHEN 'malformed' THEN
      state := 'PW003';
      message := format('malformed token for %s', resource);
      hint := 'A token is an integer from 1 to 9007199254740991, without sign, space or leading zero.';
    WHEN 'ahead' THEN
      state := 'PW005';
      message := format('token %s for %s is further ahead of %s than the guard allows: forged or corrupt', token, resource, max);
      hint := 'If the lock service was restored, raise the guard with pawl.set_policy(guard, max_step => …).';
    WHEN 'replayed' THEN
      state := 'PW008';
      message := format('this operation on %s was already done', resource);
      hint := 'pawl.use() answered "replayed": skip the work, and commit or roll back.';
  END CASE;
  RAISE EXCEPTION 'pawl: %', message
    USING ERRCODE = state, HINT = hint,
          DETAIL = format('token=%s max=%s mode=%s resource=%s', coalesce(token::text, 'none'), coalesce(max::text, 'none'), mode, resource);
END $$;

-- Refuses: counts, tells, raises.
CREATE OR REPLACE FUNCTION pawl._refuse(g pawl.guard, key text, verdict text, token bigint, max bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  resource text := pawl._resource(g, key);
BEGIN
  PERFORM pawl._count(g, verdict);
  IF current_setting('transaction_read_only') = 'off' THEN PERFORM pawl._into_ring(g, key, verdict, token, max); END IF;
  PERFORM pawl._log('refused', g, resource, verdict, token, max);
  PERFORM pawl._raise(verdict, resource, token, max, pawl._mode(g));
END $$;

-- Lets through what was not admitted: counts it, once per transaction, and says what enforce would have done.
CREATE OR REPLACE FUNCTION pawl._let_through(g pawl.guard, key text, verdict text, token bigint, max bigint, refusable boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  noted text := 'pawl.noted._' || g.id;
  note text := concat_ws(' ', verdict, token, key);
BEGIN
  IF verdict = 'missing' AND token IS NULL AND current_setting('transaction_read_only') = 'off' THEN PERFORM pawl._sight(g); END IF;
  IF current_setting(noted, true) = note THEN RETURN; END IF;
  PERFORM set_config(noted, note, true);
  PERFORM pawl._count(g, verdict);
  IF refusable AND pawl._mode(g) <> 'observe' THEN
    PERFORM pawl._count(g, 'would_refuse');
    IF verdict <> 'missing' THEN  -- Tokenless writers are many, and in pawl.sightings.
      PERFORM pawl._log('would refuse', g, pawl._resource(g, key), verdict, token, max);
    END IF;
  END IF;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 6. The token that a transaction carries

-- Settings are spelled by the guard's name where that is a plain lower-case identifier (dots allowed), so that people
-- can write SET LOCAL pawl.token.orders = 34. Other names get a number; use() knows it.
CREATE OR REPLACE FUNCTION pawl._setting(name text, id int) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'pawl.token.' || CASE WHEN name ~ '^[a-z][a-z0-9_]{0,61}(\.[a-z][a-z0-9_]{0,61})*$' THEN name ELSE '_' || id END
$$;

-- What this transaction carries for a resource: the spelled token, or 'replayed', or NULL. A plain value holds for every
-- key of the guard; use('orders:7', 34) carries {"7": 34}, which says nothing about row 8.
CREATE OR REPLACE FUNCTION pawl._carried(g pawl.guard, key text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried text := current_setting(g.setting, true);
BEGIN
  IF left(carried, 1) = '{' THEN carried := carried::jsonb ->> key; END IF;
  IF coalesce(carried, '') = '' AND g.bare_token = 'accept' THEN carried := current_setting('pawl.token', true); END IF;
  RETURN nullif(carried, '');
END $$;

CREATE OR REPLACE FUNCTION pawl._carry(g pawl.guard, key text, carried text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := current_setting(g.setting, true);
BEGIN
  IF g.kind <> 'static' THEN
    carried := (CASE WHEN left(before, 1) = '{' THEN before::jsonb ELSE '{}' END || jsonb_build_object(key, carried))::text;
  END IF;
  PERFORM set_config(g.setting, carried, true);
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 7. Judging
--
-- _judge_<kind>() finds the verdict and, when it is 'admitted', holds what keeps it true until the end of the
-- transaction. `enforced` false never waits: a guard that refuses nothing must delay nobody. The price is that it may
-- then admit without holding, which is all that observe and shadow promise.

CREATE OR REPLACE FUNCTION pawl._lock_shared(g pawl.guard, wait boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_try_advisory_xact_lock_shared(g.lock_key) THEN RETURN true; END IF;
  IF wait THEN PERFORM pg_advisory_xact_lock_shared(g.lock_key); END IF;
  RETURN wait;
END $$;

CREATE OR REPLACE FUNCTION pawl._lock_exclusive(g pawl.guard, wait boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_try_advisory_xact_lock(g.lock_key) THEN RETURN true; END IF;
  IF wait THEN PERFORM pg_advisory_xact_lock(g.lock_key); END IF;
  RETURN wait;
END $$;

-- Moves a static fence. Only under the exclusive lock, and only upwards.
CREATE OR REPLACE FUNCTION pawl._raise_fence(g pawl.guard, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_read_only') = 'on' THEN
    RAISE EXCEPTION 'pawl: a read-only transaction cannot raise the fence of % to %', g.name, token
      USING ERRCODE = '25006', HINT = 'pawl.check() judges without moving anything.';
  END IF;
  PERFORM setval(g.raiser, pg_current_xact_id()::text::bigint);
  PERFORM setval(g.fence, token);
END $$;

-- Peeks, then takes the lock that the verdict needs, then looks again: nobody ever upgrades from shared to exclusive,
-- so two first users of a new token cannot deadlock. `move` false only holds: nothing moves before all is judged.
CREATE OR REPLACE FUNCTION pawl._judge_static(g pawl.guard, token bigint, enforced boolean, move boolean, OUT verdict text, OUT max bigint, OUT raised boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  raised := false;
  max := pg_sequence_last_value(g.fence);
  verdict := pawl._verdict(token, max, g.max_step);
  IF verdict <> 'admitted' THEN RETURN; END IF;
  IF token = max THEN
    IF pawl._lock_shared(g, enforced) THEN
      max := pg_sequence_last_value(g.fence);
      verdict := pawl._verdict(token, max, g.max_step);
    END IF;
  ELSIF pawl._lock_exclusive(g, enforced) THEN
    max := pg_sequence_last_value(g.fence);
    verdict := pawl._verdict(token, max, g.max_step);
    IF verdict = 'admitted' AND token IS DISTINCT FROM max AND move THEN
      PERFORM pawl._raise_fence(g, token);
      max := token;
      raised := true;
    END IF;
  END IF;
END $$;

-- What an admitted writer reads must not be older than the last write of a smaller token. `statement` is the snapshot of
-- the statement whose trigger asks; NULL when use() asks, because then the next statement takes a newer one.
-- The raise is kept (setval is not undone), so the retry passes.
CREATE OR REPLACE FUNCTION pawl._insist_on_fresh_snapshot(g pawl.guard, raised boolean, statement pg_snapshot) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  one_snapshot boolean := NOT pawl._read_committed();
BEGIN
  IF one_snapshot THEN
    IF pawl._sees(pg_current_snapshot(), g.raiser) THEN RETURN; END IF;
  ELSE
    IF statement IS NULL THEN
      PERFORM pawl._sees(pg_current_snapshot(), g.raiser);  -- Only to mend a mark from another cluster while nothing depends on it.
      RETURN;
    END IF;
    IF NOT raised AND pg_sequence_last_value(g.raiser) = pg_current_xact_id()::text::bigint THEN RETURN; END IF;  -- By an earlier statement.
    IF NOT raised AND pawl._sees(statement, g.raiser) THEN RETURN; END IF;
  END IF;
  RAISE EXCEPTION 'pawl: the fence of % moved to % after this snapshot was taken; retry', g.name, pg_sequence_last_value(g.fence)
    USING ERRCODE = '40001',
          HINT = format('pawl.advance() before BEGIN, or SELECT pawl.use(%L, token) as a statement of its own, avoids this.', g.name);
END $$;

-- Locks the fence of a key, and makes one (0) where there is none; returns it. An upsert, because only writing waits for a
-- fence that another transaction has written and not yet committed; a plain look would miss it.
CREATE OR REPLACE FUNCTION pawl._lock_fence(guard_id int, key text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pawl.keyed_fence AS f (guard, key, token) VALUES (guard_id, _lock_fence.key, 0)
    ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = f.token RETURNING f.token
$$;

-- Writes a fence that _lock_fence() has locked. 0 is none.
CREATE OR REPLACE FUNCTION pawl._keep_fence(guard_id int, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF token > 0 THEN
    UPDATE pawl.keyed_fence f SET token = _keep_fence.token WHERE f.guard = guard_id AND f.key = _keep_fence.key AND f.token < _keep_fence.token;
  ELSE
    DELETE FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = _keep_fence.key AND f.token = 0;
  END IF;
END $$;

-- The fence of one key in pawl.keyed_fence. An equal token shares the row's lock; a greater one writes it. The shared
-- advisory lock keeps compact() away, which drops fences and raises the floor instead. `before` is the fence it found.
CREATE OR REPLACE FUNCTION pawl._judge_keyed(g pawl.guard, key text, token bigint, enforced boolean, OUT verdict text, OUT max bigint, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  floor bigint; fence bigint;
BEGIN
  PERFORM pawl._lock_shared(g, enforced);
  floor := pg_sequence_last_value(g.fence);
  SELECT f.token INTO fence FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _judge_keyed.key;
  before := nullif(greatest(fence, floor), 0);
  max := before;
  verdict := pawl._verdict(token, max, g.max_step);
  IF verdict <> 'admitted' THEN RETURN; END IF;
  IF NOT enforced THEN
    PERFORM pawl._raise_keyed_if_free(g, key, token);
    RETURN;
  END IF;
  IF fence = token THEN
    SELECT f.token INTO fence FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _judge_keyed.key FOR SHARE;
  ELSE
    PERFORM pawl._insist_that_it_may_raise(g, key, fence, floor);
    fence := NULL;
  END IF;
  IF fence IS NULL THEN fence := pawl._lock_fence(g.id, key); END IF;
  before := nullif(greatest(fence, floor), 0);
  max := before;
  verdict := pawl._verdict(token, max, g.max_step);
  PERFORM pawl._keep_fence(g.id, key, CASE verdict WHEN 'admitted' THEN token ELSE 0 END) WHERE fence <> token;
  IF verdict = 'admitted' THEN max := token; END IF;
END $$;

-- Nobody is kept waiting, and nothing fails: what cannot be raised at once is left as it is.
CREATE OR REPLACE FUNCTION pawl._raise_keyed_if_free(g pawl.guard, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pawl._read_committed() THEN RETURN; END IF;  -- Older snapshots would end in 40001.
  PERFORM FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _raise_keyed_if_free.key FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    PERFORM pawl._keep_fence(g.id, key, token);
  ELSE
    INSERT INTO pawl.keyed_fence (guard, key, token) VALUES (g.id, _raise_keyed_if_free.key, _raise_keyed_if_free.token) ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- With one snapshot for the whole transaction, whoever raises a key's fence has read before it waited for the holders of
-- smaller tokens; and unlike a static fence, this raise would be undone with the transaction, so that a retry could not
-- do better. A key without a fence has had no holder to wait for.
CREATE OR REPLACE FUNCTION pawl._insist_that_it_may_raise(g pawl.guard, key text, fence bigint, floor bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._read_committed() THEN RETURN; END IF;
  IF fence > 0 THEN
    RAISE EXCEPTION 'pawl: a new token for % inside a transaction that is not READ COMMITTED', pawl._resource(g, key)
      USING ERRCODE = 'PW006', HINT = format('SELECT pawl.advance(%L, token) before BEGIN.', pawl._resource(g, key));
  END IF;
  IF floor IS NOT NULL AND NOT pawl._sees(pg_current_snapshot(), g.raiser) THEN
    RAISE EXCEPTION 'pawl: the floor of % moved after this snapshot was taken; retry', g.name USING ERRCODE = '40001';
  END IF;
END $$;

-- Claims an operation, or under a policy that admits an equal token only once, the token. The unique index makes twins
-- wait for each other; a rollback gives the claim back.
CREATE OR REPLACE FUNCTION pawl._claim(g pawl.guard, key text, token bigint, op bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  k text := key; t bigint := token; o bigint := op;
  marker text := 'pawl.claimed._' || g.id;
  claim text := concat_ws(' ', pg_current_xact_id(), t, k);
BEGIN
  IF o IS NOT NULL THEN
    INSERT INTO pawl.done (guard, key, token, op) VALUES (g.id, k, t, o) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RETURN 'replayed'; END IF;
  END IF;
  IF g.equal = 'accept' OR g.equal = 'once' AND o IS NOT NULL THEN
    PERFORM set_config(marker, claim, true);
    RETURN 'admitted';
  END IF;
  IF current_setting(marker, true) = claim THEN RETURN 'admitted'; END IF;  -- A later statement of the same transaction.
  INSERT INTO pawl.done (guard, key, token, op) VALUES (g.id, k, t, 0) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN CASE g.equal WHEN 'once' THEN 'missing' ELSE 'stale' END; END IF;
  PERFORM set_config(marker, claim, true);
  RETURN 'admitted';
END $$;

-- THE DECISION, for every kind, every mode, every caller.
--   carried     the token that use() or admit() was given, spelled
--   writing     a trigger asks: the token is the one that the transaction carries, and 'replayed' is refused too
--   statement   the snapshot of the statement that writes; NULL when use() or admit() asks
--   row_max     row guards: the fence in the row, which its trigger has locked
-- Returns the verdict when the write may go on, whether admitted or let through; raises otherwise.
-- First the passage lock (7295, guard), shared: making the policy stricter takes it exclusively, so nothing that was let
-- through under the old policy is still under way under the new one. Only then the policy is read.
CREATE OR REPLACE FUNCTION pawl._decide(guard_id int, key text, carried text, op bigint, statement pg_snapshot, writing boolean,
                                        row_max bigint, OUT verdict text, OUT token bigint, OUT max bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; enforced boolean; refusable boolean; raised boolean;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7295, guard_id);
  SELECT * INTO g FROM pawl.guard WHERE id = guard_id;
  IF g.id IS NULL THEN RAISE EXCEPTION 'pawl: guard % is gone, its trigger is not', guard_id USING ERRCODE = 'PW004'; END IF;
  IF writing THEN carried := pawl._carried(g, key); END IF;
  IF carried IS NULL AND current_query() IS NULL THEN
    IF pawl._is_replicated() THEN verdict := 'missing'; RETURN; END IF;
  END IF;
  enforced := coalesce(pawl._enforced(g, pawl._resource(g, key)), true);
  token := pawl._token(carried);
  IF g.kind = 'row' THEN PERFORM pawl._lock_shared(g, enforced); END IF;  -- The row is locked; this keeps the floor.
  max := nullif(greatest(row_max, pg_sequence_last_value(g.fence)), 0);

  IF carried IS NULL THEN verdict := 'missing';
  ELSIF carried = 'replayed' THEN verdict := 'replayed';
  ELSIF token IS NULL THEN verdict := 'malformed';
  ELSIF g.kind = 'static' THEN SELECT * INTO verdict, max, raised FROM pawl._judge_static(g, token, enforced, true);
  ELSIF g.kind = 'row' THEN verdict := pawl._verdict(token, max, g.max_step);
  ELSE SELECT j.verdict, j.max INTO verdict, max FROM pawl._judge_keyed(g, key, token, enforced) j;
  END IF;
  IF verdict = 'admitted' AND enforced AND g.kind = 'static' THEN PERFORM pawl._insist_on_fresh_snapshot(g, raised, statement); END IF;
  IF verdict = 'admitted' AND (op IS NOT NULL OR g.equal <> 'accept') THEN verdict := pawl._claim(g, key, token, op); END IF;

  IF verdict = 'admitted' THEN RETURN; END IF;
  IF verdict = 'replayed' AND NOT writing THEN PERFORM pawl._count(g, verdict); RETURN; END IF;
  refusable := verdict <> 'missing' OR g.require_token OR token IS NOT NULL;
  IF enforced AND refusable THEN PERFORM pawl._refuse(g, key, verdict, token, max); END IF;
  IF NOT pawl._read_committed() THEN PERFORM pawl._insist_on_fresh_policy(g); END IF;
  PERFORM pawl._let_through(g, key, verdict, token, max, refusable);
END $$;

-- A change that arrives by logical replication was judged where it was made, and carries no token. (No client can claim to
-- be such a worker. It has no query text, so the process list, which is slow, is looked at by hardly anyone else.)
CREATE OR REPLACE FUNCTION pawl._is_replicated() RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = pg_backend_pid() AND a.backend_type = 'logical replication worker');
END $$;

-- Under REPEATABLE READ the policy was read as old as the snapshot. What it lets through must not be what a stricter one
-- refuses since.
CREATE OR REPLACE FUNCTION pawl._insist_on_fresh_policy(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._read_committed() OR pg_sequence_last_value(g.tightened) IS NULL OR pg_sequence_last_value(g.emergency) = 2
     OR pawl._sees(pg_current_snapshot(), g.tightened) THEN RETURN; END IF;
  RAISE EXCEPTION 'pawl: the policy of % changed after this snapshot was taken; retry', g.name USING ERRCODE = '40001';
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 8. For writers: use, admit

CREATE OR REPLACE FUNCTION pawl._insist_on_primary() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'pawl: this server is a replica: tokens are admitted on the primary'
      USING ERRCODE = '25006', HINT = 'Readers call pawl.check(), which works here.';
  END IF;
END $$;

-- Whoever passes a token that is none has a bug, in every mode.
CREATE OR REPLACE FUNCTION pawl._insist_on_token(g pawl.guard, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._token(token::text) IS NULL THEN PERFORM pawl._refuse(g, key, 'malformed', NULL, pg_sequence_last_value(g.fence)); END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_op(op bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF op >= 1 THEN RETURN op; END IF;
  RAISE EXCEPTION 'pawl: malformed operation number %', coalesce(op::text, 'NULL')
    USING ERRCODE = 'PW003', HINT = 'An operation number is an integer from 1 on, new for each operation under a token.';
END $$;

-- A row guard's fence is in the row, or without a row in pawl.keyed_fence. That one is locked first, whether there is a
-- row or not: whoever inserts the row needs it too, so nothing can change in between; and its new version is what ends a
-- transaction with an older snapshot in 40001. The row's token rises through the trigger that judges every write.
CREATE OR REPLACE FUNCTION pawl._admit_row(g pawl.guard, key text, token bigint, op bigint, hold boolean, OUT verdict text, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id);
  is_key text := format('%I = $1::%s', g.key, pawl._key_type(g));
  in_row bigint;
BEGIN
  IF tbl IS NULL THEN RAISE EXCEPTION 'pawl: the guard % has lost its table', quote_literal(g.name) USING ERRCODE = 'PW004'; END IF;
  IF NOT hold THEN  -- Lock nothing; the trigger raises what is written.
    before := pawl._fence(g, key);
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
    RETURN;
  END IF;
  before := pawl._lock_fence(g.id, key);
  EXECUTE format('SELECT pawl_token FROM %s WHERE %s FOR NO KEY UPDATE', tbl, is_key) INTO in_row USING key;
  before := greatest(before, in_row);
  verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
  PERFORM pawl._keep_fence(g.id, key, CASE verdict WHEN 'admitted' THEN token ELSE before END);
  IF verdict = 'admitted' AND token > in_row THEN
    EXECUTE format('UPDATE %s SET pawl_token = $2 WHERE %s', tbl, is_key) USING key, token;
  END IF;
  before := nullif(before, 0);
END $$;

-- The slow path of use() and admit(): everything but "static, and the fence is exactly this token".
CREATE OR REPLACE FUNCTION pawl._admit(resource text, token bigint, op bigint, carry boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text; verdict text;
BEGIN
  PERFORM pawl._insist_on_primary();
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._insist_on_token(g, key, token);
  IF carry OR g.kind = 'row' THEN PERFORM pawl._carry(g, key, token::text); END IF;
  IF g.kind = 'row' THEN
    PERFORM pg_advisory_xact_lock_shared(7295, g.id);  -- Before the row: a stricter policy must not come in between.
    SELECT * INTO STRICT g FROM pawl.guard o WHERE o.id = g.id;
    verdict := (pawl._admit_row(g, key, token, op, coalesce(pawl._enforced(g, pawl._resource(g, key)), true))).verdict;
  ELSE
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, NULL)).verdict;
  END IF;
  IF carry AND verdict = 'replayed' THEN PERFORM pawl._carry(g, key, 'replayed'); END IF;  -- A careless write is refused: PW008.
  RETURN verdict;
END $$;

-- Judges now, and carries the token to the statements that follow in this transaction. The fast path runs with the
-- caller's rights: it only reads. (Why three looks are enough: section 12.)
CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  g record; carried text;
BEGIN
  SELECT fence, raiser, lock_key, setting INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) resource AND kind OPERATOR(pg_catalog.=) 'static' AND equal OPERATOR(pg_catalog.=) 'accept';
  IF pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN
    carried := pg_catalog.set_config(g.setting, token::pg_catalog.text, true);
    RETURN 'admitted';
  END IF;
  RETURN pawl._admit(resource, token, NULL, true);
END $$;

-- The same with an operation number: admitted once under its token, however often and in whatever order it arrives.
CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), true) $$;

-- Holds a static fence without moving it, and refuses what is to be refused.
CREATE OR REPLACE FUNCTION pawl._hold(g pawl.guard, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  verdict text; max bigint; enforced boolean := coalesce(pawl._enforced(g, g.name), true);
BEGIN
  SELECT j.verdict, j.max INTO verdict, max FROM pawl._judge_static(g, token, enforced, false) j;
  IF verdict = 'admitted' AND g.equal <> 'accept' THEN verdict := pawl._claim(g, '', token, NULL); END IF;
  IF enforced AND verdict <> 'admitted' THEN PERFORM pawl._refuse(g, '', verdict, token, max); END IF;
END $$;

-- Several resources under one token, taken in a fixed order, so that two transactions cannot wait for each other: first
-- the static ones are held, then those with keys admitted (a rollback undoes that), and only then, when none can be
-- refused any more, static fences move, which no rollback undoes. Answers the worst verdict that was let through.
CREATE OR REPLACE FUNCTION pawl.use(resources text[], token bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; r record; verdict text; worst text;
BEGIN
  PERFORM pawl._insist_on_primary();
  FOR g IN SELECT (f.g).* FROM (SELECT DISTINCT u FROM unnest(resources) u) d, LATERAL pawl._find(d.u) f WHERE (f.g).kind = 'static' ORDER BY d.u COLLATE "C" LOOP
    PERFORM pawl._insist_on_token(g, '', token);
    PERFORM pawl._hold(g, token);
  END LOOP;
  FOR r IN SELECT d.u AS resource FROM (SELECT DISTINCT u FROM unnest(resources) u) d, LATERAL pawl._find(d.u) f
            ORDER BY (f.g).kind = 'static', d.u COLLATE "C" LOOP
    verdict := pawl._admit(r.resource, token, NULL, true);
    IF worst IS NULL OR worst = 'admitted' THEN worst := verdict; END IF;
  END LOOP;
  IF worst IS NULL THEN RAISE EXCEPTION 'pawl: no resource named' USING ERRCODE = 'PW004'; END IF;
  RETURN worst;
END $$;

-- Judges and holds until the end of the transaction, for those who write what no trigger watches.
CREATE OR REPLACE FUNCTION pawl.admit(resource text, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  g record;
BEGIN
  SELECT fence, raiser, lock_key INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) resource AND kind OPERATOR(pg_catalog.=) 'static' AND equal OPERATOR(pg_catalog.=) 'accept';
  IF pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN
    RETURN 'admitted';
  END IF;
  RETURN pawl._admit(resource, token, NULL, false);
END $$;

CREATE OR REPLACE FUNCTION pawl.admit(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), false) $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 9. For readers: fence, check

-- The greatest token admitted or advanced to, or the floor; NULL: none yet.
CREATE OR REPLACE FUNCTION pawl._fence(g pawl.guard, key text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fence bigint := pg_sequence_last_value(g.fence);
  own bigint;
BEGIN
  IF g.kind <> 'static' THEN
    SELECT f.token INTO own FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _fence.key;
    fence := greatest(fence, own);
  END IF;
  IF g.kind = 'row' AND pawl._key_type(g) IS NOT NULL THEN
    EXECUTE format('SELECT pawl_token FROM %s WHERE %I = $1::%s', (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id), g.key, pawl._key_type(g))
      INTO own USING key;
    fence := greatest(fence, own);
  END IF;
  RETURN nullif(fence, 0);
END $$;

CREATE OR REPLACE FUNCTION pawl.fence(resource text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT pawl._fence(f.g, f.key) FROM pawl._find(resource) f
$$;

-- Judges without raising, locking or moving anything; in a READ ONLY transaction and on a replica too. What is not even
-- a resource is 'unknown', what is not a token 'malformed'.
CREATE OR REPLACE FUNCTION pawl.check(resource text, OUT verdict text, INOUT token bigint, OUT max bigint, OUT mode text, OUT would_refuse boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text;
BEGIN
  BEGIN
    named := pawl._find(resource); g := named.g; key := named.key;
    max := pawl._fence(g, key);
  EXCEPTION WHEN SQLSTATE 'PW004' OR data_exception THEN
    verdict := 'unknown';
    would_refuse := true;
    RETURN;
  END;
  mode := pawl._mode(g);
  verdict := CASE WHEN token IS NOT NULL AND pawl._token(token::text) IS NULL THEN 'malformed' ELSE pawl._verdict(token, max, g.max_step) END;
  would_refuse := CASE verdict WHEN 'admitted' THEN false WHEN 'missing' THEN g.require_token ELSE true END;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 10. What the triggers call

-- Whoever writes must be able to run these, because a trigger calls them with the writer's rights. Called by hand they would
-- move fences for writes that nobody makes.
CREATE OR REPLACE FUNCTION pawl._forbid() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'pawl: only a guard''s trigger may call this' USING ERRCODE = '42501';
END $$;

-- A statement on a table under a static guard. `statement` is its snapshot.
CREATE OR REPLACE FUNCTION pawl._on_statement(guard_id int, statement pg_snapshot) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_trigger_depth() = 0 THEN PERFORM pawl._forbid(); END IF;
  PERFORM pawl._decide(guard_id, '', NULL, NULL, statement, true, NULL);
END $$;

-- A row stays: the new value of its fence. A write that is let through does not move it.
CREATE OR REPLACE FUNCTION pawl._row_stays(guard_id int, key text, fence bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found record;
BEGIN
  IF pg_trigger_depth() = 0 THEN PERFORM pawl._forbid(); END IF;
  SELECT * INTO found FROM pawl._decide(guard_id, key, NULL, NULL, NULL, true, fence);
  RETURN CASE found.verdict WHEN 'admitted' THEN found.token ELSE fence END;
END $$;

-- A row goes: its fence must not go with it.
CREATE OR REPLACE FUNCTION pawl._row_leaves(guard_id int, key text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kept bigint := pawl._row_stays(guard_id, key, fence);
BEGIN
  INSERT INTO pawl.keyed_fence AS f (guard, key, token) SELECT guard_id, _row_leaves.key, kept WHERE kept > 0
    ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = greatest(f.token, excluded.token);
END $$;

-- A row comes: it takes over the fence of the row that had this key before. The entry stays, also when it says no more
-- than the row: a transaction whose snapshot does not show the row must run into it. compact() takes it away.
CREATE OR REPLACE FUNCTION pawl._row_arrives(guard_id int, key text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fence bigint := pawl._row_stays(guard_id, key, pawl._lock_fence(guard_id, key));
BEGIN
  PERFORM pawl._keep_fence(guard_id, key, fence);
  RETURN fence;
END $$;

-- The resources that a statement on a table guarded `by` an expression has touched. When all stand at the token carried,
-- one locking read is enough. (The CTE must be MATERIALIZED: a condition pushed into it would lock only what matches.)
CREATE OR REPLACE FUNCTION pawl._on_keys(guard_id int, keys text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; k text; plain bigint; at_token bigint;
BEGIN
  IF pg_trigger_depth() = 0 THEN PERFORM pawl._forbid(); END IF;
  IF cardinality(keys) IS NULL OR cardinality(keys) = 0 THEN RETURN; END IF;
  SELECT * INTO STRICT g FROM pawl.guard WHERE id = guard_id;
  plain := pawl._token(current_setting(g.setting, true));
  IF cardinality(keys) > 1 AND plain >= coalesce(pg_sequence_last_value(g.fence), 0) AND pg_try_advisory_xact_lock_shared(g.lock_key)
     AND plain >= coalesce(pg_sequence_last_value(g.fence), 0)
     AND (SELECT count(*) FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = ANY (keys) AND f.token = plain) = cardinality(keys) THEN
    WITH held AS MATERIALIZED (
      SELECT f.token FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = ANY (keys) ORDER BY f.key COLLATE "C" FOR SHARE)
    SELECT count(*) INTO at_token FROM held WHERE held.token = plain;
    IF at_token = cardinality(keys) THEN RETURN; END IF;
  END IF;
  FOR k IN SELECT u FROM unnest(keys) u ORDER BY u COLLATE "C" LOOP
    PERFORM pawl._decide(guard_id, k, NULL, NULL, NULL, true, NULL);
  END LOOP;
END $$;

-- TRUNCATE of a table with a fence per key touches them all, so it needs a token for all (SET LOCAL pawl.token.orders =
-- 34), not less than any of them. First every row's fence is kept, and locked; then they are judged; then they rise.
CREATE OR REPLACE FUNCTION pawl._on_truncate(guard_id int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; tbl regclass; fence bigint; admitted bigint;
BEGIN
  IF pg_trigger_depth() = 0 THEN PERFORM pawl._forbid(); END IF;
  SELECT * INTO STRICT g FROM pawl.guard WHERE id = guard_id;
  SELECT p.tbl INTO STRICT tbl FROM pawl.protected p WHERE p.guard = guard_id;
  EXECUTE format('INSERT INTO pawl.keyed_fence AS f (guard, key, token)
                  SELECT $1, k.key, max(k.token) FROM (SELECT coalesce((%s)::text, ''''), %s FROM %s) AS k(key, token) GROUP BY k.key ORDER BY k.key COLLATE "C"
                  ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = greatest(f.token, excluded.token)',
                 CASE g.kind WHEN 'row' THEN quote_ident(g.key) ELSE g.key END, CASE g.kind WHEN 'row' THEN 'pawl_token' ELSE '0' END, tbl) USING guard_id;
  SELECT max(f.token) INTO fence FROM pawl.keyed_fence f WHERE f.guard = guard_id;
  admitted := pawl._decide_all(g, fence);
  UPDATE pawl.keyed_fence f SET token = admitted WHERE f.guard = guard_id AND f.token < admitted;
  DELETE FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.token = 0;
END $$;

-- Returns the token if it is admitted for every key, and NULL if the statement is let through.
CREATE OR REPLACE FUNCTION pawl._decide_all(g pawl.guard, fence bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried text := pawl._carried(g, NULL);
  max bigint := nullif(greatest(fence, pg_sequence_last_value(g.fence)), 0);
  token bigint := pawl._token(carried);
  verdict text := CASE WHEN carried IS NOT NULL AND token IS NULL THEN 'malformed' ELSE pawl._verdict(token, max, g.max_step) END;
  refusable boolean;
BEGIN
  IF verdict = 'admitted' THEN RETURN token; END IF;
  IF verdict = 'missing' AND current_query() IS NULL AND pawl._is_replicated() THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock_shared(7295, g.id);
  SELECT * INTO STRICT g FROM pawl.guard WHERE id = g.id;
  refusable := verdict <> 'missing' OR g.require_token;
  IF refusable AND coalesce(pawl._enforced(g, g.name), true) THEN PERFORM pawl._refuse(g, NULL, verdict, token, max); END IF;
  PERFORM pawl._insist_on_fresh_policy(g);
  PERFORM pawl._let_through(g, NULL, verdict, token, max, refusable);
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 11. Taking over: advance, blockers, evict

-- Who holds the advisory lock of a guard. A prepared transaction holds it without a process: it has a gid and no pid.
CREATE OR REPLACE FUNCTION pawl._holders(class oid, obj oid, subid int)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT l.pid, p.gid, coalesce(a.usename, p.owner)::text, a.application_name, coalesce(a.xact_start, p.prepared), a.query
    FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
   WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
     AND l.classid = class AND l.objid = obj AND l.objsubid = subid AND l.pid IS DISTINCT FROM pg_backend_pid()
$$;

CREATE OR REPLACE FUNCTION pawl._lock_holders(g pawl.guard)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM pawl._holders(((g.lock_key >> 32) & 4294967295)::oid, (g.lock_key & 4294967295)::oid, 1)
$$;

-- Who holds the lock of a row, given its xmax: one transaction, or the members of a multixact.
CREATE OR REPLACE FUNCTION pawl._row_holders(xmax xid)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  holders xid[] := ARRAY[xmax];
BEGIN
  BEGIN
    holders := holders || ARRAY(SELECT m.xid FROM pg_get_multixact_members(xmax) m);
  EXCEPTION WHEN OTHERS THEN NULL;  -- Not a multixact.
  END;
  RETURN QUERY
    SELECT DISTINCT l.pid, p.gid, coalesce(a.usename, p.owner)::text, a.application_name, coalesce(a.xact_start, p.prepared), a.query
      FROM pg_locks l
      LEFT JOIN pg_stat_activity a ON a.pid = l.pid
      LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = l.transactionid
     WHERE l.locktype = 'transactionid' AND l.granted AND l.transactionid = ANY (holders) AND l.pid IS DISTINCT FROM pg_backend_pid();
END $$;

CREATE OR REPLACE FUNCTION pawl._blockers(g pawl.guard, key text)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  lock xid;
BEGIN
  IF g.kind = 'static' THEN
    RETURN QUERY SELECT * FROM pawl._lock_holders(g);
    RETURN;
  END IF;
  SELECT f.xmax INTO lock FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _blockers.key;
  RETURN QUERY SELECT * FROM pawl._row_holders(lock) WHERE lock IS NOT NULL;
  IF g.kind = 'row' AND pawl._key_type(g) IS NOT NULL THEN
    EXECUTE format('SELECT xmax FROM %s WHERE %I = $1::%s', (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id), g.key, pawl._key_type(g))
      INTO lock USING _blockers.key;
    RETURN QUERY SELECT * FROM pawl._row_holders(lock) WHERE lock IS NOT NULL;
  END IF;
END $$;

-- Who advance() would wait for. Other people's statements are shown to those who may see them anyway.
CREATE OR REPLACE FUNCTION pawl.blockers(resource text)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.pid, b.gid, b.role, b.application_name, b.since,
         CASE WHEN b.role = session_user OR pg_has_role(session_user, 'pg_read_all_stats', 'USAGE') THEN b.query END
    FROM pawl._find(resource) f, LATERAL (SELECT DISTINCT * FROM pawl._blockers(f.g, f.key)) b
$$;

CREATE OR REPLACE FUNCTION pawl._spell_holder(pid int, gid text, role text, application_name text, since timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT concat_ws(' ', 'pid=' || pid, 'gid=' || quote_literal(gid), 'role=' || role, 'application_name=' || quote_literal(application_name), 'since=' || since)
$$;

-- Who is in the way, in words. The first holder of a new key has a lock that nobody can look up; then it is one of those
-- under the guard.
CREATE OR REPLACE FUNCTION pawl._describe(g pawl.guard, key text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(
    (SELECT string_agg(pawl._spell_holder(b.pid, b.gid, b.role, b.application_name, b.since), '; ') FROM (SELECT DISTINCT * FROM pawl._blockers(g, key)) b),
    (SELECT 'one of: ' || string_agg(pawl._spell_holder(h.pid, h.gid, h.role, h.application_name, h.since), '; ') FROM pawl._lock_holders(g) h),
    'nobody any more')
$$;

-- One try to raise, waiting no longer than lock_timeout. Returns the fence before it; false in `done` when somebody is in
-- the way. The verdict is the same as for a write, so advance() cannot do what a write could not.
CREATE OR REPLACE FUNCTION pawl._try_advance(g pawl.guard, key text, token bigint, OUT done boolean, OUT verdict text, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  done := true;
  before := pawl._fence(g, key);
  verdict := pawl._verdict(token, before, g.max_step);
  IF verdict <> 'admitted' THEN RETURN; END IF;
  IF g.kind = 'static' THEN
    PERFORM pg_advisory_xact_lock(g.lock_key);
    before := pg_sequence_last_value(g.fence);
    verdict := pawl._verdict(token, before, g.max_step);
    IF verdict <> 'admitted' THEN RETURN; END IF;
    IF token = before THEN
      -- The value may come from a commit that was never flushed, and only WAL of our own makes our COMMIT flush it.
      PERFORM setval(g.fence, token);
    ELSE
      PERFORM pawl._raise_fence(g, token);
    END IF;
  ELSE
    IF g.kind = 'row' THEN SELECT a.verdict, a.before INTO verdict, before FROM pawl._advance_row(g, key, token) a;
    ELSE SELECT j.verdict, j.before INTO verdict, before FROM pawl._judge_keyed(g, key, token, true) j;
    END IF;
    PERFORM pg_logical_emit_message(true, 'pawl', 'advance');  -- As above: a reason to flush.
  END IF;
  DELETE FROM pawl.done d WHERE d.guard = g.id AND d.key = _try_advance.key AND d.token < _try_advance.token;
EXCEPTION WHEN lock_not_available THEN
  done := false;
END $$;

CREATE OR REPLACE FUNCTION pawl._advance_row(g pawl.guard, key text, token bigint, OUT verdict text, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried text := current_setting(g.setting, true);
BEGIN
  PERFORM pawl._carry(g, key, token::text);
  SELECT a.verdict, a.before INTO verdict, before FROM pawl._admit_row(g, key, token, NULL, true) a;
  PERFORM set_config(g.setting, coalesce(carried, ''), true);
END $$;

-- Raises the fence for a new holder, before it reads what it will build on. Returns the fence before; when it returns,
-- every transaction with a smaller token has ended. Durable, whatever synchronous_commit says; nothing is promised until
-- the transaction that called it has committed.
-- It waits in slices, so that others of the same guard are held up for one slice at a time, not for all of `wait`. Each is
-- twice as long as the one before: transactions that overlap and are longer than a slice would keep it out for ever.
-- A guard that refuses nothing does not refuse here either: look at what is returned.
CREATE OR REPLACE FUNCTION pawl.advance(resource text, token bigint, wait interval DEFAULT '5 s') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
DECLARE
  named record; g pawl.guard; key text; step record; enforced boolean; slice bigint := 200;
  deadline timestamptz := clock_timestamp() + coalesce(wait, interval '5 s');
BEGIN
  PERFORM pawl._insist_on_primary();
  IF NOT pawl._read_committed() THEN
    RAISE EXCEPTION 'pawl: advance() needs READ COMMITTED: an older snapshot could not see what it waited for' USING ERRCODE = 'PW006';
  END IF;
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._insist_on_token(g, key, token);
  IF current_setting('transaction_read_only') = 'on' THEN
    RAISE EXCEPTION 'pawl: advance() in a read-only transaction' USING ERRCODE = '25006', HINT = 'pawl.check() judges without moving anything.';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  enforced := coalesce(pawl._enforced(g, pawl._resource(g, key)), true);
  LOOP
    PERFORM set_config('lock_timeout', greatest(1, least(slice, CASE WHEN g.mode = 'observe' THEN 1 ELSE
                       (extract(epoch FROM deadline - clock_timestamp()) * 1000)::bigint END))::text, true);
    SELECT * INTO step FROM pawl._try_advance(g, key, token);
    EXIT WHEN step.done;
    slice := least(2 * slice, 3600000);
    IF NOT enforced AND (g.mode = 'observe' OR clock_timestamp() >= deadline) THEN
      RAISE WARNING 'pawl: % was not advanced to %: older transactions are open, and the mode is %', resource, token, pawl._mode(g)
        USING DETAIL = pawl._describe(g, key);
      RETURN pawl._fence(g, key);
    END IF;
    IF clock_timestamp() >= deadline THEN
      RAISE EXCEPTION 'pawl: advance of % to % waits for older transactions', resource, token
        USING ERRCODE = 'PW007', DETAIL = pawl._describe(g, key),
              HINT = format('They end by themselves, by idle_in_transaction_session_timeout, or by pawl.evict(%L, %s). Until then nothing is promised.', resource, token);
    END IF;
  END LOOP;
  IF step.verdict <> 'admitted' THEN
    IF enforced THEN PERFORM pawl._refuse(g, key, step.verdict, token, step.before); END IF;
    PERFORM pawl._let_through(g, key, step.verdict, token, step.before, true);
  END IF;
  RETURN step.before;
END $$;

-- Ends the sessions that keep advance(resource, token) waiting; returns how many. Has a GRANT of its own. A prepared
-- transaction has no session: ROLLBACK PREPARED or COMMIT PREPARED ends it.
CREATE OR REPLACE FUNCTION pawl.evict(resource text, token bigint) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text; ended int; who text; fence bigint;
BEGIN
  PERFORM pawl._insist_on_primary();
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._insist_on_token(g, key, token);
  fence := pawl._fence(g, key);
  IF token < fence THEN PERFORM pawl._refuse(g, key, 'stale', token, fence); END IF;
  IF token = fence THEN RETURN 0; END IF;  -- Whoever holds it now holds it under this very token.
  who := pawl._describe(g, key);
  SELECT count(*) FILTER (WHERE pg_terminate_backend(b.pid)) INTO ended FROM (SELECT DISTINCT x.pid FROM pawl._blockers(g, key) x WHERE x.pid IS NOT NULL) b;
  IF ended > 0 THEN
    PERFORM pawl._log('evicted', g, resource, 'evict', token, fence);
    INSERT INTO pawl.audit (guard, what, after, reason) VALUES (g.name, 'evict', resource || ' for token ' || token, who);
  END IF;
  RETURN ended;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 12. The generated part: one trigger function per guard, and its triggers
--
-- Generated, so that the fast path has nothing to look up. It is ONE expression (each further one costs as much as the
-- check itself), evaluated from left to right: the token is the fence; the shared lock; and the statement sees who raised
-- it last. The last also says that the token *still* is the fence: whoever raises it notes its own transaction first, under
-- the exclusive lock that it keeps to its end. Had it raised after our look at the fence, then it was under way when our
-- snapshot was taken (before that look), so we do not see it. It needs no policy: an equal token is admitted in every
-- mode. A NULL anywhere ends in the slow path.
-- STABLE makes pg_current_snapshot() the snapshot of the statement that writes, which is what must be judged.

CREATE OR REPLACE FUNCTION pawl._generate_static(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fast text := format($f$
  IF pg_catalog.current_setting(%1$L, true) OPERATOR(pg_catalog.=) pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass)::pg_catalog.text
     AND pg_catalog.pg_try_advisory_xact_lock_shared(%3$s)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(%4$L::pg_catalog.regclass)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN RETURN NULL; END IF;$f$, g.setting, 'pawl.fence_' || g.id, g.lock_key, 'pawl.raiser_' || g.id);
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql STABLE AS $b$
BEGIN%2$s
  PERFORM pawl._on_statement(%1$s, pg_catalog.pg_current_snapshot());
  RETURN NULL;
END $b$ $f$, g.id, CASE g.equal WHEN 'accept' THEN fast END);
END $$;

CREATE OR REPLACE FUNCTION pawl._generate_row(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql AS $b$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    IF pg_catalog.current_setting(%2$L, true) OPERATOR(pg_catalog.=) OLD.pawl_token::pg_catalog.text
       AND OLD.%3$I::pg_catalog.text OPERATOR(pg_catalog.=) NEW.%3$I::pg_catalog.text
       AND pg_catalog.pg_try_advisory_xact_lock_shared(%4$s)
       AND OLD.pawl_token OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass), 1)
    THEN NEW.pawl_token := OLD.pawl_token; RETURN NEW; END IF;
    IF OLD.%3$I::pg_catalog.text OPERATOR(pg_catalog.=) NEW.%3$I::pg_catalog.text THEN
      NEW.pawl_token := pawl._row_stays(%1$s, OLD.%3$I::pg_catalog.text, OLD.pawl_token);
      RETURN NEW;
    END IF;
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT' AND TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    PERFORM pawl._row_leaves(%1$s, OLD.%3$I::pg_catalog.text, OLD.pawl_token);
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN RETURN OLD; END IF;
  END IF;
  IF TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    NEW.pawl_token := pawl._row_arrives(%1$s, NEW.%3$I::pg_catalog.text);
    RETURN NEW;
  END IF;
  PERFORM pawl._on_truncate(%1$s);
  RETURN NULL;
END $b$ $f$, g.id, g.setting, g.key, g.lock_key, 'pawl.fence_' || g.id);
END $$;

-- The expression is the owner's, and runs with a pinned search_path: functions of its own must be qualified.
CREATE OR REPLACE FUNCTION pawl._generate_by(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $b$
BEGIN
  CASE TG_OP
    WHEN 'INSERT' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT coalesce((%2$s)::text, '')) FROM pawl_new));
    WHEN 'DELETE' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT coalesce((%2$s)::text, '')) FROM pawl_old));
    WHEN 'UPDATE' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT k) FROM (
        SELECT coalesce((%2$s)::text, '') FROM pawl_old UNION SELECT coalesce((%2$s)::text, '') FROM pawl_new) AS both_tables(k)));
    ELSE PERFORM pawl._on_truncate(%1$s);
  END CASE;
  RETURN NULL;
END $b$ $f$, g.id, g.key);
END $$;

CREATE OR REPLACE FUNCTION pawl._generate(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE g.kind
    WHEN 'static' THEN PERFORM pawl._generate_static(g);
    WHEN 'row' THEN PERFORM pawl._generate_row(g);
    WHEN 'by' THEN PERFORM pawl._generate_by(g);
    WHEN 'keyed' THEN RETURN;
  END CASE;
  EXECUTE format('REVOKE ALL ON FUNCTION pawl.guard_%s() FROM PUBLIC', g.id);
END $$;

-- The triggers that each kind needs, as the text after CREATE OR REPLACE TRIGGER name. Row triggers come last among a
-- table's BEFORE triggers (they fire by name): what others do to the key must be judged too. On a partitioned table
-- PostgreSQL itself copies row triggers to the partitions.
CREATE OR REPLACE FUNCTION pawl._triggers(g pawl.guard)
RETURNS TABLE (name name, events text, how text)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.name::name, v.events, v.how FROM (VALUES
    ('static', 'pawl_guard',          'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 'FOR EACH STATEMENT'),
    ('row',    'zzz_pawl_guard',      'BEFORE INSERT OR UPDATE OR DELETE', 'FOR EACH ROW'),
    ('row',    'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT'),
    ('by',     'pawl_guard_insert',   'AFTER INSERT', 'REFERENCING NEW TABLE AS pawl_new FOR EACH STATEMENT'),
    ('by',     'pawl_guard_delete',   'AFTER DELETE', 'REFERENCING OLD TABLE AS pawl_old FOR EACH STATEMENT'),
    ('by',     'pawl_guard_update',   'AFTER UPDATE', 'REFERENCING OLD TABLE AS pawl_old NEW TABLE AS pawl_new FOR EACH STATEMENT'),
    ('by',     'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT')
  ) AS v(kind, name, events, how) WHERE v.kind = g.kind
$$;

-- A table and everything below it. A write through the root fires the root's statement triggers, a write straight into a
-- partition the partition's: both need them.
CREATE OR REPLACE FUNCTION pawl._family(root regclass) RETURNS TABLE (tbl regclass, is_root boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE family(oid) AS (
    SELECT root::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid)
  SELECT c.oid::regclass, c.oid = root FROM family f JOIN pg_class c ON c.oid = f.oid WHERE c.relkind IN ('r', 'p')
$$;

-- The protected roots of these tables, if they are partitions or have some.
CREATE OR REPLACE FUNCTION pawl._protected_above(tables oid[]) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE above(oid) AS (
    SELECT t FROM unnest(tables) t WHERE EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = t OR i.inhparent = t)
    UNION SELECT i.inhparent FROM pg_inherits i JOIN above a ON i.inhrelid = a.oid)
  SELECT p.tbl FROM pawl.protected p JOIN above a ON a.oid = p.tbl
$$;

-- Every trigger that should exist, and what there is of it: tgenabled, or NULL when it is missing. 'A' is right: ALWAYS,
-- also under session_replication_role = replica.
CREATE OR REPLACE FUNCTION pawl._coverage(only_root regclass DEFAULT NULL)
RETURNS TABLE (guard_id int, root regclass, tbl regclass, name name, events text, how text, enabled "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.id, p.tbl, f.tbl, t.name, t.events, t.how, x.tgenabled
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard
         CROSS JOIN LATERAL pawl._family(p.tbl) f
         CROSS JOIN LATERAL pawl._triggers(g) t
         LEFT JOIN pg_trigger x ON x.tgrelid = f.tbl AND x.tgname = t.name
               AND x.tgfoid = to_regprocedure(format('pawl.guard_%s()', g.id))
   WHERE p.tbl = coalesce(only_root, p.tbl)
$$;

-- Every trigger of a guard that there is, wherever it is. Copies that PostgreSQL made go with their original.
CREATE OR REPLACE FUNCTION pawl._own_triggers() RETURNS TABLE (guard_id int, tbl regclass, name name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT substr(p.proname, 7)::int, x.tgrelid::regclass, x.tgname FROM pg_trigger x JOIN pg_proc p ON p.oid = x.tgfoid
   WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ '^guard_[0-9]+$' AND x.tgparentid = 0
$$;

-- Puts one trigger of _coverage() in its place. It may be there by now: PostgreSQL copies row triggers from the root.
CREATE OR REPLACE FUNCTION pawl._put_trigger(guard_id int, tbl regclass, name name, events text, how text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger x WHERE x.tgrelid = tbl AND x.tgname = _put_trigger.name AND x.tgparentid <> 0) THEN
    EXECUTE format('CREATE OR REPLACE TRIGGER %I %s ON %s %s EXECUTE FUNCTION pawl.guard_%s()', name, events, tbl, how, guard_id);
  END IF;
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tbl, name);
END $$;

-- Puts triggers in their places: all of them, or those below one root. Returns how many were missing or not ALWAYS.
CREATE OR REPLACE FUNCTION pawl._cover(root regclass DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c record; mended int := 0;
BEGIN
  FOR c IN SELECT * FROM pawl._coverage(_cover.root) x WHERE x.enabled IS DISTINCT FROM 'A'
            ORDER BY x.root::oid, x.tbl <> x.root LOOP
    PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how);
    mended := mended + 1;
  END LOOP;
  RETURN mended;
END $$;

-- New and attached partitions get their triggers at once, where the installer may create event triggers. Only what is
-- missing in partitions: an owner who disables a trigger means it, and problems() says so.
CREATE OR REPLACE FUNCTION pawl._on_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('pawl.installing_version', true) <> '' THEN RETURN; END IF;  -- Half of it is not there yet.
  PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how)
     FROM pawl._protected_above(ARRAY(SELECT d.objid FROM pg_event_trigger_ddl_commands() d WHERE d.classid = 'pg_class'::regclass)) root
          CROSS JOIN LATERAL pawl._coverage(root) c WHERE c.enabled IS NULL AND c.tbl <> c.root;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 13. For owners: create_guard, protect, unprotect, drop_guard

CREATE OR REPLACE FUNCTION pawl._counters() RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$ SELECT '{replayed,stale,missing,ahead,malformed,would_refuse}'::pg_catalog.text[] $$;

CREATE OR REPLACE FUNCTION pawl._guard(guard text) RETURNS pawl.guard
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard;
BEGIN
  SELECT * INTO g FROM pawl.guard o WHERE o.name = _guard.guard;
  IF g.id IS NULL THEN
    RAISE EXCEPTION 'pawl: there is no guard %', coalesce(quote_literal(guard), 'NULL') USING ERRCODE = 'PW004', HINT = 'pawl.status lists them.';
  END IF;
  RETURN g;
END $$;

CREATE OR REPLACE FUNCTION pawl._create(guard text, kind text, key text, mode text) RETURNS pawl.guard
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; counter text;
  id int := nextval(pg_get_serial_sequence('pawl.guard', 'id'));
BEGIN
  IF guard IS NULL OR length(guard) NOT BETWEEN 1 AND 200 OR guard ~ '[:[:cntrl:]]' THEN
    RAISE EXCEPTION 'pawl: a guard''s name has 1 to 200 characters, without ":" and control characters' USING ERRCODE = '22023';
  END IF;
  FOREACH counter IN ARRAY ARRAY['fence', 'raiser', 'tightened', 'emergency'] LOOP
    EXECUTE format('CREATE SEQUENCE pawl.%I', counter || '_' || id);
    EXECUTE format('GRANT SELECT ON SEQUENCE pawl.%I TO PUBLIC', counter || '_' || id);
  END LOOP;
  FOREACH counter IN ARRAY pawl._counters() LOOP
    EXECUTE format('CREATE SEQUENCE pawl.%I', 'count_' || id || '_' || counter);
  END LOOP;
  INSERT INTO pawl.guard (id, name, kind, setting, lock_key, fence, raiser, tightened, emergency, key, mode)
    VALUES (id, guard, kind, pawl._setting(guard, id), hashtextextended('pawl ' || guard, 7295), format('pawl.fence_%s', id)::regclass,
            format('pawl.raiser_%s', id)::regclass, format('pawl.tightened_%s', id)::regclass, format('pawl.emergency_%s', id)::regclass, key, mode)
    RETURNING * INTO g;
  INSERT INTO pawl.audit (guard, what, after) VALUES (guard, 'create', concat_ws(' ', kind, key, mode));
  RETURN g;
END $$;

-- A guard without a table: for what admit() protects. Answers whether it was made; one of that name and kind may exist.
CREATE OR REPLACE FUNCTION pawl.create_guard(name text, keyed boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wanted text := CASE WHEN keyed THEN 'keyed' ELSE 'static' END;
  existing text := (SELECT g.kind FROM pawl.guard g WHERE g.name = create_guard.name);
BEGIN
  IF existing = wanted THEN RETURN false; END IF;
  IF existing IS NOT NULL THEN
    RAISE EXCEPTION 'pawl: the guard % exists, and is %, not %', quote_literal(name), existing, wanted USING ERRCODE = '42710';
  END IF;
  PERFORM pawl._create(name, wanted, NULL, 'observe');
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_table(tbl regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c record;
BEGIN
  SELECT r.relkind, r.relpersistence, n.nspname INTO c FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace WHERE r.oid = tbl;
  IF c.relkind IS NULL OR c.relkind NOT IN ('r', 'p') OR c.relpersistence = 't' THEN
    RAISE EXCEPTION 'pawl: % is not an ordinary table', tbl USING ERRCODE = '42809', HINT = 'Views need no guard of their own: their tables do.';
  END IF;
  IF c.nspname IN ('pg_catalog', 'information_schema', 'pawl') THEN
    RAISE EXCEPTION 'pawl: % cannot be put under guard', tbl USING ERRCODE = '42809';
  END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = tbl) THEN
    RAISE EXCEPTION 'pawl: % is a partition or a child: a write through % would pass it by', tbl,
      (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = tbl LIMIT 1)
      USING ERRCODE = '42809', HINT = 'Protect the root; its partitions follow.';
  END IF;
END $$;

-- row: the key must name one row, and the fence needs a column.
CREATE OR REPLACE FUNCTION pawl._prepare_row(tbl regclass, key text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                  WHERE i.indrelid = tbl AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
                    AND a.attname = key AND a.attnotnull) THEN
    RAISE EXCEPTION 'pawl: % of % is not a column that is NOT NULL and has a unique index of its own', quote_ident(key), tbl
      USING ERRCODE = '42830', HINT = 'protect(tbl, by => ''expression'') guards what several rows share.';
  END IF;
  IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = 'pawl_token' AND a.atttypid <> 'bigint'::regtype) THEN
    RAISE EXCEPTION 'pawl: % has a column pawl_token of its own', tbl USING ERRCODE = '42701';
  END IF;
  EXECUTE format('ALTER TABLE %s ADD COLUMN IF NOT EXISTS pawl_token bigint NOT NULL DEFAULT 0', tbl);
  EXECUTE format('COMMENT ON COLUMN %s.pawl_token IS %L', tbl, 'The fence of this row, kept by pawl; what others write here is ignored.');
END $$;

-- Puts a table under guard, and returns the guard's name. Doing it twice changes nothing.
CREATE OR REPLACE FUNCTION pawl.protect(tbl regclass, guard text DEFAULT NULL, key text DEFAULT NULL, by text DEFAULT NULL, mode text DEFAULT 'observe')
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind text := CASE WHEN key IS NOT NULL THEN 'row' WHEN by IS NOT NULL THEN 'by' ELSE 'static' END;
  g pawl.guard;
  present text := (SELECT o.name FROM pawl.protected p JOIN pawl.guard o ON o.id = p.guard WHERE p.tbl = protect.tbl);
BEGIN
  PERFORM pawl._insist_on_table(tbl);
  mode := coalesce(mode, 'observe');
  IF key IS NOT NULL AND by IS NOT NULL THEN RAISE EXCEPTION 'pawl: either key or by, not both' USING ERRCODE = '22023'; END IF;
  IF mode NOT IN ('observe', 'shadow', 'enforce') THEN
    RAISE EXCEPTION 'pawl: a new guard starts in observe, shadow or enforce' USING ERRCODE = '22023', HINT = 'pawl.set_mode() starts a canary.';
  END IF;
  guard := coalesce(guard, present, (SELECT CASE n.nspname WHEN 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END
                                       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl));
  IF present <> guard THEN
    RAISE EXCEPTION 'pawl: % is already under the guard %', tbl, quote_literal(present) USING ERRCODE = '42710', HINT = 'pawl.unprotect() first.';
  END IF;
  SELECT * INTO g FROM pawl.guard o WHERE o.name = protect.guard;
  IF g.id IS NULL THEN
    g := pawl._create(guard, kind, coalesce(key, by), mode);
  ELSIF g.kind <> kind OR g.key IS DISTINCT FROM coalesce(key, by) THEN
    RAISE EXCEPTION 'pawl: the guard % exists, and is %', quote_literal(guard), concat_ws(' ', g.kind, g.key) USING ERRCODE = '42710';
  ELSIF kind <> 'static' AND EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id AND p.tbl <> protect.tbl) THEN
    RAISE EXCEPTION 'pawl: the guard % has its table; only a guard with one fence is shared by several', quote_literal(guard) USING ERRCODE = '42710';
  ELSIF mode <> 'observe' AND mode <> g.mode THEN
    RAISE EXCEPTION 'pawl: the guard % exists, in mode %', quote_literal(guard), g.mode USING ERRCODE = '42710', HINT = 'pawl.set_mode() changes it.';
  END IF;
  IF kind = 'row' THEN PERFORM pawl._prepare_row(tbl, key); END IF;
  IF kind = 'by' THEN EXECUTE format('SELECT (%s)::text FROM %s LIMIT 0', by, tbl); END IF;
  PERFORM pawl._generate(g);
  IF present IS NULL THEN
    INSERT INTO pawl.protected (tbl, guard) VALUES (protect.tbl, g.id);
    INSERT INTO pawl.audit (guard, what, after) VALUES (g.name, 'protect', protect.tbl::text);
  END IF;
  PERFORM pawl._cover(protect.tbl);
  RETURN g.name;
END $$;

-- Takes a table out of its guard, or drops what a detached partition brought along. The guard stays, with its fence; so
-- does a row guard's column.
CREATE OR REPLACE FUNCTION pawl.unprotect(tbl regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  guard text; t record; dropped int := 0;
BEGIN
  DELETE FROM pawl.protected p USING pawl.guard o WHERE p.tbl = unprotect.tbl AND o.id = p.guard RETURNING o.name INTO guard;
  FOR t IN SELECT x.name, x.tbl FROM pawl._own_triggers() x WHERE x.tbl IN (SELECT f.tbl FROM pawl._family(unprotect.tbl) f) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.name, t.tbl);
    dropped := dropped + 1;
  END LOOP;
  IF guard IS NULL AND dropped = 0 THEN RAISE EXCEPTION 'pawl: % is not under guard', tbl USING ERRCODE = 'PW004'; END IF;
  INSERT INTO pawl.audit (guard, what, before) VALUES (guard, 'unprotect', unprotect.tbl::text);
  RETURN guard;
END $$;

-- Forgets a guard, its fences and its counters.
CREATE OR REPLACE FUNCTION pawl.drop_guard(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard := pawl._guard(name); counter text;
BEGIN
  IF EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id) THEN
    RAISE EXCEPTION 'pawl: tables are under the guard %', quote_literal(name) USING ERRCODE = '2BP01', HINT = 'pawl.unprotect() each of them first.';
  END IF;
  INSERT INTO pawl.audit (guard, what, before) VALUES (g.name, 'drop', concat_ws(' ', g.kind, g.mode, 'fence', pg_sequence_last_value(g.fence)));
  DELETE FROM pawl.keyed_fence f WHERE f.guard = g.id;
  DELETE FROM pawl.done d WHERE d.guard = g.id;
  DELETE FROM pawl.sightings s WHERE s.guard = g.name;
  DELETE FROM pawl.guard WHERE id = g.id;
  EXECUTE format('DROP FUNCTION IF EXISTS pawl.guard_%s()', g.id);
  FOREACH counter IN ARRAY ARRAY['fence', 'raiser', 'tightened', 'emergency'] LOOP EXECUTE format('DROP SEQUENCE pawl.%I', counter || '_' || g.id); END LOOP;
  FOREACH counter IN ARRAY pawl._counters() LOOP EXECUTE format('DROP SEQUENCE pawl.%I', 'count_' || g.id || '_' || counter); END LOOP;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 14. Policy: set_mode, set_policy, emergency, compact

-- Waits for the transactions that were let through under the policy so far, in slices as advance() does.
CREATE OR REPLACE FUNCTION pawl._close_passage(g pawl.guard, wait interval DEFAULT '5 s') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  deadline timestamptz := clock_timestamp() + wait;
BEGIN
  LOOP
    BEGIN
      PERFORM pg_advisory_xact_lock(7295, g.id);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() >= deadline THEN
        RAISE EXCEPTION 'pawl: the stricter policy of % waits for transactions that began under the old one', g.name
          USING ERRCODE = 'PW007', HINT = 'Nothing has changed. End them, or try again.',
                DETAIL = (SELECT coalesce(string_agg(pawl._spell_holder(h.pid, h.gid, h.role, h.application_name, h.since), '; '), 'nobody any more')
                            FROM pawl._holders(7295, g.id::oid, 2) h);
      END IF;
    END;
  END LOOP;
END $$;

-- How strict a mode is, as one number.
CREATE OR REPLACE FUNCTION pawl._strictness(mode text, percent int) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE mode WHEN 'observe' THEN 0 WHEN 'shadow' THEN 1 WHEN 'canary' THEN 1 + percent ELSE 102 END $$;

CREATE OR REPLACE FUNCTION pawl.set_mode(guard text, mode text, percent int DEFAULT NULL, reason text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(set_mode.guard);
BEGIN
  IF set_mode.mode IS NULL OR NOT set_mode.mode = ANY (pawl._modes()) THEN
    RAISE EXCEPTION 'pawl: a mode is observe, shadow, canary or enforce' USING ERRCODE = '22023';
  END IF;
  IF (set_mode.mode = 'canary') <> (set_mode.percent IS NOT NULL) OR set_mode.percent NOT BETWEEN 1 AND 100 THEN
    RAISE EXCEPTION 'pawl: canary needs a percentage from 1 to 100, and the other modes take none' USING ERRCODE = '22023';
  END IF;
  IF pawl._strictness(set_mode.mode, set_mode.percent) > pawl._strictness(pawl._mode(g), g.percent) THEN
    PERFORM pawl._close_passage(g);
    PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint);
  END IF;
  UPDATE pawl.guard o SET mode = set_mode.mode, percent = set_mode.percent, mode_since = clock_timestamp(),
                          would_refuse_before = pawl._counted(g.id, 'would_refuse')
   WHERE o.id = g.id;
  PERFORM setval(g.emergency, 1);
  INSERT INTO pawl.audit (guard, what, before, after, reason)
    VALUES (g.name, 'mode', concat_ws(' ', pawl._mode(g), CASE WHEN pawl._mode(g) = 'canary' THEN g.percent END),
            concat_ws(' ', set_mode.mode, set_mode.percent), set_mode.reason);
END $$;

-- What is NULL stays as it is.
CREATE OR REPLACE FUNCTION pawl.set_policy(guard text, require_token boolean DEFAULT NULL, equal text DEFAULT NULL, max_step bigint DEFAULT NULL,
                                           bare_token text DEFAULT NULL, reason text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(set_policy.guard);
  after pawl.guard;
BEGIN
  IF set_policy.equal <> 'accept' AND g.kind IN ('row', 'by') THEN
    RAISE EXCEPTION 'pawl: a % guard admits an equal token; give each operation a number instead', g.kind
      USING ERRCODE = '0A000', HINT = 'SELECT pawl.use(resource, token, op).';
  END IF;
  PERFORM pawl._close_passage(g);
  IF set_policy.equal <> g.equal AND g.kind = 'static' THEN  -- Those that the fast path admitted, or would on an old snapshot.
    PERFORM pg_advisory_xact_lock(g.lock_key);
    PERFORM setval(g.raiser, pg_current_xact_id()::text::bigint) WHERE pg_sequence_last_value(g.fence) IS NOT NULL;
  END IF;
  PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint);
  UPDATE pawl.guard o SET require_token = coalesce(set_policy.require_token, o.require_token), equal = coalesce(set_policy.equal, o.equal),
                          max_step = coalesce(set_policy.max_step, o.max_step), bare_token = coalesce(set_policy.bare_token, o.bare_token)
   WHERE o.id = g.id RETURNING * INTO after;
  IF after.equal <> g.equal THEN PERFORM pawl._generate(after); END IF;
  INSERT INTO pawl.audit (guard, what, before, after, reason)
    SELECT g.name, 'policy', pawl._spell_policy(g), pawl._spell_policy(after), set_policy.reason;
END $$;

CREATE OR REPLACE FUNCTION pawl._spell_policy(g pawl.guard) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('require_token=%s equal=%s max_step=%s bare_token=%s', g.require_token, g.equal, g.max_step, g.bare_token)
$$;

-- Back to shadow, at once. A sequence is the switch: it waits for no open transaction, not even for an uncommitted set_mode(),
-- and is seen by transactions of every isolation level. set_mode() turns it off again.
CREATE OR REPLACE FUNCTION pawl.emergency(reason text, guard text DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard; switched int := 0;
BEGIN
  IF emergency.guard IS NOT NULL THEN PERFORM pawl._guard(emergency.guard); END IF;
  FOR g IN SELECT o.* FROM pawl.guard o WHERE emergency.guard IS NULL OR o.name = emergency.guard ORDER BY o.id LOOP
    CONTINUE WHEN pawl._mode(g) NOT IN ('canary', 'enforce');
    PERFORM setval(g.emergency, 2);
    PERFORM pawl._log('emergency', g, g.name, 'emergency', NULL, NULL);
    INSERT INTO pawl.audit (guard, what, before, after, reason) VALUES (g.name, 'emergency', g.mode, 'shadow', emergency.reason);
    switched := switched + 1;
  END LOOP;
  RETURN switched;
END $$;

-- Forgets what no live token needs: fences of keys, tombstones and operations below a token. The floor of the guard
-- rises instead, so that what is forgotten stays refused. Returns how many rows went.
CREATE OR REPLACE FUNCTION pawl.compact(guard text, below bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(compact.guard);
  greatest_known bigint := (SELECT max(f.token) FROM pawl.keyed_fence f WHERE f.guard = g.id);
  dropped bigint := 0; more bigint;
BEGIN
  PERFORM pawl._insist_on_token(g, '', below);
  IF g.kind <> 'static' THEN
    IF pawl._verdict(below, greatest(greatest_known, pg_sequence_last_value(g.fence)), g.max_step) = 'ahead' THEN
      PERFORM pawl._raise('ahead', g.name, below, greatest_known, pawl._mode(g));
    END IF;
    PERFORM set_config('lock_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock(g.lock_key);
    IF below > coalesce(pg_sequence_last_value(g.fence), 0) THEN PERFORM pawl._raise_fence(g, below); END IF;
    DELETE FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.token < below;
    GET DIAGNOSTICS dropped = ROW_COUNT;
  END IF;
  DELETE FROM pawl.done d WHERE d.guard = g.id AND d.token < least(below, CASE g.kind WHEN 'static' THEN pg_sequence_last_value(g.fence) END);
  GET DIAGNOSTICS more = ROW_COUNT;
  IF dropped + more > 0 THEN
    INSERT INTO pawl.audit (guard, what, after) VALUES (g.name, 'compact', format('below %s: %s rows', below, dropped + more));
  END IF;
  RETURN dropped + more;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 15. What people look at: status, refusals, sightings, problems, readiness

CREATE OR REPLACE FUNCTION pawl._ring()
RETURNS TABLE (at timestamptz, guard_id int, key text, verdict text, token bigint, max bigint, mode text, login text, application_name text, pid int, query_hash bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH slots AS MATERIALIZED (
    SELECT slot, array_agg(pg_sequence_last_value(format('pawl.ring_%s_%s', slot, field)::regclass) ORDER BY field) AS f
      FROM generate_series(0, 15) slot, generate_series(0, 10) field GROUP BY slot)
  SELECT to_timestamp(f[1] / 1000000.0), (f[2] / 1000000000)::int, pawl._unpiece(f[9:11]), (pawl._verdicts())[(f[2] / 100000000) % 10], nullif(f[3], 0), nullif(f[4], 0),
         (pawl._modes())[(f[2] / 10000000) % 10], coalesce((SELECT r.rolname::text FROM pg_roles r WHERE r.oid = (f[5] >> 31)::oid), ''),
         pawl._unpiece(f[6:8]), (f[2] % 10000000)::int, f[5] & 2147483647
    FROM slots WHERE f[1] IS NOT NULL AND array_position(f, NULL) IS NULL
$$;

-- The last 16 refusals, although each was rolled back. The full text of each is in the server's log ('pawl: refused').
-- Names are cut to 21 characters.
CREATE OR REPLACE VIEW pawl.refusals AS
  SELECT r.at, g.name AS guard, CASE g.kind WHEN 'static' THEN g.name ELSE g.name || ':' || r.key END AS resource, r.verdict, r.token, r.max,
         r.mode, r.login, r.application_name, r.pid, r.query_hash
    FROM pawl._ring() r JOIN pawl.guard g ON g.id = r.guard_id ORDER BY r.at DESC;

-- Who still writes without a token: pawl.sightings, summed up per writer and statement.
CREATE OR REPLACE VIEW pawl.tokenless_writers AS
  SELECT s.guard, s.login, s.role, s.application_name, s.statement, count(*) AS count, max(s.at) AS last_seen, min(s.at) AS first_seen,
         array_agg(DISTINCT s.addr) FILTER (WHERE s.addr IS NOT NULL) AS addrs
    FROM pawl.sightings s GROUP BY s.guard, s.login, s.role, s.application_name, s.statement ORDER BY max(s.at) DESC;

CREATE OR REPLACE FUNCTION pawl._status()
RETURNS TABLE (guard text, kind text, tables text[], mode text, percent int, require_token boolean, equal text, max_step bigint, bare_token text,
               fence bigint, floor bigint, replayed bigint, stale bigint, missing bigint, ahead bigint, malformed bigint, would_refuse bigint,
               last_refusal timestamptz, mode_since timestamptz, emergency boolean, setting text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.name, g.kind, ARRAY(SELECT p.tbl::text FROM pawl.protected p WHERE p.guard = g.id ORDER BY 1), pawl._mode(g),
         CASE WHEN pawl._mode(g) = 'canary' THEN g.percent END, g.require_token, g.equal, g.max_step, g.bare_token,
         CASE g.kind WHEN 'static' THEN pg_sequence_last_value(g.fence) END,
         CASE WHEN g.kind <> 'static' THEN pg_sequence_last_value(g.fence) END,
         pawl._counted(g.id, 'replayed'), pawl._counted(g.id, 'stale'), pawl._counted(g.id, 'missing'), pawl._counted(g.id, 'ahead'),
         pawl._counted(g.id, 'malformed'), pawl._counted(g.id, 'would_refuse'),
         (SELECT max(r.at) FROM pawl._ring() r WHERE r.guard_id = g.id), g.mode_since, pawl._mode(g) <> g.mode, g.setting
    FROM pawl.guard g
$$;

-- One line per guard. Counters grow only; admitted writes are not counted, because that would cost each of them.
CREATE OR REPLACE VIEW pawl.status AS SELECT * FROM pawl._status() ORDER BY guard;

-- Whether a mark comes from another cluster: then it lies in the future of this one.
CREATE OR REPLACE FUNCTION pawl._is_foreign(mark regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_xact_status(pg_sequence_last_value(mark)::text::xid8);
  RETURN false;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN true;
END $$;

-- What keeps the guards from doing their work, and what to do about it. Empty: healthy.
CREATE OR REPLACE FUNCTION pawl.problems() RETURNS TABLE (severity text, guard text, object text, problem text, fix text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH coverage AS MATERIALIZED (SELECT * FROM pawl._coverage())
  SELECT 'error', g.name, c.tbl::text,
         CASE WHEN c.enabled IS NULL AND c.tbl <> c.root THEN format('partition without the trigger %s: writes straight into it are not judged', c.name)
              WHEN c.enabled IS NULL THEN format('the trigger %s is missing: writes are not judged', c.name)
              WHEN c.enabled = 'D' THEN format('the trigger %s is disabled: writes are not judged', c.name)
              ELSE format('the trigger %s is not ALWAYS: session_replication_role = replica passes it by', c.name) END,
         'SELECT pawl.repair()'
    FROM coverage c JOIN pawl.guard g ON g.id = c.guard_id WHERE c.enabled IS DISTINCT FROM 'A'
  UNION ALL
  SELECT 'error', g.name, p.tbl::text, 'the table is gone, its entry is not', format('SELECT pawl.unprotect(%s)', p.tbl::oid)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = p.tbl)
  UNION ALL
  SELECT DISTINCT 'warning', g.name, x.tbl::text, 'a table that is no longer under this guard (detached?) still has its trigger', format('SELECT pawl.unprotect(%L)', x.tbl)
    FROM pawl._own_triggers() x LEFT JOIN pawl.guard g ON g.id = x.guard_id
   WHERE NOT EXISTS (SELECT FROM coverage c WHERE c.guard_id = x.guard_id AND c.tbl = x.tbl)
  UNION ALL
  SELECT 'warning', g.name, p.tbl::text, 'new partitions are not guarded by themselves: the event trigger is missing or not ALWAYS',
         'install again as a superuser, or SELECT pawl.repair() after each new partition'
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard JOIN pg_class c ON c.oid = p.tbl
   WHERE (c.relkind = 'p' OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = p.tbl))
     AND NOT EXISTS (SELECT FROM pg_event_trigger e WHERE e.evtname = 'pawl_partitions' AND e.evtenabled = 'A')
  UNION ALL
  SELECT 'warning', g.name, s.srrelid::regclass::text, 'a subscription writes here: logical replication applies changes without asking a guard',
         'guard the publisher''s table'
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard CROSS JOIN LATERAL pawl._family(p.tbl) f JOIN pg_subscription_rel s ON s.srrelid = f.tbl
  UNION ALL
  SELECT 'warning', g.name, NULL, 'the emergency switch is on: nothing is refused', format('SELECT pawl.set_mode(%L, %L)', g.name, g.mode)
    FROM pawl.guard g WHERE pawl._mode(g) <> g.mode
  UNION ALL
  SELECT 'warning', NULL, NULL, 'restored into another cluster: tokens granted since the backup are unknown here, and fences may be too low',
         'advance each guard to a token of a new lease, then SELECT pawl.adopt()'
    FROM pawl.installation i WHERE i.cluster <> (pg_control_system()).system_identifier
  UNION ALL
  SELECT 'warning', g.name, NULL, 'the fence was raised in another cluster: the first REPEATABLE READ transaction ends in 40001 once', 'SELECT pawl.adopt()'
    FROM pawl.guard g WHERE pawl._is_foreign(g.raiser) OR pawl._is_foreign(g.tightened)
  UNION ALL
  SELECT 'warning', NULL, NULL, 'this server is a replica: only check() and fence() answer here', 'ask the primary' WHERE pg_is_in_recovery()
  UNION ALL
  SELECT 'error', NULL, NULL, 'fsync is off: an acknowledged advance() does not survive a crash', 'set fsync = on' WHERE current_setting('fsync') = 'off'
$$;

-- Puts missing triggers back, and those that a restore left in another state. Returns how many.
CREATE OR REPLACE FUNCTION pawl.repair() RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._generate(g) FROM pawl.guard g;
  RETURN pawl._cover();
END $$;

-- After a restore into another cluster: this is home now. Transaction ids noted in the old one mean nothing here.
CREATE OR REPLACE FUNCTION pawl.adopt() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard;
BEGIN
  FOR g IN SELECT * FROM pawl.guard ORDER BY id LOOP
    PERFORM setval(g.raiser, pg_current_xact_id()::text::bigint);
    PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint);
  END LOOP;
  UPDATE pawl.installation SET cluster = (pg_control_system()).system_identifier;
  INSERT INTO pawl.audit (what, after) VALUES ('adopt', (pg_control_system()).system_identifier::text);
END $$;

-- Ready to enforce, or not yet, because …
CREATE OR REPLACE FUNCTION pawl.readiness(guard text, OUT ready boolean, OUT because text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard := pawl._guard(readiness.guard);
  would bigint := pawl._counted(g.id, 'would_refuse') - g.would_refuse_before;
  fences boolean := pg_sequence_last_value(g.fence) IS NOT NULL OR EXISTS (SELECT FROM pawl.keyed_fence f WHERE f.guard = g.id);
  in_rows boolean := false;
BEGIN
  because := ARRAY(SELECT format('%s%s', coalesce(p.object || ': ', ''), p.problem) FROM pawl.problems() p
                    WHERE p.severity = 'error' AND coalesce(p.guard, g.name) = g.name);
  IF pawl._mode(g) = 'observe' THEN
    because := because || 'the mode is observe, which judges nothing: run in shadow first'::text;
  END IF;
  IF g.kind = 'row' AND pawl._key_type(g) IS NOT NULL THEN
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE pawl_token > 0)', (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id)) INTO in_rows;
  END IF;
  IF NOT fences AND NOT in_rows THEN
    because := because || 'no token has been seen yet: nobody writes with one'::text;
  END IF;
  because := because || ARRAY(
    SELECT format('%s as %s writes without a token: %s (last seen %s)', coalesce(nullif(s.application_name, ''), 'an unnamed program'), s.login, s.statement,
                  to_char(max(s.at), 'YYYY-MM-DD HH24:MI:SS'))
      FROM pawl.sightings s WHERE s.guard = g.name AND s.at >= g.mode_since
     GROUP BY s.application_name, s.login, s.statement ORDER BY max(s.at) DESC LIMIT 20);
  IF would > 0 AND pawl._mode(g) <> 'enforce' THEN
    because := because || format('%s writes would have been refused since %s', would, to_char(g.mode_since, 'YYYY-MM-DD HH24:MI:SS'));
  END IF;
  ready := cardinality(because) = 0;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 16. Who may do what, and what an upgrade brings up to date

-- Nothing is anybody's by default, except what a trigger needs in the hands of whoever writes: a guard in observe must
-- not stop a writer for lack of a right. Policy functions run with their owner's rights, so that an owner can hand out
-- one of them: GRANT EXECUTE ON FUNCTION pawl.emergency TO oncall.
DO $$
DECLARE
  writers text := (SELECT CASE upper(i.writers) WHEN 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(i.writers) END FROM pawl.installation i);
  f record;
BEGIN
  GRANT USAGE ON SCHEMA pawl TO PUBLIC;
  FOR f IN SELECT p.oid::regprocedure AS signature, p.proname AS name FROM pg_proc p
            WHERE p.pronamespace = 'pawl'::regnamespace AND p.prokind = 'f' LOOP
    IF f.name IN ('version', 'contract', '_on_statement', '_row_stays', '_row_leaves', '_row_arrives', '_on_keys', '_on_truncate', '_status', 'fence', 'check') THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.signature);
    ELSIF f.name IN ('use', 'admit', 'advance', 'blockers', '_admit', '_insist_on_op') THEN
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f.signature, writers);
    ELSE
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.signature);
    END IF;
  END LOOP;
  GRANT SELECT ON pawl.guard, pawl.status TO PUBLIC;
END $$;

DO $$ BEGIN PERFORM pawl.repair(); END $$;

DO $$
BEGIN
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    DROP EVENT TRIGGER IF EXISTS pawl_partitions;
    CREATE EVENT TRIGGER pawl_partitions ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'ALTER TABLE')
      EXECUTE FUNCTION pawl._on_ddl();
    ALTER EVENT TRIGGER pawl_partitions ENABLE ALWAYS;
  END IF;
END $$;

COMMIT;
