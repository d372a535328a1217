#include "guard/sqlite/connection_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "guard/sqlite/fault.h"
#include "guard/sqlite/key_rules.h"
#include "guard/sqlite/refusals.h"
#include "guard/sqlite/triggers.h"

namespace pawl::sqlite {
namespace {

int count_schemas(sqlite3* db) {
  int count = 0;
  while (sqlite3_db_name(db, count) != nullptr) ++count;
  return count;
}

std::vector<std::string> schemas_of(sqlite3* db) {
  std::vector<std::string> names;
  for (int i = 0; const char* name = sqlite3_db_name(db, i); ++i) {
    if (i != 1) names.emplace_back(name);  // 1 is temp.
  }
  return names;
}

}  // namespace

// Not when the functions are added: it reads the file, which another process may have locked, and
// an extension that fails to load is unloaded, although the connection still has its modules.
void ConnectionState::insist_on_watch() {
  if (watched_) return;
  if (const int rc = watch_closing(db_); rc != SQLITE_OK) fail_with(db_, rc);
  watched_ = true;
}

void ConnectionState::find_stores() {
  insist_on_watch();
  seen_.reset();
  stores_.clear();
  for (const std::string& schema : schemas_of(db_)) {
    if (const auto id = Store::installation_in(db_, schema))
      stores_.push_back(std::make_unique<Store>(db_, schema, *id));
  }
  schemas_ = count_schemas(db_);
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (stores_[i]->installation() != stores_[j]->installation()) continue;
      const std::string names =
          fmt::format("{} and {}", stores_[j]->schema(), stores_[i]->schema());
      stores_.clear();
      schemas_ = -1;
      fail(Word::kInvalid,
           names +
               " are copies of one guarded file: a trigger cannot tell which fences are "
               "its own. Attach one of them only");
    }
  }
}

ConnectionState::Seen* ConnectionState::seen_in(const Store& store) {
  if (!joined_ || !seen_ || seen_->store != &store || seen_->changes != sqlite3_total_changes(db_))
    return nullptr;
  return &*seen_;
}

void ConnectionState::note_seen(const Store& store, const GuardRow& guard,
                                std::optional<Fence> fence) {
  // Of an attached file the transaction may not have the write lock yet.
  if (joined_ && store.schema() == "main")
    seen_ = Seen{&store, sqlite3_total_changes(db_), guard, std::move(fence)};
}

std::uint64_t ConnectionState::fence(const Named& named) {
  Seen* seen = seen_in(named.store);
  if (seen != nullptr && seen->guard.id != named.guard.id) seen = nullptr;
  if (seen != nullptr && seen->fence && seen->fence->first == named.key) return seen->fence->second;
  const std::uint64_t fence =
      std::max(named.guard.floor, named.store.fence(named.guard.id, named.key));
  if (seen != nullptr) seen->fence = {named.key, fence};
  return fence;
}

Named ConnectionState::find(std::string_view resource) {
  const guard::ResourceName name = guard::split_resource(resource);
  std::optional<Named> found;
  for (int attempt = 0; attempt < 2 && !found; ++attempt) {
    if (attempt == 1 || schemas_ != count_schemas(db_)) find_stores();
    if (auto named = find_named(name)) found.emplace(*std::move(named));
  }
  if (!found) fail(Word::kUnguarded, fmt::format("there is no guard \"{}\"", name.guard));
  if (found->guard.keyed() != name.key.has_value())
    fail(Word::kUnguarded,
         found->guard.keyed()
             ? fmt::format("\"{0}\" has a fence for each key: name one, {0}:KEY", name.guard)
             : fmt::format("\"{}\" has one fence for all of it, and no keys", name.guard));
  return *std::move(found);
}

std::optional<Named> ConnectionState::find_named(const guard::ResourceName& name) {
  std::optional<Named> found;
  for (const auto& store : stores_) {
    auto named = find_named_in(*store, name.guard, name.key);
    if (!named) continue;
    if (found)
      fail(Word::kInvalid,
           fmt::format("{0} and {1} both have a guard {2}: say which, {0}.{2} or {1}.{2}",
                       found->store.schema(), store->schema(), name.guard));
    found.emplace(*std::move(named));
  }
  const std::size_t dot = name.guard.find('.');
  if (found || dot == name.guard.npos) return found;
  for (const auto& store : stores_) {
    if (store->schema() == name.guard.substr(0, dot))
      return find_named_in(*store, name.guard.substr(dot + 1), name.key);
  }
  return std::nullopt;
}

std::optional<Named> ConnectionState::find_named_in(Store& store, const std::string& guard,
                                                    const std::optional<std::string>& key) {
  auto fenced = store.find(guard, key.value_or(""));
  if (!fenced) return std::nullopt;
  fenced->guard.collation = store.collation_of(fenced->guard);
  std::string form = fold(key.value_or(""), fenced->guard.collation);
  if (form != key.value_or("")) fenced->fence = store.fence(fenced->guard.id, form);
  note_seen(store, fenced->guard, Fence{form, std::max(fenced->guard.floor, fenced->fence)});
  return Named{store, std::move(fenced->guard), std::move(form)};
}

std::vector<std::string> ConnectionState::attached() const {
  std::vector<std::string> schemas;
  for (const auto& store : stores_) {
    if (store->schema() != "main") schemas.push_back(store->schema());
  }
  return schemas;
}

Named ConnectionState::find(std::int64_t installation, std::int64_t guard, std::string_view key) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt == 1 || schemas_ != count_schemas(db_)) find_stores();
    for (const auto& store : stores_) {
      if (store->installation() != installation) continue;
      if (const Seen* seen = seen_in(*store); seen != nullptr && seen->guard.id == guard)
        return {*store, seen->guard, fold(key, seen->guard.collation)};
      if (auto row = store->find(guard)) {
        row->collation = store->collation_of(*row);
        note_seen(*store, *row, {});
        std::string form = fold(key, row->collation);
        return {*store, *std::move(row), std::move(form)};
      }
    }
  }
  fail(Word::kUnguarded, fmt::format("guard {} is gone, its trigger is not", guard));
}

Store& ConnectionState::main() {
  find_stores();
  for (const auto& store : stores_) {
    if (store->schema() == "main") return *store;
  }
  fail(Word::kInvalid,
       "no guard is installed in this file. Install it with: pawl guard install sqlite");
}

void ConnectionState::join() {
  if (joined_) return;
  insist_on_watch();
  const sqlite3_int64 row = sqlite3_last_insert_rowid(db_);
  if (!joining_)
    joining_ = std::make_unique<Statement>(db_, "INSERT INTO pawl_session VALUES (1)",
                                           SQLITE_PREPARE_PERSISTENT);
  joining_->run();
  sqlite3_set_last_insert_rowid(db_, row);  // It is the application's.
  joined_ = true;
}

void ConnectionState::note_user(std::string_view resource) {
  constexpr std::size_t kNamesMax = 1000;
  if (users_.size() >= kNamesMax) uses_all_ = true;
  if (!uses_all_) users_.insert(std::string(guard::split_resource(resource).guard));
}

void ConnectionState::carry(const Named& named, const Carried& carried) {
  carried_[fence_key(named)] = carried;
}

const Carried* ConnectionState::carried(const Named& named) const {
  const auto found = carried_.find(fence_key(named));
  return found == carried_.end() ? nullptr : &found->second;
}

bool ConnectionState::has_used_a_token(const Named& named) const {
  return uses_all_ || users_.contains(named.guard.name) ||
         users_.contains(fmt::format("{}.{}", named.store.schema(), named.guard.name));
}

const std::string& ConnectionState::changed_table(const Named& named) {
  static const std::string kNothing;
  if (named.store.schema() != "main") return kNothing;
  Statement& asked = named.store.kept("PRAGMA {s}.schema_version").bind();
  const std::int64_t version = asked.step() ? asked.number(0) : 0;
  asked.reset();
  Changed& known = changed_[named.guard.id];
  if (known.schema_version != version) {
    known = {version, {}};
    const std::vector<Protected> tables = named.store.tables_of(named.guard);
    for (const Protected& each : tables) {
      if (is_other_column(db_, each))
        known.how = fmt::format("the key column {} was renamed after {} was protected", each.key,
                                each.table);
      else if (!covers_unique_indexes(db_, each))
        known.how = fmt::format(
            "a unique index was made after {} was protected, and REPLACE could delete another "
            "key's row through it",
            each.table);
    }
    if (const std::string before = named.store.key_form(named.guard), now = key_form(db_, tables);
        known.how.empty() && !before.empty() && !keeps_fences(before, now))
      known.how =
          fmt::format("the key column of {} is {} now, and was {} when its fences were stored",
                      named.guard.name, now, before);
  }
  return known.how;
}

bool ConnectionState::has_claimed(const Named& named, std::uint64_t token) const {
  return claims_.contains({fence_key(named), token});
}

void ConnectionState::note_claim(const Named& named, std::uint64_t token) {
  claims_.insert({fence_key(named), token});
}

bool ConnectionState::note(const Named& named, std::string_view what) {
  return noted_.insert({fence_key(named), std::string(what)}).second;
}

bool ConnectionState::note_synchronous(const Named& named) {
  return synchronous_.insert({named.store.installation(), named.guard.id}).second;
}

void ConnectionState::refused(const Named& named, std::string_view verdict,
                              std::optional<std::uint64_t> token, std::uint64_t fence) {
  const std::string path = named.store.path();
  note_refusal(path, {named.guard.id, resource_of(named.guard, named.key), std::string(verdict),
                      token, fence});
  refused_in_.insert(path);
  if (!joined_ && sqlite3_get_autocommit(db_) != 0) import_own_refusals();
}

void ConnectionState::ended() noexcept {
  joined_ = false;
  seen_.reset();
  carried_.clear();
  claims_.clear();
  noted_.clear();
  // While a connection is being closed its transaction is reported as over before it is; then the
  // destructor does it.
  if (sqlite3_txn_state(db_, nullptr) != SQLITE_TXN_WRITE) import_own_refusals();
}

void ConnectionState::closing() noexcept {
  joining_.reset();
  seen_.reset();
  stores_.clear();
  schemas_ = -1;
}

void ConnectionState::import_own_refusals() noexcept {
  for (const std::string& path : refused_in_) import_refusals(path);
  refused_in_.clear();
}

}  // namespace pawl::sqlite
