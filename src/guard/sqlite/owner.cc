#include "guard/sqlite/owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/limits.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/emergency.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/install.h"
#include "guard/sqlite/key_rules.h"
#include "guard/sqlite/refusals.h"
#include "guard/sqlite/triggers.h"
#include "guard/sqlite/uninstall.h"
#include "guard_contract/parse.h"

namespace pawl::sqlite {
namespace {

constexpr std::uint64_t kStepMin = std::uint64_t{1} << 41;

GuardRow need_guard(Store& store, const std::string& name) {
  auto row = store.find(name);
  if (!row) fail(Word::kUnguarded, fmt::format("there is no guard \"{}\" here", name));
  return *std::move(row);
}

void check_guard_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 200 && name.find(':') == name.npos &&
                    std::none_of(name.begin(), name.end(), [](char c) {
                      return std::iscntrl(static_cast<unsigned char>(c)) != 0;
                    });
  if (!good)
    fail(Word::kInvalid,
         "a guard's name has 1 to 200 characters, without \":\" and control characters");
}

GuardMode need_mode(const std::string& mode) {
  const auto parsed = guard::parse_mode(mode);
  if (!parsed) fail(Word::kInvalid, "a mode is observe, shadow, canary or enforce");
  return *parsed;
}

GuardRow make_guard(Store& store, const std::string& name, const std::string& kind,
                    const std::string& key, const std::string& mode) {
  check_guard_name(name);
  if (const auto other = store.find(name))
    fail(Word::kInvalid,
         fmt::format("there is a guard \"{}\" already, and it is {}", name, other->kind));
  if (need_mode(mode) == GuardMode::kCanary)
    fail(Word::kInvalid, "a guard begins in observe, shadow or enforce; canary comes later");
  store
      .kept(
          "INSERT INTO {s}.pawl_guard (name, kind, key, mode) VALUES (?1, ?2, nullif(?3, ''), ?4)")
      .bind(name, kind, key, mode)
      .run();
  store.audit(name, "create", fmt::format("{} {} {}", kind, key, mode), "");
  return need_guard(store, name);
}

bool has_column(sqlite3* db, const std::string& table, const std::string& column) {
  const auto columns = columns_of(db, table);
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

// A column by its name is that column, however it came.
guard::Protection normalised(sqlite3* db, guard::Protection wanted) {
  if (has_column(db, wanted.table, wanted.by)) wanted.key = std::exchange(wanted.by, {});
  return wanted;
}

std::string kind_of(sqlite3* db, const guard::Protection& wanted) {
  if (!wanted.by.empty()) return "expression";
  if (wanted.key.empty()) return "static";
  if (!has_column(db, wanted.table, wanted.key))
    fail(Word::kInvalid, fmt::format("{} has no column \"{}\"", wanted.table, wanted.key));
  return "row";
}

void drop_triggers(sqlite3* db, const std::string& table) {
  std::vector<std::string> names;
  Statement listed(
      db,
      "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE "
      "NOCASE AND sql LIKE '%pawl_judge(%'");
  listed.bind(table);
  while (listed.step()) names.push_back(listed.text(0));
  for (const std::string& name : names) execute(db, "DROP TRIGGER main." + quoted(name));
}

// Also where a trigger of that name is on another table: one that was guarded, and renamed.
void cover(sqlite3* db, const Protected& wanted) {
  for (const Trigger& trigger : triggers_for(db, wanted)) {
    execute(db, "DROP TRIGGER IF EXISTS main." + quoted(trigger.name));
    execute(db, trigger.sql);
  }
}

// Several tables under one guard share its fences, so they must agree on when keys are equal.
void check_same_collation(sqlite3* db, const GuardRow& row, const guard::Protection& wanted) {
  if (row.kind != "row") return;
  Statement others(db,
                   "SELECT p.tbl, g.key FROM main.pawl_protected p JOIN main.pawl_guard g ON g.id "
                   "= p.guard WHERE g.id = ?1");
  others.bind(row.id);
  while (others.step()) {
    if (declared_collation(db, "main", others.text(0), others.text(1)) !=
        declared_collation(db, "main", wanted.table, wanted.key))
      fail(Word::kInvalid,
           fmt::format("{} and {} have different collations: one guard cannot have both",
                       others.text(0), wanted.table));
  }
}

std::string key_of(sqlite3* db, const GuardRow& row) {
  Statement asked(db, "SELECT coalesce(key, '') FROM main.pawl_guard WHERE id = ?1");
  return asked.bind(row.id).step() ? asked.text(0) : std::string();
}

// A guard that is there keeps its fences, which are those of its key.
void check_same_key(sqlite3* db, const GuardRow& row, const std::string& kind,
                    const std::string& key) {
  const std::string there = key_of(db, row);
  if (row.kind == kind && there == key) return;
  const auto described = [](const std::string& what, const std::string& by) {
    return by.empty() ? what : fmt::format("{} by {}", what, by);
  };
  fail(Word::kInvalid,
       fmt::format(
           "the guard {0} exists, and is {1}, not {2}: its fences are those of its key. Give "
           "this one another name, or forget the old one: pawl guard drop sqlite {0}",
           row.name, described(row.kind, there), described(kind, key)));
}

// Follows a key column that was renamed: SQLite has renamed it in the triggers, and they are what
// judges. Not where several tables do not agree.
void follow_renamed_column(sqlite3* db, Store& store, const GuardRow& row) {
  std::optional<std::string> name;
  for (const Protected& each : store.tables_of(row)) {
    const auto column = watched_column(db, each);
    if (!column || (name && *name != *column)) return;
    name = column;
  }
  const std::string before = key_of(db, row);
  if (!name || *name == before) return;
  Statement(db, "UPDATE main.pawl_guard SET key = ?2 WHERE id = ?1").bind(row.id, *name).run();
  store.audit(row.name, "key column renamed", fmt::format("{} is {} now", before, *name), "");
}

// Brings the fences of a guard under the form that its keys have now.
void settle_keys(sqlite3* db, Store& store, const GuardRow& row) {
  const std::vector<Protected> tables = store.tables_of(row);
  const std::string before = store.key_form(row);
  const std::string now = key_form(db, tables);
  if (now.empty()) return;
  if (before.empty() || keeps_fences(before, now)) {
    store.refold(row, declared_collation(db, "main", tables[0].table, tables[0].key));
  } else {
    const std::uint64_t floor = store.forget_keys(row);
    store.audit(row.name, "key column changed",
                fmt::format("{} is {} now: every token below {} is stale", before, now, floor), "");
  }
  store.note_key_form(row, now);
}

// What an older version has left: triggers with another text, and fences under other keys. Where
// the key is gone, triggers stay as they are: `pawl guard check` names it.
void bring_up_to_date(sqlite3* db, Store& store) {
  std::vector<GuardRow> guards;
  Statement listed(db, "SELECT name FROM main.pawl_guard");
  while (listed.step()) guards.push_back(need_guard(store, listed.text(0)));
  for (const GuardRow& row : guards) {
    if (row.kind == "row") follow_renamed_column(db, store, row);
    bool covered = true;
    for (const Protected& entry : store.tables_of(row)) {
      if (columns_of(db, entry.table).empty() || is_other_column(db, entry) ||
          !has_key(db, entry.table, entry.kind, entry.key)) {
        covered = false;
        continue;
      }
      cover(db, entry);
    }
    if (covered) settle_keys(db, store, row);
  }
}

std::string mode_text(GuardMode mode, int percent) {
  return mode == GuardMode::kCanary ? fmt::format("canary {}", percent)
                                    : std::string(to_text(mode));
}

}  // namespace

std::string_view install_script() {
  return guard::kSqliteInstallFile;
}

std::optional<guard::Installation> installed(sqlite3* db) {
  if (!Store::installation_in(db, "main")) return std::nullopt;
  Statement asked(db, "SELECT version, contract FROM main.pawl_installation");
  if (!asked.step()) return std::nullopt;
  return guard::Installation{asked.text(0), static_cast<int>(asked.number(1))};
}

void install(sqlite3* db) {
  if (const auto before = installed(db); before && before->contract > kGuardContract)
    fail(Word::kInvalid,
         fmt::format("guard {} (contract {}) is installed here; this pawl knows contract {} "
                     "only. Use a newer pawl.",
                     before->version, before->contract, kGuardContract));
  Scope scope(db);
  execute(db, std::string(install_script()));
  Store store(db, "main", Store::installation_in(db, "main").value_or(0));
  bring_up_to_date(db, store);
  store.forget_statements();
  scope.finish();
}

void uninstall(ConnectionState& state) {
  Store& store = state.main();
  const std::string path = store.path();
  Scope scope(state.db());
  std::vector<std::string> tables;
  Statement listed(state.db(), "SELECT tbl FROM main.pawl_protected");
  while (listed.step()) tables.push_back(listed.text(0));
  for (const std::string& table : tables) drop_triggers(state.db(), table);
  store.forget_statements();
  execute(state.db(), std::string(guard::kSqliteUninstallFile));
  scope.finish();
  if (sqlite3_get_autocommit(state.db()) == 0) return;  // It may still be taken back.
  forget_emergencies(path);
  forget_refusals(path);
}

std::string protect(ConnectionState& state, const guard::Protection& given) {
  Store& store = state.main();
  sqlite3* db = state.db();
  const guard::Protection wanted = normalised(db, given);
  const std::string name = wanted.guard.empty() ? wanted.table : wanted.guard;
  const std::string kind = kind_of(db, wanted);
  const std::string& key = kind == "row" ? wanted.key : wanted.by;
  if (const auto why = why_no_key(db, wanted.table, kind, key)) fail(Word::kInvalid, *why);
  if (kind == "expression") {
    if (const auto why = why_not_constant(db, wanted.table, key)) fail(Word::kInvalid, *why);
  }
  Scope scope(db);
  Statement other(db, "SELECT 1 FROM main.pawl_protected WHERE tbl = ?1");
  if (other.bind(wanted.table).step())
    fail(Word::kInvalid,
         fmt::format("{} is under guard already: unprotect it first", wanted.table));
  auto row = store.find(name);
  if (!row) row = make_guard(store, name, kind, key, wanted.mode);
  check_same_key(db, *row, kind, key);
  check_same_collation(db, *row, wanted);
  cover(db, {wanted.table, store.installation(), row->id, kind, key});
  store.kept("INSERT INTO {s}.pawl_protected (tbl, guard) VALUES (?1, ?2)")
      .bind(wanted.table, row->id)
      .run();
  settle_keys(db, store, *row);
  store.audit(name, "protect", wanted.table, "");
  scope.finish();
  return name;
}

void unprotect(ConnectionState& state, const std::string& table) {
  Store& store = state.main();
  Scope scope(state.db());
  if (store.kept("DELETE FROM {s}.pawl_protected WHERE tbl = ?1").bind(table).run() == 0)
    fail(Word::kUnguarded, fmt::format("{} is not under guard", table));
  drop_triggers(state.db(), table);
  store.audit("", "unprotect", table, "");
  scope.finish();
}

void create_guard(ConnectionState& state, const std::string& name, bool keyed) {
  Scope scope(state.db());
  make_guard(state.main(), name, keyed ? "keyed" : "static", "", "observe");
  scope.finish();
}

void drop_guard(ConnectionState& state, const std::string& name) {
  Store& store = state.main();
  Scope scope(state.db());
  audit_emergencies(store);
  const GuardRow row = need_guard(store, name);
  Statement used(state.db(), "SELECT tbl FROM main.pawl_protected WHERE guard = ?1");
  if (used.bind(row.id).step())
    fail(Word::kInvalid, fmt::format("{} guards {}: unprotect it first", name, used.text(0)));
  for (const char* table : {"pawl_fence", "pawl_done", "pawl_count", "pawl_sighting"})
    Statement(state.db(), fmt::format("DELETE FROM main.{} WHERE guard = ?1", table))
        .bind(row.id)
        .run();
  if (store.notes_key_forms())
    Statement(state.db(), "DELETE FROM main.pawl_key_form WHERE guard = ?1").bind(row.id).run();
  Statement(state.db(), "DELETE FROM main.pawl_guard WHERE id = ?1").bind(row.id).run();
  store.audit(name, "drop", "", "");
  scope.finish();
}

namespace {

void insist_on_no_problem(ConnectionState& state, const std::string& guard) {
  for (const guard::Problem& problem : problems(state)) {
    if (problem.severity == "error" && problem.guard == guard)
      fail(Word::kInvalid, fmt::format("the mode stays as it is: {}: {}. {}", problem.object,
                                       problem.problem, problem.fix));
  }
}

}  // namespace

void set_mode(ConnectionState& state, const guard::ModeChange& change) {
  const GuardMode mode = need_mode(change.mode);
  const bool canary = mode == GuardMode::kCanary;
  if (canary != change.percent.has_value() ||
      (canary && (*change.percent < 1 || *change.percent > 100)))
    fail(Word::kInvalid, "canary needs a percentage from 1 to 100, and the other modes take none");
  Scope scope(state.db());
  // First: it looks for the stores anew, and a reference to one would not survive that.
  if (mode >= GuardMode::kCanary) insist_on_no_problem(state, change.guard);
  Store& store = state.main();
  audit_emergencies(store);  // Before what ends them, as it happened.
  const GuardRow row = need_guard(store, change.guard);
  const GuardMode before = effective_mode({store, row, ""});
  std::optional<std::int64_t> percent;
  if (canary) percent = *change.percent;
  store
      .kept(
          "UPDATE {s}.pawl_guard SET mode = ?2, percent = ?3, generation = generation + 1, "
          "mode_since = "
          "strftime('%Y-%m-%d %H:%M:%f', 'now'), would_refuse_before = coalesce((SELECT n FROM "
          "{s}.pawl_count c WHERE c.guard = ?1 AND verdict = 'would_refuse'), 0) WHERE id = ?1")
      .bind(row.id, change.mode, percent)
      .run();
  store.audit(change.guard, "mode",
              fmt::format("{}{} -> {}", mode_text(before, row.percent),
                          before == row.mode ? "" : " (emergency)",
                          mode_text(mode, change.percent.value_or(0))),
              change.reason);
  scope.finish();
  // Else the lines would count again for a restored copy of this file. (An open transaction may
  // still be taken back; then the administration does it.)
  if (sqlite3_get_autocommit(state.db()) != 0) end_emergencies(store, change.guard);
}

void end_emergencies(Store& store, const std::string& guard) {
  const auto row = store.find(guard);
  if (row) turn_off(store.path(), store.installation(), row->id);
}

void set_policy(ConnectionState& state, const guard::PolicyChange& change) {
  if (change.bare_token) fail(Word::kInvalid, "bare_token is a policy of guards in PostgreSQL");
  if (change.max_step && (*change.max_step < kStepMin || *change.max_step > limits::kTokenMax))
    fail(Word::kInvalid, fmt::format("max_step is from {} to {}", kStepMin, limits::kTokenMax));
  if (change.equal && *change.equal != "accept" && *change.equal != "once" &&
      *change.equal != "refuse")
    fail(Word::kInvalid, "equal is accept, once or refuse");
  Scope scope(state.db());
  Store& store = state.main();
  const GuardRow row = need_guard(store, change.guard);
  if (change.equal && *change.equal != "accept" && (row.kind == "row" || row.kind == "expression"))
    fail(Word::kInvalid,
         fmt::format("a {} guard admits an equal token; give each operation a number instead: "
                     "pawl_use(resource, token, op)",
                     row.kind));
  std::optional<std::int64_t> require;
  if (change.require_token) require = *change.require_token ? 1 : 0;
  std::optional<std::int64_t> step;
  if (change.max_step) step = static_cast<std::int64_t>(*change.max_step);
  store
      .kept(
          "UPDATE {s}.pawl_guard SET require_token = coalesce(?2, require_token), equal = "
          "coalesce(?3, "
          "equal), max_step = coalesce(?4, max_step) WHERE id = ?1")
      .bind(row.id, require, change.equal, step)
      .run();
  const GuardRow after = need_guard(store, change.guard);
  store.audit(change.guard, "policy",
              fmt::format("require_token={} equal={} max_step={}", after.require_token, after.equal,
                          after.max_step),
              change.reason);
  scope.finish();
}

std::int64_t emergency(ConnectionState& state, const std::string& guard,
                       const std::string& reason) {
  Store& store = state.main();
  if (!guard.empty()) static_cast<void>(need_guard(store, guard));
  std::vector<Emergency> switched;
  Statement listed(
      state.db(),
      "SELECT id, generation FROM main.pawl_guard WHERE mode IN ('canary', 'enforce') AND "
      "(?1 = '' OR name = ?1)");
  listed.bind(guard);
  while (listed.step())
    switched.push_back({store.installation(), listed.number(0), listed.number(1)});
  listed.reset();
  if (switched.empty()) return 0;
  turn_on(store.path(), switched, reason);
  try {
    Scope scope(state.db());
    audit_emergencies(store);
    scope.finish();
  } catch (const Fault& fault) {
    if (fault.word != Word::kBusy) throw;  // The switch is on, and records by which user and why.
  }
  return static_cast<std::int64_t>(switched.size());
}

std::int64_t compact(ConnectionState& state, const std::string& guard, std::uint64_t below) {
  Scope scope(state.db());
  Store& store = state.main();
  const GuardRow row = need_guard(store, guard);
  std::int64_t gone = 0;
  const auto limit = static_cast<std::int64_t>(below);
  if (row.keyed()) {
    Statement known(state.db(),
                    "SELECT coalesce(max(token), 0) FROM main.pawl_fence WHERE guard = ?1");
    known.bind(row.id).step();
    const auto greatest = std::max(row.floor, static_cast<std::uint64_t>(known.number(0)));
    known.reset();
    if (judge(below, greatest, row.max_step) == Verdict::kAhead)
      fail(Word::kAhead, explain(Verdict::kAhead, guard, below, greatest));
    store.kept("UPDATE {s}.pawl_guard SET floor = max(floor, ?2) WHERE id = ?1")
        .bind(row.id, limit)
        .run();
    gone += store.kept("DELETE FROM {s}.pawl_fence WHERE guard = ?1 AND token < ?2")
                .bind(row.id, limit)
                .run();
  }
  gone += store
              .kept(
                  "DELETE FROM {s}.pawl_done WHERE guard = ?1 AND token < min(?2, CASE WHEN ?3 "
                  "THEN ?2 ELSE "
                  "coalesce((SELECT f.token FROM {s}.pawl_fence f WHERE f.guard = ?1), 0) END)")
              .bind(row.id, limit, std::int64_t{row.keyed() ? 1 : 0})
              .run();
  if (gone > 0) store.audit(guard, "compact", fmt::format("below {}: {} rows", below, gone), "");
  scope.finish();
  return gone;
}

}  // namespace pawl::sqlite
