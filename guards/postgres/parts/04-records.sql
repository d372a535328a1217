-- Counters, records of refusals and of writers without a token. They survive the rollback of a refusal.

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
  SELECT coalesce(pawl._value_if_there(to_regclass(format('pawl.count_%s_%s', guard_id, verdict))), 0)
$$;

-- 7 bytes of a text as a number, and back. Only ASCII survives: a cut inside a character would not decode.
CREATE OR REPLACE FUNCTION pawl._piece(words text, n int) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ('x' || rpad(encode(substring(convert_to(regexp_replace(words, '[^ -~]', '?', 'g'), 'UTF8') FROM n * 7 + 1 FOR 7), 'hex'), 14, '0'))::bit(56)::bigint
$$;
CREATE OR REPLACE FUNCTION pawl._unpiece(pieces bigint[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(convert_from(rtrim(decode(string_agg(lpad(to_hex(p), 14, '0'), '' ORDER BY n), 'hex'), E'\\x00'::bytea), 'UTF8'), '')
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

-- A statement without its values, so that a thousand customers are one line.
CREATE OR REPLACE FUNCTION pawl._normalised(query text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT left(btrim(
    regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(query, 2000),
      '''([^'']|'''')*(''|$)', '?', 'g'),             -- strings, also one that was cut off
      E'\\m[0-9][0-9a-zA-Z_.]*', '?', 'g'),             -- numbers
      E'\\?(\\s*,\\s*\\?)+', '?, …', 'g'),                 -- lists of them
      E'\\s+', ' ', 'g')), 500)
$$;

-- Every detail of a refusal goes to the server's log, which no rollback undoes.
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
  memory text := concat('pawl.sighted._', g.id);
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
  -- Outside READ COMMITTED the look is left out: in SERIALIZABLE it would make conflicts among writers that have none.
  IF pawl._read_committed() AND EXISTS (SELECT FROM pawl.sightings s
              WHERE s.guard = g.name AND s.fingerprint = print AND s.at > greatest(g.mode_since, clock_timestamp() - interval '1 minute')
                AND s.login = session_user AND s.application_name = current_setting('application_name')) THEN
    RETURN;
  END IF;
  INSERT INTO pawl.sightings (guard, login, role, application_name, addr, pid, fingerprint, statement)
    VALUES (g.name, session_user, current_setting('role'), current_setting('application_name'), inet_client_addr(),
            pg_backend_pid(), print, normalised);
  IF pawl._read_committed() AND random() < 0.02 THEN  -- Now and then, those older than 30 days; it waits for nobody.
    DELETE FROM pawl.sightings s WHERE s.ctid = ANY (ARRAY(
      SELECT o.ctid FROM pawl.sightings o WHERE o.at < now() - interval '30 days' ORDER BY o.at LIMIT 200 FOR UPDATE SKIP LOCKED));
  END IF;
END $$;

-- A session that has used a token of a guard is no old program: its writes without one are mistakes, e.g. a use() outside
-- a transaction, before ROLLBACK TO, or for another key. So the session remembers, in currval() of a sequence (a setting
-- would go with a rollback), and in a setting, which is quicker to look at. DISCARD ALL and pawl.reset() clear both.
-- Returns true, for the fast paths, which call it where the setting is not there.
CREATE OR REPLACE FUNCTION pawl._remember(guard_id int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  used text := current_setting(concat('pawl.used._', guard_id), true);
BEGIN
  IF used = 'replayed' THEN RETURN false; END IF;  -- See _mark_replayed(): then no fast path.
  IF used = '1' OR current_setting('transaction_read_only') = 'on' THEN RETURN true; END IF;
  PERFORM setval(format('pawl.used_%s', guard_id)::regclass, 1), set_config(concat('pawl.used._', guard_id), '1', false);
  RETURN true;
END $$;

-- A setting that was ever set is '' afterwards, not NULL, whatever became of it. So a token that the guard never saw leaves a
-- trace: SET LOCAL outside a transaction, in another one, before ROLLBACK TO, or under a wrong name. pawl.used._<id> is NULL only
-- as long as the guard has remembered nothing here; from then on it tells what happened since. DISCARD ALL makes it '' and
-- clears currval(); DISCARD SEQUENCES does the latter only; a rollback the former only.
CREATE OR REPLACE FUNCTION pawl._remembers(g pawl.guard) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  used text := current_setting(concat('pawl.used._', g.id), true);
BEGIN
  IF used IN ('1', 'replayed') THEN RETURN true; END IF;
  IF used IS NULL THEN
    IF current_setting(g.setting, true) IS NULL AND pawl._misnamed(g) IS NULL
       AND (g.bare_token = 'refuse' OR current_setting('pawl.token', true) IS NULL) THEN RETURN false; END IF;
    RETURN pawl._remember(g.id);
  END IF;
  RETURN currval(format('pawl.used_%s', g.id)::regclass) = 1;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  RETURN false;
END $$;

-- A setting of this session that looks as if it should carry the token of this guard, and is the setting of none. (Settings
-- cannot be listed, so these are the likely mistakes: see _note_lookalikes().)
CREATE OR REPLACE FUNCTION pawl._misnamed(g pawl.guard) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s text;
BEGIN
  FOREACH s IN ARRAY coalesce(g.lookalikes, '{}') LOOP
    CONTINUE WHEN current_setting(s, true) IS NULL;  -- By itself: with the query below it would cost as much as that.
    IF NOT EXISTS (SELECT FROM pawl.guard o WHERE o.setting = s OR s = 'pawl.token' AND o.bare_token = 'accept') THEN RETURN s; END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- The name of the guard or of its table, with or without its schema, an s too many or too few, or with less than pawl.token
-- before it.
CREATE OR REPLACE FUNCTION pawl._note_lookalikes(guard_id int) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  UPDATE pawl.guard g SET lookalikes = l.settings
    FROM (SELECT o.id, array_agg(DISTINCT s.setting) || ARRAY['pawl.token'] AS settings
            FROM pawl.guard o
                 CROSS JOIN LATERAL (SELECT lower(regexp_replace(o.name, '[^A-Za-z0-9_.$]', '', 'g')) UNION
                                     SELECT lower(c.relname) FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = o.id) AS names(name)
                 CROSS JOIN LATERAL (VALUES (names.name), (split_part(names.name, '.', -1))) AS forms(form)
                 CROSS JOIN LATERAL (VALUES ('pawl.token.' || form), ('pawl.token.' || form || 's'), ('pawl.token.' || rtrim(form, 's')), ('pawl.token.public.' || form),
                                            ('pawl.tokens.' || form), ('pawl.' || form)) AS s(setting)
           WHERE o.id = guard_id AND form <> '' AND s.setting <> o.setting GROUP BY o.id) l
   WHERE g.id = l.id AND g.lookalikes IS DISTINCT FROM l.settings
$$;

-- use() with an operation number that was done before: until the end of the transaction no write to this key is admitted,
-- whatever sets its token, but by another use().
CREATE OR REPLACE FUNCTION pawl._mark_replayed(g pawl.guard, key text, replayed boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  used text := concat('pawl.used._', g.id);
  marks text := concat('pawl.replayed._', g.id);
  marked jsonb := CASE current_setting(used, true) WHEN 'replayed' THEN current_setting(marks, true)::jsonb ELSE '[]' END;
BEGIN
  IF NOT replayed AND NOT marked ? key THEN RETURN; END IF;
  marked := CASE WHEN replayed THEN marked || to_jsonb(key) ELSE marked - key END;
  PERFORM set_config(marks, marked::text, true), set_config(used, CASE marked WHEN '[]' THEN '1' ELSE 'replayed' END, true);
END $$;

-- NULL: any key.
CREATE OR REPLACE FUNCTION pawl._is_replayed(g pawl.guard, key text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE current_setting(concat('pawl.used._', g.id), true)
           WHEN 'replayed' THEN key IS NULL OR current_setting(concat('pawl.replayed._', g.id), true)::jsonb ? key ELSE false END
$$;

-- Ends the statement with the verdict's own SQLSTATE. DETAIL has a fixed spelling: programs read it.
CREATE OR REPLACE FUNCTION pawl._raise(verdict text, resource text, token bigint, max bigint, mode text, no_old_writer boolean DEFAULT false, advice text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state text; message text; hint text;
BEGIN
  CASE verdict
    WHEN 'missing' THEN
      state := 'PW001';
      message := CASE WHEN token IS NULL THEN format(CASE WHEN no_old_writer THEN 'write to %s without its token, in a session that has used one'
                                                          ELSE 'write to %s without a token' END, resource)
                      ELSE format('token %s was used for %s before, and %s admits it again only with an operation number', token, resource, resource) END;
      hint := CASE WHEN no_old_writer
                   THEN format('A token holds for one transaction and for the resource it was used for: BEGIN; SELECT pawl.use(%L, token); the '
                               'writes; COMMIT. If another program had this connection before, end its state with DISCARD ALL or SELECT pawl.reset().%s', resource, advice)
                   WHEN token IS NULL THEN format('SELECT pawl.use(%L, token) first in the transaction.%s', resource, advice)
                   ELSE format('SELECT pawl.use(%L, %s, op) with an op of its own for each operation.', resource, token) END;
    WHEN 'stale' THEN
      state := 'PW002';
      message := format('stale token %s for %s: %s has been here', token, resource,
                        CASE WHEN max > token THEN concat('token ', max) ELSE 'it' END);
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

-- Refuses: counts it, logs it, raises the error.
CREATE OR REPLACE FUNCTION pawl._refuse(g pawl.guard, key text, verdict text, token bigint, max bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  resource text := pawl._resource(g, key);
  advice text := '';
BEGIN
  PERFORM pawl._count(g, verdict);
  IF current_setting('transaction_read_only') = 'off' THEN PERFORM pawl._into_ring(g, key, verdict, token, max); END IF;
  PERFORM pawl._log('refused', g, resource, verdict, token, max);
  IF verdict = 'missing' AND token IS NULL THEN
    advice := coalesce((SELECT format(' This session has set %s, which no guard reads: the setting of %s is %s.', m, g.name, g.setting) FROM pawl._misnamed(g) m WHERE m IS NOT NULL), '');
  END IF;
  PERFORM pawl._raise(verdict, resource, token, max, pawl._mode(g), verdict = 'missing' AND token IS NULL AND NOT g.require_token, advice);
END $$;

-- Lets through what was not admitted: counts it, once per transaction, and logs what enforce would have done.
CREATE OR REPLACE FUNCTION pawl._let_through(g pawl.guard, key text, verdict text, token bigint, max bigint, refusable boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  noted text := concat('pawl.noted._', g.id);
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
