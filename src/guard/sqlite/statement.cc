#include "guard/sqlite/statement.h"

#include "guard/sqlite/fault.h"

namespace pawl::sqlite {

Statement::Statement(sqlite3* db, const std::string& sql, unsigned flags) : db_(db) {
  const int rc =
      sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), flags, &statement_, nullptr);
  if (rc != SQLITE_OK) fail_with(db, rc);
}

bool Statement::step() {
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  sqlite3_reset(statement_);
  if (rc == SQLITE_DONE) return false;
  fail_with(db_, sqlite3_extended_errcode(db_));
}

std::int64_t Statement::run() {
  while (step()) {
  }
  return sqlite3_changes(db_);
}

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Statement::bind_one(int index, std::string_view value) {
  sqlite3_bind_text(statement_, index, value.data() == nullptr ? "" : value.data(),
                    static_cast<int>(value.size()), SQLITE_TRANSIENT);  // NOLINT: SQLite's own cast
}

void execute(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail_with(db, sqlite3_extended_errcode(db));
}

Scope::Scope(sqlite3* db) : db_(db), own_(sqlite3_get_autocommit(db) != 0) {
  execute(db, own_ ? "BEGIN IMMEDIATE" : "SAVEPOINT pawl_scope");
}

Scope::~Scope() {
  if (!open_) return;
  sqlite3_exec(db_, own_ ? "ROLLBACK" : "ROLLBACK TO pawl_scope; RELEASE pawl_scope", nullptr,
               nullptr, nullptr);
}

void Scope::finish() {
  execute(db_, own_ ? "COMMIT" : "RELEASE pawl_scope");
  open_ = false;
}

}  // namespace pawl::sqlite
