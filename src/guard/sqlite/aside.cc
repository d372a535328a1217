#include "guard/sqlite/aside.h"

#include "guard/sqlite/fault.h"

namespace pawl::sqlite {
namespace {

constexpr int kWaitMs = 200;

void work_in(sqlite3* db, const std::function<void(Store&)>& work) {
  sqlite3_busy_timeout(db, kWaitMs);
  Scope scope(db);
  Store store(db, "main", Store::installation_in(db, "main").value_or(0));
  work(store);
  store.forget_statements();
  scope.finish();
}

}  // namespace

bool aside(const std::string& path, const std::function<void(Store&)>& work) noexcept {
  if (path.empty()) return false;
  sqlite3* db = nullptr;
  bool done = false;
  try {
    if (sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
      work_in(db, work);
      done = true;
    }
  } catch (const Fault&) {
  } catch (...) {  // Out of memory.
  }
  sqlite3_close_v2(db);
  return done;
}

}  // namespace pawl::sqlite
