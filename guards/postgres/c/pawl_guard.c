/* The optional C part of Pawl's guard for PostgreSQL: the fast paths, and nothing else.
 *
 * Each function answers "surely admitted, and held until the end of the transaction" (true), or
 * "I do not know" (false, or NULL for a NULL argument). Then the PL/pgSQL of the guard decides, as
 * it does without this library. So nothing here refuses or raises a fence, and nothing waits but
 * for the row that use() of a row locks. Each function is one PL/pgSQL expression of
 * guards/postgres/parts, condition by condition, and the comment above it says which. Change both
 * together.
 *
 * The names end in the version of what they promise: a newer guard that needs more finds no
 * function, and does without.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

/* The class of the passage lock: see pawl._decide(). */
#define PASSAGE_LOCK 7295

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
static int64 last_value(Oid sequence, int64 otherwise) {
  bool is_null;
  Datum value = call_nullable(pg_sequence_last_value, ObjectIdGetDatum(sequence), &is_null);

  return is_null ? otherwise : DatumGetInt64(value);
}

static bool try_lock_shared(int64 key) {
  return DatumGetBool(
      DirectFunctionCall1(pg_try_advisory_xact_lock_shared_int8, Int64GetDatum(key)));
}

/* Whether a setting is `value`; one that was never set is nothing. */
static bool setting_is(const char* name, const char* value) {
  const char* set = GetConfigOption(name, true, false);

  return set != NULL && strcmp(set, value) == 0;
}

static bool setting_is_empty(const char* name) {
  const char* set = GetConfigOption(name, true, false);

  return set == NULL || *set == '\0';
}

static bool session_has_used(int32 guard) {
  return setting_is(psprintf("pawl.used._%d", guard), "1");
}

/* {"key": "token"}: what use() carries for one key. */
static char* carried_for(const char* key, int64 token) {
  StringInfoData text;

  initStringInfo(&text);
  appendStringInfoChar(&text, '{');
  escape_json(&text, key);
  appendStringInfo(&text, ": \"" INT64_FORMAT "\"}", token);
  return text.data;
}

static bool is_carried(const char* setting, const char* key, int64 token) {
  return setting_is(setting, psprintf(INT64_FORMAT, token)) ||
         setting_is(setting, carried_for(key, token));
}

static bool is_read_committed(void) {
  return XactIsoLevel == XACT_READ_COMMITTED;
}

/* The fast path of a static guard, in pawl._generate_static(): the fence is the token, which the
 * caller has compared. */
static bool holds_static(int64 token, Oid fence, int64 lock_key, Oid raiser) {
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
static Oid own_relation(const char* name) {
  Oid relation = get_relname_relid(name, get_namespace_oid("pawl", false));

  if (!OidIsValid(relation))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("pawl: there is no pawl.%s: install the guard again", name));
  return relation;
}

/* pawl._hold_key(): locks the fence of a key FOR SHARE SKIP LOCKED, if it is this token. Where SQL
 * may not lock, this does not. */
static bool holds_key(int32 guard, text* key, int64 token) {
  Relation table;
  Relation index;
  TupleTableSlot* slot;
  SysScanDesc scan;
  HeapTuple tuple;
  ScanKeyData keys[2];
  TM_FailureData failure;
  bool held = false;

  if (XactReadOnly) return false;
  table = table_open(own_relation("keyed_fence"), RowShareLock);
  index = relation_open(own_relation("keyed_fence_pkey"), AccessShareLock);
  slot = table_slot_create(table, NULL);
  ScanKeyEntryInitialize(&keys[0], 0, 1, BTEqualStrategyNumber, InvalidOid, InvalidOid, F_INT4EQ,
                         Int32GetDatum(guard));
  ScanKeyEntryInitialize(&keys[1], 0, 2, BTEqualStrategyNumber, InvalidOid, DEFAULT_COLLATION_OID,
                         F_TEXTEQ, PointerGetDatum(key));
  scan = systable_beginscan_ordered(table, index, GetActiveSnapshot(), 2, keys);
  tuple = systable_getnext_ordered(scan, ForwardScanDirection);
  if (tuple != NULL) {
    bool is_null;
    Datum fence = heap_getattr(tuple, 3, RelationGetDescr(table), &is_null);

    /* Not the newest version, or locked: another transaction is raising it. Then the slow path
     * waits for that. */
    if (!is_null && DatumGetInt64(fence) == token &&
        table_tuple_lock(table, &tuple->t_self, GetActiveSnapshot(), slot,
                         GetCurrentCommandId(false), LockTupleShare, LockWaitSkip, 0,
                         &failure) == TM_Ok)
      held = true;
  }
  systable_endscan_ordered(scan);
  ExecDropSingleTupleTableSlot(slot);
  relation_close(index, AccessShareLock);
  table_close(table, NoLock);
  return held;
}

/* _c_statement(setting, fence, lock_key, raiser, guard): pawl._generate_static(). */
PG_FUNCTION_INFO_V1(pawl_statement_1);
Datum pawl_statement_1(PG_FUNCTION_ARGS) {
  Oid fence = PG_GETARG_OID(1);
  const char* carried = GetConfigOption(text_to_cstring(PG_GETARG_TEXT_PP(0)), true, false);
  int64 token = last_value(fence, 0);

  PG_RETURN_BOOL(carried != NULL && token > 0 &&
                 strcmp(carried, psprintf(INT64_FORMAT, token)) == 0 &&
                 holds_static(token, fence, PG_GETARG_INT64(2), PG_GETARG_OID(3)) &&
                 session_has_used(PG_GETARG_INT32(4)));
}

/* _c_row(setting, token, old key, new key, floor, lock_key, guard): pawl._generate_row(). The row
 * is locked by its trigger. */
PG_FUNCTION_INFO_V1(pawl_row_1);
Datum pawl_row_1(PG_FUNCTION_ARGS) {
  int64 token = PG_GETARG_INT64(1);
  char* old_key = text_to_cstring(PG_GETARG_TEXT_PP(2));

  PG_RETURN_BOOL(is_carried(text_to_cstring(PG_GETARG_TEXT_PP(0)), old_key, token) &&
                 strcmp(old_key, text_to_cstring(PG_GETARG_TEXT_PP(3))) == 0 &&
                 try_lock_shared(PG_GETARG_INT64(5)) && token >= last_value(PG_GETARG_OID(4), 1) &&
                 session_has_used(PG_GETARG_INT32(6)));
}

/* _c_keys(setting, lowest key, greatest key, floor, lock_key, guard): pawl._generate_by(). */
PG_FUNCTION_INFO_V1(pawl_keys_1);
Datum pawl_keys_1(PG_FUNCTION_ARGS) {
  const char* carried = GetConfigOption(text_to_cstring(PG_GETARG_TEXT_PP(0)), true, false);
  text* key = PG_GETARG_TEXT_PP(1);
  char* spelled = text_to_cstring(key);
  const char* digits;
  int64 token = 0;

  if (carried == NULL || strcmp(spelled, text_to_cstring(PG_GETARG_TEXT_PP(2))) != 0 ||
      !is_read_committed())
    PG_RETURN_BOOL(false);
  /* The number in "34" or {"7": "34"}; that the rest is right, is_carried() says. */
  digits = *carried == '{' ? strrchr(carried, ' ') : carried;
  if (digits == NULL || strlen(digits) > 20) PG_RETURN_BOOL(false);
  for (; *digits != '\0' && *digits != '}'; digits++)
    if (*digits >= '0' && *digits <= '9') token = token * 10 + (*digits - '0');
  PG_RETURN_BOOL(token > 0 && is_carried(text_to_cstring(PG_GETARG_TEXT_PP(0)), spelled, token) &&
                 try_lock_shared(PG_GETARG_INT64(4)) && token >= last_value(PG_GETARG_OID(3), 1) &&
                 session_has_used(PG_GETARG_INT32(5)) && holds_key(PG_GETARG_INT32(5), key, token));
}

/* What pawl_use_1() needs of a row of pawl.guard. */
typedef struct Guard {
  int32 id;
  char* kind;
  char* setting;
  int64 lock_key;
  Oid fence;
  Oid raiser;
  bool accepts_equal;
  bool enforces;
} Guard;

/* A column that is never NULL. */
static Datum column(HeapTuple tuple, TupleDesc shape, const char* name) {
  for (int i = 0; i < shape->natts; i++) {
    Form_pg_attribute attribute = TupleDescAttr(shape, i);

    if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0) {
      bool is_null;
      Datum value = heap_getattr(tuple, i + 1, shape, &is_null);

      if (!is_null) return value;
    }
  }
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
          errmsg("pawl: pawl.guard has no %s: install the guard again", name));
}

/* As the active snapshot shows it. */
static bool find_guard(text* name, Guard* guard) {
  Relation table = table_open(own_relation("guard"), AccessShareLock);
  Relation index = relation_open(own_relation("guard_name_key"), AccessShareLock);
  SysScanDesc scan;
  HeapTuple tuple;
  ScanKeyData key;

  ScanKeyEntryInitialize(&key, 0, 2, BTEqualStrategyNumber, InvalidOid, DEFAULT_COLLATION_OID,
                         F_TEXTEQ, PointerGetDatum(name));
  scan = systable_beginscan_ordered(table, index, GetActiveSnapshot(), 1, &key);
  tuple = systable_getnext_ordered(scan, ForwardScanDirection);
  if (tuple != NULL) {
    TupleDesc shape = RelationGetDescr(table);

    guard->id = DatumGetInt32(column(tuple, shape, "id"));
    guard->kind = TextDatumGetCString(column(tuple, shape, "kind"));
    guard->setting = TextDatumGetCString(column(tuple, shape, "setting"));
    guard->lock_key = DatumGetInt64(column(tuple, shape, "lock_key"));
    guard->fence = DatumGetObjectId(column(tuple, shape, "fence"));
    guard->raiser = DatumGetObjectId(column(tuple, shape, "raiser"));
    guard->accepts_equal =
        strcmp(TextDatumGetCString(column(tuple, shape, "equal")), "accept") == 0;
    guard->enforces = strcmp(TextDatumGetCString(column(tuple, shape, "mode")), "enforce") == 0 &&
                      DatumGetInt64(column(tuple, shape, "answered")) >=
                          last_value(DatumGetObjectId(column(tuple, shape, "emergency")), 1);
  }
  systable_endscan_ordered(scan);
  relation_close(index, AccessShareLock);
  table_close(table, NoLock);
  return tuple != NULL;
}

/* Takes the passage lock and reads the policy again, because only now it stays: see pawl._decide().
 * */
static bool is_sure_to_enforce(text* name, Guard* guard) {
  bool found;

  if (!DatumGetBool(DirectFunctionCall2(pg_try_advisory_xact_lock_shared_int4,
                                        Int32GetDatum(PASSAGE_LOCK), Int32GetDatum(guard->id))))
    return false;
  PushActiveSnapshot(GetTransactionSnapshot());
  found = find_guard(name, guard);
  PopActiveSnapshot();
  return found && guard->enforces;
}

/* The function that the guard has generated for its table, pawl.hold_<id>(): locks the row if its
 * fence is this token, and returns its key as the guard spells it. */
static char* hold_row(const Guard* guard, text* key, int64 token) {
  Oid types[2] = {TEXTOID, INT8OID};
  Oid function = LookupFuncName(
      list_make2(makeString("pawl"), makeString(psprintf("hold_%d", guard->id))), 2, types, true);
  FmgrInfo info;
  Datum spelled;
  LOCAL_FCINFO(call, 2);

  if (!OidIsValid(function)) return NULL;
  fmgr_info(function, &info);
  InitFunctionCallInfoData(*call, &info, 2, DEFAULT_COLLATION_OID, NULL, NULL);
  call->args[0].value = PointerGetDatum(key);
  call->args[0].isnull = false;
  call->args[1].value = Int64GetDatum(token);
  call->args[1].isnull = false;
  spelled = FunctionCallInvoke(call);
  return call->isnull ? NULL : TextDatumGetCString(spelled);
}

static void carry(const char* setting, const char* value) {
  DirectFunctionCall3(set_config_by_name, CStringGetTextDatum(setting), CStringGetTextDatum(value),
                      BoolGetDatum(true));
}

/* _c_use(resource, token): the fast paths of pawl._use(). */
PG_FUNCTION_INFO_V1(pawl_use_1);
Datum pawl_use_1(PG_FUNCTION_ARGS) {
  char* resource = text_to_cstring(PG_GETARG_TEXT_PP(0));
  int64 token = PG_GETARG_INT64(1);
  char* colon = strchr(resource, ':');
  char* spelled;
  text* name = cstring_to_text_with_len(resource, colon ? colon - resource : (int)strlen(resource));
  text* key;
  Guard guard;

  /* A statement that begins its transaction may be use() on its own: pawl._is_alone() looks. */
  if (token < 1 || RecoveryInProgress() ||
      GetCurrentStatementStartTimestamp() == GetCurrentTransactionStartTimestamp())
    PG_RETURN_BOOL(false);
  if (!find_guard(name, &guard) || !guard.accepts_equal || !session_has_used(guard.id))
    PG_RETURN_BOOL(false);

  if (strcmp(guard.kind, "static") == 0) {
    if (colon != NULL || !holds_static(token, guard.fence, guard.lock_key, guard.raiser))
      PG_RETURN_BOOL(false);
    carry(guard.setting, psprintf(INT64_FORMAT, token));
    PG_RETURN_BOOL(true);
  }

  if (colon == NULL || !setting_is_empty(guard.setting)) PG_RETURN_BOOL(false);
  key = cstring_to_text(colon + 1);
  if (strcmp(guard.kind, "row") == 0) {
    if (!is_sure_to_enforce(name, &guard) || !try_lock_shared(guard.lock_key) ||
        token < last_value(guard.fence, 1))
      PG_RETURN_BOOL(false);
    spelled = hold_row(&guard, key, token);
    if (spelled == NULL) PG_RETURN_BOOL(false);
  } else {
    if (!is_read_committed() || !try_lock_shared(guard.lock_key) ||
        token < last_value(guard.fence, 1) || !holds_key(guard.id, key, token))
      PG_RETURN_BOOL(false);
    spelled = colon + 1;
  }
  carry(guard.setting, carried_for(spelled, token));
  PG_RETURN_BOOL(true);
}
