// The administration of a guard in a SQLite file, over a connection of its own.
#include <utility>

#include "base/assert.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/connection_state.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/emergency.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/kind.h"
#include "guard/sqlite/owner.h"
#include "guard/sqlite/refusals.h"

namespace pawl::guard {
namespace {

// What the work returns, or its Fault as an Error.
template <class Work>
auto attempt(const Work& work) -> Result<decltype(work())> {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const sqlite::Fault& fault) {
    return sqlite::to_error(fault);
  }
}

class SqliteAdministration final : public Administration {
 public:
  explicit SqliteAdministration(std::shared_ptr<sqlite3> db)
      : db_(std::move(db)), state_(*sqlite::state_of(db_.get())) {}

  [[nodiscard]] std::string_view title() const override { return "SQLite"; }
  [[nodiscard]] bool can(Task task) const override {
    return task != Task::kBlockers && task != Task::kEvict;  // SQLite names no writers.
  }

  Result<std::optional<Installation>> installed() override {
    return attempt([&] { return sqlite::installed(db_.get()); });
  }

  Result<Installation> install(Rehearse rehearse) override {
    return in_transaction(rehearse, [&] {
      sqlite::install(db_.get());
      return sqlite::installed(db_.get()).value_or(Installation{});
    });
  }
  Result<void> uninstall(Rehearse rehearse) override {
    auto done = in_transaction(rehearse, [&] { sqlite::uninstall(state_); });
    if (done && rehearse == Rehearse::kNo) {
      const std::string path = sqlite3_db_filename(db_.get(), "main");
      sqlite::forget_emergencies(path);
      sqlite::forget_refusals(path);
    }
    return done;
  }
  [[nodiscard]] Result<std::string_view> script() const override {
    return sqlite::install_script();
  }

  Result<std::string> protect(const Protection& protection, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { return sqlite::protect(state_, protection); });
  }
  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::unprotect(state_, table); });
  }
  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::drop_guard(state_, guard); });
  }

  Result<std::vector<Problem>> problems() override {
    return attempt([&] { return sqlite::problems(state_); });
  }
  Result<std::vector<Status>> status(const std::string& guard) override {
    return attempt([&] { return sqlite::status(state_, guard); });
  }
  Result<std::vector<Sighting>> sightings(const std::string& guard) override {
    return attempt([&] { return sqlite::sightings(state_, guard); });
  }

  Result<void> set_mode(const ModeChange& change, Rehearse rehearse) override {
    auto done = in_transaction(rehearse, [&] { sqlite::set_mode(state_, change); });
    if (done && rehearse == Rehearse::kNo)
      return attempt([&] { sqlite::end_emergencies(state_.main(), change.guard); });
    return done;
  }
  Result<void> set_policy(const PolicyChange& change, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::set_policy(state_, change); });
  }
  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    const sqlite::NoBusyTimeout no_busy_timeout(db_.get());
    return attempt([&] { static_cast<void>(sqlite::emergency(state_, guard, reason)); });
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return attempt([&] {
      const std::uint64_t max = sqlite::check(state_, resource, 1).max;
      return max == 0 ? std::optional<std::uint64_t>{} : max;
    });
  }
  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds wait, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict)
      return Error{Code::kInvalid,
                   "another process's transaction in a SQLite file cannot be ended from here"};
    const sqlite::NoBusyTimeout no_busy_timeout(db_.get());
    return attempt([&] { return sqlite::advance(state_, resource, token, wait); });
  }
  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    return in_transaction(rehearse,
                          [&] { static_cast<void>(sqlite::compact(state_, guard, below)); });
  }

 private:
  // The work's own scope lies within this one.
  template <class Work>
  auto in_transaction(Rehearse rehearse, const Work& work) -> Result<decltype(work())> {
    return attempt([&] {
      sqlite::Scope scope(db_.get());
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        if (rehearse == Rehearse::kNo) scope.finish();
      } else {
        auto made = work();
        if (rehearse == Rehearse::kNo) scope.finish();
        return made;
      }
    });
  }

  std::shared_ptr<sqlite3> db_;
  sqlite::ConnectionState& state_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_sqlite_administration(const std::string& path) {
  auto db = sqlite::open_file(path);
  if (!db) return db.error();
  PAWL_ASSERT(sqlite::state_of(db->get()) != nullptr);
  return std::unique_ptr<Administration>(std::make_unique<SqliteAdministration>(*std::move(db)));
}

}  // namespace pawl::guard
