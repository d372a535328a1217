#include "conformance/sql_subject.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/random.h"

namespace pawl::conformance {
namespace {

constexpr const char* kReason = "conformance";

Abilities abilities_of(const SqlTraits& traits, const Place& place) {
  using enum Ability;
  Abilities abilities{kTransactions, kConcurrency, kOperationSet, kSeveral, kUnguarded, kModes,
                      kCanary,       kEmergency,   kMaxStep,      kCounts,  kCompact,   kVanish};
  const auto add = [&](const Abilities& more) {
    for (const Ability ability : more.list()) abilities.add(ability);
  };
  add(traits.abilities);
  if (place.watched()) add({kTokenless, kRequireToken, kRemove});
  if (place.watched()) add(traits.watched);
  // Where one write may touch many resources, an equal token says too little to be refused.
  if (place.form != Form::kRow && place.form != Form::kBy) add({kEqualOnce, kEqualRefuse});
  return abilities;
}

class SqlSubject final : public Subject {
 public:
  SqlSubject(std::unique_ptr<SqlDatabase> database, Place place)
      : database_(std::move(database)),
        place_(std::move(place)),
        abilities_(abilities_of(database_->traits(), place_)) {}

  // As far as it can: what stays behind is named so that nobody takes it for his own.
  ~SqlSubject() override {
    while (!guards_.empty()) drop(std::string(*guards_.begin()));
    static_cast<void>(database_->run("DROP TABLE IF EXISTS " + place_.common_table()));
    if (!place_.schema.empty())
      static_cast<void>(database_->run("DROP SCHEMA IF EXISTS " + place_.schema));
  }

  Result<void> prepare() {
    if (const auto fit = database_->inspect(); !fit) return fit.error();
    if (!place_.schema.empty()) {
      if (const auto made = database_->run("CREATE SCHEMA " + place_.schema); !made)
        return made.error();
    }
    return make_table(place_.common_table(), Layout::kLines);
  }

  [[nodiscard]] std::string name() const override {
    const std::string remark = database_->remark(place_.layout_of(place_.name));
    return fmt::format("{} {}{}", database_->traits().kind, to_text(place_.form),
                       remark.empty() ? "" : " (" + remark + ")");
  }
  [[nodiscard]] Abilities abilities() const override { return abilities_; }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    while (resources.size() < count) {
      const std::string guard = place_.guard(++made_);
      guards_.insert(guard);
      if (const auto made = make_guard(guard); !made) return made.error();
      if (const auto set = set_policy(guard, policy); !set) return set.error();
      if (!place_.keyed()) resources.push_back(guard);
      for (std::size_t i = 1; place_.keyed() && i <= count; ++i)
        resources.push_back(fmt::format("{}:k{}", guard, i));
    }
    return resources;
  }

  Result<std::string> bare() override { return place_.bare(++made_); }

  Result<std::unique_ptr<Session>> open() override { return database_->open(place_); }

  // Catalogs that grow make every guard dearer.
  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : resources) drop(Place::guard_of(resource));
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    const std::string guard = Place::guard_of(resource);
    guard::ModeChange mode{guard, std::string(to_text(policy.mode)), {}, kReason};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    guard::PolicyChange rest{guard, policy.require_token, {}, policy.max_step, {}, kReason};
    if (abilities_.has(Ability::kEqualOnce)) rest.equal = to_text(policy.equal);
    if (const auto done = administration().set_policy(rest, guard::Rehearse::kNo); !done)
      return done.error();
    return administration().set_mode(mode, guard::Rehearse::kNo);
  }

  Result<void> emergency(const std::string& resource) override {
    return administration().emergency(Place::guard_of(resource), kReason);
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration().compact(Place::guard_of(resource), below, guard::Rehearse::kNo);
  }
  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration().fence(resource);
  }
  Result<std::vector<Effect>> effects(const std::string& resource) override {
    return database_->effects(place_.table_of(resource), place_.layout_of(resource),
                              place_.key_of(resource));
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto status = administration().status(Place::guard_of(resource));
    if (!status) return status.error();
    const guard::Status& now = status->front();
    return Counts{now.replayed, now.stale, now.missing, now.ahead, now.would_refuse};
  }

 private:
  guard::Administration& administration() { return database_->administration(); }

  Result<void> make_table(const std::string& table, Layout layout) {
    return database_->run(fmt::format("CREATE TABLE {} ({})", table, database_->columns(layout)));
  }

  Result<void> make_guard(const std::string& guard) {
    if (!place_.watched())
      return database_->run(
          fmt::format("{}create_guard('{}', {})", database_->traits().call, guard, place_.keyed()));
    guard::Protection wanted{.table = place_.table_of(guard), .guard = guard};
    if (const auto made = make_table(wanted.table, place_.layout_of(guard)); !made)
      return made.error();
    if (place_.form == Form::kRow) wanted.key = "resource";
    if (place_.form == Form::kBy) wanted.expression = database_->traits().by;
    const auto done = administration().protect(wanted, guard::Rehearse::kNo);
    if (!done) return done.error();
    return {};
  }

  void drop(const std::string& guard) {
    if (guards_.erase(guard) == 0) return;
    if (place_.watched()) {
      const std::string table = place_.table_of(guard);
      static_cast<void>(administration().unprotect(table, guard::Rehearse::kNo));
      static_cast<void>(database_->run("DROP TABLE IF EXISTS " + table));
    }
    static_cast<void>(
        database_->run(fmt::format("{}drop_guard('{}')", database_->traits().call, guard)));
  }

  const std::unique_ptr<SqlDatabase> database_;
  const Place place_;
  const Abilities abilities_;
  std::set<std::string> guards_;  // that there are now
  std::uint64_t made_ = 0;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_sql_subject(std::unique_ptr<SqlDatabase> database,
                                                  Form form) {
  SystemRandom random;  // Two kits in one database must not meet.
  Place place{form, fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff), ""};
  if (database->traits().schemas) place.schema = place.name;
  auto subject = std::make_unique<SqlSubject>(std::move(database), std::move(place));
  if (const auto ready = subject->prepare(); !ready) return ready.error();
  return std::unique_ptr<Subject>(std::move(subject));
}

}  // namespace pawl::conformance
