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

-- For reports on all guards: one of them may be dropped meanwhile, and then its sequences are gone.
CREATE OR REPLACE FUNCTION pawl._value_if_there(sequence regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pg_sequence_last_value(sequence);
EXCEPTION WHEN undefined_table OR internal_error THEN
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pawl._reported_mode(g pawl.guard) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN g.mode IN ('canary', 'enforce') AND pawl._value_if_there(g.emergency) > g.answered THEN 'shadow' ELSE g.mode END
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
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
  WITH RECURSIVE base(oid, typtype, typbasetype) AS (
    SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t WHERE t.oid = type
    UNION ALL SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t JOIN base b ON b.typtype = 'd' AND t.oid = b.typbasetype)
  SELECT format_type(b.oid, -1) FROM base b
   WHERE (b.typtype = 'e' OR b.oid = ANY ('{smallint,integer,bigint,numeric,boolean,uuid,text,varchar,bpchar,name,date,time,timestamp,timestamptz,bytea,inet,cidr}'::regtype[]::oid[]))
     AND NOT EXISTS (SELECT FROM pg_collation c WHERE c.oid = coll AND NOT c.collisdeterministic)
$$;

-- An expression of SQL that spells the key in the column `value`. What it needs pinned, _pins() says. It runs with the rights
-- of the guard's owner, so it must not run code of others, whatever the column's type is by now: a cast may be a function of
-- the type's owner. concat() writes a value with its type's output function, and what is cast then is of a built-in type.
CREATE OR REPLACE FUNCTION pawl._spelled(value text, key_type text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('(CASE WHEN %1$s IS NOT NULL THEN ' || CASE
    WHEN key_type = 'numeric' THEN 'pg_catalog.trim_scale(pg_catalog.concat(%1$s)::pg_catalog.numeric)::pg_catalog.text'
    WHEN key_type IN ('boolean', 'bpchar', 'inet', 'cidr')  -- Their text is not what their output function writes.
      THEN 'pg_catalog.concat(%1$s)::pg_catalog.' || CASE key_type WHEN 'boolean' THEN 'bool' ELSE key_type END || '::pg_catalog.text'
    ELSE 'pg_catalog.concat(%1$s)' END || ' END)', value)
$$;

-- The same for an expression of the table's owner; it runs with that role's rights.
CREATE OR REPLACE FUNCTION pawl._spelled_by_owner(expression text, key_type text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format(CASE key_type WHEN 'numeric' THEN 'pg_catalog.trim_scale(%s)::pg_catalog.text' ELSE '(%s)::pg_catalog.text' END, expression)
$$;

-- A key of a `by` guard that is too long for an index goes by its hash.
CREATE OR REPLACE FUNCTION pawl._short(key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.length(key) OPERATOR(pg_catalog.>) 512
              THEN pg_catalog.concat('sha256 ', pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(key, 'UTF8')), 'hex')) ELSE key END
$$;
CREATE OR REPLACE FUNCTION pawl._may_be_long(key_type text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT key_type IS NULL OR key_type IN ('text', 'character varying', 'bpchar', 'bytea', 'numeric')
$$;

-- The settings that a function must pin to spell keys of this type: none where none matters, because each costs.
-- `computed`: a key that an expression computes may convert in between.
CREATE OR REPLACE FUNCTION pawl._pins(key_type text, computed boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN computed OR key_type IN ('date', 'time without time zone', 'timestamp without time zone', 'timestamp with time zone', 'bytea')
    THEN 'SET DateStyle = ''ISO, YMD'' SET TimeZone = ''UTC'' SET IntervalStyle = ''postgres'' SET bytea_output = ''hex'' '
         'SET extra_float_digits = 1 SET lc_monetary = ''C'' ' ELSE '' END
      || CASE WHEN computed THEN 'SET lc_time = ''C'' SET lc_numeric = ''C'' SET quote_all_identifiers = off SET default_text_search_config = ''pg_catalog.simple'' '
         'SET timezone_abbreviations = ''Default'' SET array_nulls = on SET transform_null_equals = off SET xmloption = content SET xmlbinary = base64' ELSE '' END
$$;

-- The key that a caller spells, as _spelled() spells it.
CREATE OR REPLACE FUNCTION pawl._canonical_key(g pawl.guard, key text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF length(key) > 512 AND (g.kind <> 'by' OR NOT pawl._may_be_long(g.key_type)) THEN
    RAISE EXCEPTION 'pawl: a key has at most 512 characters' USING ERRCODE = 'PW004';
  END IF;
  IF g.kind NOT IN ('row', 'by') OR g.key_type IS NULL OR key = '' AND g.kind = 'by' THEN RETURN key; END IF;
  key := CASE g.key_type
    WHEN 'integer' THEN key::bigint::text WHEN 'bigint' THEN key::bigint::text WHEN 'smallint' THEN key::bigint::text
    WHEN 'text' THEN key WHEN 'character varying' THEN key WHEN 'name' THEN key WHEN 'uuid' THEN key::uuid::text
    ELSE pawl._respelled(key, g.key_type) END;
  RETURN CASE g.kind WHEN 'by' THEN pawl._short(key) ELSE key END;
END $$;

CREATE OR REPLACE FUNCTION pawl._respelled(key text, key_type text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET TimeZone = 'UTC' SET bytea_output = 'hex' AS $$
DECLARE
  spelled text;
BEGIN
  -- An enum is read by its input function: a cast from text may be a function of the type's owner.
  IF EXISTS (SELECT FROM pg_type t WHERE t.oid = to_regtype(key_type) AND t.typtype = 'e') THEN
    IF NOT EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = to_regtype(key_type) AND e.enumlabel = key) THEN
      RAISE EXCEPTION 'pawl: % is no value of %', quote_literal(key), key_type USING ERRCODE = '22P02';
    END IF;
    RETURN key;
  END IF;
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

-- The table of a row guard, when it can be read for its guard: it is there, and comparing its key runs nobody's code. NULL
-- otherwise. (The owner of a type can make casts from it, so the type must be built in, or the enum that it was.)
CREATE OR REPLACE FUNCTION pawl._table_of(g pawl.guard) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT p.tbl, a.atttypid, a.attcollation, y.typnamespace = 'pg_catalog'::regnamespace AND y.typtype = 'b' AS is_built_in INTO t
    FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl AND c.relkind IN ('r', 'p')
    JOIN pg_attribute a ON a.attrelid = p.tbl AND a.attname = g.key AND NOT a.attisdropped
    JOIN pg_attribute f ON f.attrelid = p.tbl AND f.attname = 'pawl_token' AND f.atttypid = 'bigint'::regtype
    JOIN pg_type y ON y.oid = a.atttypid
   WHERE p.guard = g.id;
  RETURN CASE WHEN t.is_built_in THEN t.tbl WHEN pawl._key_type_of(t.atttypid, t.attcollation) = g.key_type THEN t.tbl END;
END $$;

-- A condition of SQL that finds the row of a key, whatever the session's settings are: the functions that run it pin them by
-- going through _respelled() first, and ISO dates and hexadecimal bytes are read the same everywhere. A literal is read by its
-- type's input function, where a cast from text may be a function of the type's owner.
CREATE OR REPLACE FUNCTION pawl._is_key(g pawl.guard, key text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT format('%I OPERATOR(pg_catalog.=) %L::%s', g.key, key, pawl._key_type(g)) $$;

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
