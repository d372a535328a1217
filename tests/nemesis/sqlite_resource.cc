#include <fmt/format.h>
#include <sqlite3.h>

#include "base/assert.h"
#include "nemesis/resource.h"
#include "pawl/sqlite.h"

namespace pawl::nemesis {
namespace {

constexpr std::chrono::milliseconds kSqliteWait{1'500};

sqlite3* open(const std::string& file) {
  sqlite3* db = nullptr;
  PAWL_ASSERT(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  sqlite3_busy_timeout(db, 200);
  // Nobody cuts this file's power; what a killed process has written is there all the same.
  sqlite3_exec(db, "PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr);
  PAWL_ASSERT(sqlite::register_functions(db));
  return db;
}

class SqliteResource final : public Resource {
 public:
  SqliteResource(const std::string& file, Clock now)
      : db_(open(file)), now_(std::move(now)), guard_(db_) {}
  ~SqliteResource() override { sqlite3_close(db_); }

  Guard* guard() override { return &guard_; }

  Answer advance(const std::string& resource, std::uint64_t token) override {
    const auto done = guard_.advance(resource, token, kSqliteWait);
    return done ? Answer{Outcome::kAdmitted, {}} : answer_of(done.error());
  }

  Answer check(const std::string& resource, std::uint64_t token) override {
    return answer_of(guard_.check(resource, token));
  }

  Answer write(const Row& row, const Lease*) override {
    const auto insert = [&] {
      const std::string sql =
          fmt::format("INSERT INTO {} (token, op, writer, at) VALUES ({}, {}, '{}', {})",
                      row.resource, row.token, row.op, row.writer, now_());
      return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    };
    return answer_of(
        guard_.write(row.token, row.resource, insert, {.operation = row.op, .wait = kSqliteWait}));
  }

 private:
  sqlite3* db_;
  Clock now_;
  SqliteGuard guard_;
};

}  // namespace

std::unique_ptr<Resource> open_sqlite(const std::string& file, Resource::Clock now) {
  return std::make_unique<SqliteResource>(file, std::move(now));
}

}  // namespace pawl::nemesis
