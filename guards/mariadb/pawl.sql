-- Pawl's guard for MariaDB 10.11 and newer, InnoDB tables: plain SQL, no plugin.
--
--   mariadb < pawl.sql                                                   install, or upgrade in place
--   CALL pawl.protect('shop.orders', NULL, NULL, 'observe');             put a table under guard
--   CALL pawl.add_writer('app@%');                                       let the account of a program use tokens
--   CALL pawl.advance('shop.orders', 34, 5);                             a new holder, before it reads
--   START TRANSACTION; CALL pawl.use('shop.orders', 34); UPDATE …; COMMIT;   write under token 34
--   CALL pawl.token_column('shop.orders', TRUE);                         or: the write itself carries its token,
--   UPDATE shop.orders SET n = 1, pawl_token = 34 WHERE …;               and no message goes before it
--   CALL pawl.set_mode('shop.orders', 'enforce', NULL, NULL);            from now on an older token is refused
--
-- A guard refuses a write whose fencing token is smaller than the greatest it has seen, in the same transaction as the
-- write, whichever client writes. Three kinds:
--
--   static   one fence for a table, several tables, or anything with a name    protect(table), create_guard(name)
--   by       rows share a resource that a column names (unique: a row each)    protect(table, …, column)
--   keyed    a fence per key, for what lives in no table                       create_guard(name, true)
--
-- HOW IT WORKS, and why it cannot be raced past:
--   * A fence is an InnoDB row. A writer reads it LOCK IN SHARE MODE, which is the newest committed value at every
--     isolation level, and holds that lock to the end of its transaction. A raise writes the row: it waits for every
--     transaction with a smaller token, and every later writer sees the new fence.
--   * The policy of a guard stands in such a row too, so a stricter mode waits for what was let through before.
--   * use() carries the token to the triggers in a user variable. MariaDB keeps those beyond the transaction, and pools
--     hand them to strangers; so a trigger believes it only inside a transaction, and only after it has itself locked and
--     compared the fence. What leaks is at worst an old token, which is refused, or the present holder's own: nothing that
--     a trigger can read distinguishes one transaction from the next. finish(), abandon() and begin() clear the variable.
--   * token_column() does without it: the write carries its token in a column, so there is nothing that could leak.
--   * Under REPEATABLE READ a plain SELECT is as old as the snapshot. A fence that differs between a plain and a locking
--     read has moved since: the transaction ends in 40001 (retry), never in "stale".
--   * Counters and the emergency switch are sequences: no ROLLBACK undoes them, and no snapshot hides them.
--   * XA PREPARE releases shared locks, and a crash those of prepared transactions. What XA keeps is what it has written: so a
--     write inside XA leaves a row in pawl.xa_write, and a raise waits for those rows as well. (_note_xa, _wait_for_xa)
--   * Two keys are the same when the key column calls them equal. A fence is stored under a form of the key that is the same
--     for all equal keys: the text of a number, the weights of a text under the column's collation. (_key_form, _fold_text)
--   * Everything runs as the account pawl_definer@localhost, which nobody can log in to.
--
-- Everything is a procedure, not a function: a function locks every table it might touch, as strictly as it might ever
-- need, for the whole statement, and writers of one token would wait for each other. For the same reason triggers only
-- read fences. Names that begin with an underscore are the inside.

SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
SET NAMES utf8mb4 COLLATE utf8mb4_bin;
-- The guard's own account: routines and triggers stop working when the account that made them is dropped.
CREATE USER IF NOT EXISTS pawl_definer@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK;
ALTER USER pawl_definer@localhost ACCOUNT LOCK;
GRANT ALL PRIVILEGES ON *.* TO pawl_definer@localhost;
GRANT EXECUTE ON pawl.* TO pawl_definer@localhost WITH GRANT OPTION;  -- add_writer()
CREATE DATABASE IF NOT EXISTS pawl CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
USE pawl;

source parts/01-preconditions.sql
source parts/02-tables.sql
source parts/03-rules.sql
source parts/04-counters.sql
source parts/05-decision.sql
source parts/06-writers.sql
source parts/07-readers.sql
source parts/08-advance.sql
source parts/09-triggers.sql
source parts/10-guards.sql
source parts/11-policy.sql
source parts/12-status.sql
source parts/13-privileges.sql
