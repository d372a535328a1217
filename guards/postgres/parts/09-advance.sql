-- The interface for a new holder: advance, blockers, evict.

-- The holders of a guard's advisory lock. A prepared transaction holds it without a process: it has a gid and no pid.
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

-- The holders of a row's lock, given its xmax: one transaction, or the members of a multixact.
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
  tbl regclass;
BEGIN
  IF g.kind = 'static' THEN
    RETURN QUERY SELECT * FROM pawl._lock_holders(g);
    RETURN;
  END IF;
  SELECT f.xmax INTO lock FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _blockers.key;
  RETURN QUERY SELECT * FROM pawl._row_holders(lock) WHERE lock IS NOT NULL;
  IF g.kind = 'row' THEN tbl := pawl._table_of(g); END IF;
  IF tbl IS NOT NULL THEN
    EXECUTE format('SELECT xmax FROM %s WHERE %s', tbl, pawl._is_key(g, _blockers.key)) INTO lock;
    RETURN QUERY SELECT * FROM pawl._row_holders(lock) WHERE lock IS NOT NULL;
  END IF;
END $$;

-- The transactions that advance() would wait for. Statements are shown to callers that may see them anyway.
CREATE OR REPLACE FUNCTION pawl.blockers(resource text)
RETURNS TABLE (pid int, gid text, role text, application_name text, since timestamptz, query text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.pid, b.gid, b.role, b.application_name, b.since,
         CASE WHEN b.role = session_user OR pg_has_role(session_user, 'pg_read_all_stats', 'USAGE') THEN b.query END
    FROM pawl._find(resource) f, LATERAL (SELECT DISTINCT * FROM pawl._blockers(f.g, f.key)) b
$$;

CREATE OR REPLACE FUNCTION pawl._spell_holder(pid int, gid text, role text, application_name text, since timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT concat_ws(' ', 'pid=' || pid::text, 'gid=' || quote_literal(gid), 'role=' || role, 'application_name=' || quote_literal(application_name), 'since=' || since)
$$;

-- The blockers as text. The lock of the first holder of a new key cannot be looked up; then it is one of those
-- under the guard.
CREATE OR REPLACE FUNCTION pawl._describe(g pawl.guard, key text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(
    (SELECT string_agg(pawl._spell_holder(b.pid, b.gid, b.role, b.application_name, b.since), '; ') FROM (SELECT DISTINCT * FROM pawl._blockers(g, key)) b),
    (SELECT 'one of: ' || string_agg(pawl._spell_holder(h.pid, h.gid, h.role, h.application_name, h.since), '; ') FROM pawl._lock_holders(g) h),
    'none any more')
$$;

-- One try to raise, waiting no longer than lock_timeout. Returns the fence before it; false in `done` when another
-- transaction is in the way. The verdict is the same as for a write, so advance() cannot do what a write could not.
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
-- every transaction with a smaller token has ended. Durable, whatever synchronous_commit is; the fence counts once
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
  PERFORM pawl._remember(g.id);
  IF NOT pawl._may_raise_here(g, pawl._resource(g, key)) THEN RETURN pawl._fence(g, key); END IF;
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
              HINT = format('They end by themselves, by idle_in_transaction_session_timeout, or by pawl.evict(%L, %s). Until then the fence is not raised.', resource, token);
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
  named record; g pawl.guard; key text; ended int; blockers text; fence bigint;
BEGIN
  PERFORM pawl._insist_on_primary();
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._insist_on_token(g, key, token);
  fence := pawl._fence(g, key);
  IF token < fence THEN PERFORM pawl._refuse(g, key, 'stale', token, fence); END IF;
  IF token = fence THEN RETURN 0; END IF;  -- The present holder holds it under this very token.
  blockers := pawl._describe(g, key);
  SELECT count(*) FILTER (WHERE pg_terminate_backend(b.pid)) INTO ended FROM (SELECT DISTINCT x.pid FROM pawl._blockers(g, key) x WHERE x.pid IS NOT NULL) b;
  IF ended > 0 THEN
    PERFORM pawl._log('evicted', g, resource, 'evict', token, fence);
    INSERT INTO pawl.audit (guard, what, after, reason) VALUES (g.name, 'evict', concat(resource, ' for token ', token), blockers);
  END IF;
  RETURN ended;
END $$;
