// What people look at: status, sightings, problems.
#include <fmt/format.h>

#include <algorithm>

#include "guard/sqlite/decide.h"
#include "guard/sqlite/emergency.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/key_rules.h"
#include "guard/sqlite/owner.h"
#include "guard/sqlite/refusals.h"
#include "guard/sqlite/triggers.h"

namespace pawl::sqlite {
namespace {

std::vector<std::string> list(Statement& statement) {
  std::vector<std::string> values;
  while (statement.step()) values.push_back(statement.text(0));
  return values;
}

std::uint64_t counted(Store& store, std::int64_t guard, const char* verdict) {
  Statement& asked = store.kept("SELECT n FROM {s}.pawl_count WHERE guard = ?1 AND verdict = ?2")
                         .bind(guard, verdict);
  if (!asked.step()) return 0;
  const auto n = static_cast<std::uint64_t>(asked.number(0));
  asked.reset();
  return n;
}

// Why not to enforce yet.
std::vector<std::string> reasons_not_ready(Store& store, const guard::Status& status,
                                           std::int64_t guard) {
  std::vector<std::string> because;
  if (status.mode == "observe")
    because.emplace_back("nothing is judged in observe: shadow comes next");
  Statement writers(
      store.db(),
      "SELECT application || ' (' || login || ') writes without a token, last at ' || last_seen "
      "FROM "
      "main.pawl_sighting s JOIN main.pawl_guard g ON g.id = s.guard WHERE g.id = ?1 AND what = "
      "'tokenless' AND last_seen >= substr(mode_since, 1, 19) ORDER BY last_seen DESC LIMIT 20");
  for (std::string& line : list(writers.bind(guard))) because.push_back(std::move(line));
  Statement would(store.db(),
                  "SELECT ?2 - would_refuse_before, mode_since FROM main.pawl_guard WHERE id = ?1");
  would.bind(guard, static_cast<std::int64_t>(status.would_refuse));
  if (would.step() && would.number(0) > 0 && status.mode != "enforce")
    because.push_back(fmt::format("{} writes would have been refused since {}", would.number(0),
                                  would.text(1).substr(0, 19)));
  return because;
}

guard::Status status_of(Store& store, const GuardRow& row) {
  guard::Status status;
  status.guard = row.name;
  status.strength = strength_of(store.db());
  // The word of the other databases; the tables of an installed guard have always said
  // "expression".
  status.kind = row.kind == "expression" ? "by" : row.kind;
  Statement tables(store.db(), "SELECT tbl FROM main.pawl_protected WHERE guard = ?1 ORDER BY tbl");
  status.tables = list(tables.bind(row.id));
  const GuardMode mode = effective_mode({store, row, ""});
  status.mode = to_text(mode);
  if (mode == GuardMode::kCanary) status.percent = row.percent;
  status.require_token = row.require_token;
  status.equal = row.equal;
  status.max_step = row.max_step;
  status.floor = row.floor;
  if (!row.keyed()) {
    if (const std::uint64_t fence = store.fence(row.id, ""); fence != 0) status.fence = fence;
  }
  status.replayed = counted(store, row.id, "replayed");
  status.stale = counted(store, row.id, "stale");
  status.missing = counted(store, row.id, "missing");
  status.ahead = counted(store, row.id, "ahead");
  status.malformed = counted(store, row.id, "malformed");
  status.would_refuse = counted(store, row.id, "would_refuse");
  status.because = reasons_not_ready(store, status, row.id);
  status.ready = status.because.empty();
  return status;
}

// Triggers that are gone or changed, tables that are gone.
void find_problems_of_table(Store& store, const Protected& entry, const std::string& guard,
                            std::vector<guard::Problem>& problems) {
  if (is_other_column(store.db(), entry)) {
    problems.push_back(
        {"error", guard, entry.table,
         fmt::format("the key column {} is {} now: it was renamed", entry.key,
                     watched_column(store.db(), entry).value_or("")),
         "pawl guard install sqlite follows it; where tables under one guard differ, "
         "unprotect one of them"});
    return;
  }
  if (const auto why = why_no_key(store.db(), entry.table, entry.kind, entry.key))
    problems.push_back(
        {"error", guard, entry.table,
         fmt::format("a stale token may pass under another spelling of its key: {}", *why),
         fmt::format("pawl guard unprotect sqlite {} and pawl guard drop sqlite {}, "
                     "then protect it by another key",
                     entry.table, guard)});
  const std::string again = "pawl guard install sqlite puts it back";
  std::vector<Trigger> wanted;
  try {
    wanted = triggers_for(store.db(), entry);
  } catch (const Fault& fault) {
    problems.push_back({"error", guard, entry.table, fault.text, again});
    return;
  }
  for (const Trigger& trigger : wanted) {
    Statement kept(store.db(),
                   "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?1");
    if (!kept.bind(trigger.name).step()) {
      problems.push_back(
          {"error", guard, entry.table,
           fmt::format("the trigger {} is missing: writes are not judged", trigger.name), again});
    } else if (kept.text(0) != trigger.sql) {
      problems.push_back(
          {"error", guard, entry.table,
           fmt::format("the trigger {} is not what it should be (was a unique index added, or "
                       "the table renamed, so that another one has its name?)",
                       trigger.name),
           again});
    }
  }
}

void find_table_problems(Store& store, std::vector<guard::Problem>& problems) {
  Statement listed(
      store.db(),
      "SELECT p.tbl, g.id, g.kind, g.key, g.name FROM main.pawl_protected p JOIN main.pawl_guard g "
      "ON g.id = p.guard ORDER BY p.tbl");
  while (listed.step())
    find_problems_of_table(
        store,
        {listed.text(0), store.installation(), listed.number(1), listed.text(2), listed.text(3)},
        listed.text(4), problems);
}

void find_key_problems(Store& store, std::vector<guard::Problem>& problems) {
  Statement listed(store.db(), "SELECT name FROM main.pawl_guard WHERE kind = 'row' ORDER BY name");
  for (const std::string& name : list(listed)) {
    const auto row = store.find(name);
    const std::string before = row ? store.key_form(*row) : std::string();
    if (before.empty()) continue;
    const std::vector<Protected> tables = store.tables_of(*row);
    const std::string now = key_form(store.db(), tables);
    const bool renamed = std::any_of(tables.begin(), tables.end(), [&](const Protected& each) {
      return is_other_column(store.db(), each);
    });
    if (renamed || now.empty() || keeps_fences(before, now)) continue;
    problems.push_back(
        {"error", name, name,
         fmt::format("its key column is {} now, and was {} when its fences were stored", now,
                     before),
         "pawl guard install sqlite makes tokens stale that are smaller than the greatest seen"});
  }
}

void find_durability_problems(Store& store, std::vector<guard::Problem>& problems) {
  Statement seen(
      store.db(),
      "SELECT g.name, s.application, s.login, s.last_seen FROM main.pawl_sighting s JOIN "
      "main.pawl_guard g ON g.id = s.guard WHERE s.what = 'synchronous' ORDER BY 1, 2");
  while (seen.step())
    problems.push_back(
        {"warning", seen.text(0), seen.text(1),
         fmt::format(
             "{} ({}) wrote with synchronous below FULL, last at {}: a power cut may take back "
             "its last commits, and the fence with them",
             seen.text(1), seen.text(2), seen.text(3)),
         "PRAGMA synchronous = FULL in that program"});
}

void find_journal_problems(Store& store, std::vector<guard::Problem>& problems) {
  const GuardStrength strength = strength_of(store.db());
  if (strength.strength == Strength::kBestEffort)
    problems.push_back({"error", "", "", strength.because, "PRAGMA journal_mode = WAL"});
}

// Of files that are attached to this connection.
void find_shared_names(ConnectionState& state, std::vector<guard::Problem>& problems) {
  for (const std::string& schema : state.attached()) {
    Statement shared(state.db(), fmt::format("SELECT name FROM main.pawl_guard WHERE name IN "
                                             "(SELECT name FROM {}.pawl_guard) ORDER BY name",
                                             quoted(schema)));
    for (const std::string& name : list(shared))
      problems.push_back(
          {"warning", name, schema,
           fmt::format("main and {} both have a guard {}: its name alone is refused", schema, name),
           fmt::format("say which: pawl_use('main.{0}', …) or pawl_use('{1}.{0}', …)", name,
                       schema)});
  }
}

void find_emergencies(Store& store, std::vector<guard::Problem>& problems) {
  Statement listed(store.db(), "SELECT name FROM main.pawl_guard ORDER BY name");
  for (const std::string& name : list(listed)) {
    const auto row = store.find(name);
    if (!row || effective_mode({store, *row, ""}) == row->mode) continue;
    const auto switched =
        find_switched(store.path(), {store.installation(), row->id, row->generation});
    problems.push_back({"warning", name, name,
                        fmt::format("the emergency switch is on: nothing is refused. {} ({}): {}",
                                    switched->login, switched->application, switched->reason),
                        fmt::format("pawl guard mode sqlite {} {}", name, to_text(row->mode))});
  }
}

}  // namespace

GuardStrength strength_of(sqlite3* db) {
  try {
    Statement asked(db, "PRAGMA main.journal_mode");
    if (asked.step() && asked.text(0) == "off")
      return {Strength::kBestEffort,
              "journal_mode is OFF, so a refused write cannot be rolled back; use WAL or DELETE"};
  } catch (const Fault& fault) {
    return {Strength::kBestEffort, "the journal mode cannot be read: " + fault.text};
  }
  return {Strength::kFenced, {}};
}

std::vector<guard::Status> status(ConnectionState& state, const std::string& guard) {
  Store& store = state.main();
  if (sqlite3_get_autocommit(state.db()) != 0) {
    import_refusals(store.path());
    audit_late_emergencies(store);
  }
  Statement names(state.db(),
                  "SELECT name FROM main.pawl_guard WHERE ?1 = '' OR name = ?1 ORDER BY name");
  std::vector<guard::Status> all;
  for (const std::string& name : list(names.bind(guard))) {
    if (const auto row = store.find(name)) all.push_back(status_of(store, *row));
  }
  if (all.empty() && !guard.empty())
    fail(Word::kUnguarded,
         fmt::format("there is no guard \"{}\" here; pawl guard status shows those there are",
                     guard));
  return all;
}

std::vector<guard::Sighting> sightings(ConnectionState& state, const std::string& guard) {
  Statement listed(
      state.main().db(),
      "SELECT g.name, s.login, s.application, s.n, s.last_seen FROM main.pawl_sighting s JOIN "
      "main.pawl_guard g ON g.id = s.guard WHERE s.what = 'tokenless' AND (?1 = '' OR g.name = ?1) "
      "ORDER BY s.n DESC LIMIT 100");
  listed.bind(guard);
  std::vector<guard::Sighting> all;
  while (listed.step())
    all.push_back({listed.text(0), listed.text(1), "", listed.text(2), "",
                   static_cast<std::uint64_t>(listed.number(3)), listed.text(4)});
  return all;
}

std::vector<guard::Problem> problems(ConnectionState& state) {
  Store& store = state.main();
  std::vector<guard::Problem> all;
  find_table_problems(store, all);
  find_key_problems(store, all);
  find_shared_names(state, all);
  find_durability_problems(store, all);
  find_journal_problems(store, all);
  find_emergencies(store, all);
  return all;
}

}  // namespace pawl::sqlite
