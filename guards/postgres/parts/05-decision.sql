-- The token that a transaction carries, and the decision whether a write is admitted.

-- Settings are spelled by the guard's name where that is a plain lower-case identifier (dots allowed), so that people
-- can write SET LOCAL pawl.token.orders = 34. Other names get a number; use() knows it.
CREATE OR REPLACE FUNCTION pawl._setting(name text, id int) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'pawl.token.' || CASE WHEN name ~ '^[a-z][a-z0-9_]{0,61}([.][a-z][a-z0-9_]{0,61})*$' THEN name ELSE concat('_', id) END
$$;

-- What this transaction carries for a resource: the spelled token, or 'replayed', or NULL. A plain value holds for every
-- key of the guard; use('orders:7', 34) carries {"7": 34}, which does not hold for row 8.
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

--
-- _judge_<kind>() finds the verdict and, when it is 'admitted', holds what keeps it true until the end of the
-- transaction. `enforced` false never waits: a guard that refuses nothing must not delay a writer. The price is that it may
-- then admit without holding, which is all that observe and shadow promise.

CREATE OR REPLACE FUNCTION pawl._lock_shared(g pawl.guard, wait boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_try_advisory_xact_lock_shared(g.lock_key) THEN RETURN true; END IF;
  RETURN wait AND pawl._wait_for_lock(g.id, g.lock_key, true);
END $$;

CREATE OR REPLACE FUNCTION pawl._lock_exclusive(g pawl.guard, wait boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_try_advisory_xact_lock(g.lock_key) THEN RETURN true; END IF;
  RETURN wait AND pawl._wait_for_lock(g.id, g.lock_key, false);
END $$;

-- The passage lock (7295, guard), shared: see _decide().
CREATE OR REPLACE FUNCTION pawl._enter(guard_id int) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared(7295, guard_id) THEN PERFORM pawl._wait_for_lock(guard_id, NULL, true); END IF;
END $$;

-- Sessions that hold an advisory lock of a guard and do not use the guard: any role can take any advisory lock. Who got it by way of the
-- guard has looked at something in the schema pawl in the same transaction, and holds that lock, too. But not for a moment at its end,
-- and pg_locks reads relations first: so one look proves nothing, and a transaction counts that is seen so again a while later.
CREATE OR REPLACE FUNCTION pawl._intruders(class oid, obj oid, subid int) RETURNS TABLE (pid int, who text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  suspects text[] := pawl._holders_without_guard(class, obj, subid);
BEGIN
  IF suspects IS NULL THEN RETURN; END IF;
  PERFORM pg_sleep(0.5);
  suspects := ARRAY(SELECT unnest(suspects) INTERSECT SELECT unnest(pawl._holders_without_guard(class, obj, subid)));
  RETURN QUERY SELECT a.pid, pawl._session(a.pid) FROM pg_stat_activity a WHERE a.pid IN (SELECT split_part(u, ' ', 1)::int FROM unnest(suspects) u);
END $$;

CREATE OR REPLACE FUNCTION pawl._session(of_pid int) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('pid=%s role=%s application_name=%L', a.pid, a.usename, a.application_name) FROM pg_stat_activity a WHERE a.pid = of_pid
$$;

-- In one look at pg_locks, because it changes from look to look: 'pid transaction'.
CREATE OR REPLACE FUNCTION pawl._holders_without_guard(class oid, obj oid, subid int) RETURNS text[]
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  WITH locks AS MATERIALIZED (
    SELECT l.* FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database() WHERE l.pid <> pg_backend_pid())
  SELECT array_agg(format('%s %s', l.pid, l.virtualtransaction)) FROM locks l
   WHERE l.locktype = 'advisory' AND l.granted AND l.classid = class AND l.objid = obj AND l.objsubid = subid
     AND NOT EXISTS (SELECT FROM locks r JOIN pg_class c ON c.oid = r.relation AND c.relnamespace = 'pawl'::regnamespace
                      WHERE r.pid = l.pid AND r.locktype = 'relation')
$$;

-- Waits for an advisory lock of a guard (`key` NULL: the passage lock), no longer than lock_timeout, and not for intruders. Where
-- nothing is refused it goes on without; false says so.
CREATE OR REPLACE FUNCTION pawl._wait_for_lock(guard_id int, key bigint, shared boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  most int := (SELECT setting::int FROM pg_settings WHERE name = 'lock_timeout');
  enough int := 2 * (SELECT setting::int FROM pg_settings WHERE name = 'deadlock_timeout');  -- So that deadlocks are found.
  start timestamptz := clock_timestamp();
  class oid := CASE WHEN key IS NULL THEN 7295 ELSE (key >> 32) & 4294967295 END;
  obj oid := CASE WHEN key IS NULL THEN guard_id ELSE key & 4294967295 END;
  subid int := CASE WHEN key IS NULL THEN 2 ELSE 1 END;
  slice int := 100; waited int := 0; rounds int := 0; suspects text[]; intruders text; g pawl.guard;
BEGIN
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', CASE WHEN most > 0 THEN least(slice, greatest(most - waited, 1)) ELSE slice END::text, true);
      IF key IS NULL THEN PERFORM pg_advisory_xact_lock_shared(7295, guard_id);
      ELSIF shared THEN PERFORM pg_advisory_xact_lock_shared(key);
      ELSE PERFORM pg_advisory_xact_lock(key);
      END IF;
      PERFORM set_config('lock_timeout', most::text, true);
      RETURN true;
    EXCEPTION WHEN lock_not_available THEN
      waited := extract(epoch FROM clock_timestamp() - start) * 1000;
      -- Those who are seen without the guard in every round; see _intruders().
      IF rounds = 0 THEN
        suspects := pawl._holders_without_guard(class, obj, subid);
      ELSE
        suspects := ARRAY(SELECT unnest(suspects) INTERSECT SELECT unnest(pawl._holders_without_guard(class, obj, subid)));
      END IF;
      rounds := CASE WHEN cardinality(suspects) > 0 THEN rounds + 1 ELSE 0 END;
      IF rounds >= 3 THEN
        SELECT string_agg(pawl._session(split_part(u, ' ', 1)::int), '; ') INTO intruders FROM unnest(suspects) u;
      END IF;
      IF intruders IS NULL AND most > 0 AND waited >= most THEN RAISE; END IF;
    END;
    IF intruders IS NOT NULL THEN
      SELECT o.* INTO g FROM pawl.guard o WHERE o.id = guard_id;
      IF pawl._mode(g) NOT IN ('canary', 'enforce') THEN RETURN false; END IF;
      RAISE EXCEPTION 'pawl: a session that does not use the guard % holds its lock', g.name
        USING ERRCODE = 'PW007', DETAIL = intruders, HINT = 'It called pg_advisory_lock(), or a function like it, with the number of this lock. SELECT pg_terminate_backend(pid) ends it.';
    END IF;
    slice := least(2 * slice, greatest(enough, 2000));
  END LOOP;
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
  PERFORM set_config(concat('pawl.raised._', g.id), pg_current_snapshot()::text, true);  -- For _insist_on_fresh_snapshot().
END $$;

-- Reads the fence, takes the lock that the verdict needs, then reads again: no session ever upgrades from shared to exclusive,
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

-- Whether all that `older` sees as ended is seen as ended by `newer`.
CREATE OR REPLACE FUNCTION pawl._is_as_new_as(newer pg_snapshot, older pg_snapshot) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_snapshot_xmax(newer) >= pg_snapshot_xmax(older)
         AND NOT EXISTS (SELECT FROM pg_snapshot_xip(newer) x WHERE x < pg_snapshot_xmax(older) AND x NOT IN (SELECT pg_snapshot_xip(older)))
$$;

-- What an admitted writer reads must not be older than the last write of a smaller token. `statement` is the snapshot of
-- the statement whose trigger asks; NULL when use() asks, because then the next statement takes a newer one.
-- The raise is kept (setval is not undone), so the retry passes.
-- A raise by this very transaction needs care: a snapshot never counts its own transaction as running, so it "sees" it
-- however old it is. With one snapshot for all, it is older than the raise. Otherwise a statement after the raise is good,
-- but not the one in which use() raised (in a CTE): its snapshot must not be older than the one taken at the raise.
CREATE OR REPLACE FUNCTION pawl._insist_on_fresh_snapshot(g pawl.guard, raised boolean, statement pg_snapshot) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  one_snapshot boolean := NOT pawl._read_committed();
  raiser xid8 := pg_sequence_last_value(g.raiser)::text::xid8;
  raised_here boolean := raised OR raiser IS NOT DISTINCT FROM pg_current_xact_id_if_assigned() AND raiser IS NOT NULL;
  at_raise text := nullif(current_setting(concat('pawl.raised._', g.id), true), '');
BEGIN
  IF one_snapshot THEN
    IF NOT raised_here AND pawl._sees(pg_current_snapshot(), g.raiser) THEN RETURN; END IF;
  ELSIF statement IS NULL THEN
    IF pawl._sees(pg_current_snapshot(), g.raiser) OR raised_here OR raiser IS NULL THEN RETURN; END IF;
    IF pg_sequence_last_value(g.raiser)::text::xid8 <> raiser OR pawl._is_foreign(g.raiser) THEN RETURN; END IF;  -- From another cluster.
    -- Raised by a transaction that is still running, and has given the exclusive lock back: by ROLLBACK TO SAVEPOINT. It
    -- may hold an older token, and commit after us.
    IF pg_xact_status(raiser) IS DISTINCT FROM 'in progress' THEN RETURN; END IF;
  ELSIF raised_here THEN
    IF NOT raised AND (at_raise IS NULL OR pawl._is_as_new_as(statement, at_raise::pg_snapshot)) THEN RETURN; END IF;
  ELSE
    IF pawl._sees(statement, g.raiser) THEN RETURN; END IF;
  END IF;
  RAISE EXCEPTION 'pawl: the fence of % moved to % after this snapshot was taken; retry', g.name, pg_sequence_last_value(g.fence)
    USING ERRCODE = '40001',
          HINT = format('pawl.advance() before BEGIN, or SELECT pawl.use(%L, token) as a statement of its own, avoids this.', g.name);
END $$;

-- Whether a mark comes from another cluster: then it lies in the future of this one.
CREATE OR REPLACE FUNCTION pawl._is_foreign(mark regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_xact_status(pawl._value_if_there(mark)::text::xid8);
  RETURN false;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN true;
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

-- Never waits and never fails: a fence that cannot be raised at once stays as it is.
CREATE OR REPLACE FUNCTION pawl._raise_keyed_if_free(g pawl.guard, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pawl._read_committed() THEN RETURN; END IF;  -- Older snapshots would end in 40001.
  PERFORM FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _raise_keyed_if_free.key FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    PERFORM pawl._keep_fence(g.id, key, token);
  ELSIF NOT EXISTS (SELECT FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _raise_keyed_if_free.key) THEN
    PERFORM pawl._insert_fence_if_free(g.id, key, token);
  END IF;
END $$;

-- Another transaction may have inserted the same fence and not ended yet: then an INSERT waits for it, ON CONFLICT or not.
CREATE OR REPLACE FUNCTION pawl._insert_fence_if_free(guard_id int, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1ms' AS $$
BEGIN
  INSERT INTO pawl.keyed_fence (guard, key, token) VALUES (guard_id, _insert_fence_if_free.key, _insert_fence_if_free.token) ON CONFLICT DO NOTHING;
EXCEPTION WHEN lock_not_available THEN NULL;
END $$;

-- With one snapshot for the whole transaction, a transaction that raises a key's fence has read before it waited for the holders of
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
  marker text := concat('pawl.claimed._', g.id);
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
  IF NOT pg_try_advisory_xact_lock_shared(7295, guard_id) THEN PERFORM pawl._enter(guard_id); END IF;
  SELECT * INTO g FROM pawl.guard WHERE id = guard_id;
  IF g.id IS NULL THEN
    PERFORM pawl._insist_on_younger_guard(guard_id);
    verdict := 'missing';
    RETURN;
  END IF;
  IF writing THEN carried := pawl._carried(g, key); END IF;
  IF carried IS NOT NULL THEN PERFORM pawl._remember(g.id); END IF;
  IF carried IS NULL AND current_query() IS NULL THEN
    IF pawl._is_replicated() THEN verdict := 'missing'; RETURN; END IF;
  END IF;
  enforced := coalesce(pawl._enforced(g, pawl._resource(g, key)), true);
  token := pawl._token(carried);
  IF g.kind = 'row' THEN PERFORM pawl._lock_shared(g, enforced); END IF;  -- The row is locked; this keeps the floor.
  max := nullif(greatest(row_max, pg_sequence_last_value(g.fence)), 0);

  IF carried IS NULL THEN verdict := 'missing';
  ELSIF carried = 'replayed' OR writing AND current_setting(concat('pawl.used._', g.id), true) = 'replayed' AND pawl._is_replayed(g, key) THEN verdict := 'replayed';
  ELSIF token IS NULL THEN verdict := 'malformed';
  ELSIF g.kind = 'static' THEN SELECT * INTO verdict, max, raised FROM pawl._judge_static(g, token, enforced, true);
  ELSIF g.kind = 'row' THEN verdict := pawl._verdict(token, max, g.max_step);
  ELSE SELECT j.verdict, j.max INTO verdict, max FROM pawl._judge_keyed(g, key, token, enforced) j;
  END IF;
  IF verdict = 'admitted' AND NOT enforced THEN PERFORM pawl._insist_on_fresh_policy(g); END IF;
  IF verdict = 'admitted' AND enforced AND g.kind = 'static' THEN PERFORM pawl._insist_on_fresh_snapshot(g, raised, statement); END IF;
  IF verdict = 'admitted' AND (op IS NOT NULL OR g.equal <> 'accept') THEN verdict := pawl._claim(g, key, token, op); END IF;

  IF verdict = 'admitted' THEN RETURN; END IF;
  IF verdict = 'replayed' AND NOT writing THEN PERFORM pawl._count(g, verdict); RETURN; END IF;
  refusable := verdict <> 'missing' OR g.require_token OR token IS NOT NULL OR pawl._remembers(g);
  IF enforced AND refusable THEN PERFORM pawl._refuse(g, key, verdict, token, max); END IF;
  IF NOT pawl._read_committed() THEN PERFORM pawl._insist_on_fresh_policy(g); END IF;
  PERFORM pawl._let_through(g, key, verdict, token, max, refusable);
END $$;

-- A change that arrives by logical replication was judged where it was made, and carries no token. (No client can claim to
-- be such a worker. It has no query text, so the list of workers is looked at by hardly anyone else.) Every role may read
-- this list, and it names all workers: their names in pg_stat_activity differ between versions, and others' are hidden.
CREATE OR REPLACE FUNCTION pawl._is_replicated() RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pg_stat_get_subscription(NULL) s WHERE s.pid = pg_backend_pid());
END $$;

-- A trigger fires for a guard that this transaction does not see. With an old snapshot the guard is younger: if it has
-- never refused anything, neither does it now.
CREATE OR REPLACE FUNCTION pawl._insist_on_younger_guard(guard_id int) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tightened regclass := to_regclass(format('pawl.tightened_%s', guard_id));
BEGIN
  IF pawl._read_committed() OR tightened IS NULL THEN
    RAISE EXCEPTION 'pawl: guard % no longer exists, but its trigger does', guard_id
      USING ERRCODE = 'PW004', HINT = 'SELECT * FROM pawl.problems() names the table; pawl.unprotect() takes the trigger away.';
  END IF;
  IF pg_sequence_last_value(tightened) IS NULL THEN RETURN; END IF;
  RAISE EXCEPTION 'pawl: the table was put under guard after this snapshot was taken; retry' USING ERRCODE = '40001';
END $$;

-- Under REPEATABLE READ the policy was read as old as the snapshot. What it lets through must not be what a stricter one
-- refuses since.
CREATE OR REPLACE FUNCTION pawl._insist_on_fresh_policy(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._read_committed() OR pg_sequence_last_value(g.tightened) IS NULL
     OR pawl._sees(pg_current_snapshot(), g.tightened) THEN RETURN; END IF;
  RAISE EXCEPTION 'pawl: the policy of % changed after this snapshot was taken; retry', g.name USING ERRCODE = '40001';
END $$;
