-- Pawl's guard for PostgreSQL 15 and newer: plain SQL and PL/pgSQL, no extension.
--
--   psql -d shop -f pawl.sql                                     install, or upgrade in place
--   SELECT pawl.protect('orders');                               put a table under guard (mode: observe)
--   BEGIN; SELECT pawl.use('orders', 34); UPDATE orders …; COMMIT;   write under token 34
--   SELECT pawl.set_mode('orders', 'enforce');                   from now on an older token is refused
--
-- A guard refuses a write whose fencing token is smaller than the greatest it has seen, in the same transaction as the
-- write, whichever client writes. Four kinds, because one mechanism cannot serve all:
--
--   static   one fence for a table, several tables, or anything with a name        protect(tbl), create_guard(name)
--   row      every row is a resource of its own, and carries its fence in a column protect(tbl, key => 'id')
--   by       rows share a resource that an expression over the row names           protect(tbl, by => 'customer_id')
--   keyed    a fence per key, for what lives in no table                           create_guard(name, keyed => true)
--
-- HOW A STATIC FENCE WORKS, and why there is no race:
--   * The fence is a SEQUENCE. Its value is read outside MVCC, so it is the newest in every isolation level; a raise is
--     not undone by ROLLBACK, which is the safe direction.
--   * A writer holds the guard's advisory lock, shared, from the check to the end of its transaction. Raising the
--     fence takes it exclusively: a raise waits until every transaction with a smaller token has ended, and every
--     later writer sees the new fence. A smaller token is refused without a lock: it is stale for ever.
--   * A second sequence holds the id of the transaction that raised the fence. A statement whose snapshot does not see that
--     transaction may have read what an older holder has since changed, and ends in 40001 (retry), never in "stale".
--
-- Names that begin with an underscore are internal; everything else is the interface. Functions that run with their
-- owner's rights pin search_path; functions that run with the caller's rights qualify every name and every operator.
-- Whatever compares must fail closed on NULL.
--
-- Settings read while installing:   PGOPTIONS='-c pawl.writers=app'   the role that may call use(), admit(), advance(), …,
-- for every guard. By default those may who may write the tables, and the roles that pawl.allow() names.

\set ON_ERROR_STOP on
BEGIN;
SET LOCAL pawl.installing_version = '0.1.0';
SET LOCAL pawl.installing_contract = '1';  -- Grows when callers must change. Clients compare it.
SET LOCAL client_min_messages = warning;

\ir parts/01-preconditions.sql
\ir parts/02-tables.sql
\ir parts/03-rules.sql
\ir parts/04-records.sql
\ir parts/05-decision.sql
\ir parts/06-writers.sql
\ir parts/07-readers.sql
\ir parts/08-trigger-calls.sql
\ir parts/09-advance.sql
\ir parts/10-triggers.sql
\ir parts/10-triggers-follow.sql
\ir parts/11-guards.sql
\ir parts/12-policy.sql
\ir parts/13-status.sql
\ir parts/14-privileges.sql

COMMIT;
