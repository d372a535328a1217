#include "guard/sqlite/connection_state.h"

namespace pawl::sqlite {
namespace {

struct Watch : sqlite3_vtab {
  ConnectionState* state = nullptr;
};

ConnectionState& state_of(sqlite3_vtab* table) {
  return *static_cast<Watch*>(table)->state;
}

int connect(sqlite3* db, void* state, int, const char* const*, sqlite3_vtab** out, char**) {
  const int rc = sqlite3_declare_vtab(db, "CREATE TABLE x (one)");
  if (rc != SQLITE_OK) return rc;
  auto watch = std::make_unique<Watch>();
  watch->state = static_cast<ConnectionState*>(state);
  *out = watch.release();
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Watch*>(table);
  return SQLITE_OK;
}

int disconnect_at_close(sqlite3_vtab* table) {
  state_of(table).closing();
  return disconnect(table);
}

int best_index(sqlite3_vtab*, sqlite3_index_info*) {
  return SQLITE_OK;
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = std::make_unique<sqlite3_vtab_cursor>().release();
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete cursor;
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor*, int, const char*, int, sqlite3_value**) {
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor*) {
  return SQLITE_OK;
}

int eof(sqlite3_vtab_cursor*) {
  return 1;
}

int column(sqlite3_vtab_cursor*, sqlite3_context*, int) {
  return SQLITE_OK;
}

int rowid(sqlite3_vtab_cursor*, sqlite3_int64* out) {
  *out = 0;
  return SQLITE_OK;
}

int update(sqlite3_vtab*, int, sqlite3_value**, sqlite3_int64* row) {
  *row = 1;
  return SQLITE_OK;
}

int begin(sqlite3_vtab*) {
  return SQLITE_OK;
}

int over(sqlite3_vtab* table) {
  state_of(table).ended();
  return SQLITE_OK;
}

int savepoint(sqlite3_vtab*, int) {
  return SQLITE_OK;
}

// Of a savepoint, or of one statement that has failed.
int rolled_back_to(sqlite3_vtab* table, int) {
  state_of(table).rolled_back_in_part();
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module{};
  module.iVersion = 2;
  module.xConnect = connect;  // No xCreate: it is there by itself, and no other can be created.
  module.xDisconnect = disconnect;
  module.xBestIndex = best_index;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = eof;
  module.xColumn = column;
  module.xRowid = rowid;
  module.xUpdate = update;
  module.xBegin = begin;
  module.xCommit = over;
  module.xRollback = over;
  module.xSavepoint = savepoint;
  module.xRelease = savepoint;
  module.xRollbackTo = rolled_back_to;
  return module;
}

// Of a table that no kept statement uses: SQLite lets go of it as soon as the connection is to be
// closed.
sqlite3_module make_closing_module() {
  sqlite3_module module = make_module();
  module.xDisconnect = disconnect_at_close;
  return module;
}

const sqlite3_module kModule = make_module();
const sqlite3_module kClosingModule = make_closing_module();

void destroy(void* state) {
  delete static_cast<ConnectionState*>(state);
}

}  // namespace

int watch_transactions(sqlite3* db, std::unique_ptr<ConnectionState> state) {
  ConnectionState* const watched = state.get();
  // On failure SQLite has destroyed it already.
  int rc = sqlite3_create_module_v2(db, "pawl_session", &kModule, state.release(), destroy);
  if (rc == SQLITE_OK)
    rc = sqlite3_create_module_v2(db, "pawl_closing", &kClosingModule, watched, nullptr);
  return rc;
}

int watch_closing(sqlite3* db) {
  return sqlite3_exec(db, "SELECT one FROM pawl_closing", nullptr, nullptr, nullptr);
}

}  // namespace pawl::sqlite
