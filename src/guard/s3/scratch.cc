// Scratch resources in a bucket. A write to one is a line of an object's content.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/random.h"
#include "guard/s3/dsn.h"
#include "guard/s3/front.h"
#include "guard/s3/kind.h"
#include "guard/s3/names.h"
#include "guard/s3/s3_store.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr const char* kScratchReason = "conformance";

struct S3Lack {
  Ability ability;
  std::string_view why;
};
constexpr std::string_view kOnePut = "check and write are one PUT; there are no transactions";
constexpr std::string_view kOneObject = "a write is one PUT of one object, which it names";
constexpr std::array kS3Lacks{
    S3Lack{Ability::kTransactions, kOnePut},
    S3Lack{Ability::kReadCommitted, kOnePut},
    S3Lack{Ability::kRepeatableRead, kOnePut},
    S3Lack{Ability::kSerializable, kOnePut},
    S3Lack{Ability::kLostCommit, kOnePut},
    S3Lack{Ability::kVanish, kOnePut},
    S3Lack{Ability::kPrepared, kOnePut},
    S3Lack{Ability::kOperationSet, "it remembers only the last operation of a token"},
    S3Lack{Ability::kSeveral, kOneObject},
    S3Lack{Ability::kElsewhere, kOneObject},
    S3Lack{Ability::kMoves, "an object cannot be renamed"},
    S3Lack{Ability::kSpellings, "keys are compared byte by byte"},
    S3Lack{Ability::kUnreachable, "the fence is in the object itself"},
    S3Lack{Ability::kEnclosed, "an object cannot become a part of another"},
};

class S3Scratch final : public ScratchSpace {
 public:
  S3Scratch(std::string dsn, std::string form, const S3Options& options,
            std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        form_(std::move(form)),
        front_(open_s3_store(options), options),
        administration_(std::move(administration)) {
    SystemRandom random;  // Two spaces in one bucket must not share names.
    prefix_ = fmt::format("{}{:08x}", kS3Scratch, random.next() & 0xffff'ffff);
  }
  ~S3Scratch() override { retire(std::vector<std::string>(made_.begin(), made_.end())); }

  [[nodiscard]] std::string name() const override { return "s3 " + form_; }
  [[nodiscard]] Abilities abilities() const override { return kS3Kind.abilities; }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    for (const S3Lack& lack : kS3Lacks) {
      if (lack.ability == ability) return std::string(lack.why);
    }
    return {};
  }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    while (resources.size() < count) {
      const std::string key = fmt::format("{}_{}", prefix_, ++count_);
      const auto made = administration_->protect({.table = key}, Rehearse::kNo);
      if (!made) return made.error();
      made_.push_back(key);
      if (const auto set = change(key, policy, Rehearse::kNo); !set) return set.error();
      resources.push_back(key);
    }
    return resources;
  }

  Result<std::string> bare() override {
    made_.push_back(fmt::format("{}{}{}", prefix_, kS3Bare, ++count_));
    return made_.back();
  }

  Result<std::unique_ptr<Session>> open() override {
    return open_s3_session(dsn_, {.scratch_resource = prefix_, .form = form_});
  }

  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& key : std::vector<std::string>(resources)) {
      static_cast<void>(administration_->unprotect(key, Rehearse::kNo));
      static_cast<void>(administration_->drop(key, Rehearse::kNo));
      static_cast<void>(front_.bucket().store().remove(key, {}, EtagForm::kQuoted));
      std::erase(made_, key);
    }
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    return change(resource, policy, Rehearse::kNo);
  }
  Result<void> rehearse_policy(const std::string& resource, const Policy& policy) override {
    return change(resource, policy, Rehearse::kYes);
  }
  Result<void> emergency(const std::string& resource) override {
    return administration_->emergency(resource, kScratchReason);
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(resource, below, Rehearse::kNo);
  }
  Result<void> rehearse_compact(const std::string& resource, std::uint64_t below) override {
    return administration_->compact(resource, below, Rehearse::kYes);
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto now = front_.bucket().record(resource);
    if (!now) return now.error();
    return Counts{now->replayed, now->stale, now->missing, now->ahead, now->would_refuse};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration_->fence(resource);
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    std::string lines;
    if (resource.find(kS3Bare) != resource.npos) {
      const auto object = front_.bucket().store().get(resource, limits::kFencedContentMax);
      if (!object) return object.error();
      if (*object) lines = (*object)->bytes;
    } else {
      const auto content = front_.read(resource);
      if (!content) return content.error();
      lines = content->value_or("");
    }
    std::vector<Effect> effects;
    for (std::size_t from = 0; from < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', from), lines.size());
      const std::string line = lines.substr(from, end - from);
      from = end + 1;
      const std::size_t space = line.find(' ');
      effects.push_back({parse_token(line.substr(0, space)).value_or(0), line.substr(space + 1)});
    }
    return effects;
  }

 private:
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
  const std::string form_;
  S3Front front_;
  const std::unique_ptr<Administration> administration_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  std::vector<std::string> made_;
};

}  // namespace

Result<std::unique_ptr<ScratchSpace>> open_s3_scratch(const std::string& dsn,
                                                      std::string_view form) {
  const auto options = parse_s3_dsn(dsn);
  if (!options) return options.error();
  if (std::find(kS3Forms.begin(), kS3Forms.end(), form) == kS3Forms.end())
    return Error{Code::kInvalid, fmt::format("unknown form \"{}\" of a guard in S3", form)};
  if (const auto store = open_s3_store(*options); !store) return store.error();
  auto administration = open_s3_administration(dsn);
  if (!administration) return administration.error();
  return std::unique_ptr<ScratchSpace>(
      std::make_unique<S3Scratch>(dsn, std::string(form), *options, *std::move(administration)));
}

}  // namespace pawl::guard
