-- What the triggers of protected tables call. The generated trigger functions run with the rights of the guard's owner,
-- and so do these: no writer may call them, or it would move fences without a write.

-- A statement on a table under a static guard. `statement` is its snapshot.
CREATE OR REPLACE FUNCTION pawl._on_statement(guard_id int, statement pg_snapshot) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._decide(guard_id, '', NULL, NULL, statement, true, NULL);
END $$;

-- Judges a write to a row: the new value of its fence. A write that is let through does not move it.
CREATE OR REPLACE FUNCTION pawl._judge_row(guard_id int, key text, fence bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found record;
BEGIN
  SELECT * INTO found FROM pawl._decide(guard_id, key, NULL, NULL, NULL, true, fence);
  RETURN CASE found.verdict WHEN 'admitted' THEN found.token ELSE fence END;
END $$;

-- Whether a key's fence may be locked and written: a guard that refuses nothing must neither wait nor fail.
CREATE OR REPLACE FUNCTION pawl._may_hold(guard_id int, key text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._enter(guard_id);  -- As _decide() does: then the policy stays.
  RETURN coalesce((SELECT pawl._enforced(g, pawl._resource(g, _may_hold.key)) FROM pawl.guard g WHERE g.id = guard_id), false);
END $$;

-- The fence of a row that is written: its own, or the one that is kept for its key, if that is greater. It is where a write
-- was admitted that did not reach the row (ON CONFLICT DO NOTHING), or the row came from elsewhere. The row is locked, and so does
-- whoever raises the other one; an older snapshot must run into it, unless nothing is refused.
CREATE OR REPLACE FUNCTION pawl._row_fence(guard_id int, key text, in_row bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kept bigint;
BEGIN
  IF pawl._read_committed() THEN
    SELECT f.token INTO kept FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = _row_fence.key;
  ELSIF pawl._may_hold(guard_id, key) THEN
    kept := pawl._lock_fence(guard_id, key);
    PERFORM pawl._keep_fence(guard_id, key, kept);
  END IF;
  RETURN greatest(in_row, kept, 0);
END $$;

-- Whether two rows can have one key: the table has lost its unique index, or has children (not partitions), which have indexes of
-- their own. Asked for each row whose fence is not its token; so a no is remembered as long as nothing else was committed.
CREATE OR REPLACE FUNCTION pawl._key_is_shared(guard_id int) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t oid; k text; now text := pg_current_snapshot()::text;
BEGIN
  IF current_setting(concat('pawl.unique._', guard_id), true) = now THEN RETURN false; END IF;
  SELECT p.tbl, g.key INTO t, k FROM pawl.guard g JOIN pawl.protected p ON p.guard = g.id WHERE g.id = guard_id;
  IF (SELECT c.relhassubclass AND c.relkind = 'r' FROM pg_class c WHERE c.oid = t)
     OR NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                     WHERE i.indrelid = t AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = k) THEN
    RETURN true;
  END IF;
  PERFORM set_config(concat('pawl.unique._', guard_id), now, true);
  RETURN false;
END $$;

-- A row stays: the new value of its fence. Where others may have its key, the fence that is kept for the key rises, too, and
-- they are locked: each of them looks at that one before it is written.
CREATE OR REPLACE FUNCTION pawl._row_stays(guard_id int, key text, in_row bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found bigint;
BEGIN
  IF pawl._key_is_shared(guard_id) AND pawl._may_hold(guard_id, key) THEN
    found := pawl._lock_fence(guard_id, key);
    found := pawl._judge_row(guard_id, key, greatest(found, in_row, pawl._hold_rows(guard_id, key)));
    PERFORM pawl._keep_fence(guard_id, key, found);
    RETURN found;
  END IF;
  RETURN pawl._judge_row(guard_id, key, pawl._row_fence(guard_id, key, in_row));
END $$;

-- Locks the rows that have this key already (an upsert, a child table, a table that has lost its unique index), and returns the
-- greatest of their fences, or NULL.
CREATE OR REPLACE FUNCTION pawl._hold_rows(guard_id int, key text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; tbl regclass; in_row bigint; most bigint;
BEGIN
  SELECT * INTO STRICT g FROM pawl.guard o WHERE o.id = guard_id;
  tbl := pawl._table_of(g);
  IF tbl IS NULL THEN RETURN NULL; END IF;  -- Of a detached partition, whose guard has no other table.
  FOR in_row IN EXECUTE format('SELECT pawl_token FROM %s WHERE %s FOR NO KEY UPDATE', tbl, pawl._is_key(g, key)) LOOP
    most := greatest(most, in_row);
  END LOOP;
  RETURN most;
END $$;

-- A row goes: its fence must not go with it. (Where nothing is refused and the snapshot may be old, it is not kept: that
-- could end in 40001.)
CREATE OR REPLACE FUNCTION pawl._row_leaves(guard_id int, key text, fence bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kept bigint := pawl._row_stays(guard_id, key, fence);
BEGIN
  IF kept = 0 OR key IS NULL OR NOT (pawl._read_committed() OR pawl._may_hold(guard_id, key)) THEN RETURN; END IF;
  INSERT INTO pawl.keyed_fence AS f (guard, key, token) VALUES (guard_id, _row_leaves.key, kept)
    ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = greatest(f.token, excluded.token);
END $$;

-- A row comes: it takes over the fence of the row that had this key before. The entry stays, also when it equals
-- the row: a transaction whose snapshot does not show the row must run into it. compact() takes it away.
CREATE OR REPLACE FUNCTION pawl._row_arrives(guard_id int, key text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found bigint;
BEGIN
  IF pawl._may_hold(guard_id, key) THEN
    found := pawl._lock_fence(guard_id, key);  -- First, as _admit_row() does.
    found := pawl._judge_row(guard_id, key, greatest(found, pawl._hold_rows(guard_id, key)));
    PERFORM pawl._keep_fence(guard_id, key, found);
    RETURN found;
  END IF;
  SELECT f.token INTO found FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = _row_arrives.key;
  found := pawl._judge_row(guard_id, key, coalesce(found, 0));
  IF found > 0 AND key IS NOT NULL THEN PERFORM pawl._raise_keyed_if_free(g, _row_arrives.key, found) FROM pawl.guard g WHERE g.id = guard_id; END IF;
  RETURN found;
END $$;

-- The resources that a statement on a table guarded `by` an expression has touched. When all stand at the token carried,
-- one locking read is enough; it neither waits nor fails, so it needs no policy. (The CTE must be MATERIALIZED: a condition
-- pushed into it would lock only what matches.)
CREATE OR REPLACE FUNCTION pawl._on_keys(guard_id int, setting text, lock_key bigint, floor regclass, keys text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  k text; at_token bigint; plain bigint; carried text := current_setting(setting, true);
BEGIN
  IF cardinality(keys) IS NULL OR cardinality(keys) = 0 THEN RETURN; END IF;
  IF left(carried, 1) = '{' AND cardinality(keys) = 1 THEN carried := carried::jsonb ->> keys[1]; END IF;
  plain := CASE WHEN carried ~ '^[1-9][0-9]{0,15}$' THEN carried::bigint END;
  IF plain IS NOT NULL AND plain >= coalesce(pg_sequence_last_value(floor), 0) AND pawl._read_committed() AND pg_try_advisory_xact_lock_shared(lock_key)
     AND plain >= coalesce(pg_sequence_last_value(floor), 0)
     AND (current_setting(concat('pawl.used._', guard_id), true) = '1' OR pawl._remember(guard_id)) THEN
    WITH held AS MATERIALIZED (
      SELECT f.token FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.key = ANY (keys) ORDER BY f.key COLLATE "C" FOR SHARE SKIP LOCKED)
    SELECT count(*) INTO at_token FROM held WHERE held.token = plain;
    IF at_token = cardinality(keys) THEN RETURN; END IF;
  END IF;
  FOR k IN SELECT u FROM unnest(keys) u ORDER BY u COLLATE "C" LOOP
    PERFORM pawl._decide(guard_id, k, NULL, NULL, NULL, true, NULL);
  END LOOP;
END $$;

-- by: the expression has failed for a row, and so it has no key. Whether that must fail the write; a guard that refuses nothing does
-- not, and readiness() tells.
CREATE OR REPLACE FUNCTION pawl._without_key(guard_id int, why text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard;
BEGIN
  PERFORM pawl._enter(guard_id);
  SELECT * INTO g FROM pawl.guard o WHERE o.id = guard_id;
  IF g.id IS NULL THEN
    PERFORM pawl._insist_on_younger_guard(guard_id);
    RETURN false;
  END IF;
  IF pawl._mode(g) IN ('canary', 'enforce') THEN RETURN true; END IF;
  RAISE WARNING 'pawl: a row has no key for the guard %, which would fail this write under enforce: %', g.name, why;
  IF pawl._read_committed() AND current_setting('transaction_read_only') = 'off'
     AND NOT EXISTS (SELECT FROM pawl.sightings s WHERE s.guard = g.name AND s.fingerprint = 'no key' AND s.login = session_user
                        AND s.at > greatest(g.mode_since, clock_timestamp() - interval '1 minute')) THEN
    INSERT INTO pawl.sightings (guard, login, role, application_name, addr, pid, fingerprint, statement)
      VALUES (g.name, session_user, current_setting('role'), current_setting('application_name'), inet_client_addr(), pg_backend_pid(), 'no key', left(why, 500));
  END IF;
  RETURN false;
END $$;

-- TRUNCATE of a table with a fence per key touches them all, so it needs a token for all (SET LOCAL pawl.token.orders =
-- 34), not less than any of them. First every row's fence is kept, and locked; then they are judged; then they rise.
-- Where nothing is refused, nothing is locked. `keys`: those in the table, where its owner computes them.
CREATE OR REPLACE FUNCTION pawl._on_truncate(guard_id int, keys text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; tbl regclass; fence bigint; admitted bigint; enforced boolean;
BEGIN
  PERFORM pawl._enter(guard_id);
  SELECT * INTO g FROM pawl.guard WHERE id = guard_id;
  IF g.id IS NULL THEN
    PERFORM pawl._insist_on_younger_guard(guard_id);
    RETURN;
  END IF;
  enforced := coalesce(pawl._enforced(g, g.name), true);
  SELECT p.tbl INTO tbl FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl AND c.relkind IN ('r', 'p') WHERE p.guard = guard_id;
  IF keys IS NOT NULL THEN
    INSERT INTO pawl.keyed_fence AS f (guard, key, token) SELECT guard_id, u, 0 FROM unnest(keys) u ORDER BY u COLLATE "C"
      ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = f.token;
  ELSIF tbl IS NOT NULL AND (g.kind = 'row' OR NOT pawl._is_computed(g)) AND (enforced OR pawl._read_committed()) THEN
    EXECUTE format('INSERT INTO pawl.keyed_fence AS f (guard, key, token)
                    SELECT $1, k.key, max(k.token) FROM (SELECT %s, %s FROM %s) AS k(key, token) GROUP BY k.key %s ORDER BY k.key COLLATE "C"
                    ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = greatest(f.token, excluded.token)',
                   CASE g.kind WHEN 'row' THEN format('coalesce(%s, '''')', pawl._spelled(quote_ident(g.key), g.key_type)) ELSE pawl._key_sql(g) END,
                   CASE g.kind WHEN 'row' THEN 'pawl_token' ELSE '0' END, tbl,
                   CASE WHEN enforced THEN '' ELSE 'HAVING max(k.token) > 0' END) USING guard_id;
  END IF;
  SELECT max(f.token) INTO fence FROM pawl.keyed_fence f WHERE f.guard = guard_id;
  admitted := pawl._decide_all(g, fence, enforced);
  IF enforced THEN
    UPDATE pawl.keyed_fence f SET token = admitted WHERE f.guard = guard_id AND f.token < admitted;
    DELETE FROM pawl.keyed_fence f WHERE f.guard = guard_id AND f.token = 0;
  END IF;
END $$;

-- Returns the token if it is admitted for every key, and NULL if the statement is let through.
CREATE OR REPLACE FUNCTION pawl._decide_all(g pawl.guard, fence bigint, enforced boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried text := pawl._carried(g, NULL);
  max bigint := nullif(greatest(fence, pg_sequence_last_value(g.fence)), 0);
  token bigint := pawl._token(carried);
  verdict text := CASE WHEN carried IS NOT NULL AND pawl._is_replayed(g, NULL) THEN 'replayed' WHEN carried IS NOT NULL AND token IS NULL THEN 'malformed' ELSE pawl._verdict(token, max, g.max_step) END;
  refusable boolean;
BEGIN
  IF carried IS NOT NULL THEN PERFORM pawl._remember(g.id); END IF;
  IF verdict = 'admitted' THEN
    -- An older snapshot shows neither the rows nor the fences of those who came since.
    IF enforced AND NOT pawl._read_committed() THEN
      RAISE EXCEPTION 'pawl: TRUNCATE under the guard % in a transaction that is not READ COMMITTED', g.name
        USING ERRCODE = 'PW006', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED for it.';
    END IF;
    IF NOT enforced THEN PERFORM pawl._insist_on_fresh_policy(g); END IF;
    RETURN token;
  END IF;
  IF verdict = 'missing' AND current_query() IS NULL AND pawl._is_replicated() THEN RETURN NULL; END IF;
  refusable := verdict <> 'missing' OR g.require_token OR pawl._remembers(g);
  IF refusable AND enforced THEN PERFORM pawl._refuse(g, NULL, verdict, token, max); END IF;
  PERFORM pawl._insist_on_fresh_policy(g);
  PERFORM pawl._let_through(g, NULL, verdict, token, max, refusable);
  RETURN NULL;
END $$;
