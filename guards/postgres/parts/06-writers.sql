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

-- Whether the client's whole message is one call of use(), outside a transaction: it would hold for nothing. Only the
-- simple protocol shows it (there one message is one moment); with others the write that follows is refused, because the
-- session remembers. A NULL is no.
CREATE OR REPLACE FUNCTION pawl._is_alone(at timestamptz, since timestamptz, query text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN at OPERATOR(pg_catalog.=) since
              THEN query OPERATOR(pg_catalog.~*) E'^\\s*select\\s+(\\*\\s+from\\s+)?pawl\\.use\\s*\\(([^()'']|''[^'']*'')*\\)\\s*(as\\s+\\w+)?\\s*;?\\s*$' ELSE false END
$$;

-- Who may raise a fence: who may write the tables under it; and the roles that were named to it, for one guard by allow() or
-- for all while installing. Guards without a table have only these.
CREATE OR REPLACE FUNCTION pawl._may_raise(g pawl.guard, role name) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pawl.protected p JOIN pg_class c ON c.oid = p.tbl CROSS JOIN LATERAL pawl._family(p.tbl) f
                  WHERE p.guard = g.id AND (has_table_privilege(role, f.tbl, 'INSERT, UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(role, f.tbl, 'INSERT, UPDATE')))
      OR EXISTS (SELECT FROM pawl.installation i WHERE upper(i.writers) = 'PUBLIC' OR pg_has_role(role, to_regrole(quote_ident(nullif(i.writers, '')))::oid, 'USAGE'))
      OR EXISTS (SELECT FROM pawl.allowed a JOIN pg_roles r ON r.rolname = a.role WHERE a.guard = g.id AND pg_has_role(_may_raise.role, r.oid, 'USAGE'))
      OR EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = 'pawl' AND pg_has_role(role, n.nspowner, 'USAGE'));
END $$;

-- Whether this session may raise the fence. A guard that refuses fails where it may not; others warn, record it for
-- readiness(), and leave the fence as it is. Within functions that run with another role's rights only the session's own count.
CREATE OR REPLACE FUNCTION pawl._may_raise_here(g pawl.guard, resource text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  why text := format('pawl: %s may not write what %L guards, so it may not raise its fence', session_user, g.name);
  remedy text := format('GRANT it a right to write the table, or: SELECT pawl.allow(%L, %L).', g.name, session_user);
BEGIN
  IF pawl._may_raise(g, session_user) OR current_setting('role') <> 'none' AND pawl._may_raise(g, current_setting('role')::name) THEN RETURN true; END IF;
  IF coalesce(pawl._enforced(g, resource), true) THEN RAISE EXCEPTION '%', why USING ERRCODE = '42501', HINT = remedy; END IF;
  RAISE WARNING '%', why USING HINT = remedy;
  IF pawl._read_committed() AND current_setting('transaction_read_only') = 'off'
     AND NOT EXISTS (SELECT FROM pawl.sightings s WHERE s.guard = g.name AND s.fingerprint = 'no right' AND s.login = session_user
                        AND s.at > greatest(g.mode_since, clock_timestamp() - interval '1 minute')) THEN
    INSERT INTO pawl.sightings (guard, login, role, application_name, addr, pid, fingerprint, statement)
      VALUES (g.name, session_user, current_setting('role'), current_setting('application_name'), inet_client_addr(), pg_backend_pid(), 'no right', remedy);
  END IF;
  RETURN false;
END $$;

-- Only what would be admitted: what is refused anyway says why.
CREATE OR REPLACE FUNCTION pawl._insist_on_transaction(g pawl.guard, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pawl._is_alone(statement_timestamp(), now(), current_query()) AND pawl._verdict(token, pawl._fence(g, key), g.max_step) = 'admitted' THEN
    RAISE EXCEPTION 'pawl: use(%) outside a transaction holds for nothing', quote_literal(pawl._resource(g, key))
      USING ERRCODE = 'PW006', HINT = format('BEGIN; SELECT pawl.use(%L, %s); the writes; COMMIT. Or all of them in one message or function.',
                                             pawl._resource(g, key), token);
  END IF;
END $$;

-- Row security that applies to the guard's own role would hide rows from it, and leave them without a fence.
CREATE OR REPLACE FUNCTION pawl._insist_on_all_rows(g pawl.guard, tbl regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF row_security_active(tbl) THEN
    RAISE EXCEPTION 'pawl: row security hides rows of % from %, the role that owns the guard', tbl, current_user
      USING ERRCODE = '55000', HINT = format('ALTER ROLE %I BYPASSRLS, or ALTER TABLE %s NO FORCE ROW LEVEL SECURITY.', current_user, tbl);
  END IF;
END $$;

-- A row guard's fence is in the row, or without a row in pawl.keyed_fence. That one is locked first, whether there is a
-- row or not: an insert of the row needs it too, so nothing can change in between; and its new version is what ends a
-- transaction with an older snapshot in 40001. The row's token rises through the trigger that judges every write.
CREATE OR REPLACE FUNCTION pawl._admit_row(g pawl.guard, key text, token bigint, op bigint, hold boolean, OUT verdict text, OUT before bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tbl regclass := pawl._table_of(g);
  in_row bigint;
BEGIN
  IF tbl IS NULL THEN
    RAISE EXCEPTION 'pawl: the guard % has lost its table, or the key of it', quote_literal(g.name)
      USING ERRCODE = 'PW004', HINT = 'SELECT * FROM pawl.problems().';
  END IF;
  IF NOT hold THEN  -- Lock nothing; the trigger raises what is written.
    before := pawl._fence(g, key);
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
    RETURN;
  END IF;
  PERFORM pawl._insist_on_all_rows(g, tbl);
  before := pawl._lock_fence(g.id, key);
  EXECUTE format('SELECT pawl_token FROM %s WHERE %s FOR NO KEY UPDATE', tbl, pawl._is_key(g, key)) INTO in_row;
  before := greatest(before, in_row);
  verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, before)).verdict;
  PERFORM pawl._keep_fence(g.id, key, CASE verdict WHEN 'admitted' THEN token ELSE before END);
  IF verdict = 'admitted' AND token > in_row THEN PERFORM pawl._raise_in_row(g, tbl, key, token); END IF;
  before := nullif(before, 0);
END $$;

-- Writes the fence into the row, and looks whether it is there: a trigger of the table can keep the UPDATE from it, and
-- the row would be without its fence. The UPDATE runs triggers, rules and constraints of the table's owner, and so runs with
-- that role's rights: see pawl._generate_touch().
CREATE OR REPLACE FUNCTION pawl._raise_in_row(g pawl.guard, tbl regclass, key text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_in_row bigint;
BEGIN
  IF NOT pawl._belongs_to_owner(format('pawl.touch_%s(regclass, text, bigint)', g.id), tbl) THEN PERFORM pawl._generate_touch(g); END IF;
  EXECUTE format('SELECT pawl.touch_%s($1, $2, $3)', g.id) INTO now_in_row USING tbl, pawl._is_key(g, key), token;
  IF now_in_row IS DISTINCT FROM token THEN
    RAISE EXCEPTION 'pawl: the fence % did not reach the row %: a trigger of % keeps updates from it', token, pawl._resource(g, key), tbl
      USING ERRCODE = '55000', DETAIL = format('The row has %s.', coalesce('the fence ' || now_in_row, 'not been updated')),
            HINT = format('Let its triggers pass an UPDATE of the column pawl_token by %s, its owner.', (SELECT c.relowner::regrole FROM pg_class c WHERE c.oid = tbl));
  END IF;
END $$;

-- The slow path of use() and admit(): everything but "static, and the fence is exactly this token".
CREATE OR REPLACE FUNCTION pawl._admit(resource text, token bigint, op bigint, carry boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named record; g pawl.guard; key text; verdict text;
BEGIN
  PERFORM pawl._insist_on_primary();
  named := pawl._find(resource); g := named.g; key := named.key;
  PERFORM pawl._remember(g.id);
  PERFORM pawl._insist_on_token(g, key, token);
  IF carry THEN PERFORM pawl._insist_on_transaction(g, key, token); END IF;
  IF carry OR g.kind = 'row' THEN PERFORM pawl._carry(g, key, token::text); END IF;
  IF NOT pawl._may_raise_here(g, pawl._resource(g, key)) THEN RETURN pawl._verdict(token, pawl._fence(g, key), g.max_step); END IF;
  IF g.kind = 'row' THEN
    PERFORM pawl._enter(g.id);  -- Before the row: a stricter policy must not come in between.
    SELECT * INTO STRICT g FROM pawl.guard o WHERE o.id = g.id;
    verdict := (pawl._admit_row(g, key, token, op, coalesce(pawl._enforced(g, pawl._resource(g, key)), true))).verdict;
  ELSE
    verdict := (pawl._decide(g.id, key, token::text, op, NULL, false, NULL)).verdict;
  END IF;
  IF carry AND verdict = 'replayed' THEN PERFORM pawl._carry(g, key, 'replayed'); END IF;  -- A careless write is refused: PW008.
  PERFORM pawl._mark_replayed(g, key, verdict = 'replayed') WHERE carry;
  RETURN verdict;
END $$;

-- Holds the fence of a key, if it is exactly this token: as _judge_keyed() does, but without waiting, so it needs no policy. The
-- shared lock keeps compact() away, and with it the floor. It changes nothing, so a caller that makes up its arguments gains
-- nothing. A key that is not spelled as keys are has no fence: false.
CREATE OR REPLACE FUNCTION pawl._hold_key(guard_id int, lock_key bigint, key text, token bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
     AND pg_catalog.pg_try_advisory_xact_lock_shared(lock_key)
     AND (pg_catalog.current_setting(pg_catalog.concat('pawl.used._', guard_id), true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(guard_id)) THEN
    PERFORM FROM pawl.keyed_fence f
      WHERE f.guard OPERATOR(pg_catalog.=) guard_id AND f.key OPERATOR(pg_catalog.=) _hold_key.key AND f.token OPERATOR(pg_catalog.=) _hold_key.token
        AND f.token OPERATOR(pg_catalog.>=) coalesce(pg_catalog.pg_sequence_last_value(pg_catalog.concat('pawl.fence_', guard_id)::pg_catalog.regclass), 1)
        FOR SHARE SKIP LOCKED;
    RETURN FOUND;
  END IF;
  RETURN false;
END $$;

-- What pawl.use() does: judges now, and carries the token to the statements that follow in this transaction. The fast paths
-- are for a token that is the fence, and run with the caller's rights: they only read. (Why these looks are enough:
-- 10-triggers.sql.) For a row guard it is a function of the guard's own, which answers NULL where it does not know.
CREATE OR REPLACE FUNCTION pawl._use(resource text, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  g record; carried text; key text;
BEGIN
  SELECT id, kind, fence, raiser, lock_key, setting INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) pg_catalog.split_part(resource, ':', 1) AND equal OPERATOR(pg_catalog.=) 'accept';
  IF g.kind OPERATOR(pg_catalog.=) 'static' THEN
    IF (pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token) IS TRUE
       AND NOT pg_catalog.pg_is_in_recovery()
       AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
       AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
       AND (pg_catalog.pg_current_xact_id_if_assigned() IS NULL
            OR pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text)
       AND (pg_catalog.current_setting(pg_catalog.concat('pawl.used._', g.id), true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(g.id))
       AND NOT pawl._is_alone(pg_catalog.statement_timestamp(), pg_catalog.now(), pg_catalog.current_query())
       AND pg_catalog.strpos(resource, ':') OPERATOR(pg_catalog.=) 0
    THEN
      carried := pg_catalog.set_config(g.setting, token::pg_catalog.text, true);
      RETURN 'admitted';
    END IF;
  ELSIF g.id IS NOT NULL AND NOT pg_catalog.pg_is_in_recovery() AND pg_catalog.strpos(resource, ':') OPERATOR(pg_catalog.>) 0
        AND NOT pawl._is_alone(pg_catalog.statement_timestamp(), pg_catalog.now(), pg_catalog.current_query()) THEN
    key := pg_catalog.substr(resource, pg_catalog.strpos(resource, ':') OPERATOR(pg_catalog.+) 1);
    IF g.kind OPERATOR(pg_catalog.=) 'row' THEN
      EXECUTE pg_catalog.concat('SELECT pawl.use_', g.id, '($1, $2)') INTO carried USING key, token;
      IF carried IS NOT NULL THEN RETURN carried; END IF;
    ELSIF coalesce(pg_catalog.current_setting(g.setting, true), '') OPERATOR(pg_catalog.=) ''
          AND pawl._hold_key(g.id, g.lock_key, key, token) THEN
      carried := pg_catalog.set_config(g.setting, pg_catalog.concat('{', pg_catalog.to_json(key)::pg_catalog.text, ': "', token, '"}'), true);
      RETURN 'admitted';
    END IF;
  END IF;
  RETURN pawl._admit(resource, token, NULL, true);
END $$;

-- With the C library, what that does not admit at once goes on as without it. Without it, this is _use() under its public
-- name: one more function in between would cost a quarter of the check.
DO $$
BEGIN
  IF pawl._has_library() THEN
    CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint) RETURNS text LANGUAGE sql
      AS 'SELECT CASE WHEN pawl._c_use(resource, token) THEN ''admitted'' ELSE pawl._use(resource, token) END';
  ELSE
    EXECUTE regexp_replace(pg_get_functiondef('pawl._use(text, bigint)'::regprocedure), 'pawl[.]_use[(]', 'pawl.use(');
  END IF;
END $$;

-- The same with an operation number: admitted once under its token, however often and in whatever order it arrives.
CREATE OR REPLACE FUNCTION pawl.use(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), true) $$;

-- Forgets that this session has used tokens, of one guard or of all: for a connection that another program gets next, e.g.
-- from a pool. DISCARD ALL does the same.
CREATE OR REPLACE FUNCTION pawl.reset(guard text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g pawl.guard;
BEGIN
  FOR g IN SELECT o.* FROM pawl.guard o WHERE reset.guard IS NULL OR o.name = reset.guard LOOP
    CONTINUE WHEN NOT pawl._remembers(g);
    PERFORM setval(format('pawl.used_%s', g.id)::regclass, 2), set_config(concat('pawl.used._', g.id), '', false), set_config(g.setting, '', false);
  END LOOP;
END $$;

-- Holds a static fence without moving it, and refuses what is to be refused.
CREATE OR REPLACE FUNCTION pawl._hold(g pawl.guard, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  verdict text; max bigint; enforced boolean := coalesce(pawl._enforced(g, g.name), true);
BEGIN
  PERFORM pawl._remember(g.id);
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
    PERFORM pawl._hold(g, token) WHERE pawl._may_raise_here(g, g.name);
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
  SELECT id, fence, raiser, lock_key INTO g FROM pawl.guard
   WHERE name OPERATOR(pg_catalog.=) resource AND kind OPERATOR(pg_catalog.=) 'static' AND equal OPERATOR(pg_catalog.=) 'accept';
  IF (pg_catalog.pg_sequence_last_value(g.fence) OPERATOR(pg_catalog.=) token) IS TRUE
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_try_advisory_xact_lock_shared(g.lock_key)
     AND pg_catalog.pg_visible_in_snapshot(pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text::pg_catalog.xid8, pg_catalog.pg_current_snapshot())
     AND (pg_catalog.pg_current_xact_id_if_assigned() IS NULL
          OR pg_catalog.pg_sequence_last_value(g.raiser)::pg_catalog.text OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text)
     AND (pg_catalog.current_setting(pg_catalog.concat('pawl.used._', g.id), true) OPERATOR(pg_catalog.=) '1' OR pawl._remember(g.id))
  THEN
    RETURN 'admitted';
  END IF;
  RETURN pawl._admit(resource, token, NULL, false);
END $$;

CREATE OR REPLACE FUNCTION pawl.admit(resource text, token bigint, op bigint) RETURNS text
LANGUAGE sql AS $$ SELECT pawl._admit(resource, token, pawl._insist_on_op(op), false) $$;
