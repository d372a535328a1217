-- The interface for operators: set_mode, set_policy, emergency, compact.

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
