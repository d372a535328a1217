// What the guard remembers in one file: the tables of guards/sqlite/pawl.sql, seen through one
// connection.
//
// Every statement names the schema it means, so that neither a temporary table nor another attached
// file can stand in its way. Nothing here begins or ends a transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "guard/sqlite/rules.h"
#include "guard/sqlite/statement.h"
#include "guard/sqlite/triggers.h"

namespace pawl::sqlite {

// A write that was refused, for the counters and the list of refusals.
struct Refusal {
  std::int64_t guard = 0;
  std::string resource;
  std::string verdict;
  std::optional<std::uint64_t> token;
  std::uint64_t fence = 0;
};

class Store {
 public:
  // `schema`: main, or what the file is attached as. `installation`: pawl_installation.id there.
  Store(sqlite3* db, std::string schema, std::int64_t installation)
      : db_(db), schema_(std::move(schema)), installation_(installation) {}

  // Those of the installation in that schema; nothing where none is installed.
  [[nodiscard]] static std::optional<std::int64_t> installation_in(sqlite3* db,
                                                                   const std::string& schema);

  [[nodiscard]] sqlite3* db() const { return db_; }
  [[nodiscard]] const std::string& schema() const { return schema_; }
  [[nodiscard]] std::int64_t installation() const { return installation_; }
  // The file's path; empty in memory.
  [[nodiscard]] std::string path() const;

  // Takes SQLite's write lock, if the transaction does not have it yet.
  void lock();

  // Nothing also when another file has taken this one's place.
  [[nodiscard]] std::optional<GuardRow> find(std::int64_t guard);
  [[nodiscard]] std::optional<GuardRow> find(std::string_view name);
  // With the fence of that key, in one query: a write needs both.
  struct Fenced {
    GuardRow guard;
    std::uint64_t fence = 0;  // none
  };
  [[nodiscard]] std::optional<Fenced> find(std::string_view name, std::string_view key);

  // That of its key column; empty: every text is a key of its own. Throws where fences of an older
  // version wait to be stored anew.
  [[nodiscard]] std::string collation_of(const GuardRow& guard);
  // The tables under a guard, by its key.
  [[nodiscard]] std::vector<Protected> tables_of(const GuardRow& guard);
  // How the keys were spelled when fences were stored; empty: that was not noted. (key_rules.h)
  [[nodiscard]] std::string key_form(const GuardRow& guard);
  void note_key_form(const GuardRow& guard, std::string_view form);
  [[nodiscard]] bool notes_key_forms();  // Not in a file that an older version has installed.
  // Stores the fences and operations of a guard under the form of their keys.
  void refold(const GuardRow& guard, std::string_view collation);
  // Forgets them, and raises the floor of the guard in their place: no older token is admitted for
  // any key. Where operations were numbered, it rises above the greatest, because they are
  // forgotten as well. Answers the floor.
  std::uint64_t forget_keys(const GuardRow& guard);

  [[nodiscard]] std::uint64_t fence(std::int64_t guard, std::string_view key);  // 0: none
  // Also forgets the operations of older tokens.
  void raise_fence(std::int64_t guard, std::string_view key, std::uint64_t token);
  // False: it was done before.
  bool claim(std::int64_t guard, std::string_view key, std::uint64_t token,
             std::uint64_t operation);

  void count(std::int64_t guard, std::string_view verdict, std::int64_t times);
  // `at`: seconds since 1970.
  void remember(const Refusal& refusal, std::string_view application, std::int64_t at);
  void sight(std::int64_t guard, std::string_view what);
  void audit(std::string_view guard, std::string_view what, std::string_view detail,
             std::string_view reason);

  // With {s} for the schema; kept for the next time.
  Statement& kept(std::string_view sql);
  // Before the connection can be closed.
  void forget_statements() { statements_.clear(); }

 private:
  sqlite3* db_;
  std::string schema_;
  std::int64_t installation_;
  struct Collation {
    std::int64_t schema_version = 0;  // Of the file when this was found: a table may be rebuilt.
    std::string name;
  };
  std::unordered_map<std::int64_t, Collation> collations_;                       // by guard
  std::unordered_map<std::string_view, std::unique_ptr<Statement>> statements_;  // by literal
};

// The collation that the column was declared with: BINARY, NOCASE, RTRIM or one of an application.
[[nodiscard]] std::string declared_collation(sqlite3* db, const std::string& schema,
                                             const std::string& table, const std::string& column);

// A short transaction on a connection of its own, for what must be kept although the caller's
// transaction is rolled back, or does not belong to it. `work` runs under the write lock and is
// committed. False: it was not, because another connection is writing or the file cannot be opened;
// there will be a next time. Waits 200 ms at most and never throws. `path`: of the database; for
// one in memory (empty) nothing is done.
bool run_side_transaction(const std::string& path,
                          const std::function<void(Store&)>& work) noexcept;

// The account and the program that do this: for people, they prove nothing.
[[nodiscard]] std::string login_name();
[[nodiscard]] std::string application_name();
// The same as one word of a line in a file, whatever is in it.
[[nodiscard]] std::string one_word(std::string text);

}  // namespace pawl::sqlite
