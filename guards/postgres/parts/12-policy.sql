-- The interface for operators: set_mode, set_policy, emergency, compact, acknowledge; and what they would do: rehearse_….

-- REHEARSALS. setval() is not undone by a rollback, so a change that is taken back would leave traces. The functions below
-- are told when they only rehearse, and then judge, and set nothing that stays; rehearse_…() undo the rest themselves.

-- Marks the policy as stricter from this transaction on, for snapshots from before.
CREATE OR REPLACE FUNCTION pawl._tighten(g pawl.guard, rehearse boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._close_passage(g, CASE WHEN rehearse THEN interval '0 s' ELSE interval '5 s' END);
  IF NOT rehearse THEN PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint); END IF;
END $$;

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
                DETAIL = (SELECT coalesce(string_agg(pawl._spell_holder(h.pid, h.gid, h.role, h.application_name, h.since), '; '), 'none any more')
                            FROM pawl._holders(7295, g.id::oid, 2) h);
      END IF;
    END;
  END LOOP;
END $$;

-- How strict a mode is, as one number.
CREATE OR REPLACE FUNCTION pawl._strictness(mode text, percent int) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE mode WHEN 'observe' THEN 0 WHEN 'shadow' THEN 1 WHEN 'canary' THEN 1 + percent ELSE 102 END $$;

-- What keeps a guard from enforcing: errors that pawl.problems() reports for it, unless acknowledged.
CREATE OR REPLACE FUNCTION pawl._obstacles(g pawl.guard) RETURNS TABLE (object text, problem text, fix text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT coalesce(p.object, ''), p.problem, p.fix FROM pawl._problems() p
    WHERE p.severity = 'error' AND p.guard = g.name AND NOT pawl._is_acknowledged(g.id, p.object, p.problem);
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_no_obstacle(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  obstacle record;
BEGIN
  FOR obstacle IN SELECT * FROM pawl._obstacles(g) LOOP
    RAISE EXCEPTION 'pawl: % cannot refuse writes as it is: %', g.name, concat_ws(': ', nullif(obstacle.object, ''), obstacle.problem)
      USING ERRCODE = '55000', HINT = format('%s. To go on all the same, not in mode enforce: SELECT pawl.acknowledge(%L, ''why''), then set_mode().', obstacle.fix, g.name);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION pawl._set_mode(guard text, mode text, percent int, reason text, rehearse boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(_set_mode.guard);
  stricter boolean;
BEGIN
  IF _set_mode.mode IS NULL OR NOT _set_mode.mode = ANY (pawl._modes()) THEN
    RAISE EXCEPTION 'pawl: a mode is observe, shadow, canary or enforce' USING ERRCODE = '22023';
  END IF;
  IF (_set_mode.mode = 'canary') <> (_set_mode.percent IS NOT NULL) OR _set_mode.percent NOT BETWEEN 1 AND 100 THEN
    RAISE EXCEPTION 'pawl: canary needs a percentage from 1 to 100, and the other modes take none' USING ERRCODE = '22023';
  END IF;
  stricter := pawl._strictness(_set_mode.mode, _set_mode.percent) > pawl._strictness(pawl._mode(g), g.percent) AND _set_mode.mode IN ('canary', 'enforce');
  IF stricter THEN
    PERFORM pawl._insist_on_no_obstacle(g);
    PERFORM pawl._tighten(g, rehearse);
  END IF;
  IF NOT rehearse THEN PERFORM pawl._record_emergency(g); END IF;
  -- The emergency is ended by the row, not in the sequence: a rollback takes that back.
  UPDATE pawl.guard o SET mode = _set_mode.mode, percent = _set_mode.percent, mode_since = clock_timestamp(),
                          would_refuse_before = pawl._counted(g.id, 'would_refuse'),
                          answered = greatest(o.answered, coalesce(pg_sequence_last_value(o.emergency), 1))
   WHERE o.id = g.id;
  INSERT INTO pawl.audit (guard, what, before, after, reason)
    VALUES (g.name, 'mode', concat_ws(' ', pawl._mode(g), CASE WHEN pawl._mode(g) = 'canary' THEN g.percent END),
            concat_ws(' ', _set_mode.mode, _set_mode.percent), _set_mode.reason);
  IF _set_mode.mode = 'enforce' AND NOT g.require_token AND NOT rehearse THEN
    RAISE NOTICE 'pawl: % refuses old tokens now; programs that have never used one may still write', g.name
      USING HINT = format('When none is left: SELECT pawl.set_policy(%L, require_token => true).', g.name);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl.set_mode(guard text, mode text, percent int DEFAULT NULL, reason text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._set_mode(guard, mode, percent, reason, false);
END $$;

-- Fails as set_mode() would, and changes nothing. It does not wait.
CREATE OR REPLACE FUNCTION pawl.rehearse_mode(guard text, mode text, percent int DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl._set_mode(guard, mode, percent, NULL, true);
  RAISE EXCEPTION USING ERRCODE = 'PWR01';
EXCEPTION WHEN SQLSTATE 'PWR01' THEN NULL;
END $$;

-- What is NULL stays as it is.
CREATE OR REPLACE FUNCTION pawl._set_policy(guard text, require_token boolean, equal text, max_step bigint, bare_token text, reason text, rehearse boolean)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(_set_policy.guard);
  after pawl.guard;
BEGIN
  IF _set_policy.equal <> 'accept' AND g.kind IN ('row', 'by') THEN
    RAISE EXCEPTION 'pawl: a % guard admits an equal token; give each operation a number instead', g.kind
      USING ERRCODE = '0A000', HINT = 'SELECT pawl.use(resource, token, op).';
  END IF;
  -- A guard that refuses nothing does not get stricter by this: set_mode() will close the passage. Nor in an emergency.
  IF pawl._mode(g) IN ('canary', 'enforce') THEN PERFORM pawl._tighten(g, rehearse); END IF;
  IF _set_policy.equal <> g.equal AND g.kind = 'static' AND NOT rehearse THEN  -- Those that the fast path admitted, or would on an old snapshot.
    PERFORM pg_advisory_xact_lock(g.lock_key);
    PERFORM setval(g.raiser, pg_current_xact_id()::text::bigint) WHERE pg_sequence_last_value(g.fence) IS NOT NULL;
  END IF;
  UPDATE pawl.guard o SET require_token = coalesce(_set_policy.require_token, o.require_token), equal = coalesce(_set_policy.equal, o.equal),
                          max_step = coalesce(_set_policy.max_step, o.max_step), bare_token = coalesce(_set_policy.bare_token, o.bare_token)
   WHERE o.id = g.id RETURNING * INTO after;
  IF after.equal <> g.equal THEN PERFORM pawl._generate(after); END IF;
  INSERT INTO pawl.audit (guard, what, before, after, reason)
    SELECT g.name, 'policy', pawl._spell_policy(g), pawl._spell_policy(after), _set_policy.reason;
END $$;

CREATE OR REPLACE FUNCTION pawl.set_policy(guard text, require_token boolean DEFAULT NULL, equal text DEFAULT NULL, max_step bigint DEFAULT NULL,
                                           bare_token text DEFAULT NULL, reason text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM pawl._set_policy(guard, require_token, equal, max_step, bare_token, reason, false);
END $$;

-- Fails as set_policy() would, and changes nothing. It does not wait.
CREATE OR REPLACE FUNCTION pawl.rehearse_policy(guard text, require_token boolean DEFAULT NULL, equal text DEFAULT NULL, max_step bigint DEFAULT NULL,
                                                bare_token text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM pawl._set_policy(guard, require_token, equal, max_step, bare_token, NULL, true);
  RAISE EXCEPTION USING ERRCODE = 'PWR01';
EXCEPTION WHEN SQLSTATE 'PWR01' THEN NULL;
END $$;

-- Accepts the errors that pawl.problems() reports for a guard now: they no longer keep it from enforcing. Returns how many.
CREATE OR REPLACE FUNCTION pawl.acknowledge(guard text, reason text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(acknowledge.guard); accepted int;
BEGIN
  INSERT INTO pawl.audit (guard, what, after, reason)
    SELECT g.name, 'acknowledge', concat_ws(': ', nullif(o.object, ''), o.problem), acknowledge.reason FROM pawl._obstacles(g) o;
  INSERT INTO pawl.acknowledged (guard, object, problem, reason)
    SELECT g.id, o.object, o.problem, acknowledge.reason FROM pawl._obstacles(g) o ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS accepted = ROW_COUNT;
  RETURN accepted;
END $$;

-- Lets a role raise the fences of a guard that has no right to write its tables: it writes through a view or a function of
-- another role, or the guard has no table. disallow() takes that back.
CREATE OR REPLACE FUNCTION pawl.allow(guard text, role name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(allow.guard);
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = allow.role) THEN
    RAISE EXCEPTION 'pawl: there is no role %', coalesce(quote_literal(allow.role), 'NULL') USING ERRCODE = '42704';
  END IF;
  INSERT INTO pawl.allowed (guard, role) VALUES (g.id, allow.role) ON CONFLICT DO NOTHING;
  INSERT INTO pawl.audit (guard, what, after) VALUES (g.name, 'allow', allow.role);
END $$;

CREATE OR REPLACE FUNCTION pawl.disallow(guard text, role name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(disallow.guard);
BEGIN
  DELETE FROM pawl.allowed a WHERE a.guard = g.id AND a.role = disallow.role;
  INSERT INTO pawl.audit (guard, what, before) VALUES (g.name, 'allow', disallow.role);
END $$;

CREATE OR REPLACE FUNCTION pawl._spell_policy(g pawl.guard) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('require_token=%s equal=%s max_step=%s bare_token=%s', g.require_token, g.equal, g.max_step, g.bare_token)
$$;

-- Who turned the emergency switch of a guard on, and when: in sequences, as the switch is, so that a rollback does not undo it.
CREATE OR REPLACE FUNCTION pawl._emergency_of(g pawl.guard) RETURNS TABLE (at timestamptz, login text, recorded boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT to_timestamp(s.at / 1000000.0), coalesce((SELECT r.rolname::text FROM pg_roles r WHERE r.oid = s.login::oid), 'a role that is gone'),
         EXISTS (SELECT FROM pawl.audit a WHERE a.guard = g.name AND a.what = 'emergency' AND a.at >= to_timestamp(s.at / 1000000.0))
    FROM (SELECT pg_sequence_last_value(format('pawl.emergency_at_%s', g.id)::regclass) AS at, pg_sequence_last_value(format('pawl.emergency_by_%s', g.id)::regclass) AS login) s
   WHERE s.at IS NOT NULL AND pg_sequence_last_value(g.emergency) > g.answered
$$;

-- The record of an emergency goes with a rollback, the emergency does not: then it is written when it ends.
CREATE OR REPLACE FUNCTION pawl._record_emergency(g pawl.guard) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pawl.audit (at, login, guard, what, before, after, reason)
    SELECT e.at, e.login, g.name, 'emergency', g.mode, 'shadow', 'its transaction was rolled back, and with it the reason'
      FROM pawl._emergency_of(g) e WHERE NOT e.recorded
$$;

-- Back to shadow, at once. A sequence is the switch: it waits for no open transaction, not even for an uncommitted set_mode(),
-- and is seen by transactions of every isolation level. set_mode() turns it off again. What was made stricter before does
-- not count any more: 3 is a transaction that every snapshot sees.
CREATE OR REPLACE FUNCTION pawl.emergency(reason text, guard text DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard; switched int := 0;
BEGIN
  IF emergency.guard IS NOT NULL THEN PERFORM pawl._guard(emergency.guard); END IF;
  FOR g IN SELECT o.* FROM pawl.guard o WHERE emergency.guard IS NULL OR o.name = emergency.guard ORDER BY o.id LOOP
    CONTINUE WHEN pawl._mode(g) NOT IN ('canary', 'enforce');
    PERFORM setval(g.emergency, greatest(coalesce(pg_sequence_last_value(g.emergency), 1), g.answered) + 1), setval(g.tightened, 3);
    PERFORM setval(format('pawl.emergency_at_%s', g.id)::regclass, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
            setval(format('pawl.emergency_by_%s', g.id)::regclass, (SELECT r.oid::bigint FROM pg_roles r WHERE r.rolname = session_user));
    PERFORM pawl._log('emergency', g, g.name, 'emergency', NULL, NULL);
    INSERT INTO pawl.audit (guard, what, before, after, reason) VALUES (g.name, 'emergency', g.mode, 'shadow', emergency.reason);
    switched := switched + 1;
  END LOOP;
  RETURN switched;
END $$;

-- Forgets what no live token needs: fences of keys, tombstones and operations below a token. The floor of the guard
-- rises instead, so that what is forgotten stays refused. Returns how many rows went.
-- (No rollback lowers the floor again.)
CREATE OR REPLACE FUNCTION pawl._compact(guard text, below bigint, rehearse boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
#variable_conflict use_column
DECLARE
  g pawl.guard := pawl._guard(_compact.guard);
  greatest_known bigint := (SELECT max(f.token) FROM pawl.keyed_fence f WHERE f.guard = g.id);
  dropped bigint := 0; more bigint;
BEGIN
  IF pawl._token(below::text) IS NULL THEN PERFORM pawl._raise('malformed', g.name, NULL, pg_sequence_last_value(g.fence), pawl._mode(g)); END IF;
  IF g.kind <> 'static' THEN
    IF pawl._verdict(below, greatest(greatest_known, pg_sequence_last_value(g.fence)), g.max_step) = 'ahead' THEN
      PERFORM pawl._raise('ahead', g.name, below, greatest_known, pawl._mode(g));
    END IF;
    IF NOT rehearse THEN
      PERFORM set_config('lock_timeout', '5s', true);
      PERFORM pg_advisory_xact_lock(g.lock_key);
      IF below > coalesce(pg_sequence_last_value(g.fence), 0) THEN PERFORM pawl._raise_fence(g, below); END IF;
    END IF;
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

CREATE OR REPLACE FUNCTION pawl.compact(guard text, below bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pawl._compact(guard, below, false);
END $$;

-- Returns how many rows compact() would forget, and changes nothing.
CREATE OR REPLACE FUNCTION pawl.rehearse_compact(guard text, below bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  rows bigint;
BEGIN
  rows := pawl._compact(guard, below, true);
  RAISE EXCEPTION USING ERRCODE = 'PWR01';
EXCEPTION WHEN SQLSTATE 'PWR01' THEN RETURN rows;
END $$;
