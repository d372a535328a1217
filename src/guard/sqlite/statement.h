// One prepared statement. Whatever fails is thrown as a Fault.
//
//   Statement statement(db, "SELECT token FROM pawl_fence WHERE guard = ?1");
//   statement.bind(guard);
//   while (statement.step()) use(statement.number(0));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/sqlite/api.h"

namespace pawl::sqlite {

class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql, unsigned flags = 0);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // From the first parameter on; starts it anew.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  // False: there is no further row, and the statement is reset.
  bool step();
  // To its end. How many rows it changed.
  std::int64_t run();
  void reset() { sqlite3_reset(statement_); }

  [[nodiscard]] std::int64_t number(int column) const {
    return sqlite3_column_int64(statement_, column);
  }
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] bool null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }

 private:
  void bind_one(int index, std::int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void bind_one(int index, std::string_view value);
  void bind_one(int index, const std::string& value) { bind_one(index, std::string_view(value)); }
  void bind_one(int index, const char* value) { bind_one(index, std::string_view(value)); }
  template <class T>
  void bind_one(int index, const std::optional<T>& value) {
    value ? bind_one(index, *value) : static_cast<void>(sqlite3_bind_null(statement_, index));
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

// Statements without parameters and rows.
void execute(sqlite3* db, const std::string& sql);

// A transaction of its own, or where one is open a savepoint in it: undone unless finish() was
// called.
class Scope {
 public:
  explicit Scope(sqlite3* db);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  void finish();

 private:
  sqlite3* db_;
  bool own_;  // a transaction
  bool open_ = true;
};

}  // namespace pawl::sqlite
