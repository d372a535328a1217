#include "guard/sqlite/store.h"

#include <errno.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "guard/sqlite/fault.h"
#include "guard_contract/parse.h"

namespace pawl::sqlite {
namespace {

constexpr int kRefusalsKept = 100;

std::int64_t to_sql(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

std::string in_schema(std::string_view sql, const std::string& schema) {
  return fmt::format(fmt::runtime(sql), fmt::arg("s", quoted(schema)));
}

GuardRow row_of(const Statement& statement) {
  GuardRow row;
  row.id = statement.number(0);
  row.name = statement.text(1);
  row.kind = statement.text(2);
  row.mode = guard::parse_mode(statement.text(3)).value_or(GuardMode::kEnforce);
  row.percent = statement.null(4) ? 100 : static_cast<int>(statement.number(4));
  row.require_token = statement.number(5) != 0;
  row.equal = statement.text(6);
  row.max_step = static_cast<std::uint64_t>(statement.number(7));
  row.floor = static_cast<std::uint64_t>(statement.number(8));
  row.generation = statement.number(9);
  return row;
}

std::optional<GuardRow> first_of(Statement& statement) {
  if (!statement.step()) return std::nullopt;
  GuardRow row = row_of(statement);
  statement.reset();
  return row;
}

}  // namespace

std::optional<std::int64_t> Store::installation_in(sqlite3* db, const std::string& schema) {
  Statement there(
      db, in_schema(
              "SELECT 1 FROM {s}.sqlite_schema WHERE type = 'table' AND name = 'pawl_installation'",
              schema));
  if (!there.step()) return std::nullopt;
  there.reset();
  Statement asked(db, in_schema("SELECT id FROM {s}.pawl_installation", schema));
  if (!asked.step()) return std::nullopt;
  return asked.number(0);
}

std::string Store::path() const {
  const char* path = sqlite3_db_filename(db_, schema_.c_str());
  return path == nullptr ? "" : path;
}

Statement& Store::kept(std::string_view sql) {
  auto& statement = statements_[sql];
  if (!statement)
    statement =
        std::make_unique<Statement>(db_, in_schema(sql, schema_), SQLITE_PREPARE_PERSISTENT);
  return *statement;
}

void Store::lock() {
  kept("UPDATE {s}.pawl_installation SET one = one WHERE 0").bind().run();
}

std::optional<GuardRow> Store::find(std::int64_t guard) {
  return first_of(kept("SELECT g.id, g.name, g.kind, g.mode, g.percent, g.require_token, g.equal, "
                       "g.max_step, g.floor, "
                       "g.generation FROM {s}.pawl_installation i, {s}.pawl_guard g WHERE i.id = "
                       "?1 AND g.id = ?2")
                      .bind(installation_, guard));
}

std::optional<GuardRow> Store::find(std::string_view name) {
  return first_of(kept("SELECT g.id, g.name, g.kind, g.mode, g.percent, g.require_token, g.equal, "
                       "g.max_step, g.floor, "
                       "g.generation FROM {s}.pawl_installation i, {s}.pawl_guard g WHERE i.id = "
                       "?1 AND g.name = ?2")
                      .bind(installation_, name));
}

std::optional<Store::Fenced> Store::find(std::string_view name, std::string_view key) {
  Statement& asked = kept(
                         "SELECT g.id, g.name, g.kind, g.mode, g.percent, g.require_token, "
                         "g.equal, g.max_step, g.floor, "
                         "g.generation, f.token FROM {s}.pawl_guard g LEFT JOIN {s}.pawl_fence f "
                         "ON f.guard = g.id AND "
                         "f.key "
                         "= ?3 WHERE g.name = ?2 AND (SELECT id FROM {s}.pawl_installation) = ?1")
                         .bind(installation_, name, key);
  if (!asked.step()) return std::nullopt;
  Fenced fenced{row_of(asked), static_cast<std::uint64_t>(asked.number(10))};
  asked.reset();
  return fenced;
}

std::string declared_collation(sqlite3* db, const std::string& schema, const std::string& table,
                               const std::string& column) {
  const char* collation = nullptr;
  if (sqlite3_table_column_metadata(db, schema.c_str(), table.c_str(), column.c_str(), nullptr,
                                    &collation, nullptr, nullptr, nullptr) != SQLITE_OK ||
      collation == nullptr)
    return "BINARY";
  std::string name = collation;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string Store::collation_of(const GuardRow& guard) {
  if (guard.kind != "row") return {};
  Statement& version_asked = kept("PRAGMA {s}.schema_version").bind();
  const std::int64_t version = version_asked.step() ? version_asked.number(0) : 0;
  version_asked.reset();
  if (const auto known = collations_.find(guard.id);
      known != collations_.end() && known->second.schema_version == version)
    return known->second.name;
  Statement& asked =
      kept(
          "SELECT p.tbl, g.key FROM {s}.pawl_guard g JOIN {s}.pawl_protected p ON p.guard = g.id "
          "WHERE g.id = ?1")
          .bind(guard.id);
  if (!asked.step()) return {};
  std::string collation = declared_collation(db_, schema_, asked.text(0), asked.text(1));
  asked.reset();
  if (collation == "BINARY") collation.clear();
  if (!collation.empty()) {
    Statement& keys = kept("SELECT key FROM {s}.pawl_fence WHERE guard = ?1").bind(guard.id);
    while (keys.step()) {
      if (fold(keys.text(0), collation) == keys.text(0)) continue;
      keys.reset();
      fail(Word::kInvalid,
           fmt::format("the fences of {} were stored by an older guard, which took equal keys for "
                       "different ones. Run: pawl guard install sqlite",
                       guard.name));
    }
  }
  collations_[guard.id] = {version, collation};
  return collation;
}

std::vector<Protected> Store::tables_of(const GuardRow& guard) {
  Statement& asked =
      kept(
          "SELECT p.tbl, g.key FROM {s}.pawl_guard g JOIN {s}.pawl_protected p ON p.guard = g.id "
          "WHERE g.id = ?1")
          .bind(guard.id);
  std::vector<Protected> tables;
  while (asked.step())
    tables.push_back({asked.text(0), installation_, guard.id, guard.kind, asked.text(1)});
  return tables;
}

void Store::refold(const GuardRow& guard, std::string_view collation) {
  std::vector<std::pair<std::string, std::string>> changed;
  for (const char* table : {"pawl_fence", "pawl_done"}) {
    Statement keys(db_, fmt::format("SELECT DISTINCT key FROM {}.{} WHERE guard = ?1",
                                    quoted(schema_), table));
    keys.bind(guard.id);
    while (keys.step()) {
      if (fold(keys.text(0), collation) != keys.text(0)) changed.emplace_back(table, keys.text(0));
    }
  }
  for (const auto& [table, key] : changed) {
    const std::string form = fold(key, collation);
    if (table == "pawl_fence") {
      raise_fence(guard.id, form, fence(guard.id, key));
    } else {
      kept(
          "INSERT INTO {s}.pawl_done (guard, key, token, op) SELECT guard, ?3, token, op FROM "
          "{s}.pawl_done WHERE guard = ?1 AND key = ?2 ON CONFLICT DO NOTHING")
          .bind(guard.id, key, form)
          .run();
    }
    Statement(
        db_, fmt::format("DELETE FROM {}.{} WHERE guard = ?1 AND key = ?2", quoted(schema_), table))
        .bind(guard.id, key)
        .run();
  }
}

bool Store::notes_key_forms() {
  Statement& asked =
      kept("SELECT 1 FROM {s}.sqlite_schema WHERE type = 'table' AND name = 'pawl_key_form'")
          .bind();
  const bool there = asked.step();
  asked.reset();
  return there;
}

std::string Store::key_form(const GuardRow& guard) {
  if (!notes_key_forms()) return {};
  Statement& asked = kept("SELECT form FROM {s}.pawl_key_form WHERE guard = ?1").bind(guard.id);
  std::string form = asked.step() ? asked.text(0) : std::string();
  asked.reset();
  return form;
}

void Store::note_key_form(const GuardRow& guard, std::string_view form) {
  if (!notes_key_forms()) return;
  kept(
      "INSERT INTO {s}.pawl_key_form (guard, form) VALUES (?1, ?2) ON CONFLICT (guard) DO UPDATE "
      "SET form = excluded.form")
      .bind(guard.id, form)
      .run();
}

std::uint64_t Store::forget_keys(const GuardRow& guard) {
  Statement asked(db_, fmt::format("SELECT coalesce((SELECT max(token) FROM {0}.pawl_fence WHERE "
                                   "guard = ?1), 0) + EXISTS (SELECT 1 FROM {0}.pawl_done WHERE "
                                   "guard = ?1)",
                                   quoted(schema_)));
  asked.bind(guard.id).step();
  const auto floor = std::max(guard.floor, static_cast<std::uint64_t>(asked.number(0)));
  asked.reset();
  kept("UPDATE {s}.pawl_guard SET floor = max(floor, ?2) WHERE id = ?1")
      .bind(guard.id, to_sql(floor))
      .run();
  for (const char* table : {"pawl_fence", "pawl_done"})
    Statement(db_, fmt::format("DELETE FROM {}.{} WHERE guard = ?1", quoted(schema_), table))
        .bind(guard.id)
        .run();
  return floor;
}

std::uint64_t Store::fence(std::int64_t guard, std::string_view key) {
  Statement& asked =
      kept("SELECT token FROM {s}.pawl_fence WHERE guard = ?1 AND key = ?2").bind(guard, key);
  if (!asked.step()) return 0;
  const auto token = static_cast<std::uint64_t>(asked.number(0));
  asked.reset();
  return token;
}

void Store::raise_fence(std::int64_t guard, std::string_view key, std::uint64_t token) {
  // max(): whatever the caller believes, this never lowers a fence.
  kept(
      "INSERT INTO {s}.pawl_fence (guard, key, token) VALUES (?1, ?2, ?3) ON CONFLICT (guard, key) "
      "DO "
      "UPDATE SET token = max(token, excluded.token)")
      .bind(guard, key, to_sql(token))
      .run();
  kept("DELETE FROM {s}.pawl_done WHERE guard = ?1 AND key = ?2 AND token < ?3")
      .bind(guard, key, to_sql(token))
      .run();
}

bool Store::claim(std::int64_t guard, std::string_view key, std::uint64_t token,
                  std::uint64_t operation) {
  return kept(
             "INSERT INTO {s}.pawl_done (guard, key, token, op) VALUES (?1, ?2, ?3, ?4) ON "
             "CONFLICT DO "
             "NOTHING")
             .bind(guard, key, to_sql(token), to_sql(operation))
             .run() != 0;
}

void Store::count(std::int64_t guard, std::string_view verdict, std::int64_t times) {
  kept(
      "INSERT INTO {s}.pawl_count (guard, verdict, n) VALUES (?1, ?2, ?3) ON CONFLICT (guard, "
      "verdict) DO "
      "UPDATE SET n = n + excluded.n")
      .bind(guard, verdict, times)
      .run();
}

void Store::remember(const Refusal& refusal, std::string_view application, std::int64_t at) {
  std::optional<std::int64_t> token;
  if (refusal.token) token = to_sql(*refusal.token);
  kept(
      "INSERT INTO {s}.pawl_refusal (at, resource, verdict, token, max, application) VALUES "
      "(datetime(?1, "
      "'unixepoch'), ?2, ?3, ?4, nullif(?5, 0), ?6)")
      .bind(at, refusal.resource, refusal.verdict, token, to_sql(refusal.fence), application)
      .run();
  kept("DELETE FROM {s}.pawl_refusal WHERE id <= (SELECT max(id) FROM {s}.pawl_refusal) - ?1")
      .bind(std::int64_t{kRefusalsKept})
      .run();
}

void Store::sight(std::int64_t guard, std::string_view what) {
  kept(
      "INSERT INTO {s}.pawl_sighting (guard, what, login, application, n, last_seen) VALUES (?1, "
      "?2, ?3, "
      "?4, 1, strftime('%Y-%m-%d %H:%M:%S', 'now')) ON CONFLICT (guard, what, login, application) "
      "DO UPDATE "
      "SET n = n + 1, last_seen = excluded.last_seen")
      .bind(guard, what, login_name(), application_name())
      .run();
}

void Store::audit(std::string_view guard, std::string_view what, std::string_view detail,
                  std::string_view reason) {
  kept(
      "INSERT INTO {s}.pawl_audit (login, application, guard, what, detail, reason) VALUES (?1, "
      "?2, "
      "nullif(?3, ''), ?4, nullif(?5, ''), nullif(?6, ''))")
      .bind(login_name(), application_name(), guard, what, detail, reason)
      .run();
}

std::string login_name() {
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(geteuid());
}

std::string application_name() {
  return program_invocation_short_name;
}

std::string one_word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; }, '_');
  return text.empty() ? "_" : text;
}

namespace {

constexpr int kSideWaitMs = 200;

void run_under_write_lock(sqlite3* db, const std::function<void(Store&)>& work) {
  sqlite3_busy_timeout(db, kSideWaitMs);
  Scope scope(db);
  Store store(db, "main", Store::installation_in(db, "main").value_or(0));
  work(store);
  store.forget_statements();
  scope.finish();
}

}  // namespace

bool run_side_transaction(const std::string& path,
                          const std::function<void(Store&)>& work) noexcept {
  if (path.empty()) return false;
  sqlite3* db = nullptr;
  bool done = false;
  try {
    if (sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
      run_under_write_lock(db, work);
      done = true;
    }
  } catch (const Fault&) {
  } catch (...) {  // Out of memory.
  }
  sqlite3_close_v2(db);
  return done;
}

}  // namespace pawl::sqlite
