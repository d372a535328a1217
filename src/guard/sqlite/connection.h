// A SQLite file as `pawl` opens it: with the guard's functions, durable, and patient with other
// writers.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "guard/sqlite/api.h"
#include "pawl/result.h"

namespace pawl::sqlite {

inline constexpr std::chrono::milliseconds kBusyWait{10000};

// An existing file; kUnavailable where there is none.
[[nodiscard]] Result<std::shared_ptr<sqlite3>> open_file(const std::string& path);

// Disables SQLite's busy timeout in this scope: the caller waits itself, and counts the time.
class NoBusyTimeout {
 public:
  explicit NoBusyTimeout(sqlite3* db) : db_(db) { sqlite3_busy_timeout(db, 0); }
  ~NoBusyTimeout() { sqlite3_busy_timeout(db_, static_cast<int>(kBusyWait.count())); }
  NoBusyTimeout(const NoBusyTimeout&) = delete;
  NoBusyTimeout& operator=(const NoBusyTimeout&) = delete;

 private:
  sqlite3* db_;
};

}  // namespace pawl::sqlite
