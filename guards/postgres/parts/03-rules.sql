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
  SELECT CASE WHEN g.mode IN ('canary', 'enforce') AND pg_catalog.pg_sequence_last_value(g.emergency) > g.answered THEN 'shadow' ELSE g.mode END
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

-- WHEN TWO KEYS ARE THE SAME: when the unique index of the resource says so. For a row guard that is the index of its key
-- column; for others the primary key of pawl.keyed_fence, over the text of the key. So that text must be one for all values
-- that the index calls equal, and must not depend on a setting of the session: the text of the type, where that is so;
-- 7 for the numeric 7.0; and no guard for other types (citext, float, interval, jsonb, nondeterministic collations …).
-- The functions below are all that spells keys. '007' and '7' are one row of an integer key.

-- The type below a domain, spelled, when its keys can be spelled; otherwise NULL.
CREATE OR REPLACE FUNCTION pawl._key_type_of(type oid, coll oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE base(oid, typtype, typbasetype) AS (
    SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t WHERE t.oid = type
    UNION ALL SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t JOIN base b ON b.typtype = 'd' AND t.oid = b.typbasetype)
  SELECT format_type(b.oid, -1) FROM base b
   WHERE (b.typtype = 'e' OR b.oid = ANY ('{smallint,integer,bigint,numeric,boolean,uuid,text,varchar,bpchar,name,date,time,timestamp,timestamptz,bytea,inet,cidr}'::regtype[]::oid[]))
     AND NOT EXISTS (SELECT FROM pg_collation c WHERE c.oid = coll AND NOT c.collisdeterministic)
$$;

-- An expression of SQL that spells the key which `value` computes. What it needs pinned, _pins() says.
CREATE OR REPLACE FUNCTION pawl._spelled(value text, key_type text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format(CASE key_type WHEN 'numeric' THEN 'pg_catalog.trim_scale(%s)::pg_catalog.text' ELSE '(%s)::pg_catalog.text' END, value)
$$;

-- The settings that a function must pin to spell keys of this type: none where none matters, because each costs.
-- `computed`: a key that an expression computes may convert in between.
CREATE OR REPLACE FUNCTION pawl._pins(key_type text, computed boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN computed OR key_type IN ('date', 'time without time zone', 'timestamp without time zone', 'timestamp with time zone', 'bytea')
    THEN 'SET DateStyle = ''ISO, YMD'' SET TimeZone = ''UTC'' SET IntervalStyle = ''postgres'' SET bytea_output = ''hex'' '
         'SET extra_float_digits = 1 SET lc_monetary = ''C''' ELSE '' END
$$;

-- The key that a caller spells, as _spelled() spells it.
CREATE OR REPLACE FUNCTION pawl._canonical_key(g pawl.guard, key text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF length(key) > 512 THEN
    RAISE EXCEPTION 'pawl: a key has at most 512 characters' USING ERRCODE = 'PW004';
  END IF;
  IF g.kind NOT IN ('row', 'by') OR g.key_type IS NULL OR key = '' AND g.kind = 'by' THEN RETURN key; END IF;
  RETURN CASE g.key_type
    WHEN 'integer' THEN key::bigint::text WHEN 'bigint' THEN key::bigint::text WHEN 'smallint' THEN key::bigint::text
    WHEN 'text' THEN key WHEN 'character varying' THEN key WHEN 'name' THEN key WHEN 'uuid' THEN key::uuid::text
    ELSE pawl._respelled(key, g.key_type) END;
END $$;

CREATE OR REPLACE FUNCTION pawl._respelled(key text, key_type text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET TimeZone = 'UTC' SET bytea_output = 'hex' AS $$
DECLARE
  spelled text;
BEGIN
  EXECUTE format('SELECT %s', pawl._spelled(format('$1::%s', key_type), key_type)) INTO spelled USING key;
  RETURN spelled;
END $$;

-- The type of a row guard's key column. NULL when the guard has lost its table.
CREATE OR REPLACE FUNCTION pawl._key_type(g pawl.guard) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT coalesce(g.key_type, pg_catalog.format_type(a.atttypid, -1))
    FROM pawl.protected p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key
   WHERE p.guard = g.id
$$;

-- A condition of SQL that finds the row of the key $1, whatever the session's settings are: the functions that run it pin
-- them by going through _respelled() first, and ISO dates and hexadecimal bytes are read the same everywhere.
CREATE OR REPLACE FUNCTION pawl._is_key(g pawl.guard) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT format('%I = $1::%s', g.key, pawl._key_type(g)) $$;

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
