// A SQLite file as a kind of guard: its scratch database, and its row in the table of kinds.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <utility>

#include "guard/sql/scratch.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/kind.h"
#include "guard/sqlite/statement.h"

namespace pawl::guard {
namespace {

using sqlite::Statement;

constexpr std::array kSqliteLacks{
    Lack{Ability::kReadCommitted, "all transactions of SQLite are serializable"},
    Lack{Ability::kRepeatableRead, "all transactions of SQLite are serializable"},
    Lack{Ability::kLostCommit, "a commit and its answer are one call in one process"},
    Lack{Ability::kPrepared, "SQLite has no prepared transactions"},
    Lack{Ability::kUnreachable,
         "fences are in tables of the guard, where nothing of the user's stands"},
    Lack{Ability::kEnclosed, "in SQLite a table cannot become a part of another"},
};

constexpr SqlTraits kSqliteTraits{
    .kind = "sqlite",
    .call = "SELECT pawl_",
    .by = "substr(resource, 1)",
    .schemas = false,
    .abilities = {Ability::kSerializable, Ability::kTextTokens},
    .lacks = kSqliteLacks,
    .key_type = "TEXT",
    .loose_key_type = "TEXT COLLATE NOCASE",
    .spellings = {"alice", "ALICE"},
    .loose_by = false,
};

// Effects are in the order of inserts; where one writes at a time it is that of commits.
class SqliteDatabase final : public SqlDatabase {
 public:
  SqliteDatabase(std::string path, std::shared_ptr<sqlite3> db,
                 std::unique_ptr<Administration> administration)
      : path_(std::move(path)), db_(std::move(db)), administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kSqliteTraits; }
  Administration& administration() override { return *administration_; }

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

  [[nodiscard]] std::string columns(Layout layout, std::string_view key_type) const override {
    if (layout == Layout::kOneRow)
      return fmt::format("resource {} PRIMARY KEY, log TEXT NOT NULL", key_type);
    return fmt::format(
        "id INTEGER PRIMARY KEY AUTOINCREMENT, resource {} NOT NULL, token INTEGER NOT NULL, "
        "value TEXT NOT NULL",
        key_type);
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

  Result<std::unique_ptr<Session>> open(const ScratchNames& names) override {
    auto db = sqlite::open_file(path_);
    if (!db) return db.error();
    return make_sqlite_session(*std::move(db), names);
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
  const std::unique_ptr<Administration> administration_;
};

Result<std::unique_ptr<SqlDatabase>> open_database(const std::string& path) {
  auto db = sqlite::open_file(path);
  if (!db) return db.error();
  auto administration = open_sqlite_administration(path);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(
      std::make_unique<SqliteDatabase>(path, *std::move(db), *std::move(administration)));
}

Result<std::unique_ptr<Session>> open_session(const std::string& path,
                                              const SessionRequest& request) {
  auto database = open_database(path);
  if (!database) return database.error();
  return open_sql_session(*std::move(database), request);
}

Result<std::unique_ptr<ScratchSpace>> open_scratch(const std::string& path, std::string_view form) {
  auto database = open_database(path);
  if (!database) return database.error();
  return open_sql_scratch(*std::move(database), form);
}

// WAL, because with a rollback journal an open reader keeps others from committing.
Result<void> create(const std::string& path) {
  if (!std::ofstream(path).flush())  // An empty file is an empty database.
    return Error{Code::kUnavailable, fmt::format("{} cannot be created", path)};
  auto database = open_database(path);
  if (!database) return database.error();
  if (const auto set = (*database)->run("PRAGMA journal_mode = WAL"); !set) return set.error();
  const auto installed = (*database)->administration().install(Rehearse::kNo);
  if (!installed) return installed.error();
  return {};
}

}  // namespace

const Kind kSqliteKind{
    .name = "sqlite",
    .title = "SQLite",
    .location = Location::kFile,
    .where_example = "shop.db",
    .abilities = kSqlAbilities,
    .forms = kFormNames,
    .scratch_form = "table",
    .open_administration = open_sqlite_administration,
    .open_session = open_session,
    .open_scratch = open_scratch,
    .create = create,
};

}  // namespace pawl::guard
