/* What pawl.use() asks: finds the guard, and holds the fence of what it names. */
#include "fences.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

/* The class of the passage lock: see pawl._decide(). */
#define PASSAGE_LOCK 7295

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
