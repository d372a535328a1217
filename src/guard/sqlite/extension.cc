// libpawl_sqlite.so as SQLite loads it: `.load libpawl_sqlite` in the shell,
// enable_load_extension() in Python.
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include "guard/sqlite/connection_state.h"

// SQLite makes this name of the file's: the letters of "pawl_sqlite" without "lib".
extern "C" __attribute__((visibility("default"))) int sqlite3_pawlsqlite_init(
    sqlite3* db, char**, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  return pawl::sqlite::add_functions(db);
}
