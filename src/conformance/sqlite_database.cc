// Pawl's guard in a SQLite file, as SqlSubject needs to know it.
#include <fmt/format.h>

#include <utility>

#include "conformance/sql_database.h"
#include "conformance/sqlite_session.h"
#include "guard/sqlite/administration.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/statement.h"

namespace pawl::conformance {
namespace {

using sqlite::Statement;

constexpr SqlTraits kSqliteTraits{
    .kind = "sqlite",
    .call = "SELECT pawl_",
    .by = "substr(resource, 1)",
    .schemas = false,
    .abilities = {Ability::kSerializable, Ability::kTextTokens},
};

// Effects are in the order of inserts; where one writes at a time it is that of commits.
class SqliteDatabase final : public SqlDatabase {
 public:
  SqliteDatabase(std::string path, std::shared_ptr<sqlite3> db,
                 std::unique_ptr<guard::Administration> administration)
      : path_(std::move(path)), db_(std::move(db)), administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kSqliteTraits; }
  guard::Administration& administration() override { return *administration_; }

  Result<void> inspect() override {
    return attempt([&]() -> Result<void> {
      Statement asked(db_.get(), "PRAGMA journal_mode");
      if (asked.step() && asked.text(0) == "wal") return {};
      return Error{Code::kInvalid,
                   "several writers at once need the file in WAL mode: PRAGMA journal_mode = WAL"};
    });
  }

  [[nodiscard]] std::string remark(Layout) const override { return {}; }

  Result<void> run(const std::string& sql) override {
    return attempt([&]() -> Result<void> {
      sqlite::execute(db_.get(), sql);
      return {};
    });
  }

  [[nodiscard]] std::string_view columns(Layout layout) const override {
    if (layout == Layout::kOneRow) return "resource TEXT PRIMARY KEY, log TEXT NOT NULL";
    return "id INTEGER PRIMARY KEY AUTOINCREMENT, resource TEXT NOT NULL, token INTEGER NOT NULL, "
           "value TEXT NOT NULL";
  }

  Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                      const std::string& key) override {
    return attempt([&]() -> Result<std::vector<Effect>> {
      Statement asked(db_.get(), effects_sql(table, layout));
      asked.bind(key);
      std::vector<Effect> effects;
      while (asked.step())
        effects.push_back({static_cast<std::uint64_t>(asked.number(0)), asked.text(1)});
      return effects;
    });
  }

  Result<std::unique_ptr<Session>> open(const Place& place) override {
    auto db = sqlite::open_file(path_);
    if (!db) return db.error();
    return make_sqlite_session(*std::move(db), place);
  }

 private:
  template <class Work>
  static auto attempt(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const sqlite::Fault& fault) {
      return sqlite::to_error(fault);
    }
  }

  static std::string effects_sql(const std::string& table, Layout layout) {
    if (layout == Layout::kOneRow)
      return fmt::format(
          "SELECT json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]') FROM {} t, "
          "json_each(t.log) e "
          "WHERE t.resource = ?1 ORDER BY e.key",
          table);
    return fmt::format("SELECT token, value FROM {} WHERE resource = ?1 ORDER BY id", table);
  }

  const std::string path_;
  const std::shared_ptr<sqlite3> db_;
  const std::unique_ptr<guard::Administration> administration_;
};

}  // namespace

Result<std::unique_ptr<SqlDatabase>> open_sqlite_database(const std::string& where) {
  auto db = sqlite::open_file(where);
  if (!db) return db.error();
  auto administration = guard::open_sqlite(where);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(
      std::make_unique<SqliteDatabase>(where, *std::move(db), *std::move(administration)));
}

}  // namespace pawl::conformance
