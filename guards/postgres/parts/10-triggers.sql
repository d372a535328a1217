-- The trigger function that is generated for each guard, and the triggers on its tables.

--
-- Generated, so that the fast path has nothing to look up. It is ONE expression (each further one costs as much as the
-- check itself), evaluated from left to right: the token is the fence; the shared lock; and the statement sees the transaction
-- that raised it last, which is another one. That also shows that the token *still* is the fence: a raise notes its own transaction first, under
-- the exclusive lock that it keeps to its end. Had it raised after our look at the fence, then it was under way when our
-- snapshot was taken (before that look), so we do not see it. It needs no policy: an equal token is admitted in every
-- mode. Last, the session notes that it uses tokens. A NULL anywhere ends in the slow path. (AND does not stop at a NULL, so the
-- first look IS TRUE or not: nothing more is done for writers without a token.)
-- STABLE makes pg_current_snapshot() the snapshot of the statement that writes, which is what must be judged.
-- SECURITY DEFINER: a writer needs no privilege for what the trigger calls, and cannot call it by hand. What runs before
-- the calls is qualified, operators too; a pinned search_path would cost more than the check.

CREATE OR REPLACE FUNCTION pawl._generate_static(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fast text := format($f$
  IF (pg_catalog.current_setting(%1$L, true) OPERATOR(pg_catalog.=) pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass)::pg_catalog.text) IS TRUE
     AND pg_catalog.pg_try_advisory_xact_lock_shared(%3$s)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(%4$L::pg_catalog.regclass)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
     AND (pg_catalog.pg_current_xact_id_if_assigned() IS NULL
          OR pg_catalog.pg_sequence_last_value(%4$L::pg_catalog.regclass)::pg_catalog.text OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text)
     AND (pg_catalog.current_setting(%5$L, true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(%6$s))
  THEN RETURN NULL; END IF;$f$, g.setting, concat('pawl.fence_', g.id), g.lock_key, concat('pawl.raiser_', g.id), concat('pawl.used._', g.id), g.id);
BEGIN
  IF pawl._has_library() THEN
    fast := format($f$
  IF pawl._c_statement(%1$L, %2$L, %3$s, %4$L, %5$s) THEN RETURN NULL; END IF;$f$, g.setting, concat('pawl.fence_', g.id), g.lock_key, concat('pawl.raiser_', g.id), g.id);
  END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql STABLE SECURITY DEFINER AS $b$
BEGIN%2$s
  PERFORM pawl._on_statement(%1$s, pg_catalog.pg_current_snapshot());
  RETURN NULL;
END $b$ $f$, g.id, CASE g.equal WHEN 'accept' THEN fast END);
END $$;

-- As SQL: whether the fence that is kept for a key is greater than this token; see _row_fence().
CREATE OR REPLACE FUNCTION pawl._kept_above(g pawl.guard, key text, token text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('EXISTS (SELECT FROM pawl.keyed_fence kept WHERE kept.guard OPERATOR(pg_catalog.=) %s AND kept.key OPERATOR(pg_catalog.=) (%s) '
                'AND kept.token OPERATOR(pg_catalog.>) %s)', g.id, key, token)
$$;

-- The token that use('orders:7', 34) carries is {"7": "34"}; the fast path knows it by its text.
CREATE OR REPLACE FUNCTION pawl._generate_row(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  old text := pawl._spelled('OLD.' || quote_ident(g.key), g.key_type);
  new text := pawl._spelled('NEW.' || quote_ident(g.key), g.key_type);
  fast text := format($f$(pg_catalog.current_setting(%2$L, true) OPERATOR(pg_catalog.=) OLD.pawl_token::pg_catalog.text
        OR pg_catalog.current_setting(%2$L, true) OPERATOR(pg_catalog.=)
           pg_catalog.concat('{', pg_catalog.to_json(%3$s)::pg_catalog.text, ': "', OLD.pawl_token, '"}')) IS TRUE
       AND %3$s OPERATOR(pg_catalog.=) %4$s
       AND pg_catalog.pg_try_advisory_xact_lock_shared(%5$s)
       AND OLD.pawl_token OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(%6$L::pg_catalog.regclass), 1)
       AND (pg_catalog.current_setting(%7$L, true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(%1$s))$f$,
       g.id, g.setting, old, new, g.lock_key, concat('pawl.fence_', g.id), concat('pawl.used._', g.id));
BEGIN
  IF pawl._has_library() THEN
    fast := format('pawl._c_row(%L, OLD.pawl_token, %s, %s, %L, %s, %s)', g.setting, old, new, concat('pawl.fence_', g.id), g.lock_key, g.id);
  ELSE
    fast := fast || format($f$
       AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
       AND NOT %s$f$, pawl._kept_above(g, old, 'OLD.pawl_token'));
  END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER %5$s AS $b$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    IF %2$s
    THEN NEW.pawl_token := OLD.pawl_token; RETURN NEW; END IF;
    IF %3$s OPERATOR(pg_catalog.=) %4$s THEN
      NEW.pawl_token := pawl._row_stays(%1$s, %3$s, OLD.pawl_token);
      RETURN NEW;
    END IF;
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT' AND TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    PERFORM pawl._row_leaves(%1$s, %3$s, OLD.pawl_token);
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN RETURN OLD; END IF;
  END IF;
  IF TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    NEW.pawl_token := pawl._row_arrives(%1$s, %4$s);
    RETURN NEW;
  END IF;
  PERFORM pawl._on_truncate(%1$s);
  RETURN NULL;
END $b$ $f$, g.id, fast, old, new, pawl._pins(g.key_type, false));
  PERFORM pawl._generate_use(g);
  PERFORM pawl._generate_touch(g);
END $$;

-- use() of a row whose fence is exactly this token: the row is locked, as a write would lock it, and that holds the fence. NULL
-- is for the slow path, also where nothing is refused: that must not wait for a row.
CREATE OR REPLACE FUNCTION pawl._generate_use(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id);
  type oid := (SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = g.key AND NOT a.attisdropped);
  -- As what a key is compared; it is read as _canonical_key() reads it. Other types take the slow path.
  compared text := CASE WHEN type IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN 'pg_catalog.int8' WHEN type = 'uuid'::regtype THEN 'pg_catalog.uuid'
                        WHEN type IN ('text'::regtype, 'character varying'::regtype) THEN 'pg_catalog.text' END;
  row_of_key text := format('SELECT %s INTO spelled FROM %s t', pawl._spelled('t.' || quote_ident(g.key), g.key_type), tbl);
  -- The type is looked at first (it needs no row), because a cast from another one may be code of that type's owner.
  is_at_token text := format(' WHERE t.%1$I OPERATOR(pg_catalog.=) $1::%2$s AND t.pawl_token OPERATOR(pg_catalog.=) $2 AND (SELECT a.atttypid FROM pg_catalog.pg_attribute a '
                             'WHERE a.attrelid OPERATOR(pg_catalog.=) %3$L::pg_catalog.regclass AND a.attname OPERATOR(pg_catalog.=) %1$L) OPERATOR(pg_catalog.=) %4$L::pg_catalog.regtype',
                             g.key, compared, tbl, type::regtype);
  -- PostgreSQL 15 can turn a table into a view, whose functions would run when the query is planned. A view has no file.
  is_table text := format('(pg_catalog.pg_relation_filenode(%1$L::pg_catalog.regclass) IS NOT NULL OR pg_catalog.pg_partition_root(%1$L::pg_catalog.regclass) IS NOT NULL)', tbl);
  enforces text := format($f$ AND g.id OPERATOR(pg_catalog.=) %1$s AND g.mode OPERATOR(pg_catalog.=) 'enforce'
     AND g.answered OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass), 1)$f$, g.id, concat('pawl.emergency_', g.id));
  kept_above text := pawl._kept_above(g, 'spelled', '$2');
  use text := 'RETURN NULL;';
BEGIN
  IF tbl IS NOT NULL AND compared IS NOT NULL THEN
    use := format($f$
  IF pg_catalog.length(key) OPERATOR(pg_catalog.>) 512 OR NOT %8$s OR pg_catalog.current_setting(%2$L, true) OPERATOR(pg_catalog.<>) ''
     OR NOT (coalesce(pg_catalog.current_setting(%5$L, true), '') OPERATOR(pg_catalog.=) '1' OR pawl._remember(%1$s))
     OR pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed'
     OR NOT pg_catalog.pg_try_advisory_xact_lock_shared(7295, %1$s) OR NOT pg_catalog.pg_try_advisory_xact_lock_shared(%3$s)
     OR token OPERATOR(pg_catalog.<) coalesce(pg_catalog.pg_sequence_last_value(%4$L::pg_catalog.regclass), 1) THEN RETURN NULL; END IF;
  %6$s
  IF spelled IS NULL OR %7$s THEN RETURN NULL; END IF;
  spelled := pg_catalog.set_config(%2$L, pg_catalog.concat('{', pg_catalog.to_json(spelled)::pg_catalog.text, ': "', token, '"}'), true);
  RETURN 'admitted';$f$, g.id, g.setting, g.lock_key, concat('pawl.fence_', g.id), concat('pawl.used._', g.id),
    row_of_key || ', pawl.guard g' || is_at_token || enforces || ' FOR NO KEY UPDATE OF t;', kept_above, is_table);
  END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.use_%1$s(key text, token bigint) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $b$
DECLARE
  spelled text;
BEGIN
  %2$s
END $b$ $f$, g.id, use);
  EXECUTE format('REVOKE ALL ON FUNCTION pawl.use_%s(text, bigint) FROM PUBLIC', g.id);
  EXECUTE format('GRANT EXECUTE ON FUNCTION pawl.use_%s(text, bigint) TO %s', g.id, pawl._writers());
END $$;

-- The role that may call use(), advance() and so on, as GRANT wants it. Whether they raise a fence, _may_raise() says.
CREATE OR REPLACE FUNCTION pawl._writers() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN upper(i.writers) IN ('PUBLIC', '') THEN 'PUBLIC' ELSE quote_ident(i.writers) END FROM pawl.installation i
$$;

-- WHOSE CODE RUNS AS WHOM. Guards run with the rights of their owner, who may be a superuser, in sessions of others. So they must not
-- run what the owner of a table has written: triggers, rules, constraints and indexes of the table, which an UPDATE runs;
-- functions and operators in a `by` expression; casts. The first two are left to functions that belong to the table's owner, as
-- SECURITY DEFINER; casts are avoided (see _spelled()). Such a function is in the schema pawl, where that role may create
-- nothing, so it cannot replace it; it can make it SECURITY INVOKER, so the function looks whose rights it has.

-- Whether a function runs with the rights of a table's owner.
CREATE OR REPLACE FUNCTION pawl._belongs_to_owner(function text, tbl regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_class c ON c.relowner = p.proowner WHERE p.oid = to_regprocedure(function) AND p.prosecdef AND c.oid = tbl)
$$;

-- Gives a function of the schema pawl to the owner of a table.
CREATE OR REPLACE FUNCTION pawl._give_to_owner(function text, tbl regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner regrole := (SELECT c.relowner FROM pg_class c WHERE c.oid = tbl);
  may_create boolean := has_schema_privilege(owner, 'pawl', 'CREATE');
BEGIN
  EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', function);
  IF pawl._belongs_to_owner(function, tbl) THEN RETURN; END IF;
  IF NOT may_create THEN EXECUTE format('GRANT CREATE ON SCHEMA pawl TO %s', owner); END IF;
  EXECUTE format('ALTER FUNCTION %s OWNER TO %s', function, owner);
  IF NOT may_create THEN EXECUTE format('REVOKE CREATE ON SCHEMA pawl FROM %s', owner); END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE EXCEPTION 'pawl: the guard of % would run code of its owner, %, with the rights of %', tbl, owner, current_user
    USING ERRCODE = '42501', HINT = format('Let a superuser install the guard, or %s, or a member of it: GRANT %1$s TO %I.', owner, current_user);
END $$;

-- row: what advance() and use() do to a row, with the rights of the table's owner. Its triggers may name things without their schema, so
-- they run with the search_path that a session of the owner has, and the schema of the table. Temporary objects, which are the caller's, come last.
CREATE OR REPLACE FUNCTION pawl._generate_touch(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := (SELECT p.tbl FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = g.id);
BEGIN
  IF tbl IS NULL THEN RETURN; END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.touch_%1$s(tbl regclass, is_key text, token bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $b$
DECLARE
  in_row bigint;
  statement text := pg_catalog.format('UPDATE %%s SET pawl_token = $1 WHERE %%s RETURNING pawl_token', tbl, is_key);
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) tbl
                    AND pg_catalog.pg_get_userbyid(c.relowner) OPERATOR(pg_catalog.=) current_user) THEN
    RAISE EXCEPTION 'pawl: the function pawl.touch_%1$s does not run with the rights of the owner of %%', tbl
      USING ERRCODE = '55000', HINT = 'SELECT pawl.repair().';
  END IF;
  PERFORM set_config('search_path', format('%%s, %%I, pg_temp', coalesce(
      (SELECT nullif(substr(s, length('search_path=') + 1), '') FROM pg_db_role_setting d CROSS JOIN LATERAL unnest(d.setconfig) s
        WHERE s LIKE 'search_path=%%' AND d.setrole IN (0, c.relowner) AND d.setdatabase IN (0, (SELECT o.oid FROM pg_database o WHERE o.datname = current_database()))
        ORDER BY d.setrole <> 0 DESC, d.setdatabase <> 0 DESC LIMIT 1), '"$user", public'), n.nspname), true)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl;
  EXECUTE statement INTO in_row USING token;
  RETURN in_row;
END $b$ $f$, g.id);
  PERFORM pawl._give_to_owner(format('pawl.touch_%s(regclass, text, bigint)', g.id), tbl);
END $$;

-- by: whether the key is more than a column of the table.
CREATE OR REPLACE FUNCTION pawl._is_computed(g pawl.guard) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(g.computed, NOT EXISTS (SELECT FROM pawl.protected p JOIN pg_attribute a ON a.attrelid = p.tbl
                                           WHERE p.guard = g.id AND quote_ident(a.attname) = g.key AND a.attnum > 0 AND NOT a.attisdropped))
$$;

-- by: an expression of SQL that spells the key of a row.
CREATE OR REPLACE FUNCTION pawl._key_sql(g pawl.guard) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format(CASE WHEN pawl._may_be_long(g.key_type) THEN 'coalesce(pawl._short(%s), '''')' ELSE 'coalesce(%s, '''')' END,
                CASE WHEN pawl._is_computed(g) THEN pawl._spelled_by_owner('(' || g.key || ')', g.key_type) ELSE pawl._spelled(g.key, g.key_type) END)
$$;

-- The keys that a statement has touched, as SQL, for one TG_OP.
CREATE OR REPLACE FUNCTION pawl._touched_sql(g pawl.guard, op text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT string_agg(format('SELECT %s FROM %s', pawl._key_sql(g), t), ' UNION ALL ')
    FROM unnest(CASE op WHEN 'INSERT' THEN '{pawl_new}' WHEN 'DELETE' THEN '{pawl_old}' ELSE '{pawl_old,pawl_new}'::text[] END) t
$$;

CREATE OR REPLACE FUNCTION pawl._generate_by(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = g.id) THEN RETURN; END IF;
  IF pawl._is_computed(g) THEN PERFORM pawl._generate_by_expression(g); ELSE PERFORM pawl._generate_by_column(g); END IF;
END $$;

-- An expression of the table's owner: its trigger function belongs to that role, computes the keys, and hands them to
-- pawl.judge_<id>(), which only that role may call. One key goes to the C library first, which changes nothing, as _hold_key(). It runs with a pinned search_path, so functions of its own must be qualified; settings that
-- change how values are spelled are pinned, too.
CREATE OR REPLACE FUNCTION pawl._generate_by_expression(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id);
  owner regrole := (SELECT c.relowner FROM pg_class c WHERE c.oid = tbl);
  fast text := '';
BEGIN
  IF pawl._has_library() THEN
    fast := format($f$
  IF TG_OP <> 'TRUNCATE' AND pg_catalog.cardinality(keys) = 1 AND pawl._c_keys(%L, keys[1], keys[1], %L, %s, %s) THEN RETURN NULL; END IF;$f$,
                   g.setting, concat('pawl.fence_', g.id), g.lock_key, g.id);
    EXECUTE format('GRANT EXECUTE ON FUNCTION pawl._c_keys TO %s', owner);
  END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.judge_%1$s(what text, keys text[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $b$
BEGIN
  IF what = 'look' THEN RETURN pawl._may_hold(%1$s, NULL); END IF;
  IF what = 'no key' THEN RETURN pawl._without_key(%1$s, keys[1]); END IF;
  IF what = 'TRUNCATE' THEN PERFORM pawl._on_truncate(%1$s, keys); ELSE PERFORM pawl._on_keys(%1$s, %2$L, %3$s, %4$L, keys); END IF;
  RETURN true;
END $b$ $f$, g.id, g.setting, g.lock_key, concat('pawl.fence_', g.id));
  EXECUTE format('REVOKE ALL ON FUNCTION pawl.judge_%s(text, text[]) FROM PUBLIC', g.id);
  EXECUTE format('GRANT EXECUTE ON FUNCTION pawl.judge_%s(text, text[]) TO %s', g.id, owner);
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp %2$s AS $b$
#variable_conflict use_column
DECLARE
  keys text[];
BEGIN
  BEGIN
    CASE TG_OP
      WHEN 'INSERT' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%3$s) AS touched(k));
      WHEN 'DELETE' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%4$s) AS touched(k));
      WHEN 'UPDATE' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%5$s) AS touched(k));
      ELSE
        IF pawl.judge_%1$s('look', NULL) THEN
          EXECUTE pg_catalog.format('SELECT pg_catalog.array_agg(DISTINCT %%s) FROM %%s', %6$L, TG_RELID::pg_catalog.regclass) INTO keys;
        END IF;
    END CASE;
  EXCEPTION WHEN OTHERS THEN
    IF pawl.judge_%1$s('no key', ARRAY[SQLERRM]) THEN RAISE; END IF;
    RETURN NULL;
  END;%7$s
  PERFORM pawl.judge_%1$s(TG_OP, keys);
  RETURN NULL;
END $b$ $f$, g.id, pawl._pins(g.key_type, true), pawl._touched_sql(g, 'INSERT'), pawl._touched_sql(g, 'DELETE'), pawl._touched_sql(g, 'UPDATE'), pawl._key_sql(g), fast);
  PERFORM pawl._give_to_owner(format('pawl.guard_%s()', g.id), tbl);
END $$;

-- The same question to the C library. It reads the rows itself where it can spell the keys; others are spelled by SQL.
CREATE OR REPLACE FUNCTION pawl._touched_in_c(g pawl.guard, op text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN g.key_type IN ('smallint', 'integer', 'bigint', 'uuid', 'text', 'character varying')
    THEN format(' SELECT pawl._c_touched(%L, %L, %L, %L, %L, %s, %s) INTO held;', g.setting, (parse_ident(g.key))[1], op <> 'INSERT', op <> 'DELETE',
                concat('pawl.fence_', g.id), g.lock_key, g.id)
    ELSE format(' SELECT pawl._c_keys(%L, pg_catalog.min(k), pg_catalog.max(k), %L, %s, %s) INTO held FROM (%s) AS touched(k);',
                g.setting, concat('pawl.fence_', g.id), g.lock_key, g.id, pawl._touched_sql(g, op)) END
$$;

-- A column: settings that change how values are spelled are pinned where its type needs them. The fast path is for a
-- statement that has touched one key, whose fence is the token carried: one query finds the key and holds its fence, as
-- _hold_key() does.
CREATE OR REPLACE FUNCTION pawl._generate_by_column(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pins text := pawl._pins(g.key_type, false);
  before text := format($f$(pg_catalog.current_setting(%1$L, true) OPERATOR(pg_catalog.<>) '') IS TRUE
     AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
     AND pg_catalog.pg_try_advisory_xact_lock_shared(%2$s)
     AND (pg_catalog.current_setting(%3$L, true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(%4$s))$f$, g.setting, g.lock_key, concat('pawl.used._', g.id), g.id);
  one_key text := format($f$
    SELECT true INTO held
      FROM (SELECT pg_catalog.min(k) AS low, pg_catalog.max(k) AS high FROM (%%s) AS touched(k)) AS b JOIN pawl.keyed_fence f ON f.key OPERATOR(pg_catalog.=) b.low
     WHERE b.low OPERATOR(pg_catalog.=) b.high AND f.guard OPERATOR(pg_catalog.=) %1$s
       AND f.token OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass), 1)
       AND (pg_catalog.current_setting(%3$L, true) OPERATOR(pg_catalog.=) f.token::pg_catalog.text
            OR pg_catalog.current_setting(%3$L, true) OPERATOR(pg_catalog.=) pg_catalog.concat('{', pg_catalog.to_json(f.key)::pg_catalog.text, ': "', f.token, '"}'))
       FOR SHARE OF f SKIP LOCKED;$f$, g.id, concat('pawl.fence_', g.id), g.setting);
  by_op text[] := ARRAY[format(one_key, pawl._touched_sql(g, 'UPDATE')), format(one_key, pawl._touched_sql(g, 'INSERT')), format(one_key, pawl._touched_sql(g, 'DELETE'))];
BEGIN
  IF pawl._has_library() THEN
    before := format('(pg_catalog.current_setting(%L, true) OPERATOR(pg_catalog.<>) '''') IS TRUE', g.setting);
    by_op := ARRAY(SELECT pawl._touched_in_c(g, op) FROM unnest('{UPDATE,INSERT,DELETE}'::text[]) WITH ORDINALITY AS u(op, at) ORDER BY at);
  END IF;
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER %2$s AS $b$
#variable_conflict use_column
DECLARE
  held boolean; keys text[];
BEGIN
  IF %5$s THEN
    IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN %6$s
    ELSIF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN %7$s
    ELSIF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN %8$s
    END IF;
    IF held THEN RETURN NULL; END IF;
  END IF;
  CASE TG_OP
    WHEN 'INSERT' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%9$s) AS touched(k));
    WHEN 'DELETE' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%10$s) AS touched(k));
    WHEN 'UPDATE' THEN keys := (SELECT pg_catalog.array_agg(DISTINCT k) FROM (%11$s) AS touched(k));
    ELSE
      PERFORM pawl._on_truncate(%1$s);
      RETURN NULL;
  END CASE;
  PERFORM pawl._on_keys(%1$s, %3$L, %4$s, %12$L, keys);
  RETURN NULL;
END $b$ $f$, g.id, CASE WHEN pins <> '' THEN 'SET search_path = pg_catalog, pg_temp ' || pins ELSE '' END, g.setting, g.lock_key, before,
    by_op[1], by_op[2], by_op[3], pawl._touched_sql(g, 'INSERT'), pawl._touched_sql(g, 'DELETE'), pawl._touched_sql(g, 'UPDATE'), concat('pawl.fence_', g.id));
END $$;

-- A function as it is now: its body, its settings, and with whose rights it runs.
CREATE OR REPLACE FUNCTION pawl._functions(named text) RETURNS TABLE (name text, now text, guard_id int)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)), md5(concat_ws(' ', p.prosrc, p.probin, p.proconfig::text, p.prosecdef, p.provolatile)),
         substring(p.proname, '^[a-z]+_([0-9]+)$')::int
    FROM pg_proc p WHERE p.pronamespace = 'pawl'::regnamespace AND p.proname ~ named
$$;

-- Notes the functions of the guard, or some, as it has just made them: others who may change them (a superuser; of some the owner of a
-- table) are noticed by problems().
CREATE OR REPLACE FUNCTION pawl._note_functions(named text DEFAULT '') RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
  INSERT INTO pawl.function_made (name, made) SELECT f.name, f.now FROM pawl._functions(named) f ON CONFLICT (name) DO UPDATE SET made = excluded.made
$$;

CREATE OR REPLACE FUNCTION pawl._generate(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner regrole;
BEGIN
  PERFORM pawl._note_lookalikes(g.id);
  CASE g.kind
    WHEN 'static' THEN PERFORM pawl._generate_static(g);
    WHEN 'row' THEN PERFORM pawl._generate_row(g);
    WHEN 'by' THEN PERFORM pawl._generate_by(g);
    WHEN 'keyed' THEN RETURN;
  END CASE;
  PERFORM pawl._note_functions(format('^[a-z]+_%s$', g.id));
  IF to_regprocedure(format('pawl.guard_%s()', g.id)) IS NULL THEN RETURN; END IF;  -- Nothing to guard yet.
  EXECUTE format('REVOKE ALL ON FUNCTION pawl.guard_%s() FROM PUBLIC', g.id);
  -- PostgreSQL copies row triggers to a new partition with the rights of the table's owner.
  FOR owner IN SELECT c.relowner::regrole FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = g.id AND g.kind = 'row' LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION pawl.guard_%s() TO %s', g.id, owner);
  END LOOP;
END $$;

-- The triggers that each kind needs, as the text after CREATE OR REPLACE TRIGGER name. Row triggers come last among a
-- table's BEFORE triggers (they fire by name): what others do to the key must be judged too. On a partitioned table
-- PostgreSQL itself copies row triggers to the partitions.
-- `type` is what pg_trigger.tgtype is then.
DROP FUNCTION IF EXISTS pawl._triggers(pawl.guard);
CREATE OR REPLACE FUNCTION pawl._triggers(g pawl.guard)
RETURNS TABLE (name name, events text, how text, type int)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.name::name, v.events, v.how, v.type FROM (VALUES
    ('static', 'pawl_guard',          'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 'FOR EACH STATEMENT', 62),
    ('row',    'zzz_pawl_guard',      'BEFORE INSERT OR UPDATE OR DELETE', 'FOR EACH ROW', 31),
    ('row',    'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT', 34),
    ('by',     'pawl_guard_insert',   'AFTER INSERT', 'REFERENCING NEW TABLE AS pawl_new FOR EACH STATEMENT', 4),
    ('by',     'pawl_guard_delete',   'AFTER DELETE', 'REFERENCING OLD TABLE AS pawl_old FOR EACH STATEMENT', 8),
    ('by',     'pawl_guard_update',   'AFTER UPDATE', 'REFERENCING OLD TABLE AS pawl_old NEW TABLE AS pawl_new FOR EACH STATEMENT', 16),
    ('by',     'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT', 34)
  ) AS v(kind, name, events, how, type) WHERE v.kind = g.kind
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
-- also under session_replication_role = replica. None should, where they would fail each write.
CREATE OR REPLACE FUNCTION pawl._coverage(only_root regclass DEFAULT NULL)
RETURNS TABLE (guard_id int, root regclass, tbl regclass, name name, events text, how text, enabled "char")
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT g.id, p.tbl, f.tbl, t.name, t.events, t.how, x.tgenabled
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard
         CROSS JOIN LATERAL pawl._family(p.tbl) f
         CROSS JOIN LATERAL pawl._triggers(g) t
         LEFT JOIN pg_trigger x ON x.tgrelid = f.tbl AND x.tgname = t.name
               AND x.tgfoid = to_regprocedure(format('pawl.guard_%s()', g.id))
               AND x.tgtype = t.type AND x.tgqual IS NULL AND x.tgattr::text = ''  -- Neither WHEN nor UPDATE OF: it fires for every write.
   WHERE p.tbl = coalesce(only_root, p.tbl) AND pawl._broken(g, p.tbl) IS NULL;
END $$;

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
    PERFORM pawl._lock_table(c.tbl, 'SHARE ROW EXCLUSIVE');
    PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how);
    mended := mended + 1;
  END LOOP;
  RETURN mended;
END $$;

-- Takes a lock on a table that the triggers need, without a queue behind it: who waits for a lock holds up all who come
-- later, so each try is short, and others get their turn in between.
CREATE OR REPLACE FUNCTION pawl._lock_table(tbl regclass, lock_mode text, wait interval DEFAULT '10 s') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
  deadline timestamptz := clock_timestamp() + wait;
BEGIN
  LOOP
    BEGIN
      EXECUTE format('LOCK TABLE %s IN %s MODE', tbl, lock_mode);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() >= deadline THEN
        RAISE EXCEPTION 'pawl: % is in use by other transactions', tbl
          USING ERRCODE = 'PW007', HINT = 'Nothing has changed. Try again when they have ended.',
                DETAIL = (SELECT coalesce(string_agg(DISTINCT pawl._spell_holder(l.pid, NULL, a.usename, a.application_name, a.xact_start), '; '), 'none any more')
                            FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
                           WHERE l.relation = tbl AND l.granted AND l.pid <> pg_backend_pid()
                             AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
      END IF;
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
END $$;
