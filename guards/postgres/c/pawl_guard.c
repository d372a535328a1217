/* The optional C part of Pawl's guard for PostgreSQL: the fast paths, and nothing else.
 *
 * Each function answers "surely admitted, and held until the end of the transaction" (true), or
 * "I do not know" (false, or NULL for a NULL argument). Then the PL/pgSQL of the guard decides, as
 * it does without this library. So nothing here refuses or raises a fence, and nothing waits for a
 * row. Each function is one PL/pgSQL expression or query of guards/postgres/parts, condition by
 * condition, and the comment above it says which. Change both together.
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
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

PG_MODULE_MAGIC;

/* The class of the passage lock: see pawl._decide(). */
#define PASSAGE_LOCK 7295

/* Longer keys of a row guard are refused, those of a `by` guard go by their hash: pawl._short(). */
#define LONGEST_KEY 512

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
static bool lock_without_waiting(Relation table, ItemPointer at, LockTupleMode mode) {
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
static bool holds_key(int32 guard, text* key, int64 token) {
  return !XactReadOnly &&
         with_fence(guard, key, token, RowShareLock, GetActiveSnapshot(), lock_if_equal);
}

/* pawl._kept_above(), with the snapshot that a query of a VOLATILE function would take now: what
 * was committed before the caller locked the row counts, and what this transaction did. */
static bool is_kept_above(int32 guard, text* key, int64 token) {
  bool above;

  CommandCounterIncrement();
  PushActiveSnapshot(GetTransactionSnapshot());
  above = with_fence(guard, key, token, AccessShareLock, GetActiveSnapshot(), is_above);
  PopActiveSnapshot();
  return above;
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
PG_FUNCTION_INFO_V1(pawl_row_2);
Datum pawl_row_2(PG_FUNCTION_ARGS) {
  int64 token = PG_GETARG_INT64(1);
  text* key = PG_GETARG_TEXT_PP(2);
  char* old_key = text_to_cstring(key);

  PG_RETURN_BOOL(is_carried(text_to_cstring(PG_GETARG_TEXT_PP(0)), old_key, token) &&
                 strcmp(old_key, text_to_cstring(PG_GETARG_TEXT_PP(3))) == 0 &&
                 try_lock_shared(PG_GETARG_INT64(5)) && token >= last_value(PG_GETARG_OID(4), 1) &&
                 session_has_used(PG_GETARG_INT32(6)) && is_read_committed() &&
                 !is_kept_above(PG_GETARG_INT32(6), key, token));
}

/* Holds the fence of the one key that a statement has touched, if it is the token carried. */
static bool holds_carried(const char* setting, text* key, Oid floor, int64 lock_key, int32 guard) {
  const char* carried = GetConfigOption(setting, true, false);
  const char* digits;
  int64 token = 0;

  if (carried == NULL || !is_read_committed()) return false;
  /* The number in "34" or {"7": "34"}; that the rest is right, is_carried() says. */
  digits = *carried == '{' ? strrchr(carried, ' ') : carried;
  if (digits == NULL || strlen(digits) > 20) return false;
  for (; *digits != '\0' && *digits != '}'; digits++)
    if (*digits >= '0' && *digits <= '9') token = token * 10 + (*digits - '0');
  return token > 0 && is_carried(setting, text_to_cstring(key), token) &&
         try_lock_shared(lock_key) && token >= last_value(floor, 1) && session_has_used(guard) &&
         holds_key(guard, key, token);
}

/* _c_keys(setting, lowest key, greatest key, floor, lock_key, guard): the query of
 * pawl._generate_by_column(), for keys that SQL spells. */
PG_FUNCTION_INFO_V1(pawl_keys_1);
Datum pawl_keys_1(PG_FUNCTION_ARGS) {
  text* key = PG_GETARG_TEXT_PP(1);

  PG_RETURN_BOOL(strcmp(text_to_cstring(key), text_to_cstring(PG_GETARG_TEXT_PP(2))) == 0 &&
                 holds_carried(text_to_cstring(PG_GETARG_TEXT_PP(0)), key, PG_GETARG_OID(3),
                               PG_GETARG_INT64(4), PG_GETARG_INT32(5)));
}

/* A key of one of the types that need no SQL to be spelled as pawl._spelled() does; NULL for
 * others, and for keys that are too long to be spelled. */
static text* spelled_key(Datum value, Oid type) {
  text* key;

  switch (type) {
    case INT2OID:
      return cstring_to_text(psprintf("%d", DatumGetInt16(value)));
    case INT4OID:
      return cstring_to_text(psprintf("%d", DatumGetInt32(value)));
    case INT8OID:
      return cstring_to_text(psprintf(INT64_FORMAT, DatumGetInt64(value)));
    case UUIDOID:
      return cstring_to_text(DatumGetCString(DirectFunctionCall1(uuid_out, value)));
    case TEXTOID:
    case VARCHAROID:
      key = DatumGetTextPP(value);
      return pg_mbstrlen_with_len(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)) <= LONGEST_KEY ? key
                                                                                           : NULL;
    default:
      return NULL;
  }
}

static AttrNumber attribute_of(TupleDesc shape, const char* name) {
  for (int i = 0; i < shape->natts; i++) {
    Form_pg_attribute attribute = TupleDescAttr(shape, i);

    if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0) return i + 1;
  }
  return InvalidAttrNumber;
}

/* The one key in the rows of a statement: what a column had, or has, in each of them. */
typedef struct OneKey {
  Form_pg_attribute column; /* NULL before the first row. */
  Datum value;
} OneKey;

static bool is_same(const OneKey* key, Datum value) {
  return datum_image_eq(key->value, value, key->column->attbyval, key->column->attlen);
}

/* Whether all rows of a transition table have one key, and that of `key` where it has one. */
static bool has_one_key(QueryEnvironment* environment, const char* name, const char* column,
                        OneKey* key) {
  EphemeralNamedRelation relation = environment ? get_ENR(environment, name) : NULL;
  Tuplestorestate* rows;
  TupleDesc shape;
  TupleTableSlot* slot;
  AttrNumber at;
  bool is_one = true;

  if (relation == NULL || relation->md.enrtype != ENR_NAMED_TUPLESTORE) return false;
  shape = ENRMetadataGetTupDesc(&relation->md);
  at = attribute_of(shape, column);
  if (at == InvalidAttrNumber) return false;
  rows = (Tuplestorestate*)relation->reldata;
  tuplestore_select_read_pointer(rows, tuplestore_alloc_read_pointer(rows, EXEC_FLAG_REWIND));
  tuplestore_rescan(rows);
  slot = MakeSingleTupleTableSlot(shape, &TTSOpsMinimalTuple);
  while (is_one && tuplestore_gettupleslot(rows, true, false, slot)) {
    bool is_null;
    Datum value = slot_getattr(slot, at, &is_null);

    CHECK_FOR_INTERRUPTS();
    is_one = !is_null && (key->column == NULL || is_same(key, value));
    if (is_one && key->column == NULL) {
      key->column = TupleDescAttr(shape, at - 1);
      key->value = datumCopy(value, key->column->attbyval, key->column->attlen);
    }
  }
  ExecDropSingleTupleTableSlot(slot);
  return is_one;
}

/* _c_touched(setting, column, has old rows, has new rows, floor, lock_key, guard): the query of
 * pawl._generate_by_column(). It returns a set, of one row, because only such a function is told
 * of the query that calls it, and so of the trigger's tables. */
PG_FUNCTION_INFO_V1(pawl_touched_1);
Datum pawl_touched_1(PG_FUNCTION_ARGS) {
  ReturnSetInfo* caller = (ReturnSetInfo*)fcinfo->resultinfo;
  char* column = text_to_cstring(PG_GETARG_TEXT_PP(1));
  QueryEnvironment* environment;
  OneKey key = {NULL, 0};
  text* spelled;

  if (caller == NULL || !IsA(caller, ReturnSetInfo) || caller->econtext->ecxt_estate == NULL)
    PG_RETURN_BOOL(false);
  environment = caller->econtext->ecxt_estate->es_queryEnv;
  if ((PG_GETARG_BOOL(2) && !has_one_key(environment, "pawl_old", column, &key)) ||
      (PG_GETARG_BOOL(3) && !has_one_key(environment, "pawl_new", column, &key)) ||
      key.column == NULL)
    PG_RETURN_BOOL(false);
  spelled = spelled_key(key.value, getBaseType(key.column->atttypid));
  PG_RETURN_BOOL(spelled != NULL &&
                 holds_carried(text_to_cstring(PG_GETARG_TEXT_PP(0)), spelled, PG_GETARG_OID(4),
                               PG_GETARG_INT64(5), PG_GETARG_INT32(6)));
}

/* What pawl_use_2() needs of a row of pawl.guard. */
typedef struct Guard {
  int32 id;
  char* kind;
  char* setting;
  int64 lock_key;
  Oid fence;
  Oid raiser;
  char* key;      /* NULL where there is none. */
  char* key_type; /* NULL where there is none. */
  bool accepts_equal;
  bool enforces;
} Guard;

/* The columns of a row. They are best asked for in the order of the table: the search goes on
 * where the last one ended. */
typedef struct Columns {
  TupleDesc shape;
  Datum* values;
  bool* are_null;
  int at;
} Columns;

static Columns columns_of(HeapTuple tuple, TupleDesc shape) {
  Columns columns = {shape, palloc(shape->natts * sizeof(Datum)),
                     palloc(shape->natts * sizeof(bool)), 0};

  heap_deform_tuple(tuple, shape, columns.values, columns.are_null);
  return columns;
}

static int find_column(Columns* columns, const char* name) {
  for (int tried = 0; tried < columns->shape->natts; tried++) {
    int at = columns->at;
    Form_pg_attribute attribute = TupleDescAttr(columns->shape, at);

    columns->at = (at + 1) % columns->shape->natts;
    if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0) return at;
  }
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
          errmsg("pawl: a table of the schema pawl has no %s: install the guard again", name));
}

static Datum column(Columns* columns, const char* name) {
  int at = find_column(columns, name);

  if (columns->are_null[at])
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("pawl: a row of the schema pawl has no %s", name));
  return columns->values[at];
}

static char* text_column(Columns* columns, const char* name) {
  int at = find_column(columns, name);

  return columns->are_null[at] ? NULL : TextDatumGetCString(columns->values[at]);
}

static bool text_column_is(Columns* columns, const char* name, const char* value) {
  return strcmp(TextDatumGetCString(column(columns, name)), value) == 0;
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
    Columns columns = columns_of(tuple, RelationGetDescr(table));
    Oid emergency;
    bool is_enforce;

    guard->id = DatumGetInt32(column(&columns, "id"));
    guard->kind = TextDatumGetCString(column(&columns, "kind"));
    guard->setting = TextDatumGetCString(column(&columns, "setting"));
    guard->lock_key = DatumGetInt64(column(&columns, "lock_key"));
    guard->fence = DatumGetObjectId(column(&columns, "fence"));
    guard->raiser = DatumGetObjectId(column(&columns, "raiser"));
    emergency = DatumGetObjectId(column(&columns, "emergency"));
    guard->key = text_column(&columns, "key");
    is_enforce = text_column_is(&columns, "mode", "enforce");
    guard->accepts_equal = text_column_is(&columns, "equal", "accept");
    guard->enforces = strcmp(guard->kind, "row") == 0 && is_enforce &&
                      DatumGetInt64(column(&columns, "answered")) >= last_value(emergency, 1);
    guard->key_type = text_column(&columns, "key_type");
  }
  systable_endscan_ordered(scan);
  relation_close(index, AccessShareLock);
  table_close(table, NoLock);
  return tuple != NULL;
}

/* The table of a row guard: pawl.protected. */
static Oid table_of(int32 guard) {
  Relation table = table_open(own_relation("protected"), AccessShareLock);
  Relation index = relation_open(own_relation("protected_guard"), AccessShareLock);
  SysScanDesc scan;
  HeapTuple tuple;
  ScanKeyData key;
  Oid found = InvalidOid;

  ScanKeyEntryInitialize(&key, 0, 2, BTEqualStrategyNumber, InvalidOid, InvalidOid, F_INT4EQ,
                         Int32GetDatum(guard));
  scan = systable_beginscan_ordered(table, index, GetActiveSnapshot(), 1, &key);
  tuple = systable_getnext_ordered(scan, ForwardScanDirection);
  if (tuple != NULL) {
    Columns columns = columns_of(tuple, RelationGetDescr(table));

    found = DatumGetObjectId(column(&columns, "tbl"));
  }
  if (systable_getnext_ordered(scan, ForwardScanDirection) != NULL) found = InvalidOid;
  systable_endscan_ordered(scan);
  relation_close(index, AccessShareLock);
  table_close(table, NoLock);
  return found;
}

/* How a key is looked up in the unique index of its column. */
typedef struct KeyLookup {
  Oid family;
  RegProcedure equal;
  Datum value;
} KeyLookup;

/* Digits as an integer is written, so that the key is spelled as pawl._spelled() does. */
static bool parse_integer(const char* key, int64 low, int64 high, int64* value) {
  bool is_negative = *key == '-';
  const char* digits = key + (is_negative ? 1 : 0);
  size_t length = strlen(digits);

  if (length < 1 || length > 18 || strspn(digits, "0123456789") != length ||
      (*digits == '0' && (length > 1 || is_negative)))
    return false;
  *value = strtoll(key, NULL, 10);
  return *value >= low && *value <= high;
}

/* As uuid_out() writes it. */
static bool is_canonical_uuid(const char* key) {
  if (strlen(key) != 36) return false;
  for (int i = 0; i < 36; i++) {
    bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

    if (is_dash ? key[i] != '-' : strchr("0123456789abcdef", key[i]) == NULL) return false;
  }
  return true;
}

/* False for types and spellings that the slow path must read. `type` is the column's, and must
 * still be the one that the guard was made for. */
static bool prepare_lookup(const char* key, Oid type, const char* key_type, KeyLookup* lookup) {
  int64 number;

  if (key_type == NULL) return false;
  lookup->family = INTEGER_BTREE_FAM_OID;
  switch (type) {
    case INT2OID:
      if (strcmp(key_type, "smallint") != 0 ||
          !parse_integer(key, PG_INT16_MIN, PG_INT16_MAX, &number))
        return false;
      lookup->equal = F_INT2EQ;
      lookup->value = Int16GetDatum((int16)number);
      return true;
    case INT4OID:
      if (strcmp(key_type, "integer") != 0 ||
          !parse_integer(key, PG_INT32_MIN, PG_INT32_MAX, &number))
        return false;
      lookup->equal = F_INT4EQ;
      lookup->value = Int32GetDatum((int32)number);
      return true;
    case INT8OID:
      if (strcmp(key_type, "bigint") != 0 ||
          !parse_integer(key, PG_INT64_MIN, PG_INT64_MAX, &number))
        return false;
      lookup->equal = F_INT8EQ;
      lookup->value = Int64GetDatum(number);
      return true;
    case UUIDOID:
      if (strcmp(key_type, "uuid") != 0 || !is_canonical_uuid(key)) return false;
      lookup->family = get_opclass_family(GetDefaultOpClass(UUIDOID, BTREE_AM_OID));
      lookup->equal = F_UUID_EQ;
      lookup->value = DirectFunctionCall1(uuid_in, CStringGetDatum(key));
      return true;
    case TEXTOID:
    case VARCHAROID:
      if (strcmp(key_type, type == TEXTOID ? "text" : "character varying") != 0 ||
          pg_mbstrlen(key) > LONGEST_KEY)
        return false;
      lookup->family = TEXT_BTREE_FAM_OID;
      lookup->equal = F_TEXTEQ;
      lookup->value = CStringGetTextDatum(key);
      return true;
    default:
      return false;
  }
}

/* The unique index of a column; NULL where there is none that all rows are in. */
static Relation open_unique_index(Relation table, AttrNumber column, Oid family) {
  List* indexes = RelationGetIndexList(table);
  ListCell* cell;

  foreach (cell, indexes) {
    Relation index = index_open(lfirst_oid(cell), AccessShareLock);
    Form_pg_index form = index->rd_index;

    if (form->indisunique && form->indisvalid && form->indimmediate && !form->indcheckxmin &&
        form->indnkeyatts == 1 && form->indkey.values[0] == column &&
        index->rd_rel->relam == BTREE_AM_OID && index->rd_opfamily[0] == family &&
        (!OidIsValid(index->rd_indcollation[0]) ||
         get_collation_isdeterministic(index->rd_indcollation[0])) &&
        RelationGetIndexPredicate(index) == NIL)
      return index;
    index_close(index, AccessShareLock);
  }
  return NULL;
}

/* Locks the row that has this key FOR NO KEY UPDATE SKIP LOCKED, if its fence is this token. */
static bool lock_row(Relation table, AttrNumber key, AttrNumber fence, const KeyLookup* lookup,
                     int64 token) {
  Relation index = open_unique_index(table, key, lookup->family);
  TupleTableSlot* slot;
  IndexScanDesc scan;
  ScanKeyData condition;
  bool held = false;

  if (index == NULL) return false;
  slot = table_slot_create(table, NULL);
  ScanKeyEntryInitialize(&condition, 0, 1, BTEqualStrategyNumber, InvalidOid,
                         index->rd_indcollation[0], lookup->equal, lookup->value);
  scan = index_beginscan(table, index, GetActiveSnapshot(), 1, 0);
  index_rescan(scan, &condition, 1, NULL, 0);
  if (index_getnext_slot(scan, ForwardScanDirection, slot)) {
    bool is_null;
    Datum value = slot_getattr(slot, fence, &is_null);
    ItemPointerData at = slot->tts_tid;

    held = !is_null && DatumGetInt64(value) == token &&
           lock_without_waiting(table, &at, LockTupleNoKeyExclusive);
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  index_close(index, NoLock);
  return held;
}

/* pawl.use_<id>() of pawl._generate_use(): a plain table without children, whose key is spelled as
 * the guard spells it. */
static bool holds_row(const Guard* guard, const char* key, int64 token) {
  Oid oid = table_of(guard->id);
  Relation table = OidIsValid(oid) ? try_table_open(oid, RowShareLock) : NULL;
  KeyLookup lookup;
  bool held = false;

  if (table == NULL) return false;
  if (table->rd_rel->relkind == RELKIND_RELATION && !table->rd_rel->relhassubclass &&
      !RELATION_IS_OTHER_TEMP(table) && guard->key != NULL) {
    TupleDesc shape = RelationGetDescr(table);
    AttrNumber key_at = attribute_of(shape, guard->key);
    AttrNumber fence_at = attribute_of(shape, "pawl_token");

    held =
        key_at != InvalidAttrNumber && fence_at != InvalidAttrNumber &&
        TupleDescAttr(shape, fence_at - 1)->atttypid == INT8OID &&
        prepare_lookup(key, TupleDescAttr(shape, key_at - 1)->atttypid, guard->key_type, &lookup) &&
        lock_row(table, key_at, fence_at, &lookup, token) &&
        !is_kept_above(guard->id, cstring_to_text(key), token);
  }
  table_close(table, NoLock);
  return held;
}

/* Takes the passage lock: see pawl._decide(). */
static bool try_to_enter(int32 guard) {
  return DatumGetBool(DirectFunctionCall2(pg_try_advisory_xact_lock_shared_int4,
                                          Int32GetDatum(PASSAGE_LOCK), Int32GetDatum(guard)));
}

static void carry(const char* setting, const char* value) {
  DirectFunctionCall3(set_config_by_name, CStringGetTextDatum(setting), CStringGetTextDatum(value),
                      BoolGetDatum(true));
}

/* _c_use(resource, token): the fast paths of pawl._use(). */
PG_FUNCTION_INFO_V1(pawl_use_2);
Datum pawl_use_2(PG_FUNCTION_ARGS) {
  char* resource = text_to_cstring(PG_GETARG_TEXT_PP(0));
  int64 token = PG_GETARG_INT64(1);
  char* colon = strchr(resource, ':');
  char* key = colon ? colon + 1 : NULL;
  text* name = cstring_to_text_with_len(resource, colon ? colon - resource : (int)strlen(resource));
  Guard guard;
  bool held;

  /* A statement that begins its transaction may be use() on its own: pawl._is_alone() looks. */
  if (token < 1 || RecoveryInProgress() ||
      GetCurrentStatementStartTimestamp() == GetCurrentTransactionStartTimestamp())
    PG_RETURN_BOOL(false);
  if (!find_guard(name, &guard) || !guard.accepts_equal || !session_has_used(guard.id))
    PG_RETURN_BOOL(false);

  if (strcmp(guard.kind, "static") == 0) {
    if (key != NULL || !holds_static(token, guard.fence, guard.lock_key, guard.raiser))
      PG_RETURN_BOOL(false);
    carry(guard.setting, psprintf(INT64_FORMAT, token));
    PG_RETURN_BOOL(true);
  }

  if (key == NULL || !setting_is_empty(guard.setting) || !is_read_committed() || XactReadOnly)
    PG_RETURN_BOOL(false);
  if (strcmp(guard.kind, "row") == 0)
    /* Where nothing is refused, no row is locked. The policy is read before the passage lock is
     * taken; it could become less strict at any moment after that as well. */
    held = guard.enforces && try_to_enter(guard.id) && try_lock_shared(guard.lock_key) &&
           token >= last_value(guard.fence, 1) && holds_row(&guard, key, token);
  else
    held = try_lock_shared(guard.lock_key) && token >= last_value(guard.fence, 1) &&
           holds_key(guard.id, cstring_to_text(key), token);
  if (held) carry(guard.setting, carried_for(key, token));
  PG_RETURN_BOOL(held);
}
