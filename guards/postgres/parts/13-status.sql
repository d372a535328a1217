-- Views and functions for people: status, refusals, tokenless_writers, problems, repair, adopt, readiness.

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

-- Writers without a token: pawl.sightings, summed up per writer and statement.
CREATE OR REPLACE VIEW pawl.tokenless_writers AS
  SELECT s.guard, s.login, s.role, s.application_name, s.statement, count(*) AS count, max(s.at) AS last_seen, min(s.at) AS first_seen,
         array_agg(DISTINCT s.addr) FILTER (WHERE s.addr IS NOT NULL) AS addrs
    FROM pawl.sightings s GROUP BY s.guard, s.login, s.role, s.application_name, s.statement ORDER BY max(s.at) DESC;

CREATE OR REPLACE FUNCTION pawl._status()
RETURNS TABLE (guard text, kind text, tables text[], mode text, percent int, require_token boolean, equal text, max_step bigint, bare_token text,
               fence bigint, floor bigint, replayed bigint, stale bigint, missing bigint, ahead bigint, malformed bigint, would_refuse bigint,
               last_refusal timestamptz, mode_since timestamptz, emergency boolean, setting text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.name, g.kind, ARRAY(SELECT p.tbl::text FROM pawl.protected p WHERE p.guard = g.id ORDER BY 1), pawl._reported_mode(g),
         CASE WHEN pawl._reported_mode(g) = 'canary' THEN g.percent END, g.require_token, g.equal, g.max_step, g.bare_token,
         CASE g.kind WHEN 'static' THEN pawl._value_if_there(g.fence) END,
         CASE WHEN g.kind <> 'static' THEN pawl._value_if_there(g.fence) END,
         pawl._counted(g.id, 'replayed'), pawl._counted(g.id, 'stale'), pawl._counted(g.id, 'missing'), pawl._counted(g.id, 'ahead'),
         pawl._counted(g.id, 'malformed'), pawl._counted(g.id, 'would_refuse'),
         (SELECT max(r.at) FROM pawl._ring() r WHERE r.guard_id = g.id), g.mode_since, pawl._reported_mode(g) <> g.mode, g.setting
    FROM pawl.guard g
$$;

-- One line per guard. Counters grow only; admitted writes are not counted, because that would cost each of them.
CREATE OR REPLACE VIEW pawl.status AS SELECT * FROM pawl._status() ORDER BY guard;

-- False when the guard uses the C library, and a new session could not load it: it is gone, or not of this server.
CREATE OR REPLACE FUNCTION pawl._library_loads() RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._has_library() OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ '^guard_[0-9]+$' AND p.prosrc ~ 'pawl[.]_c_') THEN
    EXECUTE 'SELECT pawl._c_use('''', 0)';  -- Not a token: it does nothing.
  END IF;
  RETURN true;
EXCEPTION WHEN undefined_file OR undefined_function THEN
  RETURN false;
END $$;

-- Settings that belong to a role, a database or a function.
CREATE OR REPLACE FUNCTION pawl._fixed_settings() RETURNS TABLE (setting text, who text, change text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT lower(split_part(s, '=', 1)), CASE WHEN x.setrole <> 0 THEN 'role ' || r.rolname WHEN x.setdatabase <> 0 THEN 'database ' || d.datname ELSE 'all roles' END,
         CASE WHEN x.setrole = 0 AND x.setdatabase <> 0 THEN 'ALTER DATABASE ' || quote_ident(d.datname)
              ELSE concat('ALTER ROLE ', coalesce(quote_ident(r.rolname), 'ALL'), ' IN DATABASE ' || quote_ident(d.datname)) END
    FROM pg_db_role_setting x CROSS JOIN LATERAL unnest(x.setconfig) s LEFT JOIN pg_roles r ON r.oid = x.setrole LEFT JOIN pg_database d ON d.oid = x.setdatabase
   WHERE x.setdatabase = 0 OR d.datname = current_database()
  UNION ALL
  SELECT lower(split_part(s, '=', 1)), 'function ' || p.oid::regprocedure, 'ALTER ROUTINE ' || p.oid::regprocedure FROM pg_proc p CROSS JOIN LATERAL unnest(p.proconfig) s
   WHERE p.pronamespace <> 'pawl'::regnamespace
$$;

CREATE OR REPLACE FUNCTION pawl._problems() RETURNS TABLE (severity text, guard text, object text, problem text, fix text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  WITH coverage AS MATERIALIZED (SELECT * FROM pawl._coverage())
  SELECT 'error', g.name, c.tbl::text,
         CASE WHEN c.enabled IS NULL AND c.tbl <> c.root THEN format('partition without the trigger %s: writes straight into it are not judged', c.name)
              WHEN c.enabled IS NULL THEN format('the trigger %s is missing: writes are not judged', c.name)
              WHEN c.enabled = 'D' THEN format('the trigger %s is disabled: writes are not judged', c.name)
              ELSE format('the trigger %s is not ALWAYS: session_replication_role = replica bypasses it', c.name) END,
         'SELECT pawl.repair()'
    FROM coverage c JOIN pawl.guard g ON g.id = c.guard_id WHERE c.enabled IS DISTINCT FROM 'A'
  UNION ALL
  SELECT 'error', g.name, d.tbl::text,
         CASE d.how WHEN 'below' THEN format('is a partition or a child of %s now: writes through that are not judged', d.other)
                    ELSE format('has lost its name to %s, which is not under this guard: writes to that are not judged', d.other) END,
         CASE WHEN d.how = 'below' OR g.kind = 'static' THEN 'SELECT pawl.repair()'
              ELSE format('SELECT pawl.unprotect(%L), then pawl.protect(%L, guard => %L, …)', d.tbl, d.other, g.name) END
    FROM pawl._displaced() d JOIN pawl.guard g ON g.id = d.guard_id
  UNION ALL
  SELECT DISTINCT 'error', g.name, f.object, f.problem, f.fix FROM pawl._faults() f JOIN pawl.guard g ON g.id = f.guard_id
  UNION ALL
  SELECT 'error', g.name, p.tbl::text, format('the keys %s are spelled otherwise than when it was protected: its type was %s and is %s', g.key, g.key_type, format_type(a.atttypid, -1)),
         'SELECT pawl.repair()'
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard JOIN pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key AND NOT a.attisdropped
   WHERE g.kind IN ('row', 'by') AND pawl._key_type_of(a.atttypid, a.attcollation) <> g.key_type
  UNION ALL
  SELECT 'error', g.name, p.tbl::text, format('row security hides rows from %s, the role that owns the guard: advance() does not reach them', current_user),
         format('ALTER ROLE %I BYPASSRLS', current_user)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard
   WHERE g.kind = 'row' AND EXISTS (SELECT FROM pg_class c WHERE c.oid = p.tbl) AND row_security_active(p.tbl)
  UNION ALL
  SELECT 'error', g.name, p.tbl::text, format('row security is forced on %s, the owner of the table, with whose rights advance() writes the fences', r.rolname),
         format('ALTER ROLE %I BYPASSRLS, or ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', r.rolname, p.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard JOIN pg_class c ON c.oid = p.tbl JOIN pg_roles r ON r.oid = c.relowner
   WHERE g.kind = 'row' AND c.relrowsecurity AND c.relforcerowsecurity AND NOT r.rolsuper AND NOT r.rolbypassrls AND r.rolname <> current_user
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
     AND (SELECT count(*) FROM pg_event_trigger e WHERE e.evtname IN ('pawl_partitions', 'pawl_drops') AND e.evtenabled = 'A') < 2
  UNION ALL
  SELECT 'warning', g.name, p.tbl::text, format('a change of the key %s, or of the table''s name or owner, is not followed, and may fail writes: the event trigger is missing or not ALWAYS', g.key),
         'install again as a superuser, or SELECT pawl.repair() in the transaction that makes such a change'
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind IN ('row', 'by') JOIN pg_class c ON c.oid = p.tbl
   WHERE (SELECT count(*) FROM pg_event_trigger e WHERE e.evtname IN ('pawl_partitions', 'pawl_drops') AND e.evtenabled = 'A') < 2
  UNION ALL
  SELECT 'warning', g.name, f.tbl::text, format('the rule %s of it puts writes elsewhere: what does not go to a table under this guard is not judged', r.rulename), format('DROP RULE %I ON %s', r.rulename, f.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard CROSS JOIN LATERAL pawl._family(p.tbl) f JOIN pg_rewrite r ON r.ev_class = f.tbl AND r.is_instead AND r.ev_type <> '1'
   WHERE EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> f.tbl)
  UNION ALL
  SELECT 'warning', g.name, v.oid::regclass::text, 'a view has the name of a table under this guard, and a trigger or a rule of it: what those do not write to a table under this guard is not judged',
         format('guard the tables that they write, or DROP VIEW %s', v.oid::regclass)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard JOIN pg_class v ON v.oid = to_regclass(p.named) AND v.relkind = 'v'
   WHERE EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = v.oid) OR EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = v.oid AND r.ev_type <> '1')
  UNION ALL
  SELECT 'warning', g.name, s.who, format('%s is set for it: its writes carry that token without a lease', g.setting), format('%s RESET %s', s.change, g.setting)
    FROM pawl.guard g JOIN pawl._fixed_settings() s ON s.setting = g.setting
  UNION ALL
  SELECT 'warning', g.name, s.srrelid::regclass::text, 'a subscription writes here: logical replication applies changes without asking a guard',
         'guard the publisher''s table'
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard CROSS JOIN LATERAL pawl._family(p.tbl) f JOIN pg_subscription_rel s ON s.srrelid = f.tbl
  UNION ALL
  SELECT 'warning', g.name, NULL,
         concat('the emergency switch is on: nothing is refused', (SELECT format(', since %s, by %s, whose transaction was rolled back', to_char(e.at, 'YYYY-MM-DD HH24:MI:SS'), e.login) FROM pawl._emergency_of(g) e WHERE NOT e.recorded)), format('SELECT pawl.set_mode(%L, %L)', g.name, g.mode)
    FROM pawl.guard g WHERE pawl._reported_mode(g) <> g.mode
  UNION ALL
  SELECT 'warning', g.name, NULL, format('a session that does not use the guard holds its lock, and keeps its writers waiting: %s', i.who), format('SELECT pg_terminate_backend(%s)', i.pid)
    FROM pawl.guard g CROSS JOIN LATERAL (SELECT * FROM pawl._intruders(((g.lock_key >> 32) & 4294967295)::oid, (g.lock_key & 4294967295)::oid, 1)
                                          UNION SELECT * FROM pawl._intruders(7295, g.id::oid, 2)) i
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
  SELECT 'error', g.name, 'pawl.' || f.name, 'somebody has changed this function of the guard', CASE WHEN g.id IS NULL THEN 'install the guard again' ELSE 'SELECT pawl.repair()' END
    FROM pawl._functions('') f JOIN pawl.function_made m ON m.name = f.name AND m.made <> f.now LEFT JOIN pawl.guard g ON g.id = f.guard_id
  UNION ALL
  SELECT 'error', NULL, NULL, 'the C library pawl_guard cannot be loaded any more: writes under guard fail',
         'install it again, or install the guard again, with PGOPTIONS=''-c pawl.library=off''' WHERE NOT pawl._library_loads()
  UNION ALL
  SELECT 'error', NULL, NULL, 'fsync is off: an acknowledged advance() does not survive a crash', 'set fsync = on' WHERE current_setting('fsync') = 'off'
$$;

-- What keeps the guards from doing their work, and what to do about it. Empty: healthy. What was acknowledged is still shown.
CREATE OR REPLACE FUNCTION pawl.problems() RETURNS TABLE (severity text, guard text, object text, problem text, fix text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
  SELECT CASE WHEN a.guard IS NULL THEN p.severity ELSE 'warning' END, p.guard, p.object,
         p.problem || CASE WHEN a.guard IS NULL THEN '' ELSE format(' (acknowledged by %s: %s)', a.login, a.reason) END, p.fix
    FROM pawl._problems() p LEFT JOIN pawl.guard g ON g.name = p.guard
    LEFT JOIN pawl.acknowledged a ON a.guard = g.id AND a.object = coalesce(p.object, '') AND a.problem = p.problem AND p.severity = 'error'
$$;

-- Puts missing triggers back, and those that a restore left in another state; guards follow their tables. Returns how many.
-- From then on keys are spelled as they are now.
CREATE OR REPLACE FUNCTION pawl.repair() RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RETURN pawl._repair(true);
END $$;

CREATE OR REPLACE FUNCTION pawl._repair(accept_keys boolean) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mended int;
BEGIN
  PERFORM pawl._follows(true);
  PERFORM pawl._follow_keys(ARRAY(SELECT p.tbl::oid FROM pawl.protected p));
  PERFORM pawl._note_key(g.id) FROM pawl.guard g
    WHERE accept_keys OR NOT EXISTS (SELECT FROM pawl.key_part k WHERE k.guard = g.id AND k.home = pawl._home())
                         AND NOT EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = g.id);
  PERFORM pawl._generate(g) FROM pawl.guard g WHERE g.kind = 'static'
    OR g.kind <> 'keyed' AND NOT EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id AND pawl._broken(g, p.tbl) IS NOT NULL);
  PERFORM pawl._cover_detached();
  mended := pawl._follow('{}') + pawl._cover();
  PERFORM pawl._follows(false);
  RETURN mended;
END $$;

-- The type of a key may have changed, and older versions did not note it. What cannot be a key any more gets none, and
-- problems() reports it.
CREATE OR REPLACE FUNCTION pawl._find_key_types(only_guard int) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record; found text;
BEGIN
  FOR p IN SELECT x.tbl, g.id, g.kind, g.key, g.key_type FROM pawl.protected x JOIN pawl.guard g ON g.id = x.guard
            WHERE g.kind IN ('row', 'by') AND g.id = coalesce(only_guard, g.id) AND EXISTS (SELECT FROM pg_class c WHERE c.oid = x.tbl) LOOP
    BEGIN
      IF p.kind = 'by' THEN found := pawl._key_type_by(p.tbl, p.key);
      ELSE found := (SELECT pawl._key_type_of(a.atttypid, a.attcollation) FROM pg_attribute a WHERE a.attrelid = p.tbl AND a.attname = p.key);
      END IF;
    EXCEPTION WHEN OTHERS THEN
      found := NULL;
    END;
    UPDATE pawl.guard o SET key_type = found WHERE o.id = p.id AND found IS DISTINCT FROM p.key_type;
  END LOOP;
END $$;

-- After a restore into another cluster: this is home now. Transaction ids noted in the old one mean nothing here.
CREATE OR REPLACE FUNCTION pawl.adopt() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  g pawl.guard;
BEGIN
  FOR g IN SELECT * FROM pawl.guard ORDER BY id LOOP
    PERFORM setval(g.raiser, pg_current_xact_id()::text::bigint);
    PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint);
  END LOOP;
  UPDATE pawl.installation SET cluster = (pg_control_system()).system_identifier;
  PERFORM pawl._follows(true);
  PERFORM pawl._note_key(o.id) FROM pawl.guard o WHERE NOT EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = o.id);
  PERFORM pawl._follows(false);
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
    SELECT format('%s as %s ' || CASE s.fingerprint WHEN 'no right' THEN 'uses tokens and may not raise the fence' WHEN 'no key' THEN 'writes rows whose key cannot be computed' ELSE 'writes without a token' END || ': %s (last seen %s)',
                  coalesce(nullif(s.application_name, ''), 'an unnamed program'), s.login, s.statement,
                  to_char(max(s.at), 'YYYY-MM-DD HH24:MI:SS'))
      FROM pawl.sightings s WHERE s.guard = g.name AND s.at >= g.mode_since
     GROUP BY s.application_name, s.login, s.statement, s.fingerprint ORDER BY max(s.at) DESC LIMIT 20);
  IF would > 0 AND pawl._mode(g) <> 'enforce' THEN
    because := because || format('%s writes would have been refused since %s', would, to_char(g.mode_since, 'YYYY-MM-DD HH24:MI:SS'));
  END IF;
  ready := cardinality(because) = 0;
END $$;
