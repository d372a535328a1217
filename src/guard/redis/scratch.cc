// Scratch resources in Redis. A write to one is a line in a list.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "guard/redis/kind.h"
#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr const char* kReason = "conformance";

struct Lack {
  Ability ability;
  std::string_view why;
};
constexpr std::string_view kOneCall = "check and write are one call; there are no transactions";
constexpr std::array kLacks{
    Lack{Ability::kTransactions, kOneCall},
    Lack{Ability::kReadCommitted, kOneCall},
    Lack{Ability::kRepeatableRead, kOneCall},
    Lack{Ability::kSerializable, kOneCall},
    Lack{Ability::kLostCommit, kOneCall},
    Lack{Ability::kVanish, kOneCall},
    Lack{Ability::kPrepared, kOneCall},
    Lack{Ability::kOperationSet, "it remembers only the last operation of a token"},
    Lack{Ability::kSpellings, "keys are compared byte by byte"},
    Lack{Ability::kUnreachable, "fences are in a key of the guard, where nothing else stands"},
    Lack{Ability::kEnclosed, "a key cannot become a part of another"},
    // Of one fence for all keys only.
    Lack{Ability::kSeveral, "this form has one fence, and a call is for one guard"},
    Lack{Ability::kMoves, "this form has one fence and no keys"},
};

class RedisScratch final : public ScratchSpace {
 public:
  RedisScratch(std::string dsn, RedisForm form, std::shared_ptr<RedisClient> client,
               std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        form_(form),
        client_(std::move(client)),
        administration_(std::move(administration)) {
    SystemRandom random;  // Two spaces in one server must not share names.
    prefix_ = fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff);
  }
  ~RedisScratch() override { retire(std::vector<std::string>(made_.begin(), made_.end())); }

  [[nodiscard]] std::string name() const override {
    return fmt::format("redis {}", kRedisForms.at(static_cast<std::size_t>(form_)));
  }
  [[nodiscard]] Abilities abilities() const override {
    Abilities all = kRedisKind.abilities;
    if (keyed()) all.add({Ability::kSeveral, Ability::kMoves});
    return all;
  }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    for (const Lack& lack : kLacks) {
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
    std::string resource = scratch_bare(prefix_, ++count_);
    made_.push_back(resource);
    return resource;
  }

  Result<std::unique_ptr<Session>> open() override {
    return open_redis_session(
        dsn_, {.scratch_resource = prefix_,
               .form = std::string(kRedisForms.at(static_cast<std::size_t>(form_)))});
  }

  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : std::vector<std::string>(resources)) {
      static_cast<void>(client_->command({"DEL", scratch_key(form_, resource)}));
      const std::string guard = split_resource(resource).guard;
      static_cast<void>(administration_->unprotect(pattern_of(guard), Rehearse::kNo));
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
    return administration_->emergency(split_resource(resource).guard, kReason);
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
    const RedisAnswer found = client_->command({"LRANGE", scratch_key(form_, resource), "0", "-1"});
    if (!found) return to_error(*found.failure);
    std::vector<Effect> effects;
    for (const RedisReply& line : found.reply.items) {
      const std::size_t space = line.text.find(' ');
      effects.push_back(
          {parse_token(line.text.substr(0, space)).value_or(0), line.text.substr(space + 1)});
    }
    return effects;
  }

 private:
  [[nodiscard]] bool keyed() const { return form_ == RedisForm::kRow || form_ == RedisForm::kBy; }
  [[nodiscard]] static std::string pattern_of(const std::string& guard) {
    return fmt::format("{{{}}}:*", guard);
  }

  Result<std::string> make_guard(const Policy& policy) {
    std::string guard = fmt::format("{}_{}", prefix_, ++count_);
    Protection wanted{.table = pattern_of(guard), .guard = guard};
    if (form_ == RedisForm::kRow) wanted.key = "*";
    if (form_ == RedisForm::kBy) wanted.by = ":";
    if (const auto made = administration_->protect(wanted, Rehearse::kNo); !made)
      return made.error();
    if (const auto set = change(guard, policy, Rehearse::kNo); !set) return set.error();
    return guard;
  }

  Result<void> change(const std::string& guard, const Policy& policy, Rehearse rehearse) {
    ModeChange mode{guard, std::string(to_text(policy.mode)), {}, kReason};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    const PolicyChange rest{
        guard,  policy.require_token, std::string(to_text(policy.equal)), policy.max_step, {},
        kReason};
    if (const auto done = administration_->set_policy(rest, rehearse); !done) return done.error();
    return administration_->set_mode(mode, rehearse);
  }

  const std::string dsn_;
  const RedisForm form_;
  const std::shared_ptr<RedisClient> client_;
  const std::unique_ptr<Administration> administration_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  std::vector<std::string> made_;
};

}  // namespace

Result<std::unique_ptr<ScratchSpace>> open_redis_scratch(const std::string& dsn,
                                                         std::string_view form) {
  const auto where = parse_redis_dsn(dsn);
  if (!where) return where.error();
  const auto known = parse_redis_form(form);
  if (!known) return known.error();
  auto client = RedisClient::open(*where);
  if (!client) return client.error();
  auto administration = open_redis_administration(dsn);
  if (!administration) return administration.error();
  return std::unique_ptr<ScratchSpace>(
      std::make_unique<RedisScratch>(dsn, *known, *std::move(client), *std::move(administration)));
}

}  // namespace pawl::guard
