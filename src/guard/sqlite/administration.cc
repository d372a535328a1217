#include "guard/sqlite/administration.h"

#include <utility>

#include "base/assert.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/emergency.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/functions.h"
#include "guard/sqlite/owner.h"

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
      : db_(std::move(db)), session_(*sqlite::session_of(db_.get())) {}

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
    auto done = in_transaction(rehearse, [&] { sqlite::uninstall(session_); });
    if (done && rehearse == Rehearse::kNo) {
      const std::string path = sqlite3_db_filename(db_.get(), "main");
      sqlite::forget_emergencies(path);
      sqlite::forget_refusals(path);
    }
    return done;
  }
  [[nodiscard]] std::string_view script() const override { return sqlite::install_script(); }

  Result<std::string> protect(const Protection& protection, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { return sqlite::protect(session_, protection); });
  }
  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::unprotect(session_, table); });
  }

  Result<std::vector<Problem>> problems() override {
    return attempt([&] { return sqlite::problems(session_); });
  }
  Result<std::vector<Status>> status(const std::string& guard) override {
    return attempt([&] { return sqlite::status(session_, guard); });
  }
  Result<std::vector<Sighting>> sightings(const std::string& guard) override {
    return attempt([&] { return sqlite::sightings(session_, guard); });
  }

  Result<void> set_mode(const ModeChange& change, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::set_mode(session_, change); });
  }
  Result<void> set_policy(const PolicyChange& change, Rehearse rehearse) override {
    return in_transaction(rehearse, [&] { sqlite::set_policy(session_, change); });
  }
  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    const sqlite::Impatient impatient(db_.get());
    return attempt([&] { static_cast<void>(sqlite::emergency(session_, guard, reason)); });
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return attempt([&] {
      const std::uint64_t max = sqlite::check(session_, resource, 1).max;
      return max == 0 ? std::optional<std::uint64_t>{} : max;
    });
  }
  // SQLite does not tell who writes.
  Result<std::vector<std::string>> blockers(const std::string& resource) override {
    return attempt([&] {
      static_cast<void>(session_.find(resource));
      return std::vector<std::string>{};
    });
  }
  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds wait, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict)
      return Error{Code::kInvalid,
                   "another process's transaction in a SQLite file cannot be ended from here"};
    const sqlite::Impatient impatient(db_.get());
    return attempt([&] { return sqlite::advance(session_, resource, token, wait); });
  }
  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    return in_transaction(rehearse,
                          [&] { static_cast<void>(sqlite::compact(session_, guard, below)); });
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
  sqlite::Session& session_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_sqlite(const std::string& path) {
  auto db = sqlite::open_file(path);
  if (!db) return db.error();
  PAWL_ASSERT(sqlite::session_of(db->get()) != nullptr);
  return std::unique_ptr<Administration>(std::make_unique<SqliteAdministration>(*std::move(db)));
}

}  // namespace pawl::guard
