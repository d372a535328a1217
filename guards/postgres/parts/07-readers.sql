-- The interface for readers: fence, check.

-- The greatest token admitted or advanced to, or the floor; NULL: none yet.
CREATE OR REPLACE FUNCTION pawl._fence(g pawl.guard, key text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fence bigint := pg_sequence_last_value(g.fence);
  own bigint;
  tbl regclass;
BEGIN
  IF g.kind <> 'static' THEN
    SELECT f.token INTO own FROM pawl.keyed_fence f WHERE f.guard = g.id AND f.key = _fence.key;
    fence := greatest(fence, own);
  END IF;
  IF g.kind = 'row' THEN tbl := pawl._table_of(g); END IF;
  IF tbl IS NOT NULL THEN
    EXECUTE format('SELECT pawl_token FROM %s WHERE %s', tbl, pawl._is_key(g, key)) INTO own;
    fence := greatest(fence, own);
  END IF;
  RETURN nullif(fence, 0);
END $$;

CREATE OR REPLACE FUNCTION pawl.fence(resource text) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT pawl._fence(f.g, f.key) FROM pawl._find(resource) f
$$;

-- Judges without raising, locking or moving anything; in a READ ONLY transaction and on a replica too. What is not even
-- a resource is 'unknown', what is not a token 'malformed'.
CREATE OR REPLACE FUNCTION pawl.check(resource text, OUT verdict text, INOUT token bigint, OUT max bigint, OUT mode text, OUT would_refuse boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text;
BEGIN
  BEGIN
    named := pawl._find(resource); g := named.g; key := named.key;
    max := pawl._fence(g, key);
  EXCEPTION WHEN SQLSTATE 'PW004' OR data_exception THEN
    verdict := 'unknown';
    would_refuse := true;
    RETURN;
  END;
  mode := pawl._mode(g);
  verdict := CASE WHEN token IS NOT NULL AND pawl._token(token::text) IS NULL THEN 'malformed' ELSE pawl._verdict(token, max, g.max_step) END;
  would_refuse := CASE verdict WHEN 'admitted' THEN false WHEN 'missing' THEN g.require_token ELSE true END;
END $$;
