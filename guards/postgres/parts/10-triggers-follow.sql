-- What a change of tables, types and functions does to guards: they follow, or it is refused, or problems() names it.

-- What the keys of a guard are made of: columns, functions, enums. Noted when the table is protected, because a change of any of them
-- can spell a key otherwise, and its fence is under the old spelling. Numbers of objects hold in one database of one cluster.
CREATE OR REPLACE FUNCTION pawl._home() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s/%s', (pg_control_system()).system_identifier, d.oid) FROM pg_database d WHERE d.datname = current_database()
$$;

-- A part as it is now; NULL when it is gone. Of a column by itself the kind of its type counts: 7 is '7' as integer, bigint and
-- numeric; within an expression all of its type does. Labels may be added to an enum. `candidates`: what the same words in an
-- expression could mean, too. Expressions are parsed in each session, and a function or an operator that fits better, or a cast, would be taken.
CREATE OR REPLACE FUNCTION pawl._part_now(class oid, obj oid, sub int, computed boolean) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE class
    WHEN 'pg_class'::regclass THEN
      (SELECT jsonb_build_object('name', a.attname, 'type', CASE
                WHEN computed THEN concat_ws(' ', format_type(a.atttypid, a.atttypmod), nullif(a.attcollation, 0))
                WHEN pawl._key_type_of(a.atttypid, a.attcollation) IN ('smallint', 'integer', 'bigint', 'numeric') THEN 'number'
                WHEN pawl._key_type_of(a.atttypid, a.attcollation) IN ('text', 'character varying') THEN 'text'
                ELSE coalesce(pawl._key_type_of(a.atttypid, a.attcollation), 'no key') END)
         FROM pg_attribute a WHERE a.attrelid = obj AND a.attnum = sub AND NOT a.attisdropped)
    WHEN 'pg_proc'::regclass THEN
      (SELECT jsonb_build_object('name', p.oid::regprocedure::text, 'body', md5(concat_ws(' ', p.prosrc, p.probin, pg_get_function_sqlbody(p.oid), p.proconfig::text)),
                'candidates', (SELECT string_agg(c.name, ' ' ORDER BY c.name COLLATE "C") FROM (
                                 SELECT o.oid::regprocedure::text FROM pg_proc o WHERE o.proname = p.proname AND o.pronamespace = p.pronamespace
                                 UNION ALL SELECT t.oid::regtype::text FROM pg_type t WHERE t.typname = p.proname AND t.typnamespace = p.pronamespace) AS c(name)  -- A cast in the form of a call.
                                WHERE p.pronamespace <> 'pg_catalog'::regnamespace)) FROM pg_proc p WHERE p.oid = obj)
    WHEN 'pg_operator'::regclass THEN
      (SELECT jsonb_build_object('name', o.oid::regoperator::text, 'body', o.oprcode::regprocedure::text,
                'candidates', (SELECT string_agg(c.oid::regoperator::text, ' ' ORDER BY c.oid::regoperator::text) FROM pg_operator c
                                WHERE c.oprname = o.oprname AND c.oprnamespace = o.oprnamespace)) FROM pg_operator o WHERE o.oid = obj)
    ELSE (SELECT jsonb_build_object('name', format_type(obj, NULL), 'labels', jsonb_object_agg(e.oid, e.enumlabel),
                'candidates', (SELECT string_agg(format('%s>%s', c.castsource::regtype, c.casttarget::regtype), ' ' ORDER BY c.oid) FROM pg_cast c WHERE obj IN (c.castsource, c.casttarget)))
            FROM pg_enum e WHERE e.enumtypid = obj HAVING count(*) > 0)
  END
$$;

-- The type of an expression over a table, and what it is made of. A view is parsed and never run: to plan a query would run
-- functions that look constant.
-- `changing` names what makes it another key at another time or in another session: then it is none.
DROP FUNCTION IF EXISTS pawl._look_at_key(regclass, text);
CREATE OR REPLACE FUNCTION pawl._look_at_key(tbl regclass, expression text, OUT type oid, OUT coll oid, OUT parts jsonb, OUT changing text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tree text; view text := format('pawl.%I', concat('key_of_', pg_backend_pid())); v oid;
BEGIN
  EXECUTE format('CREATE VIEW %s AS SELECT (%s) AS key FROM %s AS pawl_row', view, expression, tbl);
  v := view::regclass;
  SELECT a.atttypid, a.attcollation INTO type, coll FROM pg_attribute a WHERE a.attrelid = v AND a.attnum = 1;
  WITH used AS (SELECT DISTINCT d.refclassid, d.refobjid, d.refobjsubid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                 WHERE r.ev_class = v AND d.refobjid <> v),
       found(class, obj, sub) AS (
         SELECT u.refclassid, u.refobjid, u.refobjsubid FROM used u WHERE u.refclassid = 'pg_proc'::regclass OR u.refclassid = 'pg_class'::regclass AND u.refobjsubid > 0
         UNION SELECT 'pg_proc'::regclass, o.oprcode, 0 FROM used u JOIN pg_operator o ON u.refclassid = 'pg_operator'::regclass AND o.oid = u.refobjid
         UNION SELECT u.refclassid, u.refobjid, 0 FROM used u WHERE u.refclassid = 'pg_operator'::regclass
         UNION SELECT 'pg_type'::regclass, t.oid, 0 FROM used u LEFT JOIN pg_attribute a ON u.refclassid = 'pg_class'::regclass AND a.attrelid = u.refobjid AND a.attnum = u.refobjsubid
                 JOIN pg_type t ON t.typtype = 'e' AND (t.oid = a.atttypid OR u.refclassid = 'pg_type'::regclass AND t.oid = u.refobjid))
  SELECT coalesce(jsonb_agg(jsonb_build_array(class::bigint, obj::bigint, sub)), '[]') INTO parts FROM found;
  SELECT r.ev_action::text INTO tree FROM pg_rewrite r WHERE r.ev_class = v;
  changing := CASE WHEN tree ~ '[{](SUBLINK|AGGREF|WINDOWFUNC)' THEN 'it reads more than the row'
                   WHEN tree ~ ':varattno -' THEN 'it reads a system column'
                   WHEN tree ~ '[{]SQLVALUEFUNCTION' THEN 'it reads the time or the session'
                   ELSE (SELECT format('it calls %s', p.oid::regprocedure) FROM regexp_matches(tree, ':(?:op)?funcid ([0-9]+)', 'g') m JOIN pg_proc p ON p.oid = m[1]::oid
                          WHERE p.pronamespace = 'pg_catalog'::regnamespace
                            AND (p.provolatile = 'v' OR p.provolatile = 's' AND (p.pronargs = 0 OR p.proname = 'current_setting')) LIMIT 1) END;
  EXECUTE format('DROP VIEW %s', view);
EXCEPTION WHEN invalid_table_definition THEN  -- No column can have such a type.
  type := 'record'::regtype; coll := 0; parts := '[]';
END $$;

-- Notes what the keys of a guard are made of now. From then on that is how they are spelled.
CREATE OR REPLACE FUNCTION pawl._note_key(guard_id int) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; tbl regclass; plain boolean;
BEGIN
  SELECT o.* INTO g FROM pawl.guard o WHERE o.id = guard_id;
  SELECT p.tbl INTO tbl FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = guard_id AND g.kind IN ('row', 'by');
  IF tbl IS NULL THEN RETURN; END IF;
  DELETE FROM pawl.key_part k WHERE k.guard = guard_id;
  plain := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attnum > 0 AND NOT a.attisdropped AND CASE g.kind WHEN 'row' THEN a.attname ELSE quote_ident(a.attname) END = g.key);
  UPDATE pawl.guard o SET computed = NOT plain WHERE o.id = guard_id AND o.computed IS DISTINCT FROM NOT plain;
  INSERT INTO pawl.key_part (guard, home, class, obj, sub, noted)
    SELECT guard_id, pawl._home(), (p ->> 0)::oid, (p ->> 1)::oid, (p ->> 2)::int, n.noted
      FROM pawl._look_at_key(tbl, CASE g.kind WHEN 'row' THEN quote_ident(g.key) ELSE g.key END) k CROSS JOIN LATERAL jsonb_array_elements(k.parts) p
           CROSS JOIN LATERAL pawl._part_now((p ->> 0)::oid, (p ->> 1)::oid, (p ->> 2)::int, NOT plain) AS n(noted)
     WHERE n.noted IS NOT NULL;
EXCEPTION WHEN undefined_column OR undefined_function OR undefined_object OR undefined_table OR datatype_mismatch OR ambiguous_function THEN
  NULL;  -- _broken() says so.
END $$;

-- Whether all that has changed is what the expression could mean, and it still means what was noted.
CREATE OR REPLACE FUNCTION pawl._means_the_same(guard_id int) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; tbl regclass; parts jsonb;
BEGIN
  IF EXISTS (SELECT FROM pawl._parts_here() k WHERE k.guard_id = _means_the_same.guard_id AND NOT coalesce(k.now @> (k.noted - 'candidates'), false)) THEN RETURN false; END IF;
  IF EXISTS (SELECT FROM pawl.key_part k WHERE k.guard = guard_id AND k.home <> pawl._home()) THEN RETURN false; END IF;
  SELECT o.* INTO g FROM pawl.guard o WHERE o.id = guard_id;
  SELECT p.tbl INTO tbl FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl WHERE p.guard = guard_id;
  IF tbl IS NULL THEN RETURN false; END IF;
  BEGIN
    parts := (pawl._look_at_key(tbl, CASE g.kind WHEN 'row' THEN quote_ident(g.key) ELSE g.key END)).parts;
  EXCEPTION WHEN syntax_error_or_access_rule_violation THEN  -- Ambiguous now, and the like.
    RETURN false;
  END;
  RETURN NOT EXISTS (SELECT FROM jsonb_array_elements(parts) p FULL JOIN (SELECT * FROM pawl.key_part o WHERE o.guard = guard_id) k
                         ON k.class = (p ->> 0)::oid AND k.obj = (p ->> 1)::oid AND k.sub = (p ->> 2)::int
                      WHERE p IS NULL OR k.obj IS NULL AND pawl._part_now((p ->> 0)::oid, (p ->> 1)::oid, (p ->> 2)::int, coalesce(g.computed, true)) IS NOT NULL);
END $$;

-- A part without the numbers of objects that it may have noted.
CREATE OR REPLACE FUNCTION pawl._without_numbers(part jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT part || CASE WHEN part ? 'labels' THEN jsonb_build_object('labels', (SELECT jsonb_agg(l.value) FROM jsonb_each(part -> 'labels') l))
                      WHEN part ? 'type' THEN jsonb_build_object('type', regexp_replace(part ->> 'type', ' [0-9]+$', '')) ELSE '{}' END
$$;

-- The parts as they can be found here. In a database that was restored or copied the numbers mean nothing: there a part is what has its name, and
-- what was noted with numbers is compared without them. (So it cannot be followed to another name, until adopt() or repair().)
CREATE OR REPLACE FUNCTION pawl._parts_here() RETURNS TABLE (guard_id int, class oid, obj oid, sub int, noted jsonb, now jsonb)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.id, k.class, k.obj, k.sub, k.noted, pawl._part_now(k.class, k.obj, k.sub, coalesce(g.computed, true))
    FROM pawl.key_part k JOIN pawl.guard g ON g.id = k.guard AND g.kind IN ('row', 'by')
   WHERE k.home = pawl._home() AND EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id)
  UNION ALL
  SELECT g.id, k.class, f.obj, f.sub, pawl._without_numbers(k.noted), pawl._without_numbers(pawl._part_now(k.class, f.obj, f.sub, coalesce(g.computed, true)))
    FROM pawl.key_part k JOIN pawl.guard g ON g.id = k.guard AND g.kind IN ('row', 'by') JOIN pawl.protected p ON p.guard = g.id
         CROSS JOIN LATERAL (SELECT CASE k.class WHEN 'pg_class'::regclass THEN p.tbl::oid WHEN 'pg_proc'::regclass THEN to_regprocedure(k.noted ->> 'name')::oid
                                      WHEN 'pg_operator'::regclass THEN to_regoperator(k.noted ->> 'name')::oid
                                      ELSE to_regtype(k.noted ->> 'name')::oid END,
                                    coalesce((SELECT a.attnum FROM pg_attribute a WHERE k.class = 'pg_class'::regclass AND a.attrelid = p.tbl AND a.attname = k.noted ->> 'name' AND NOT a.attisdropped), 0)) AS f(obj, sub)
   WHERE k.home <> pawl._home()
$$;

-- Parts that are not as they were noted. how: gone, renamed, respelled; another: it is as it was, and something else may be meant.
CREATE OR REPLACE FUNCTION pawl._key_changes() RETURNS TABLE (guard_id int, class oid, obj oid, sub int, was text, now text, how text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT k.guard_id, k.class, k.obj, k.sub, k.noted ->> 'name', k.now ->> 'name',
         CASE WHEN k.now IS NULL THEN 'gone' WHEN k.now @> k.noted - 'candidates' THEN 'another' WHEN k.now - 'name' @> k.noted - 'name' - 'candidates' THEN 'renamed' ELSE 'respelled' END
    FROM pawl._parts_here() k WHERE NOT coalesce(k.now @> k.noted, false)
$$;

-- A table and all below it, foreign tables too.
CREATE OR REPLACE FUNCTION pawl._all_below(root regclass) RETURNS TABLE (tbl regclass, kind "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE family(oid) AS (
    SELECT root::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid)
  SELECT c.oid::regclass, c.relkind FROM family f JOIN pg_class c ON c.oid = f.oid
$$;

-- Why a guard with keys cannot judge writes to its table as that is: its triggers would fail each of them. NULL: it can.
CREATE OR REPLACE FUNCTION pawl._broken(g pawl.guard, tbl regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key record;
BEGIN
  IF g.kind NOT IN ('row', 'by') OR NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = tbl) THEN RETURN NULL; END IF;
  IF g.kind = 'row' AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = 'pawl_token' AND a.atttypid = 'bigint'::regtype AND NOT a.attisdropped) THEN
    RETURN 'the column pawl_token, which has the fences, is gone or not a bigint any more';
  END IF;
  IF g.kind = 'row' OR NOT pawl._is_computed(g) THEN
    SELECT a.attname, a.atttypid, a.attcollation INTO key FROM pg_attribute a
     WHERE a.attrelid = tbl AND NOT a.attisdropped AND CASE g.kind WHEN 'row' THEN a.attname ELSE quote_ident(a.attname) END = g.key;
    IF key.attname IS NULL THEN RETURN format('its key %s is gone', g.key); END IF;
    IF g.kind = 'row' AND pawl._key_type_of(key.atttypid, key.attcollation) IS NULL THEN RETURN format('its key %s cannot be one as %s', g.key, key.atttypid::regtype); END IF;
  ELSIF EXISTS (SELECT FROM pawl._key_changes() c WHERE c.guard_id = g.id AND c.how IN ('gone', 'renamed')) THEN
    RETURN format('its key %s reads %s', g.key, (SELECT string_agg(format('%s, which is %s', c.was, CASE c.how WHEN 'gone' THEN 'gone' ELSE c.now || ' now' END), ', ')
                                                   FROM pawl._key_changes() c WHERE c.guard_id = g.id AND c.how IN ('gone', 'renamed')));
  END IF;
  IF g.kind = 'by' AND EXISTS (SELECT FROM pawl._all_below(tbl) b WHERE b.kind = 'f') THEN
    RETURN format('%s is a foreign table, for which no trigger gets the rows of a statement', (SELECT b.tbl FROM pawl._all_below(tbl) b WHERE b.kind = 'f' LIMIT 1));
  END IF;
  RETURN NULL;
END $$;

-- Takes the triggers of a guard from a table and all below it.
CREATE OR REPLACE FUNCTION pawl._uncover(guard_id int, root regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN SELECT x.name, x.tbl FROM pawl._own_triggers() x WHERE x.guard_id = _uncover.guard_id AND x.tbl IN (SELECT b.tbl FROM pawl._all_below(root) b) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.name, t.tbl);
  END LOOP;
END $$;

-- Follows a key column to its new name and type, and a table to its new name and owner, which the guard's functions know.
-- What it cannot follow, _faults() names; a guard that cannot judge any more is taken from its table, or every write would fail.
CREATE OR REPLACE FUNCTION pawl._follow_keys(changed oid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record; g pawl.guard; renamed text; new_type text;
BEGIN
  FOR r IN SELECT o.id, p.tbl FROM pawl.guard o JOIN pawl.protected p ON p.guard = o.id JOIN pg_class c ON c.oid = p.tbl
            WHERE o.kind IN ('row', 'by') AND (p.tbl::oid = ANY (changed) OR EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = o.id) OR pawl._broken(o, p.tbl) IS NOT NULL) LOOP
    SELECT o.* INTO STRICT g FROM pawl.guard o WHERE o.id = r.id;
    SELECT CASE g.kind WHEN 'row' THEN k.now ELSE quote_ident(k.now) END INTO renamed FROM pawl._key_changes() k
     WHERE k.guard_id = g.id AND k.class = 'pg_class'::regclass AND k.now <> k.was AND g.computed IS FALSE;
    IF renamed IS NOT NULL THEN
      UPDATE pawl.guard o SET key = renamed WHERE o.id = g.id;
      UPDATE pawl.key_part k SET noted = k.noted || jsonb_build_object('name', pawl._part_now(k.class, k.obj, k.sub, false) ->> 'name')
       WHERE k.guard = g.id AND k.class = 'pg_class'::regclass;
      INSERT INTO pawl.audit (guard, what, before, after) VALUES (g.name, 'follow', g.key, renamed);
      RAISE NOTICE 'pawl: the key of the guard % is % now, as % was', g.name, renamed, g.key;
      g.key := renamed;
    END IF;
    IF pawl._broken(g, r.tbl) IS NOT NULL THEN
      PERFORM pawl._uncover(g.id, r.tbl);
      CONTINUE;
    END IF;
    IF EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = g.id AND k.how = 'another') THEN
      CONTINUE WHEN NOT pawl._means_the_same(g.id);
      PERFORM pawl._note_key(g.id);
    END IF;
    PERFORM pawl._find_key_types(g.id);
    PERFORM pawl._note_key(g.id) WHERE NOT EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = g.id);
    SELECT o.* INTO STRICT g FROM pawl.guard o WHERE o.id = r.id;
    PERFORM pawl._generate(g);
  END LOOP;
END $$;

-- Whether a view reads a table that is under this guard, itself or through other views: writes through it are judged.
CREATE OR REPLACE FUNCTION pawl._reads_guarded(view regclass, guard_id int) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE read(oid) AS (
    SELECT view::oid UNION SELECT d.refobjid FROM read JOIN pg_rewrite r ON r.ev_class = read.oid
      JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass)
  SELECT EXISTS (SELECT FROM read JOIN pawl.protected p ON p.guard = guard_id CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE f.tbl = read.oid)
$$;

-- What a change of tables has done to a guard, and _follow() can or cannot mend:
--   below       a protected table has become a partition or a child: writes through the table above it are not judged
--   name taken  another table has the name of a protected one, which may be gone; or a view that reads no table of its guard
CREATE OR REPLACE FUNCTION pawl._displaced() RETURNS TABLE (guard_id int, tbl regclass, how text, other regclass)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE above(tbl, oid) AS (
    SELECT p.tbl, p.tbl::oid FROM pawl.protected p UNION SELECT a.tbl, i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.oid)
  SELECT p.guard, p.tbl, 'below', a.oid::regclass
    FROM above a JOIN pawl.protected p ON p.tbl = a.tbl
   WHERE a.oid <> a.tbl AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = a.oid)
     AND NOT EXISTS (SELECT FROM pawl.protected o WHERE o.tbl = a.oid AND o.guard = p.guard)
  UNION ALL
  SELECT p.guard, p.tbl, 'name taken', c.oid::regclass
    FROM pawl.protected p JOIN pg_class c ON c.oid = to_regclass(p.named) AND c.relkind IN ('r', 'p', 'v', 'f')
   WHERE c.oid <> p.tbl AND NOT (c.relkind = 'v' AND pawl._reads_guarded(c.oid, p.guard))
     AND NOT EXISTS (SELECT FROM pawl.protected o WHERE o.tbl = c.oid AND o.guard = p.guard)
     AND NOT EXISTS (SELECT FROM pawl._family(c.oid) f WHERE f.tbl = p.tbl)
$$;

-- Puts the guard where the tables have gone: on the root above a protected table, and on a table that took its name.
-- Returns how many it has followed. What it cannot follow is refused by a guard that refuses anything, when this very
-- change (`changed`: the tables it names) is to blame; otherwise it warns, and problems() reports it.
CREATE OR REPLACE FUNCTION pawl._follow(changed oid[]) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record; g pawl.guard; why text; followed int := 0;
BEGIN
  FOR d IN SELECT x.*, p.named FROM pawl._displaced() x JOIN pawl.protected p ON p.tbl = x.tbl ORDER BY x.how LOOP
    SELECT * INTO STRICT g FROM pawl.guard WHERE id = d.guard_id;
    why := pawl._follow_one(g, d.tbl, d.how, d.other);
    IF why IS NULL THEN
      followed := followed + 1;
      RAISE NOTICE 'pawl: % is under the guard % now, as % was', d.other, g.name, d.named;
    ELSIF pawl._mode(g) IN ('canary', 'enforce')
          AND EXISTS (SELECT FROM unnest(changed) c WHERE c = d.tbl OR c = d.other OR c IN (SELECT f.tbl FROM pawl._family(d.other) f)) THEN
      RAISE EXCEPTION 'pawl: writes to % would not be judged by the guard % any more: %', d.other, g.name, why
        USING ERRCODE = '55000', HINT = format('In one transaction: SELECT pawl.unprotect(%L); this change; SELECT pawl.protect(the table to '
                                               'be guarded, guard => %L, …).', d.tbl, g.name);
    ELSE
      RAISE WARNING 'pawl: writes to % are not judged by the guard %: %', d.other, g.name, why;
    END IF;
  END LOOP;
  RETURN followed;
END $$;

-- Returns why not, or NULL.
CREATE OR REPLACE FUNCTION pawl._follow_one(g pawl.guard, tbl regclass, how text, other regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone boolean := NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = tbl);
BEGIN
  IF EXISTS (SELECT FROM pawl.protected p WHERE p.tbl = other) THEN RETURN 'it is under another guard'; END IF;
  IF how = 'name taken' AND (SELECT c.relkind FROM pg_class c WHERE c.oid = other) IN ('v', 'f') THEN RETURN 'it is a view or a foreign table, and reads no table under this guard'; END IF;
  IF how = 'name taken' AND g.kind = 'row' AND gone THEN RETURN 'the fences in the rows are gone with their table'; END IF;
  IF how = 'name taken' AND g.kind <> 'static' AND NOT gone THEN RETURN format('it has one table, %s', tbl); END IF;
  PERFORM pawl._insist_on_table(other);
  IF g.kind = 'row' THEN PERFORM pawl._prepare_row(other, g.key); END IF;
  IF g.kind = 'by' AND pawl._key_type_by(other, g.key) <> g.key_type THEN RETURN format('its key %s is of another type', g.key); END IF;
  IF how = 'below' OR gone THEN DELETE FROM pawl.protected p WHERE p.tbl = _follow_one.tbl; END IF;
  INSERT INTO pawl.protected (tbl, guard, named) VALUES (other, g.id, pawl._name_of(other));
  PERFORM pawl._note_key(g.id);
  PERFORM pawl._generate(o) FROM pawl.guard o WHERE o.id = g.id;
  PERFORM pawl._cover(other);
  INSERT INTO pawl.audit (guard, what, before, after) VALUES (g.name, 'follow', tbl::text, other::text);
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM;
END $$;

-- BEFORE triggers that fire after the row trigger of a guard (they fire by name), and may change what it has judged.
CREATE OR REPLACE FUNCTION pawl._late_triggers() RETURNS TABLE (guard_id int, root regclass, tbl regclass, name name, trigger oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.id, p.tbl, f.tbl, x.tgname, x.oid
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind = 'row'
         CROSS JOIN LATERAL pawl._family(p.tbl) f
         JOIN pg_trigger x ON x.tgrelid = f.tbl AND x.tgname > 'zzz_pawl_guard' AND NOT x.tgisinternal AND x.tgenabled <> 'D'
              AND (x.tgtype & 1) <> 0 AND (x.tgtype & 2) <> 0 AND (x.tgtype & 20) <> 0  -- ROW, BEFORE, INSERT or UPDATE
$$;

-- What keeps a guard from judging all writes although its triggers are in their places. root: the protected table; cause: another object that is to
-- blame.
CREATE OR REPLACE FUNCTION pawl._faults() RETURNS TABLE (guard_id int, root regclass, object text, cause oid, problem text, fix text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.guard_id, l.root, l.tbl::text, l.trigger, format('the trigger %s fires after the guard, and can change what it has judged', l.name),
         format('ALTER TRIGGER %I ON %s RENAME TO a name that sorts before zzz_pawl_guard', l.name, l.tbl)
    FROM pawl._late_triggers() l
  UNION ALL
  SELECT g.id, p.tbl, p.tbl::text, NULL, 'writes are not judged: ' || b.why, format('SELECT pawl.unprotect(%L), then protect it as it is now', p.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard CROSS JOIN LATERAL pawl._broken(g, p.tbl) AS b(why) WHERE b.why IS NOT NULL
  UNION ALL
  SELECT g.id, p.tbl, p.tbl::text, k.obj,
         format(CASE k.how WHEN 'another' THEN 'the key may mean something else than %s: something of its name, or a cast of its type, has come or gone' ELSE '%s has changed' END
                || ' since the table was protected: keys may be spelled otherwise, and have no fence under the new spelling', k.was),
         'advance the resources to a token of a new lease, then SELECT pawl.repair()'
    FROM pawl._key_changes() k JOIN pawl.guard g ON g.id = k.guard_id JOIN pawl.protected p ON p.guard = g.id
   WHERE k.how IN ('respelled', 'another') AND g.key_type IS NOT NULL AND pawl._broken(g, p.tbl) IS NULL
  UNION ALL
  SELECT g.id, p.tbl, f.tbl::text, i.inhparent, format('is a child of %s, too: writes through that are not judged', i.inhparent::regclass),
         format('SELECT pawl.protect(%L, guard => %L), or ALTER TABLE %s NO INHERIT %s', i.inhparent::regclass, g.name, f.tbl, i.inhparent::regclass)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind IN ('static', 'by') CROSS JOIN LATERAL pawl._family(p.tbl) f
         JOIN pg_inherits i ON i.inhrelid = f.tbl AND f.tbl <> p.tbl
   WHERE NOT EXISTS (SELECT FROM pawl.protected o CROSS JOIN LATERAL pawl._family(o.tbl) x WHERE o.guard = g.id AND x.tbl = i.inhparent)
  UNION ALL
  SELECT DISTINCT g.id, x.tbl, x.tbl::text, i.inhparent, format('was detached, and is a partition or a child of %s now: writes through that are not judged', i.inhparent::regclass),
         format('detach it, or SELECT pawl.unprotect(%L)', x.tbl)
    FROM pawl._own_triggers() x JOIN pawl.guard g ON g.id = x.guard_id AND g.kind = 'by' JOIN pg_inherits i ON i.inhrelid = x.tbl
   WHERE NOT EXISTS (SELECT FROM pawl.protected p CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE p.guard = g.id AND f.tbl = x.tbl)
     AND NOT EXISTS (SELECT FROM pawl._own_triggers() o WHERE o.guard_id = x.guard_id AND o.tbl = i.inhparent)
  UNION ALL
  SELECT g.id, p.tbl, f.tbl::text, f.tbl, format('its key %s may be NULL: a row without a key cannot be judged, and its write fails', g.key), format('ALTER TABLE %s ALTER %I SET NOT NULL', f.tbl, g.key)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind = 'row' CROSS JOIN LATERAL pawl._family(p.tbl) f
         JOIN pg_attribute a ON a.attrelid = f.tbl AND a.attname = g.key AND NOT a.attisdropped AND NOT a.attnotnull
  UNION ALL
  SELECT g.id, p.tbl, p.tbl::text, p.tbl, format('the key %s has no one spelling for equal values: a stale token may pass under another spelling', g.key),
         format('SELECT pawl.unprotect(%L), then protect it by a key of another type', p.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard
    LEFT JOIN pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key AND NOT a.attisdropped
   WHERE g.kind IN ('row', 'by') AND (g.key_type IS NULL OR a.attname IS NOT NULL AND pawl._key_type_of(a.atttypid, a.attcollation) IS NULL)
     AND pawl._broken(g, p.tbl) IS NULL
  UNION ALL
  SELECT g.id, p.tbl, f.tbl::text, f.tbl, 'is UNLOGGED: a crash of the server empties it, and the fences in its rows are gone', format('ALTER TABLE %s SET LOGGED', f.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind = 'row' CROSS JOIN LATERAL pawl._family(p.tbl) f
         JOIN pg_class c ON c.oid = f.tbl AND c.relpersistence = 'u'
  UNION ALL
  SELECT g.id, p.tbl, b.tbl::text, b.tbl, 'is a foreign table: writes straight into it, or at its own server, are not judged', format('detach %s', b.tbl)
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard CROSS JOIN LATERAL pawl._all_below(p.tbl) b WHERE b.kind = 'f'
$$;

CREATE OR REPLACE FUNCTION pawl._is_acknowledged(guard_id int, object text, problem text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM pawl.acknowledged a WHERE a.guard = guard_id AND a.object = coalesce(_is_acknowledged.object, '') AND a.problem = _is_acknowledged.problem)
$$;

-- A guard that refuses anything refuses a change that would let writes pass it; others warn. any_object: what it drops is not named.
-- judged: guards that had their triggers before it.
DROP FUNCTION IF EXISTS pawl._insist_on_no_fault(oid[], boolean);
CREATE OR REPLACE FUNCTION pawl._insist_on_no_fault(changed oid[], any_object boolean, judged int[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f record;
BEGIN
  FOR f IN SELECT x.*, g.name AS guard, pawl._reported_mode(g) AS mode FROM pawl._faults() x JOIN pawl.guard g ON g.id = x.guard_id
            WHERE (any_object AND EXISTS (SELECT FROM pawl._key_changes() k WHERE k.guard_id = x.guard_id AND k.how = 'gone')
                   OR x.guard_id = ANY (judged) AND NOT EXISTS (SELECT FROM pawl._own_triggers() t WHERE t.guard_id = x.guard_id) OR x.cause = ANY (changed) OR EXISTS (SELECT FROM pawl._all_below(x.root) b WHERE b.tbl = ANY (changed)))
              AND (NOT pawl._is_acknowledged(x.guard_id, x.object, x.problem)
                   OR x.cause = ANY (changed) AND EXISTS (SELECT FROM pg_trigger t WHERE t.oid = x.cause)) LOOP  -- A new one of that name.
    IF f.mode IN ('canary', 'enforce') THEN
      RAISE EXCEPTION 'pawl: this change would let writes pass the guard %: %: %', f.guard, f.object, f.problem USING ERRCODE = '55000', HINT = f.fix || '.';
    END IF;
    RAISE WARNING 'pawl: the guard % cannot refuse writes as it is: %: %', f.guard, f.object, f.problem USING HINT = f.fix || '.';
  END LOOP;
END $$;

-- Keeps the fences in the rows of a partition that goes.
CREATE OR REPLACE FUNCTION pawl._keep_fences_of(g pawl.guard, tbl regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET TimeZone = 'UTC' SET bytea_output = 'hex' AS $$
BEGIN
  EXECUTE format('INSERT INTO pawl.keyed_fence AS f (guard, key, token)
                  SELECT $1, k.key, max(k.token) FROM (SELECT %s, pawl_token FROM %s) AS k(key, token) WHERE k.key IS NOT NULL AND k.token > 0 GROUP BY k.key ORDER BY k.key COLLATE "C"
                  ON CONFLICT ON CONSTRAINT keyed_fence_pkey DO UPDATE SET token = greatest(f.token, excluded.token)', pawl._spelled(quote_ident(g.key), g.key_type), tbl) USING g.id;
END $$;

-- Partitions of tables with a fence per row, as text: the end of a DROP looks which of them are gone, and their fences with them.
CREATE OR REPLACE FUNCTION pawl._on_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  PERFORM set_config('pawl.before_drop', coalesce((SELECT jsonb_agg(jsonb_build_array(g.id, p.tbl::oid::bigint, f.tbl::oid::bigint, f.tbl::text))
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard AND g.kind = 'row' JOIN pg_class c ON c.oid = p.tbl AND c.relkind = 'p'
         CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE NOT f.is_root), '[]')::text, true);
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_kept_fences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
BEGIN
  FOR d IN SELECT g.name, pawl._reported_mode(g) AS mode, x ->> 3 AS tbl, c.oid::regclass AS root
             FROM jsonb_array_elements(coalesce(nullif(current_setting('pawl.before_drop', true), ''), '[]')::jsonb) x
                  JOIN pawl.guard g ON g.id = (x ->> 0)::int JOIN pg_class c ON c.oid = (x ->> 1)::oid
            WHERE NOT EXISTS (SELECT FROM pg_class o WHERE o.oid = (x ->> 2)::oid) ORDER BY x ->> 3 LOOP
    IF d.mode IN ('canary', 'enforce') THEN
      RAISE EXCEPTION 'pawl: the fences in the rows of % would be gone with it, and the guard % would admit old tokens for their keys', d.tbl, d.name
        USING ERRCODE = '55000', HINT = format('ALTER TABLE %s DETACH PARTITION %s first: that keeps them.', d.root, d.tbl);
    END IF;
    RAISE WARNING 'pawl: the fences in the rows of % are gone with it', d.tbl
      USING HINT = format('ALTER TABLE … DETACH PARTITION before DROP TABLE keeps them; under enforce the guard %s insists on it.', d.name);
  END LOOP;
  PERFORM set_config('pawl.before_drop', '', true);
END $$;

-- A detached partition stays guarded. It loses the row trigger that PostgreSQL has copied to it; and a guard with one fence
-- can have it as a table of its own, until it is dropped. The fences in its rows are kept, because the rest of the table goes on without it.
CREATE OR REPLACE FUNCTION pawl._cover_detached() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pawl.protected p WHERE p.detached AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = p.tbl);
  INSERT INTO pawl.protected (tbl, guard, named, detached)
    SELECT DISTINCT x.tbl, g.id, pawl._name_of(x.tbl), true FROM pawl._own_triggers() x JOIN pawl.guard g ON g.id = x.guard_id AND g.kind = 'static'
     WHERE NOT EXISTS (SELECT FROM pawl.protected p CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE p.guard = g.id AND f.tbl = x.tbl)
       AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = x.tbl) ON CONFLICT DO NOTHING;
  PERFORM pawl._keep_fences_of(g, o.tbl)
    FROM (SELECT DISTINCT x.guard_id, x.tbl FROM pawl._own_triggers() x) o JOIN pawl.guard g ON g.id = o.guard_id AND g.kind = 'row' AND pawl._broken(g, o.tbl) IS NULL
   WHERE NOT EXISTS (SELECT FROM pawl.protected p CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE p.guard = g.id AND f.tbl = o.tbl)
     AND NOT EXISTS (SELECT FROM pg_trigger x WHERE x.tgrelid = o.tbl AND x.tgname = 'zzz_pawl_guard');
  PERFORM pawl._put_trigger(o.guard_id, o.tbl, t.name, t.events, t.how)
    FROM (SELECT DISTINCT x.guard_id, x.tbl FROM pawl._own_triggers() x) o JOIN pawl.guard g ON g.id = o.guard_id AND g.kind = 'row'
         CROSS JOIN LATERAL pawl._triggers(g) t
   WHERE NOT EXISTS (SELECT FROM pawl.protected p CROSS JOIN LATERAL pawl._family(p.tbl) f WHERE p.guard = g.id AND f.tbl = o.tbl)
     AND NOT EXISTS (SELECT FROM pg_trigger x WHERE x.tgrelid = o.tbl AND x.tgname = t.name);
END $$;

-- While the guard itself changes tables, _on_ddl() has nothing to do. Who changes them must not be able to say so.
CREATE OR REPLACE FUNCTION pawl._follows(now boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT set_config('pawl.following', CASE WHEN now THEN i.secret ELSE '' END, true) FROM pawl.installation i
$$;

-- After each change of tables, triggers, types and functions, where the installer may create event triggers: new and attached
-- partitions get their triggers at once, guards follow their tables and keys, and what would get behind a guard is refused. Only
-- what is missing is added: an owner who disables a trigger means it, and problems() reports it.
CREATE OR REPLACE FUNCTION pawl._on_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  changed oid[]; judged int[];
BEGIN
  IF current_setting('pawl.installing_version', true) <> '' THEN RETURN; END IF;  -- Half of it is not there yet.
  IF current_setting('pawl.following', true) = (SELECT i.secret FROM pawl.installation i) THEN RETURN; END IF;  -- What follows changes tables, too.
  changed := ARRAY(SELECT d.objid FROM pg_event_trigger_ddl_commands() d
                   UNION SELECT c.oid FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON d.classid = 'pg_namespace'::regclass AND c.relnamespace = d.objid AND c.relkind IN ('r', 'p'));
  -- What could be meant instead of a part of a key counts as that part.
  IF TG_TAG ~ '^(CREATE|ALTER) (FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|OPERATOR|CAST|DOMAIN|TYPE)$' THEN
    changed := changed || ARRAY(SELECT k.obj FROM pawl._parts_here() k WHERE CASE k.class
      WHEN 'pg_proc'::regclass THEN EXISTS (SELECT FROM pg_proc p WHERE p.oid = k.obj AND (
             EXISTS (SELECT FROM pg_proc n WHERE n.proname = p.proname AND n.pronamespace = p.pronamespace AND n.oid = ANY (changed))
             OR EXISTS (SELECT FROM pg_type n WHERE n.typname = p.proname AND n.typnamespace = p.pronamespace AND n.oid = ANY (changed))))
      WHEN 'pg_operator'::regclass THEN EXISTS (SELECT FROM pg_operator p JOIN pg_operator n ON n.oprname = p.oprname AND n.oprnamespace = p.oprnamespace WHERE p.oid = k.obj AND n.oid = ANY (changed))
      WHEN 'pg_type'::regclass THEN EXISTS (SELECT FROM pg_cast c WHERE c.oid = ANY (changed) AND k.obj IN (c.castsource, c.casttarget)) ELSE false END);
  END IF;
  IF TG_TAG ~ '^DROP ' THEN PERFORM pawl._insist_on_kept_fences(); END IF;
  IF TG_TAG ~ ' (FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|OPERATOR|CAST|DOMAIN|TYPE)$' AND TG_TAG !~ '^DROP ' AND NOT EXISTS (SELECT FROM pawl.key_part k WHERE k.obj = ANY (changed) OR k.home <> pawl._home()) THEN RETURN; END IF;
  IF TG_TAG ~ ' VIEW$' AND NOT EXISTS (SELECT FROM pawl.protected p WHERE to_regclass(p.named) = ANY (changed)) THEN RETURN; END IF;
  IF NOT EXISTS (SELECT FROM pawl.protected) THEN RETURN; END IF;
  judged := ARRAY(SELECT DISTINCT t.guard_id FROM pawl._own_triggers() t);
  PERFORM set_config(concat('pawl.unique._', g.id), '', true) FROM pawl.guard g WHERE g.kind = 'row';  -- See _key_is_shared().
  PERFORM pawl._follows(true);
  PERFORM pawl._follow_keys(changed);
  PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how)
     FROM pawl._protected_above(changed) root CROSS JOIN LATERAL pawl._coverage(root) c WHERE c.enabled IS NULL AND c.tbl <> c.root;
  PERFORM pawl._follow(changed);
  PERFORM pawl._cover_detached();
  PERFORM pawl._insist_on_no_fault(changed, TG_TAG ~ '^DROP ', judged);
  PERFORM pawl._follows(false);
END $$;
