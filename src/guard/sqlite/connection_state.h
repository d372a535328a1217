// One connection's part of the guard: the token that its transaction carries, and what it was
// refused; and the SQL functions that make a connection part of the guard.
//
// A token belongs to a transaction, not to a connection: pools hand connections on. SQLite's commit
// and rollback hooks have one place each, which an application may take; so the state is a
// virtual table that takes part in every guarded transaction (pawl_session, in
// transaction_watch.cc), and is notified of its end like any other table.
//
// Used by one thread at a time, like the connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "guard/sqlite/rules.h"
#include "guard/sqlite/store.h"
#include "guard_contract/resource_name.h"

namespace pawl::sqlite {

struct Carried {
  std::uint64_t token = 0;
  std::optional<std::uint64_t> operation = {};
  bool replayed = false;   // It was done before: whatever is written now is a mistake.
  bool malformed = false;  // So was what came with it.
};

// What a resource's name has led to.
struct Named {
  Store& store;
  GuardRow guard;
  std::string key;  // static: empty
};

class ConnectionState {
 public:
  explicit ConnectionState(sqlite3* db) : db_(db) {}
  // SQLite destroys it last, when what was still open is rolled back.
  ~ConnectionState() { import_own_refusals(); }
  ConnectionState(const ConnectionState&) = delete;
  ConnectionState& operator=(const ConnectionState&) = delete;

  [[nodiscard]] sqlite3* db() const { return db_; }

  // Among all files of this connection. Throws where there is none, or more than one: then the name
  // of the guard can follow that of its schema, as in main.orders.
  Named find(std::string_view resource);
  // For a trigger: the guard of that installation.
  Named find(std::int64_t installation, std::int64_t guard, std::string_view key);
  // The greatest token admitted or advanced to; 0: none.
  [[nodiscard]] std::uint64_t fence(const Named& named);
  // The installation in main, for owners.
  Store& main();
  // The schemas of the other installations, as main() has found them.
  [[nodiscard]] std::vector<std::string> attached() const;

  // Has SQLite tell the end of the transaction, and takes the write lock of main. To be called
  // before anything is read: SQLite waits for other writers only on behalf of a transaction that
  // has not read yet.
  void join();

  // A program that passes a token, whatever becomes of it, is none that knows of no tokens. By the
  // name: where the file is locked, nothing more is known.
  void note_user(std::string_view resource);
  void carry(const Named& named, const Carried& carried);
  [[nodiscard]] const Carried* carried(const Named& named) const;
  // Whether this connection ever passed one for this guard.
  [[nodiscard]] bool has_used_a_token(const Named& named) const;
  // Whether this transaction has claimed the token (or operation) for itself.
  [[nodiscard]] bool has_claimed(const Named& named, std::uint64_t token) const;
  void note_claim(const Named& named, std::uint64_t token);
  // True the first time in this transaction.
  bool note(const Named& named, std::string_view what);
  void forget_note(const Named& named, std::string_view what) {
    noted_.erase({fence_key(named), std::string(what)});
  }
  // Once per connection and guard.
  bool note_synchronous(const Named& named);
  // What was done to the tables of a guard with keys so that its triggers and fences no longer fit
  // them: a unique index through which REPLACE could delete rows, a key column of another name or
  // form. Empty: nothing. Looked up again when the schema of the file has changed.
  const std::string& changed_table(const Named& named);

  void refused(const Named& named, std::string_view verdict, std::optional<std::uint64_t> token,
               std::uint64_t fence);

  // The transaction is over, either way.
  void ended() noexcept;
  // A part of the transaction is taken back: what was read in it may be so no more.
  void rolled_back_in_part() noexcept { seen_.reset(); }
  // The connection is about to be closed.
  void closing() noexcept;

 private:
  // installation, guard, key
  using FenceKey = std::tuple<std::int64_t, std::int64_t, std::string>;
  static FenceKey fence_key(const Named& named) {
    return {named.store.installation(), named.guard.id, named.guard.keyed() ? named.key : ""};
  }
  // What this transaction has read last. Nobody else can change it while the transaction has the
  // write lock, and what this connection itself changes is counted. The trigger of a row asks for
  // what pawl_use() has just read.
  using Fence = std::pair<std::string, std::uint64_t>;  // by key; not less than the guard's floor
  struct Seen {
    const Store* store = nullptr;
    int changes = 0;
    GuardRow guard;
    std::optional<Fence> fence;
  };
  // None where it may have changed meanwhile.
  Seen* seen_in(const Store& store);
  void note_seen(const Store& store, const GuardRow& guard, std::optional<Fence> fence);

  void find_stores();
  // Before a statement is kept.
  void insist_on_watch();
  void import_own_refusals() noexcept;
  std::optional<Named> find_named(const guard::ResourceName& name);
  // Nothing: that file has no such guard.
  std::optional<Named> find_named_in(Store& store, const std::string& guard,
                                     const std::optional<std::string>& key);

  sqlite3* db_;
  std::vector<std::unique_ptr<Store>> stores_;
  int schemas_ = -1;  // How many there were when stores_ was filled.
  std::unique_ptr<Statement> joining_;
  bool joined_ = false;
  bool watched_ = false;  // pawl_closing is there.
  std::optional<Seen> seen_;
  std::map<FenceKey, Carried> carried_;
  std::set<std::pair<FenceKey, std::uint64_t>> claims_;
  std::set<std::pair<FenceKey, std::string>> noted_;
  std::set<std::pair<std::int64_t, std::int64_t>> synchronous_;
  std::set<std::string, std::less<>> users_;  // Names of guards, as they were passed.
  bool uses_all_ = false;                     // So many that they are not told apart any more.
  struct Changed {
    std::int64_t schema_version = 0;
    std::string how;
  };
  std::map<std::int64_t, Changed> changed_;  // by guard of main
  std::set<std::string> refused_in_;  // Files in which this transaction was refused something.
};

// Registers pawl_use, pawl_admit, pawl_advance, pawl_check, pawl_fence and those of owners. Once
// per connection, and harmless when repeated. SQLite's result code.
[[nodiscard]] int add_functions(sqlite3* db);
// That of this connection; nullptr: add_functions() was not called.
[[nodiscard]] ConnectionState* state_of(sqlite3* db);
// Virtual tables without content, through which SQLite notifies the state: pawl_session, that its
// transaction is over; pawl_closing, that its connection is being closed. The connection owns the
// state from now on. SQLite's result code.
[[nodiscard]] int watch_transactions(sqlite3* db, std::unique_ptr<ConnectionState> state);
// Brings pawl_closing into being, so that it is notified when the connection is closed: kept
// statements would prevent that. Reads the file, which another process may have locked. SQLite's
// result code.
[[nodiscard]] int watch_closing(sqlite3* db);

}  // namespace pawl::sqlite
