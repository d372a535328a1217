-- The functions that the triggers of protected tables call.

-- Every writer must be able to run these, because a trigger calls them with the writer's privileges. Called by hand they
-- would move fences without a write.
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

-- A row comes: it takes over the fence of the row that had this key before. The entry stays, also when it equals
-- the row: a transaction whose snapshot does not show the row must run into it. compact() takes it away.
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
