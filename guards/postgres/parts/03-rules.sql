-- The rules that compare tokens, fences and snapshots. They take no lock and have no side effect.

-- The one place that compares a token with a fence. A fence of NULL is none: any first token is good.
CREATE OR REPLACE FUNCTION pawl._verdict(token bigint, max bigint, max_step bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN token IS NULL THEN 'missing'
              WHEN max IS NULL THEN 'admitted'
              WHEN token < max THEN 'stale'
              WHEN token - max > max_step THEN 'ahead'
              WHEN token >= max THEN 'admitted'
              ELSE 'stale' END  -- A NULL somewhere: fail closed.
$$;

-- A token as text, as a setting or a caller gives it. NULL when it is not one.
CREATE OR REPLACE FUNCTION pawl._token(spelled text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN spelled ~ '^[1-9][0-9]{0,15}$' AND spelled::bigint <= 9007199254740991 THEN spelled::bigint END
$$;

-- The mode that holds now: the emergency switch turns what refuses into shadow.
CREATE OR REPLACE FUNCTION pawl._mode(g pawl.guard) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN g.mode IN ('canary', 'enforce') AND pg_catalog.pg_sequence_last_value(g.emergency) = 2 THEN 'shadow' ELSE g.mode END
$$;

-- Whether this resource is refused its stale writes now. Canary takes a stable share of the resources.
CREATE OR REPLACE FUNCTION pawl._enforced(g pawl.guard, resource text) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT CASE pawl._mode(g)
           WHEN 'observe' THEN false
           WHEN 'shadow' THEN false
           WHEN 'canary' THEN (pg_catalog.hashtextextended(resource, 7295) & 9223372036854775807) % 100 < g.percent
           ELSE true END
$$;

CREATE OR REPLACE FUNCTION pawl._resource(g pawl.guard, key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE g.kind WHEN 'static' THEN g.name ELSE pg_catalog.concat_ws(':', g.name, key) END $$;

-- The guard and the key that a resource names: `guard`, or `guard:key` where each key has a fence of its own.
CREATE OR REPLACE FUNCTION pawl._find(resource text, OUT g pawl.guard, OUT key text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT * INTO g FROM pawl.guard WHERE name = split_part(resource, ':', 1);
  IF g.id IS NULL THEN
    RAISE EXCEPTION 'pawl: unknown resource %', coalesce(quote_literal(resource), 'NULL')
      USING ERRCODE = 'PW004', HINT = 'pawl.protect(table) or pawl.create_guard(name) makes one; pawl.status lists them.';
  END IF;
  IF g.kind = 'static' THEN
    IF resource <> g.name THEN
      RAISE EXCEPTION 'pawl: unknown resource %: the guard % has one fence and no keys', quote_literal(resource), quote_literal(g.name)
        USING ERRCODE = 'PW004';
    END IF;
    key := '';
  ELSE
    IF position(':' IN resource) = 0 THEN
      RAISE EXCEPTION 'pawl: unknown resource %: each key of this guard has a fence of its own', quote_literal(resource)
        USING ERRCODE = 'PW004', HINT = format('Name the key: %L.', g.name || ':' || 'key');
    END IF;
    key := pawl._canonical_key(g, substr(resource, length(g.name) + 2));
  END IF;
END $$;

-- '007' and '7' are one row of an integer key: the key as the column's type spells it.
CREATE OR REPLACE FUNCTION pawl._canonical_key(g pawl.guard, key text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE spelled text;
BEGIN
  IF length(key) > 512 THEN
    RAISE EXCEPTION 'pawl: a key has at most 512 characters' USING ERRCODE = 'PW004';
  END IF;
  IF g.kind <> 'row' OR pawl._key_type(g) IS NULL THEN RETURN key; END IF;
  EXECUTE format('SELECT ($1::%s)::text', pawl._key_type(g)) INTO spelled USING key;
  RETURN spelled;
END $$;

CREATE OR REPLACE FUNCTION pawl._key_type(g pawl.guard) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.format_type(a.atttypid, a.atttypmod)
    FROM pawl.protected p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key
   WHERE p.guard = g.id
$$;

CREATE OR REPLACE FUNCTION pawl._read_committed() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT pg_catalog.current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') $$;

-- Whether the transaction that `mark` names is seen by `snapshot`. False when nothing is noted there (fail closed), or
-- when it lies in the future: then it comes from another cluster, by a restore, and would come true at some random
-- moment. Such a mark is set to this transaction, so that the retry, on a newer snapshot, sees it.
CREATE OR REPLACE FUNCTION pawl._sees(snapshot pg_snapshot, mark regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  x xid8 := pg_sequence_last_value(mark)::text::xid8;
  foreign_mark boolean := x IS NULL;
BEGIN
  IF pg_visible_in_snapshot(x, snapshot) THEN RETURN true; END IF;
  IF x IS NOT NULL THEN
    BEGIN
      foreign_mark := pg_xact_status(x) IS NULL;
    EXCEPTION WHEN invalid_parameter_value THEN
      foreign_mark := true;
    END;
  END IF;
  IF foreign_mark AND current_setting('transaction_read_only') = 'off' THEN
    PERFORM setval(mark, pg_current_xact_id()::text::bigint);
  END IF;
  RETURN false;
END $$;
