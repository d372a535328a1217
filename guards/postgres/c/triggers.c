/* What the triggers of guarded tables ask. */
#include "fences.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/queryenvironment.h"
#include "utils/tuplestore.h"

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
