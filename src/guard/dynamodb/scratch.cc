// Scratch resources in DynamoDB, in a table that is made for them. A write to one is a line in its
// log (scratch_log.h).
#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "guard/dynamodb/dsn.h"
#include "guard/dynamodb/front.h"
#include "guard/dynamodb/kind.h"
#include "guard/dynamodb/scratch_log.h"
#include "guard/dynamodb/tables.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr const char* kScratchReason = "conformance";

struct DynamoLack {
  Ability ability;
  std::string_view why;
};
constexpr std::string_view kOneRequest =
    "check and write are one request to DynamoDB; it has no steps";
constexpr std::string_view kInTheItem =
    "a fence for each item is judged by the policy that a writer has seen last, so that this part "
    "of the policy is fixed";
constexpr std::array kDynamoLacks{
    DynamoLack{Ability::kTransactions, kOneRequest},
    DynamoLack{Ability::kReadCommitted, kOneRequest},
    DynamoLack{Ability::kRepeatableRead, kOneRequest},
    DynamoLack{Ability::kSerializable, kOneRequest},
    DynamoLack{Ability::kLostCommit, kOneRequest},
    DynamoLack{Ability::kVanish, kOneRequest},
    DynamoLack{Ability::kPrepared, kOneRequest},
    DynamoLack{Ability::kOperationSet, "it remembers only the last operation of a token"},
    DynamoLack{Ability::kSpellings, "a number has one spelling in names of resources"},
    DynamoLack{Ability::kMoves, "the key of an item cannot be changed"},
    DynamoLack{Ability::kUnreachable, "nothing runs in DynamoDB that could drop a fence"},
    DynamoLack{Ability::kEnclosed, "an item cannot become a part of another"},
    DynamoLack{Ability::kEqualOnce, kInTheItem},
    DynamoLack{Ability::kEqualRefuse, kInTheItem},
    DynamoLack{Ability::kCompact, kInTheItem},
};

class DynamoScratch final : public ScratchSpace {
 public:
  DynamoScratch(std::string dsn, DynamoScope scope, const DynamoOptions& options,
                std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        scope_(scope),
        front_(open_dynamo_store(options), options),
        administration_(std::move(administration)) {
    SystemRandom random;  // Two spaces in one account must not share names.
    prefix_ = fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff);
  }
  ~DynamoScratch() override {
    retire(std::vector<std::string>(made_.begin(), made_.end()));
    static_cast<void>(front_.store().call("DeleteTable", {{"TableName", prefix_}}));
  }

  Result<void> make_table() { return create_table(front_.store(), prefix_, "id"); }

  [[nodiscard]] std::string name() const override {
    return fmt::format("dynamodb {}", to_text(scope_));
  }
  [[nodiscard]] Abilities abilities() const override {
    Abilities all = kDynamoKind.abilities;
    if (!keyed()) all.add({Ability::kEqualOnce, Ability::kEqualRefuse, Ability::kCompact});
    return all;
  }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    for (const DynamoLack& lack : kDynamoLacks) {
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
    made_.push_back(fmt::format("{}{}{}", prefix_, kDynamoBare, ++count_));
    return made_.back();
  }

  Result<std::unique_ptr<Session>> open() override {
    return open_dynamo_session(dsn_,
                               {.scratch_resource = prefix_, .form = std::string(to_text(scope_))});
  }

  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : std::vector<std::string>(resources)) {
      const std::string guard = split_resource(resource).guard;
      static_cast<void>(administration_->unprotect(dynamo_scratch_pattern(guard), Rehearse::kNo));
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
    const auto now =
        read_counts(front_.store(), front_.options().guards_table, split_resource(resource).guard);
    if (!now) return now.error();
    return Counts{now->at("replayed"), now->at("stale"), now->at("missing"), now->at("ahead"),
                  now->at("would_refuse")};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration_->fence(resource);
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    const auto item = front_.calls().read_item(prefix_, dynamo_log_key(resource));
    if (!item) return item.error();
    return *item ? dynamo_log_effects(**item) : std::vector<Effect>{};
  }

 private:
  [[nodiscard]] bool keyed() const { return scope_ == DynamoScope::kRow; }

  Result<std::string> make_guard(const Policy& policy) {
    std::string guard = fmt::format("{}_{}", prefix_, ++count_);
    Protection wanted{.table = dynamo_scratch_pattern(guard), .guard = guard};
    if (keyed()) wanted.key = "*";
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
  const DynamoScope scope_;
  DynamoFront front_;
  const std::unique_ptr<Administration> administration_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  std::vector<std::string> made_;
};

}  // namespace

Result<std::unique_ptr<ScratchSpace>> open_dynamo_scratch(const std::string& dsn,
                                                          std::string_view form) {
  const auto known = parse_dynamo_form(form);
  if (!known) return known.error();
  const auto options = parse_dynamo_dsn(dsn);
  if (!options) return options.error();
  if (const auto store = open_dynamo_store(*options); !store) return store.error();
  auto administration = open_dynamo_administration(dsn);
  if (!administration) return administration.error();
  auto space = std::make_unique<DynamoScratch>(dsn, *known, *options, *std::move(administration));
  if (const auto made = space->make_table(); !made) return made.error();
  return std::unique_ptr<ScratchSpace>(std::move(space));
}

}  // namespace pawl::guard
