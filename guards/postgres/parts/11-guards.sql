-- The interface for owners of tables: create_guard, protect, unprotect, drop_guard.

CREATE OR REPLACE FUNCTION pawl._counters() RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$ SELECT '{replayed,stale,missing,ahead,malformed,would_refuse}'::pg_catalog.text[] $$;

CREATE OR REPLACE FUNCTION pawl._guard(guard text) RETURNS pawl.guard
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard;
BEGIN
  SELECT * INTO g FROM pawl.guard o WHERE o.name = _guard.guard;
  IF g.id IS NULL THEN
    RAISE EXCEPTION 'pawl: there is no guard %', coalesce(quote_literal(guard), 'NULL') USING ERRCODE = 'PW004', HINT = 'pawl.status lists them.';
  END IF;
  RETURN g;
END $$;

CREATE OR REPLACE FUNCTION pawl._create(guard text, kind text, key text, key_type text, mode text) RETURNS pawl.guard
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; counter text;
  id int := nextval(pg_get_serial_sequence('pawl.guard', 'id'));
BEGIN
  IF guard IS NULL OR length(guard) NOT BETWEEN 1 AND 200 OR guard ~ '[:[:cntrl:]]' THEN
    RAISE EXCEPTION 'pawl: a guard''s name has 1 to 200 characters, without ":" and control characters' USING ERRCODE = '22023';
  END IF;
  FOREACH counter IN ARRAY ARRAY['fence', 'raiser', 'tightened', 'emergency'] LOOP
    EXECUTE format('CREATE SEQUENCE pawl.%I', concat(counter, '_', id));
    EXECUTE format('GRANT SELECT ON SEQUENCE pawl.%I TO PUBLIC', concat(counter, '_', id));
  END LOOP;
  FOREACH counter IN ARRAY ARRAY['used', 'emergency_at', 'emergency_by'] LOOP EXECUTE format('CREATE SEQUENCE pawl.%I', concat(counter, '_', id)); END LOOP;
  FOREACH counter IN ARRAY pawl._counters() LOOP
    EXECUTE format('CREATE SEQUENCE pawl.%I', concat('count_', id, '_', counter));
  END LOOP;
  INSERT INTO pawl.guard (id, name, kind, setting, lock_key, fence, raiser, tightened, emergency, key, key_type, mode)
    VALUES (id, guard, kind, pawl._setting(guard, id), hashtextextended('pawl ' || guard, 7295), format('pawl.fence_%s', id)::regclass,
            format('pawl.raiser_%s', id)::regclass, format('pawl.tightened_%s', id)::regclass, format('pawl.emergency_%s', id)::regclass, key, key_type, mode)
    RETURNING * INTO g;
  IF mode = 'enforce' THEN PERFORM setval(g.tightened, pg_current_xact_id()::text::bigint); END IF;  -- For snapshots from before.
  INSERT INTO pawl.audit (guard, what, after) VALUES (guard, 'create', concat_ws(' ', kind, key, mode));
  RETURN g;
END $$;

-- A guard without a table: for what admit() protects. Answers whether it was made; one of that name and kind may exist.
CREATE OR REPLACE FUNCTION pawl.create_guard(name text, keyed boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wanted text := CASE WHEN keyed THEN 'keyed' ELSE 'static' END;
  existing text := (SELECT g.kind FROM pawl.guard g WHERE g.name = create_guard.name);
BEGIN
  IF existing = wanted THEN RETURN false; END IF;
  IF existing IS NOT NULL THEN
    RAISE EXCEPTION 'pawl: the guard % exists, and is %, not %', quote_literal(name), existing, wanted USING ERRCODE = '42710';
  END IF;
  PERFORM pawl._create(name, wanted, NULL, NULL, 'observe');
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_table(tbl regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c record;
BEGIN
  SELECT r.relkind, r.relpersistence, n.nspname INTO c FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace WHERE r.oid = tbl;
  IF c.relkind IS NULL OR c.relkind NOT IN ('r', 'p') OR c.relpersistence = 't' THEN
    RAISE EXCEPTION 'pawl: % is not an ordinary table', tbl USING ERRCODE = '42809', HINT = 'Views need no guard of their own: their tables do.';
  END IF;
  IF c.nspname IN ('pg_catalog', 'information_schema', 'pawl') THEN
    RAISE EXCEPTION 'pawl: % cannot be put under guard', tbl USING ERRCODE = '42809';
  END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = tbl) THEN
    RAISE EXCEPTION 'pawl: % is a partition or a child: a write through % would bypass it', tbl,
      (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = tbl LIMIT 1)
      USING ERRCODE = '42809', HINT = 'Protect the root; its partitions follow.';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl._name_of(tbl regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl
$$;

CREATE OR REPLACE FUNCTION pawl._insist_on_key_type(tbl regclass, key text, type regtype, key_type text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF key_type IS NOT NULL THEN RETURN key_type; END IF;
  RAISE EXCEPTION 'pawl: %, of type %, cannot be the key of a guard: equal keys have several spellings there', key, type
    USING ERRCODE = '0A000', HINT = 'Types that can: integers, numeric, boolean, uuid, text with a deterministic collation, date, time, timestamps, bytea, inet, enums.';
END $$;

-- row: the key must name one row, and the fence needs a column. Returns the type of the key.
CREATE OR REPLACE FUNCTION pawl._prepare_row(tbl regclass, key text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  k record;
BEGIN
  SELECT a.atttypid, a.attgenerated, i.indcollation[0] AS coll INTO k
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
   WHERE i.indrelid = tbl AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
     AND a.attname = key AND a.attnotnull
     AND EXISTS (SELECT FROM pg_opclass o WHERE o.oid = i.indclass[0] AND o.opcnamespace = 'pg_catalog'::regnamespace)
   ORDER BY (SELECT c.collisdeterministic FROM pg_collation c WHERE c.oid = i.indcollation[0]) IS NOT FALSE DESC LIMIT 1;
  IF NOT FOUND THEN
    PERFORM pawl._insist_on_key_type(tbl, key, a.atttypid, NULL) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = tbl AND a.attname = key AND pawl._key_type_of(a.atttypid, a.attcollation) IS NULL;
    RAISE EXCEPTION 'pawl: % of % is not a column that is NOT NULL and has a unique index of its own', quote_ident(key), tbl
      USING ERRCODE = '42830', HINT = 'protect(tbl, by => ''expression'') guards what several rows share.';
  END IF;
  IF k.attgenerated <> '' THEN
    RAISE EXCEPTION 'pawl: % of % is a generated column: a trigger cannot see it before the row is written', quote_ident(key), tbl
      USING ERRCODE = '0A000', HINT = 'protect(tbl, by => ''expression'') guards by what it is computed from.';
  END IF;
  IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = 'pawl_token' AND a.atttypid <> 'bigint'::regtype) THEN
    RAISE EXCEPTION 'pawl: % has a column pawl_token of its own', tbl USING ERRCODE = '42701';
  END IF;
  PERFORM pawl._insist_on_key_type(tbl, key, k.atttypid, pawl._key_type_of(k.atttypid, k.coll));
  IF row_security_active(tbl) THEN
    RAISE EXCEPTION 'pawl: row security hides rows of % from %', tbl, current_user
      USING ERRCODE = '0A000', HINT = format('ALTER ROLE %I BYPASSRLS, or let a superuser install the guard.', current_user);
  END IF;
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = 'pawl_token') THEN
    PERFORM pawl._lock_table(tbl, 'ACCESS EXCLUSIVE');
    EXECUTE format('ALTER TABLE %s ADD COLUMN IF NOT EXISTS pawl_token bigint NOT NULL DEFAULT 0', tbl);
    EXECUTE format('COMMENT ON COLUMN %s.pawl_token IS %L', tbl, 'The fence of this row, kept by pawl; what others write here is ignored.');
  END IF;
  RETURN pawl._key_type_of(k.atttypid, k.coll);
END $$;

-- by: the type of the expression.
CREATE OR REPLACE FUNCTION pawl._key_type_by(tbl regclass, expression text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  k record;
BEGIN
  SELECT * INTO k FROM pawl._look_at_key(tbl, expression);
  -- The rows that a trigger gets have no value for a generated column that is not STORED (VIRTUAL, from PostgreSQL 18 on).
  IF EXISTS (SELECT FROM jsonb_array_elements(k.parts) p JOIN pg_attribute a ON a.attrelid = (p ->> 1)::oid AND a.attnum = (p ->> 2)::int AND a.attgenerated = 'v') THEN
    RAISE EXCEPTION 'pawl: % reads a virtual generated column of %: a trigger cannot see it', expression, tbl
      USING ERRCODE = '0A000', HINT = 'Guard by what it is computed from, or make it STORED.';
  END IF;
  IF k.changing IS NOT NULL THEN
    RAISE EXCEPTION 'pawl: % cannot be the key of a guard: %, so one row may have another key for each writer', expression, k.changing
      USING ERRCODE = '0A000', HINT = 'Compute the key from columns of the row alone.';
  END IF;
  RETURN pawl._insist_on_key_type(tbl, expression, k.type, pawl._key_type_of(k.type, k.coll));
END $$;

-- Puts a table under guard, and returns the guard's name. Doing it twice changes nothing.
CREATE OR REPLACE FUNCTION pawl.protect(tbl regclass, guard text DEFAULT NULL, key text DEFAULT NULL, by text DEFAULT NULL, mode text DEFAULT 'observe')
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  kind text := CASE WHEN key IS NOT NULL THEN 'row' WHEN by IS NOT NULL THEN 'by' ELSE 'static' END;
  g pawl.guard;
  new_type text;
  present text := (SELECT o.name FROM pawl.protected p JOIN pawl.guard o ON o.id = p.guard WHERE p.tbl = protect.tbl);
BEGIN
  PERFORM pawl._insist_on_table(tbl);
  mode := coalesce(mode, 'observe');
  IF key IS NOT NULL AND by IS NOT NULL THEN RAISE EXCEPTION 'pawl: either key or by, not both' USING ERRCODE = '22023'; END IF;
  IF mode NOT IN ('observe', 'shadow', 'enforce') AND NOT EXISTS (SELECT FROM pawl.guard o WHERE o.name = protect.guard AND o.mode = protect.mode) THEN
    RAISE EXCEPTION 'pawl: a new guard starts in observe, shadow or enforce' USING ERRCODE = '22023', HINT = 'pawl.set_mode() starts a canary.';
  END IF;
  guard := coalesce(guard, present, (SELECT CASE n.nspname WHEN 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END
                                       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl));
  IF present <> guard THEN
    RAISE EXCEPTION 'pawl: % is already under the guard %', tbl, quote_literal(present) USING ERRCODE = '42710', HINT = 'pawl.unprotect() first.';
  END IF;
  IF present IS NULL THEN
    PERFORM pawl._lock_table(tbl, CASE WHEN kind = 'row' AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = 'pawl_token')
                                       THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END);
  END IF;
  IF kind = 'row' THEN new_type := pawl._prepare_row(tbl, key); END IF;
  IF kind = 'by' THEN new_type := pawl._key_type_by(tbl, by); END IF;
  SELECT * INTO g FROM pawl.guard o WHERE o.name = protect.guard;
  IF g.id IS NULL THEN
    g := pawl._create(guard, kind, coalesce(key, by), new_type, mode);
  ELSIF g.kind <> kind OR g.key IS DISTINCT FROM coalesce(key, by) THEN
    RAISE EXCEPTION 'pawl: the guard % exists, and is %', quote_literal(guard), concat_ws(' ', g.kind, g.key) USING ERRCODE = '42710';
  ELSIF kind <> 'static' AND EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id AND p.tbl <> protect.tbl) THEN
    RAISE EXCEPTION 'pawl: the guard % has its table; only a guard with one fence is shared by several', quote_literal(guard) USING ERRCODE = '42710';
  ELSIF mode <> g.mode AND (mode <> 'observe' OR present IS NULL AND g.mode IN ('canary', 'enforce')) THEN
    RAISE EXCEPTION 'pawl: the guard % exists, in mode %, and % would be in that mode at once', quote_literal(guard), g.mode, tbl
      USING ERRCODE = '42710', HINT = format('To have that: mode => %L. pawl.set_mode() changes it for all tables of the guard.', g.mode);
  END IF;
  IF new_type <> coalesce(g.key_type, '') THEN
    UPDATE pawl.guard o SET key_type = new_type WHERE o.id = g.id RETURNING * INTO g;
  END IF;
  IF present IS NULL THEN
    INSERT INTO pawl.protected (tbl, guard, named) VALUES (protect.tbl, g.id, pawl._name_of(protect.tbl));
    INSERT INTO pawl.audit (guard, what, after) VALUES (g.name, 'protect', protect.tbl::text);
  END IF;
  PERFORM pawl._follows(true);
  PERFORM pawl._note_key(g.id);
  SELECT * INTO g FROM pawl.guard o WHERE o.id = g.id;
  IF pawl._broken(g, protect.tbl) IS NOT NULL THEN
    RAISE EXCEPTION 'pawl: % cannot be put under guard so: %', tbl, pawl._broken(g, protect.tbl) USING ERRCODE = '0A000';
  END IF;
  PERFORM pawl._generate(g);
  PERFORM pawl._cover(protect.tbl);
  PERFORM pawl._follows(false);
  IF g.mode IN ('canary', 'enforce') AND present IS NULL THEN PERFORM pawl._insist_on_no_obstacle(g); END IF;
  IF g.setting <> 'pawl.token.' || g.name THEN
    RAISE NOTICE 'pawl: programs pass a token of % by pawl.use(%, token), or by SET LOCAL % = token', g.name, quote_literal(pawl._resource(g, 'key')), g.setting
      USING HINT = 'The setting has no other name; pawl.status shows it.';
  END IF;
  RETURN g.name;
END $$;

-- Takes a table out of its guard, or drops what a detached partition brought along. The guard stays, with its fence; so
-- does a row guard's column.
CREATE OR REPLACE FUNCTION pawl.unprotect(tbl regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  guard text; t record; dropped int := 0;
BEGIN
  IF EXISTS (SELECT FROM pawl._own_triggers() x WHERE x.tbl IN (SELECT f.tbl FROM pawl._family(unprotect.tbl) f)) THEN PERFORM pawl._lock_table(tbl, 'ACCESS EXCLUSIVE'); END IF;
  DELETE FROM pawl.protected p USING pawl.guard o WHERE p.tbl = unprotect.tbl AND o.id = p.guard RETURNING o.name INTO guard;
  FOR t IN SELECT x.name, x.tbl FROM pawl._own_triggers() x WHERE x.tbl IN (SELECT f.tbl FROM pawl._family(unprotect.tbl) f) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.name, t.tbl);
    dropped := dropped + 1;
  END LOOP;
  IF guard IS NULL AND dropped = 0 THEN RAISE EXCEPTION 'pawl: % is not under guard', tbl USING ERRCODE = 'PW004'; END IF;
  PERFORM pawl._generate_use(o) FROM pawl.guard o WHERE o.name = guard AND o.kind = 'row';  -- It knows the table.
  INSERT INTO pawl.audit (guard, what, before) VALUES (guard, 'unprotect', unprotect.tbl::text);
  RETURN guard;
END $$;

-- Forgets a guard, its fences and its counters.
CREATE OR REPLACE FUNCTION pawl.drop_guard(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard := pawl._guard(name); counter text;
BEGIN
  IF EXISTS (SELECT FROM pawl.protected p WHERE p.guard = g.id) THEN
    RAISE EXCEPTION 'pawl: tables are under the guard %', quote_literal(name) USING ERRCODE = '2BP01', HINT = 'pawl.unprotect() each of them first.';
  END IF;
  INSERT INTO pawl.audit (guard, what, before) VALUES (g.name, 'drop', concat_ws(' ', g.kind, g.mode, 'fence', pg_sequence_last_value(g.fence)));
  DELETE FROM pawl.keyed_fence f WHERE f.guard = g.id;
  DELETE FROM pawl.done d WHERE d.guard = g.id;
  DELETE FROM pawl.sightings s WHERE s.guard = g.name;
  DELETE FROM pawl.guard WHERE id = g.id;
  EXECUTE format('DROP FUNCTION IF EXISTS pawl.guard_%s()', g.id);
  EXECUTE format('DROP FUNCTION IF EXISTS pawl.use_%s(text, bigint)', g.id);
  EXECUTE format('DROP FUNCTION IF EXISTS pawl.touch_%s(regclass, text, bigint)', g.id);
  EXECUTE format('DROP FUNCTION IF EXISTS pawl.judge_%s(text, text[])', g.id);
  -- In the order in which problems() and the status read them: otherwise one of the two is ended by a deadlock.
  FOREACH counter IN ARRAY ARRAY['emergency', 'fence', 'raiser', 'tightened', 'used', 'emergency_at', 'emergency_by'] LOOP EXECUTE format('DROP SEQUENCE pawl.%I', concat(counter, '_', g.id)); END LOOP;
  FOREACH counter IN ARRAY pawl._counters() LOOP EXECUTE format('DROP SEQUENCE pawl.%I', concat('count_', g.id, '_', counter)); END LOOP;
END $$;
