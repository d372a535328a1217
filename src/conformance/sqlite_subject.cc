#include "conformance/sqlite_subject.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/random.h"
#include "conformance/sqlite_session.h"
#include "guard/sqlite/administration.h"
#include "guard/sqlite/connection.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/statement.h"

namespace pawl::conformance {
namespace {

using sqlite::Statement;

constexpr std::array<std::string_view, 5> kForms{"admit", "keyed", "table", "row", "by"};

Abilities abilities_of(const SqlitePlace& place) {
  using enum Ability;
  Abilities abilities{kTransactions, kSerializable, kConcurrency, kOperationSet, kSeveral,
                      kTextTokens,   kUnguarded,    kModes,       kCanary,       kEmergency,
                      kMaxStep,      kCounts,       kCompact,     kVanish};
  if (place.watched())
    for (const Ability more : {kTokenless, kRequireToken, kRemove}) abilities.add(more);
  // Where one write may touch many resources, an equal token says too little to be refused.
  if (place.form != SqliteForm::kRow && place.form != SqliteForm::kBy)
    for (const Ability more : {kEqualOnce, kEqualRefuse}) abilities.add(more);
  return abilities;
}

class SqliteSubject final : public Subject {
 public:
  SqliteSubject(std::string path, SqlitePlace place, std::shared_ptr<sqlite3> db,
                std::unique_ptr<guard::Administration> administration)
      : path_(std::move(path)),
        place_(std::move(place)),
        db_(std::move(db)),
        administration_(std::move(administration)) {}
  ~SqliteSubject() override {
    while (!guards_.empty()) drop(std::string(*guards_.begin()));
    static_cast<void>(run(fmt::format("DROP TABLE IF EXISTS {}_effects", place_.prefix)));
  }

  Result<void> prepare() {
    try {
      Statement asked(db_.get(), "PRAGMA journal_mode");
      if (!asked.step() || asked.text(0) != "wal")
        return Error{Code::kInvalid, "the cases need the file in WAL mode: PRAGMA journal_mode = WAL"};
    } catch (const sqlite::Fault& fault) {
      return sqlite::to_error(fault);
    }
    return run(effects_table(place_.prefix + "_effects"));
  }

  [[nodiscard]] std::string name() const override { return fmt::format("sqlite {}", to_text(place_.form)); }
  [[nodiscard]] Abilities abilities() const override { return abilities_of(place_); }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    while (resources.size() < count) {
      const std::string guard = fmt::format("{}_{}", place_.prefix, ++made_);
      guards_.insert(guard);
      if (const auto made = make_guard(guard); !made) return made.error();
      if (const auto set = set_policy(guard, policy); !set) return set.error();
      if (!place_.keyed()) resources.push_back(guard);
      for (std::size_t i = 1; place_.keyed() && i <= count; ++i)
        resources.push_back(fmt::format("{}:k{}", guard, i));
    }
    return resources;
  }

  Result<std::unique_ptr<Session>> open() override {
    auto db = sqlite::open_file(path_);
    if (!db) return db.error();
    return make_sqlite_session(*std::move(db), place_);
  }

  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : resources) drop(SqlitePlace::guard_of(resource));
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    const std::string guard = SqlitePlace::guard_of(resource);
    guard::ModeChange mode{guard, std::string(to_text(policy.mode)), {}, "conformance"};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    guard::PolicyChange rest{guard, policy.require_token, {}, policy.max_step, {}, "conformance"};
    if (abilities().has(Ability::kEqualOnce)) rest.equal = to_text(policy.equal);
    if (const auto done = administration_->set_policy(rest, guard::Rehearse::kNo); !done) return done.error();
    return administration_->set_mode(mode, guard::Rehearse::kNo);
  }

  Result<void> emergency(const std::string& resource) override {
    return administration_->emergency(SqlitePlace::guard_of(resource), "conformance");
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(SqlitePlace::guard_of(resource), below, guard::Rehearse::kNo);
  }
  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration_->fence(resource);
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    const std::string table = place_.table_of(resource);
    const std::string sql =
        place_.form == SqliteForm::kRow
            ? fmt::format(
                  "SELECT json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]') FROM {} t, "
                  "json_each(t.log) e WHERE t.resource = ?1 ORDER BY e.key",
                  table)
            : fmt::format("SELECT token, value FROM {} WHERE resource = ?1 ORDER BY id", table);
    std::vector<Effect> effects;
    try {
      Statement asked(db_.get(), sql);
      asked.bind(place_.key_of(resource));
      while (asked.step()) effects.push_back({static_cast<std::uint64_t>(asked.number(0)), asked.text(1)});
    } catch (const sqlite::Fault& fault) {
      return sqlite::to_error(fault);
    }
    return effects;
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto status = administration_->status(SqlitePlace::guard_of(resource));
    if (!status) return status.error();
    const guard::Status& now = status->front();
    return Counts{now.replayed, now.stale, now.missing, now.ahead, now.would_refuse};
  }

 private:
  static std::string effects_table(const std::string& name) {
    return fmt::format(
        "CREATE TABLE {} (id INTEGER PRIMARY KEY AUTOINCREMENT, resource TEXT NOT NULL, token INTEGER NOT "
        "NULL, "
        "value TEXT NOT NULL)",
        name);
  }

  Result<void> make_guard(const std::string& guard) {
    if (!place_.watched())
      return run(fmt::format("SELECT pawl_create_guard('{}', {})", guard, place_.keyed() ? 1 : 0));
    const auto made =
        run(place_.form == SqliteForm::kRow
                ? fmt::format("CREATE TABLE {} (resource TEXT PRIMARY KEY, log TEXT NOT NULL)", guard)
                : effects_table(guard));
    if (!made) return made.error();
    guard::Protection wanted{.table = guard};
    if (place_.form == SqliteForm::kRow) wanted.key = "resource";
    if (place_.form == SqliteForm::kBy) wanted.expression = "substr(resource, 1)";
    const auto done = administration_->protect(wanted, guard::Rehearse::kNo);
    if (!done) return done.error();
    return {};
  }

  Result<void> run(const std::string& sql) {
    try {
      sqlite::execute(db_.get(), sql);
      return {};
    } catch (const sqlite::Fault& fault) {
      return sqlite::to_error(fault);
    }
  }

  // As far as it can: what stays behind is named so that nobody takes it for his own.
  void drop(const std::string& guard) {
    if (guards_.erase(guard) == 0) return;
    if (place_.watched()) {
      static_cast<void>(administration_->unprotect(guard, guard::Rehearse::kNo));
      static_cast<void>(run("DROP TABLE IF EXISTS " + guard));
    }
    static_cast<void>(run(fmt::format("SELECT pawl_drop_guard('{}')", guard)));
  }

  const std::string path_;
  const SqlitePlace place_;
  const std::shared_ptr<sqlite3> db_;
  const std::unique_ptr<guard::Administration> administration_;
  std::set<std::string> guards_;  // that there are now
  std::uint64_t made_ = 0;
};

}  // namespace

std::string_view to_text(SqliteForm form) {
  return kForms.at(static_cast<std::size_t>(form));
}

Result<std::unique_ptr<Subject>> start_sqlite_subject(const std::string& path, SqliteForm form) {
  auto db = sqlite::open_file(path);
  if (!db) return db.error();
  auto administration = guard::open_sqlite(path);
  if (!administration) return administration.error();
  SystemRandom random;  // Two kits in one file must not meet.
  SqlitePlace place{form, fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff)};
  auto subject =
      std::make_unique<SqliteSubject>(path, std::move(place), *std::move(db), *std::move(administration));
  if (const auto ready = subject->prepare(); !ready) return ready.error();
  return std::unique_ptr<Subject>(std::move(subject));
}

}  // namespace pawl::conformance
