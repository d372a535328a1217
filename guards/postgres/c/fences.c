/* The fences of a guard, and what a transaction carries: what the fast paths look at and hold. */
#include "fences.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

/* A function of SQL that may return NULL; DirectFunctionCall does not allow that. */
static Datum call_nullable(PGFunction function, Datum argument, bool* is_null) {
  LOCAL_FCINFO(call, 1);
  Datum result;

  InitFunctionCallInfoData(*call, NULL, 1, InvalidOid, NULL, NULL);
  call->args[0].value = argument;
  call->args[0].isnull = false;
  result = function(call);
  *is_null = call->isnull;
  return result;
}

/* pg_sequence_last_value(), or `otherwise` where nothing has been noted. */
int64 last_value(Oid sequence, int64 otherwise) {
  bool is_null;
  Datum value = call_nullable(pg_sequence_last_value, ObjectIdGetDatum(sequence), &is_null);

  return is_null ? otherwise : DatumGetInt64(value);
}

bool try_lock_shared(int64 key) {
  return DatumGetBool(
      DirectFunctionCall1(pg_try_advisory_xact_lock_shared_int8, Int64GetDatum(key)));
}

/* Whether a setting is `value`; one that was never set is nothing. */
static bool setting_is(const char* name, const char* value) {
  const char* set = GetConfigOption(name, true, false);

  return set != NULL && strcmp(set, value) == 0;
}

bool setting_is_empty(const char* name) {
  const char* set = GetConfigOption(name, true, false);

  return set == NULL || *set == '\0';
}

bool session_has_used(int32 guard) {
  return setting_is(psprintf("pawl.used._%d", guard), "1");
}

/* {"key": "token"}: what use() carries for one key. */
char* carried_for(const char* key, int64 token) {
  StringInfoData text;

  initStringInfo(&text);
  appendStringInfoChar(&text, '{');
  escape_json(&text, key);
  appendStringInfo(&text, ": \"" INT64_FORMAT "\"}", token);
  return text.data;
}

bool is_carried(const char* setting, const char* key, int64 token) {
  return setting_is(setting, psprintf(INT64_FORMAT, token)) ||
         setting_is(setting, carried_for(key, token));
}

bool is_read_committed(void) {
  return XactIsoLevel == XACT_READ_COMMITTED;
}

/* The fast path of a static guard, in pawl._generate_static(): the fence is the token, which the
 * caller has compared. */
bool holds_static(int64 token, Oid fence, int64 lock_key, Oid raiser) {
  int64 raised_by;
  FullTransactionId own = GetTopFullTransactionIdIfAny();

  if (token < 1 || last_value(fence, 0) != token || !try_lock_shared(lock_key)) return false;
  raised_by = last_value(raiser, 0);
  if (raised_by == 0 ||
      (FullTransactionIdIsValid(own) && U64FromFullTransactionId(own) == (uint64)raised_by))
    return false;
  return DatumGetBool(DirectFunctionCall2(pg_visible_in_snapshot, UInt64GetDatum((uint64)raised_by),
                                          DirectFunctionCall1(pg_current_snapshot, (Datum)0)));
}

/* A table or an index of the schema pawl. */
Oid own_relation(const char* name) {
  Oid relation = get_relname_relid(name, get_namespace_oid("pawl", false));

  if (!OidIsValid(relation))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("pawl: there is no pawl.%s: install the guard again", name));
  return relation;
}

/* The fence of a key in pawl.keyed_fence, as the snapshot shows it. `use` is called with the tuple
 * while the table is open. */
typedef bool (*UseOfFence)(Relation table, HeapTuple tuple, int64 fence, int64 token);

static bool with_fence(int32 guard, text* key, int64 token, LOCKMODE lock, Snapshot snapshot,
                       UseOfFence use) {
  Relation table = table_open(own_relation("keyed_fence"), lock);
  Relation index = relation_open(own_relation("keyed_fence_pkey"), AccessShareLock);
  SysScanDesc scan;
  HeapTuple tuple;
  ScanKeyData keys[2];
  bool result = false;

  ScanKeyEntryInitialize(&keys[0], 0, 1, BTEqualStrategyNumber, InvalidOid, InvalidOid, F_INT4EQ,
                         Int32GetDatum(guard));
  ScanKeyEntryInitialize(&keys[1], 0, 2, BTEqualStrategyNumber, InvalidOid, DEFAULT_COLLATION_OID,
                         F_TEXTEQ, PointerGetDatum(key));
  scan = systable_beginscan_ordered(table, index, snapshot, 2, keys);
  tuple = systable_getnext_ordered(scan, ForwardScanDirection);
  if (tuple != NULL) {
    bool is_null;
    Datum fence = heap_getattr(tuple, 3, RelationGetDescr(table), &is_null);

    result = !is_null && use(table, tuple, DatumGetInt64(fence), token);
  }
  systable_endscan_ordered(scan);
  relation_close(index, AccessShareLock);
  table_close(table, NoLock);
  return result;
}

/* Not the newest version, or locked: another transaction is raising it. Then the slow path waits
 * for that. */
bool lock_without_waiting(Relation table, ItemPointer at, LockTupleMode mode) {
  TupleTableSlot* slot = table_slot_create(table, NULL);
  TM_FailureData failure;
  TM_Result result = table_tuple_lock(table, at, GetActiveSnapshot(), slot,
                                      GetCurrentCommandId(false), mode, LockWaitSkip, 0, &failure);

  ExecDropSingleTupleTableSlot(slot);
  return result == TM_Ok;
}

static bool lock_if_equal(Relation table, HeapTuple tuple, int64 fence, int64 token) {
  return fence == token && lock_without_waiting(table, &tuple->t_self, LockTupleShare);
}

static bool is_above(Relation table, HeapTuple tuple, int64 fence, int64 token) {
  return fence > token;
}

/* pawl._hold_key(): locks the fence of a key FOR SHARE SKIP LOCKED, if it is this token. Where SQL
 * may not lock, this does not. */
bool holds_key(int32 guard, text* key, int64 token) {
  return !XactReadOnly &&
         with_fence(guard, key, token, RowShareLock, GetActiveSnapshot(), lock_if_equal);
}

/* pawl._kept_above(), with the snapshot that a query of a VOLATILE function would take now: what
 * was committed before the caller locked the row counts, and what this transaction did. */
bool is_kept_above(int32 guard, text* key, int64 token) {
  bool above;

  CommandCounterIncrement();
  PushActiveSnapshot(GetTransactionSnapshot());
  above = with_fence(guard, key, token, AccessShareLock, GetActiveSnapshot(), is_above);
  PopActiveSnapshot();
  return above;
}

AttrNumber attribute_of(TupleDesc shape, const char* name) {
  for (int i = 0; i < shape->natts; i++) {
    Form_pg_attribute attribute = TupleDescAttr(shape, i);

    if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0) return i + 1;
  }
  return InvalidAttrNumber;
}
