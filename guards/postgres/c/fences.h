/* What the functions of this library share. Nothing of it is seen outside of the library: the
 * server loads all libraries into one name space.
 *
 * The library is the optional C part of Pawl's guard for PostgreSQL: the fast paths, and nothing
 * else. Each function of SQL answers "surely admitted, and held until the end of the transaction"
 * (true), or "I do not know" (false, or NULL for a NULL argument). Then the PL/pgSQL of the guard
 * decides, as it does without this library. So nothing here refuses or raises a fence, and nothing
 * waits for a row. Each is one PL/pgSQL expression or query of guards/postgres/parts, condition by
 * condition, and the comment above it says which. Change both together.
 *
 * The names end in the version of what they promise: a newer guard that needs more finds no
 * function, and does without.
 */
#ifndef PAWL_GUARD_FENCES_H
#define PAWL_GUARD_FENCES_H

#include "postgres.h"

#include "access/attnum.h"
#include "access/tupdesc.h"
#include "nodes/lockoptions.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* Longer keys of a row guard are refused, those of a `by` guard go by their hash: pawl._short(). */
#define LONGEST_KEY 512

#pragma GCC visibility push(hidden)

/* pg_sequence_last_value(), or `otherwise` where nothing has been noted. */
int64 last_value(Oid sequence, int64 otherwise);

/* The advisory lock of a guard, until the end of the transaction. */
bool try_lock_shared(int64 key);

bool is_read_committed(void);
bool setting_is_empty(const char* name);
bool session_has_used(int32 guard);

/* {"key": "token"}: what use() carries for one key. */
char* carried_for(const char* key, int64 token);
bool is_carried(const char* setting, const char* key, int64 token);

/* The fast path of a static guard, in pawl._generate_static(): the fence is the token. */
bool holds_static(int64 token, Oid fence, int64 lock_key, Oid raiser);

/* pawl._hold_key(): locks the fence of a key FOR SHARE SKIP LOCKED, if it is this token. */
bool holds_key(int32 guard, text* key, int64 token);

/* pawl._kept_above(): whether the fence that is kept for a key is greater than this token. */
bool is_kept_above(int32 guard, text* key, int64 token);

/* True if the version at this place is the newest, and is locked now. */
bool lock_without_waiting(Relation table, ItemPointer at, LockTupleMode mode);

/* A table or an index of the schema pawl. */
Oid own_relation(const char* name);

/* InvalidAttrNumber where there is no such column. */
AttrNumber attribute_of(TupleDesc shape, const char* name);

#pragma GCC visibility pop

#endif
