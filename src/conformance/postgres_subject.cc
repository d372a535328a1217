#include "conformance/postgres_subject.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/random.h"
#include "conformance/postgres_session.h"
#include "guard/postgres/administration.h"
#include "guard/postgres/connection.h"
#include "guard/postgres/failures.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

constexpr std::array<std::string_view, 5> kForms{"admit", "keyed", "table", "row", "by"};

Abilities abilities_of(const PostgresPlace& place) {
  using enum Ability;
  Abilities abilities{kTransactions, kReadCommitted, kRepeatableRead, kSerializable,
                      kConcurrency,  kOperationSet,  kSeveral,        kUnguarded,
                      kModes,        kCanary,        kEmergency,      kMaxStep,
                      kCounts,       kCompact,       kLostCommit,     kVanish};
  if (place.watched())
    for (const Ability more : {kTextTokens, kTokenless, kRequireToken, kRemove}) abilities.add(more);
  // Where one write may touch many resources, an equal token says too little to be refused.
  if (place.form != PostgresForm::kRow && place.form != PostgresForm::kBy)
    for (const Ability more : {kEqualOnce, kEqualRefuse}) abilities.add(more);
  return abilities;
}

class PostgresSubject final : public Subject {
 public:
  PostgresSubject(std::string dsn, PostgresPlace place, std::shared_ptr<PGconn> connection,
                  std::unique_ptr<guard::Administration> administration)
      : dsn_(std::move(dsn)),
        place_(std::move(place)),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {}
  ~PostgresSubject() override {
    while (!guards_.empty()) drop(std::string(*guards_.begin()));
    static_cast<void>(query(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", place_.schema)));
  }

  Result<void> prepare() {
    const auto asked = query("SHOW track_commit_timestamp");
    if (!asked) return asked.error();
    by_commit_ = asked->at(0, 0) == "on";
    return run(
        {fmt::format("CREATE SCHEMA {}", place_.schema),
         fmt::format("CREATE TABLE {}.effects (id bigint GENERATED ALWAYS AS IDENTITY, resource text NOT "
                     "NULL, token bigint NOT NULL, value text NOT NULL)",
                     place_.schema)});
  }

  [[nodiscard]] std::string name() const override {
    return fmt::format("postgres {} (effects in order of {})", to_text(place_.form),
                       by_commit_ || place_.form == PostgresForm::kRow ? "commits" : "inserts");
  }
  [[nodiscard]] Abilities abilities() const override { return abilities_of(place_); }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    while (resources.size() < count) {
      const std::string guard = fmt::format("{}_{}", place_.schema, ++made_);
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
    auto connection = guard::connect(dsn_);
    if (!connection) return connection.error();
    return make_postgres_session(*std::move(connection), place_);
  }

  // Catalogs that grow make every guard dearer.
  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : resources) drop(PostgresPlace::guard_of(resource));
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    const std::string guard = PostgresPlace::guard_of(resource);
    guard::ModeChange mode{guard, std::string(to_text(policy.mode)), {}, "conformance"};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    guard::PolicyChange rest{guard, policy.require_token, {}, policy.max_step, {}, "conformance"};
    if (abilities().has(Ability::kEqualOnce)) rest.equal = to_text(policy.equal);
    if (const auto done = administration_->set_policy(rest, guard::Rehearse::kNo); !done) return done.error();
    return administration_->set_mode(mode, guard::Rehearse::kNo);
  }

  Result<void> emergency(const std::string& resource) override {
    return administration_->emergency(PostgresPlace::guard_of(resource), "conformance");
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(PostgresPlace::guard_of(resource), below, guard::Rehearse::kNo);
  }
  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration_->fence(resource);
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    const auto rows = query(effects_sql(resource), {place_.key_of(resource)});
    if (!rows) return rows.error();
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < rows->size(); ++i)
      effects.push_back(
          {guard::parse_token(rows->at(i, 0).value_or("")).value_or(0), rows->at(i, 1).value_or("")});
    return effects;
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto status = administration_->status(PostgresPlace::guard_of(resource));
    if (!status) return status.error();
    const guard::Status& now = status->front();
    return Counts{now.replayed, now.stale, now.missing, now.ahead, now.would_refuse};
  }

 private:
  Result<void> make_guard(const std::string& guard) {
    if (!place_.watched())
      return run({fmt::format("SELECT pawl.create_guard('{}', {})", guard, place_.keyed())});
    const std::string table = place_.table_of(guard);
    const char* const columns = place_.form == PostgresForm::kRow
                                    ? "resource text PRIMARY KEY, log jsonb NOT NULL"
                                    : "id bigint GENERATED ALWAYS AS IDENTITY, resource text NOT NULL, token "
                                      "bigint NOT NULL, value text "
                                      "NOT NULL";
    if (const auto made = run({fmt::format("CREATE TABLE {} ({})", table, columns)}); !made)
      return made.error();
    guard::Protection wanted{.table = table, .guard = guard};
    if (place_.form == PostgresForm::kRow) wanted.key = "resource";
    if (place_.form == PostgresForm::kBy) wanted.expression = "resource";
    const auto done = administration_->protect(wanted, guard::Rehearse::kNo);
    if (!done) return done.error();
    return {};
  }

  [[nodiscard]] std::string effects_sql(const std::string& resource) const {
    const std::string table = place_.table_of(resource);
    if (place_.form == PostgresForm::kRow)
      return fmt::format(
          "SELECT e.line ->> 0, e.line ->> 1 FROM {} t, jsonb_array_elements(t.log) WITH ORDINALITY AS e "
          "(line, "
          "place) WHERE t.resource = $1 ORDER BY e.place",
          table);
    return fmt::format("SELECT token, value FROM {} t WHERE resource = $1 ORDER BY {}id", table,
                       by_commit_ ? "pg_xact_commit_timestamp(t.xmin), " : "");
  }

  Result<PgRows> query(const std::string& sql, const std::vector<PgValue>& parameters = {}) {
    const auto done = guard::execute(connection_.get(), sql, parameters);
    if (!done) return guard::to_error(*done.failure);
    return PgRows(done.result);
  }

  Result<void> run(const std::vector<std::string>& statements) {
    for (const std::string& sql : statements) {
      if (const auto done = query(sql); !done) return done.error();
    }
    return {};
  }

  // As far as it can: what stays behind is named so that nobody takes it for his own.
  void drop(const std::string& guard) {
    if (guards_.erase(guard) == 0) return;
    if (place_.watched()) {
      static_cast<void>(administration_->unprotect(place_.table_of(guard), guard::Rehearse::kNo));
      static_cast<void>(query("DROP TABLE IF EXISTS " + place_.table_of(guard)));
    }
    static_cast<void>(query("SELECT pawl.drop_guard($1)", {guard}));
  }

  const std::string dsn_;
  const PostgresPlace place_;
  const std::shared_ptr<PGconn> connection_;
  const std::unique_ptr<guard::Administration> administration_;
  std::set<std::string> guards_;  // that there are now
  std::uint64_t made_ = 0;
  bool by_commit_ = false;
};

}  // namespace

std::string_view to_text(PostgresForm form) {
  return kForms.at(static_cast<std::size_t>(form));
}

Result<std::unique_ptr<Subject>> start_postgres_subject(const std::string& dsn, PostgresForm form) {
  auto connection = guard::connect(dsn);
  if (!connection) return connection.error();
  auto administration = guard::connect_postgres(dsn);
  if (!administration) return administration.error();
  SystemRandom random;  // Two kits in one database must not meet.
  PostgresPlace place{form, fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff)};
  auto subject = std::make_unique<PostgresSubject>(dsn, std::move(place), *std::move(connection),
                                                   *std::move(administration));
  if (const auto ready = subject->prepare(); !ready) return ready.error();
  return std::unique_ptr<Subject>(std::move(subject));
}

}  // namespace pawl::conformance
