-- The interface for writers: use, admit.

CREATE OR REPLACE FUNCTION pawl._insist_on_primary() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'pawl: this server is a replica: tokens are admitted on the primary'
      USING ERRCODE = '25006', HINT = 'Readers call pawl.check(), which works here.';
  END IF;
END $$;

-- A caller that passes an invalid token has a bug, in every mode.
CREATE OR REPLACE FUNCTION pawl._insist_on_token(g pawl.guard, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._token(token::text) IS NULL THEN PERFORM pawl._refuse(g, key, 'malformed', NULL, pg_sequence_last_value(g.fence)); END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl._insist_on_op(op bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF op >= 1 THEN RETURN op; END IF;
  RAISE EXCEPTION 'pawl: malformed operation number %', coalesce(op::text, 'NULL')
    USING ERRCODE = 'PW003', HINT = 'An operation number is an integer from 1 on, new for each operation under a token.';
END $$;

-- A row guard's fence is in the row, or without a row in pawl.keyed_fence. That one is locked first, whether there is a
-- row or not: an insert of the row needs it too, so nothing can change in between; and its new version is what ends a
-- transaction with an older snapshot in 40001. The row's token rises through the trigger that judges every write.
CREATE OR REPLACE FUNCTION pawl._admit_row(g pawl.guard, key text, token bigint, op bigint, hold boolean, OUT verdict text, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := (SELECT p.tbl FROM pawl.protected p WHERE p.guard = g.id);
  is_key text := format('%I = $1::%s', g.key, pawl._key_type(g));
  in_row bigint;
BEGIN
  IF tbl IS NULL THEN RAISE EXCEPTION 'pawl: the guard % has lost its table', quote_literal(g.name) USING ERRCODE = 'PW004'; END IF;
  IF NOT hold THEN  -- Lock nothing; the trigger raises what is written.
    before := pawl._fence(g, key);
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
    RETURN;
  END IF;
  before := pawl._lock_fence(g.id, key);
  EXECUTE format('SELECT pawl_token FROM %s WHERE %s FOR NO KEY UPDATE', tbl, is_key) INTO in_row USING key;
  before := greatest(before, in_row);
  verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
  PERFORM pawl._keep_fence(g.id, key, CASE verdict WHEN 'admitted' THEN token ELSE before END);
  IF verdict = 'admitted' AND token > in_row THEN
    EXECUTE format('UPDATE %s SET pawl_token = $2 WHERE %s', tbl, is_key) USING key, token;
  END IF;
  before := nullif(before, 0);
END $$;

-- The slow path of use() and admit(): everything but "static, and the fence is exactly this token".
CREATE OR REPLACE FUNCTION pawl._admit(resource text, token bigint, op bigint, carry boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text; verdict text;
BEGIN
  PERFORM pawl._insist_on_primary();
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._insist_on_token(g, key, token);
  IF carry OR g.kind = 'row' THEN PERFORM pawl._carry(g, key, token::text); END IF;
  IF g.kind = 'row' THEN
    PERFORM pg_advisory_xact_lock_shared(7295, g.id);  -- Before the row: a stricter policy must not come in between.
    SELECT * INTO STRICT g FROM pawl.guard o WHERE o.id = g.id;
    verdict := (pawl._admit_row(g, key, token, op, coalesce(pawl._enforced(g, pawl._resource(g, key)), true))).verdict;
  ELSE
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, NULL)).verdict;
  END IF;
  IF carry AND verdict = 'replayed' THEN PERFORM pawl._carry(g, key, 'replayed'); END IF;  -- A careless write is refused: PW008.
  RETURN verdict;
END $$;

-- Judges now, and carries the token to the statements that follow in this transaction. The fast path runs with the
-- caller's rights: it only reads. (Why three looks are enough: section 12.)
CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  g record; carried text;
BEGIN
  SELECT fence, raiser, lock_key, setting INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) resource AND kind OPERATOR(pg_catalog.=) 'static' AND equal OPERATOR(pg_catalog.=) 'accept';
  IF pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN
    carried := pg_catalog.set_config(g.setting, token::pg_catalog.text, true);
    RETURN 'admitted';
  END IF;
  RETURN pawl._admit(resource, token, NULL, true);
END $$;

-- The same with an operation number: admitted once under its token, however often and in whatever order it arrives.
CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), true) $$;

-- Holds a static fence without moving it, and refuses what is to be refused.
CREATE OR REPLACE FUNCTION pawl._hold(g pawl.guard, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  verdict text; max bigint; enforced boolean := coalesce(pawl._enforced(g, g.name), true);
BEGIN
  SELECT j.verdict, j.max INTO verdict, max FROM pawl._judge_static(g, token, enforced, false) j;
  IF verdict = 'admitted' AND g.equal <> 'accept' THEN verdict := pawl._claim(g, '', token, NULL); END IF;
  IF enforced AND verdict <> 'admitted' THEN PERFORM pawl._refuse(g, '', verdict, token, max); END IF;
END $$;

-- Several resources under one token, taken in a fixed order, so that two transactions cannot wait for each other: first
-- the static ones are held, then those with keys admitted (a rollback undoes that), and only then, when none can be
-- refused any more, static fences move, which no rollback undoes. Answers the worst verdict that was let through.
CREATE OR REPLACE FUNCTION pawl.use(resources text[], token bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard; r record; verdict text; worst text;
BEGIN
  PERFORM pawl._insist_on_primary();
  FOR g IN SELECT (f.g).* FROM (SELECT DISTINCT u FROM unnest(resources) u) d, LATERAL pawl._find(d.u) f WHERE (f.g).kind = 'static' ORDER BY d.u COLLATE "C" LOOP
    PERFORM pawl._insist_on_token(g, '', token);
    PERFORM pawl._hold(g, token);
  END LOOP;
  FOR r IN SELECT d.u AS resource FROM (SELECT DISTINCT u FROM unnest(resources) u) d, LATERAL pawl._find(d.u) f
            ORDER BY (f.g).kind = 'static', d.u COLLATE "C" LOOP
    verdict := pawl._admit(r.resource, token, NULL, true);
    IF worst IS NULL OR worst = 'admitted' THEN worst := verdict; END IF;
  END LOOP;
  IF worst IS NULL THEN RAISE EXCEPTION 'pawl: no resource named' USING ERRCODE = 'PW004'; END IF;
  RETURN worst;
END $$;

-- Judges and holds until the end of the transaction, for writes that no trigger checks.
CREATE OR REPLACE FUNCTION pawl.admit(resource text, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  g record;
BEGIN
  SELECT fence, raiser, lock_key INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) resource AND kind OPERATOR(pg_catalog.=) 'static' AND equal OPERATOR(pg_catalog.=) 'accept';
  IF pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
  THEN
    RETURN 'admitted';
  END IF;
  RETURN pawl._admit(resource, token, NULL, false);
END $$;

CREATE OR REPLACE FUNCTION pawl.admit(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), false) $$;
