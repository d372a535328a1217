// SQLite's functions. The loadable extension must call those of the program that loads it, which
// come as a table.
#pragma once

#ifdef PAWL_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif
