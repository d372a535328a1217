// Scratch resources in etcd. A write to one is a line in its log (scratch_log.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "guard/etcd/kind.h"
#include "guard/etcd/names.h"
#include "guard/etcd/scratch_log.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr const char* kScratchReason = "conformance";

struct EtcdLack {
  Ability ability;
  std::string_view why;
};
constexpr std::string_view kOneTransaction =
    "check and write are one transaction of etcd; it has no steps";
constexpr std::array kEtcdLacks{
    EtcdLack{Ability::kTransactions, kOneTransaction},
    EtcdLack{Ability::kReadCommitted, kOneTransaction},
    EtcdLack{Ability::kRepeatableRead, kOneTransaction},
    EtcdLack{Ability::kSerializable, kOneTransaction},
    EtcdLack{Ability::kLostCommit, kOneTransaction},
    EtcdLack{Ability::kVanish, kOneTransaction},
    EtcdLack{Ability::kPrepared, kOneTransaction},
    EtcdLack{Ability::kOperationSet, "it remembers only the last operation of a token"},
    EtcdLack{Ability::kSpellings, "keys are compared byte by byte"},
    EtcdLack{Ability::kUnreachable, "nothing runs in etcd that could keep a fence from being put"},
    EtcdLack{Ability::kEnclosed, "a key cannot become a part of another"},
    EtcdLack{Ability::kMoves, "this form has one fence and no keys"},
};

class EtcdScratch final : public ScratchSpace {
 public:
  EtcdScratch(std::string dsn, EtcdScope scope, std::shared_ptr<EtcdConnection> connection,
              std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        scope_(scope),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {
    SystemRandom random;  // Two spaces in one server must not share names.
    prefix_ = fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff);
  }
  ~EtcdScratch() override { retire(std::vector<std::string>(made_.begin(), made_.end())); }

  [[nodiscard]] std::string name() const override {
    return fmt::format("etcd {}", to_text(scope_));
  }
  [[nodiscard]] Abilities abilities() const override {
    Abilities all = kEtcdKind.abilities;
    if (keyed()) all.add(Ability::kMoves);
    return all;
  }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    for (const EtcdLack& lack : kEtcdLacks) {
      if (lack.ability == ability && !abilities().has(ability)) return std::string(lack.why);
    }
    return {};
  }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    if (keyed()) {
      const auto guard = make_guard(policy);
      if (!guard) return guard.error();
      for (std::size_t i = 0; i < count; ++i)
        resources.push_back(fmt::format("{}:k{}", *guard, i + 1));
    } else {
      while (resources.size() < count) {
        auto guard = make_guard(policy);
        if (!guard) return guard.error();
        resources.push_back(*std::move(guard));
      }
    }
    made_.insert(made_.end(), resources.begin(), resources.end());
    return resources;
  }

  Result<std::string> bare() override {
    std::string resource = etcd_scratch_bare(prefix_, ++count_);
    made_.push_back(resource);
    return resource;
  }

  Result<std::unique_ptr<Session>> open() override {
    return open_etcd_session(dsn_,
                             {.scratch_resource = prefix_, .form = std::string(to_text(scope_))});
  }

  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : std::vector<std::string>(resources)) {
      const std::string key = etcd_log_key(scope_, resource);
      const std::string end = is_one_key(scope_, resource) ? "" : etcd::end_of_prefix(key);
      static_cast<void>(connection_->transact({.success = {etcd::DeleteRangeRequest{key, end}}},
                                              EtcdSending::kUntilDecided));
      const std::string guard = split_resource(resource).guard;
      static_cast<void>(administration_->unprotect(etcd_scratch_pattern(guard), Rehearse::kNo));
      static_cast<void>(administration_->drop(guard, Rehearse::kNo));
      std::erase(made_, resource);
    }
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    return change(split_resource(resource).guard, policy, Rehearse::kNo);
  }
  Result<void> rehearse_policy(const std::string& resource, const Policy& policy) override {
    return change(split_resource(resource).guard, policy, Rehearse::kYes);
  }
  Result<void> emergency(const std::string& resource) override {
    return administration_->emergency(split_resource(resource).guard, kScratchReason);
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(split_resource(resource).guard, below, Rehearse::kNo);
  }
  Result<void> rehearse_compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(split_resource(resource).guard, below, Rehearse::kYes);
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto status = administration_->status(split_resource(resource).guard);
    if (!status) return status.error();
    PAWL_ASSERT(status->size() == 1);  // A guard that is not there is an error.
    const Status& now = status->front();
    return Counts{now.replayed, now.stale, now.missing, now.ahead, now.would_refuse};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration_->fence(resource);
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    const std::string key = etcd_log_key(scope_, resource);
    auto found =
        connection_->range(key, is_one_key(scope_, resource) ? "" : etcd::end_of_prefix(key));
    if (!found) return found.error();
    return etcd_log_effects(*std::move(found));
  }

 private:
  [[nodiscard]] bool keyed() const { return scope_ != EtcdScope::kStatic; }
  Result<std::string> make_guard(const Policy& policy) {
    std::string guard = fmt::format("{}_{}", prefix_, ++count_);
    Protection wanted{.table = etcd_scratch_pattern(guard), .guard = guard};
    if (scope_ == EtcdScope::kRow) wanted.key = "*";
    if (scope_ == EtcdScope::kBy) wanted.by = "/";
    if (const auto made = administration_->protect(wanted, Rehearse::kNo); !made)
      return made.error();
    if (const auto set = change(guard, policy, Rehearse::kNo); !set) return set.error();
    return guard;
  }

  Result<void> change(const std::string& guard, const Policy& policy, Rehearse rehearse) {
    ModeChange mode{guard, std::string(to_text(policy.mode)), {}, kScratchReason};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    const PolicyChange rest{
        guard, policy.require_token, std::string(to_text(policy.equal)), policy.max_step,
        {},    kScratchReason};
    if (const auto done = administration_->set_policy(rest, rehearse); !done) return done.error();
    return administration_->set_mode(mode, rehearse);
  }

  const std::string dsn_;
  const EtcdScope scope_;
  const std::shared_ptr<EtcdConnection> connection_;
  const std::unique_ptr<Administration> administration_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  std::vector<std::string> made_;
};

}  // namespace

Result<std::unique_ptr<ScratchSpace>> open_etcd_scratch(const std::string& dsn,
                                                        std::string_view form) {
  const auto known = parse_etcd_form(form);
  if (!known) return known.error();
  auto connection = connect_etcd(dsn);
  if (!connection) return connection.error();
  auto administration = open_etcd_administration(dsn);
  if (!administration) return administration.error();
  return std::unique_ptr<ScratchSpace>(std::make_unique<EtcdScratch>(
      dsn, *known, *std::move(connection), *std::move(administration)));
}

}  // namespace pawl::guard
