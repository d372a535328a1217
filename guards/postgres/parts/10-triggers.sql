-- The trigger function that is generated for each guard, and the triggers on its tables.

--
-- Generated, so that the fast path has nothing to look up. It is ONE expression (each further one costs as much as the
-- check itself), evaluated from left to right: the token is the fence; the shared lock; and the statement sees the transaction
-- that raised it last. The last also shows that the token *still* is the fence: a raise notes its own transaction first, under
-- the exclusive lock that it keeps to its end. Had it raised after our look at the fence, then it was under way when our
-- snapshot was taken (before that look), so we do not see it. It needs no policy: an equal token is admitted in every
-- mode. A NULL anywhere ends in the slow path.
-- STABLE makes pg_current_snapshot() the snapshot of the statement that writes, which is what must be judged.

CREATE OR REPLACE FUNCTION pawl._generate_static(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fast text := format($f$
  IF pg_catalog.current_setting(%1$L, true) OPERATOR(pg_catalog.=) pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass)::pg_catalog.text
     AND pg_catalog.pg_try_advisory_xact_lock_shared(%3$s)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(%4$L::pg_catalog.regclass)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN RETURN NULL; END IF;$f$, g.setting, 'pawl.fence_' || g.id, g.lock_key, 'pawl.raiser_' || g.id);
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql STABLE AS $b$
BEGIN%2$s
  PERFORM pawl._on_statement(%1$s, pg_catalog.pg_current_snapshot());
  RETURN NULL;
END $b$ $f$, g.id, CASE g.equal WHEN 'accept' THEN fast END);
END $$;

CREATE OR REPLACE FUNCTION pawl._generate_row(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql AS $b$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    IF pg_catalog.current_setting(%2$L, true) OPERATOR(pg_catalog.=) OLD.pawl_token::pg_catalog.text
       AND OLD.%3$I::pg_catalog.text OPERATOR(pg_catalog.=) NEW.%3$I::pg_catalog.text
       AND pg_catalog.pg_try_advisory_xact_lock_shared(%4$s)
       AND OLD.pawl_token OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass), 1)
    THEN NEW.pawl_token := OLD.pawl_token; RETURN NEW; END IF;
    IF OLD.%3$I::pg_catalog.text OPERATOR(pg_catalog.=) NEW.%3$I::pg_catalog.text THEN
      NEW.pawl_token := pawl._row_stays(%1$s, OLD.%3$I::pg_catalog.text, OLD.pawl_token);
      RETURN NEW;
    END IF;
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT' AND TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    PERFORM pawl._row_leaves(%1$s, OLD.%3$I::pg_catalog.text, OLD.pawl_token);
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN RETURN OLD; END IF;
  END IF;
  IF TG_LEVEL OPERATOR(pg_catalog.=) 'ROW' THEN
    NEW.pawl_token := pawl._row_arrives(%1$s, NEW.%3$I::pg_catalog.text);
    RETURN NEW;
  END IF;
  PERFORM pawl._on_truncate(%1$s);
  RETURN NULL;
END $b$ $f$, g.id, g.setting, g.key, g.lock_key, 'pawl.fence_' || g.id);
END $$;

-- The expression is the owner's, and runs with a pinned search_path: functions of its own must be qualified.
CREATE OR REPLACE FUNCTION pawl._generate_by(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION pawl.guard_%1$s() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $b$
BEGIN
  CASE TG_OP
    WHEN 'INSERT' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT coalesce((%2$s)::text, '')) FROM pawl_new));
    WHEN 'DELETE' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT coalesce((%2$s)::text, '')) FROM pawl_old));
    WHEN 'UPDATE' THEN PERFORM pawl._on_keys(%1$s, (SELECT array_agg(DISTINCT k) FROM (
        SELECT coalesce((%2$s)::text, '') FROM pawl_old UNION SELECT coalesce((%2$s)::text, '') FROM pawl_new) AS both_tables(k)));
    ELSE PERFORM pawl._on_truncate(%1$s);
  END CASE;
  RETURN NULL;
END $b$ $f$, g.id, g.key);
END $$;

CREATE OR REPLACE FUNCTION pawl._generate(g pawl.guard) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE g.kind
    WHEN 'static' THEN PERFORM pawl._generate_static(g);
    WHEN 'row' THEN PERFORM pawl._generate_row(g);
    WHEN 'by' THEN PERFORM pawl._generate_by(g);
    WHEN 'keyed' THEN RETURN;
  END CASE;
  EXECUTE format('REVOKE ALL ON FUNCTION pawl.guard_%s() FROM PUBLIC', g.id);
END $$;

-- The triggers that each kind needs, as the text after CREATE OR REPLACE TRIGGER name. Row triggers come last among a
-- table's BEFORE triggers (they fire by name): what others do to the key must be judged too. On a partitioned table
-- PostgreSQL itself copies row triggers to the partitions.
CREATE OR REPLACE FUNCTION pawl._triggers(g pawl.guard)
RETURNS TABLE (name name, events text, how text)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.name::name, v.events, v.how FROM (VALUES
    ('static', 'pawl_guard',          'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 'FOR EACH STATEMENT'),
    ('row',    'zzz_pawl_guard',      'BEFORE INSERT OR UPDATE OR DELETE', 'FOR EACH ROW'),
    ('row',    'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT'),
    ('by',     'pawl_guard_insert',   'AFTER INSERT', 'REFERENCING NEW TABLE AS pawl_new FOR EACH STATEMENT'),
    ('by',     'pawl_guard_delete',   'AFTER DELETE', 'REFERENCING OLD TABLE AS pawl_old FOR EACH STATEMENT'),
    ('by',     'pawl_guard_update',   'AFTER UPDATE', 'REFERENCING OLD TABLE AS pawl_old NEW TABLE AS pawl_new FOR EACH STATEMENT'),
    ('by',     'pawl_guard_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT')
  ) AS v(kind, name, events, how) WHERE v.kind = g.kind
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
-- also under session_replication_role = replica.
CREATE OR REPLACE FUNCTION pawl._coverage(only_root regclass DEFAULT NULL)
RETURNS TABLE (guard_id int, root regclass, tbl regclass, name name, events text, how text, enabled "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.id, p.tbl, f.tbl, t.name, t.events, t.how, x.tgenabled
    FROM pawl.protected p JOIN pawl.guard g ON g.id = p.guard
         CROSS JOIN LATERAL pawl._family(p.tbl) f
         CROSS JOIN LATERAL pawl._triggers(g) t
         LEFT JOIN pg_trigger x ON x.tgrelid = f.tbl AND x.tgname = t.name
               AND x.tgfoid = to_regprocedure(format('pawl.guard_%s()', g.id))
   WHERE p.tbl = coalesce(only_root, p.tbl)
$$;

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
    PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how);
    mended := mended + 1;
  END LOOP;
  RETURN mended;
END $$;

-- New and attached partitions get their triggers at once, where the installer may create event triggers. Only what is
-- missing in partitions: an owner who disables a trigger means it, and problems() reports it.
CREATE OR REPLACE FUNCTION pawl._on_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('pawl.installing_version', true) <> '' THEN RETURN; END IF;  -- Half of it is not there yet.
  PERFORM pawl._put_trigger(c.guard_id, c.tbl, c.name, c.events, c.how)
     FROM pawl._protected_above(ARRAY(SELECT d.objid FROM pg_event_trigger_ddl_commands() d WHERE d.classid = 'pg_class'::regclass)) root
          CROSS JOIN LATERAL pawl._coverage(root) c WHERE c.enabled IS NULL AND c.tbl <> c.root;
END $$;
