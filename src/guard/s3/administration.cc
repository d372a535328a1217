// The administration of guards in a bucket.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/limits.h"
#include "base/version.h"
#include "guard/s3/dsn.h"
#include "guard/s3/front.h"
#include "guard/s3/kind.h"
#include "guard/s3/names.h"
#include "guard/s3/probe.h"
#include "guard/s3/s3_store.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

std::string time_text(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

std::uint64_t now_seconds() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

Error invalid_request(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

// On one line, as the record keeps it.
std::string audit_line(std::string_view what, std::string_view detail, std::string_view reason) {
  std::string line = fmt::format("{} {}: {}{}{}{}", now_seconds(), what, detail,
                                 reason.empty() ? "" : " (", reason, reason.empty() ? "" : ")");
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  return line;
}

std::vector<std::string> not_ready_because(const S3Envelope& envelope, const S3Record& record) {
  std::vector<std::string> because;
  const std::string since = time_text(record.since);
  if (envelope.policy.mode == GuardMode::kObserve)
    because.emplace_back("nothing is judged in observe: shadow comes next");
  if (record.missing > record.missing_before)
    because.push_back(fmt::format("{} writes came without a token since {}",
                                  record.missing - record.missing_before, since));
  if (envelope.policy.mode != GuardMode::kEnforce &&
      record.would_refuse > record.would_refuse_before)
    because.push_back(fmt::format("{} writes would have been refused since {}",
                                  record.would_refuse - record.would_refuse_before, since));
  return because;
}

Status status_of(const S3Envelope& envelope, const S3Record& record) {
  const S3Policy& policy = envelope.policy;
  Status status;
  status.guard = envelope.key;
  status.kind = "static";
  status.tables = {envelope.key};
  status.mode = to_text(policy.mode);
  if (policy.mode == GuardMode::kCanary) status.percent = policy.percent;
  status.require_token = policy.require_token;
  status.equal = to_text(policy.equal);
  status.max_step = policy.max_step;
  status.floor = policy.floor;
  if (envelope.token != 0) status.fence = envelope.token;
  status.replayed = record.replayed;
  status.stale = record.stale;
  status.missing = record.missing;
  status.ahead = record.ahead;
  status.malformed = record.malformed;
  status.would_refuse = record.would_refuse;
  status.because = not_ready_because(envelope, record);
  status.ready = status.because.empty();
  return status;
}

class S3Administration final : public Administration {
 public:
  explicit S3Administration(const S3Options& options)
      : front_(open_s3_store(options), options), bucket_(front_.bucket()) {}

  [[nodiscard]] std::string_view title() const override { return "S3"; }
  // A PUT never waits for another, and nothing is told who sent one.
  [[nodiscard]] bool can(Task task) const override {
    return task != Task::kBlockers && task != Task::kEvict && task != Task::kSightings &&
           task != Task::kScript;
  }

  Result<std::optional<Installation>> installed() override {
    const auto found = bucket_.installed();
    if (!found) return found.error();
    if (!*found) return std::optional<Installation>{};
    bucket_.use_form((*found)->form);
    const auto contract = parse_count((*found)->contract);
    return std::optional<Installation>{{(*found)->version, static_cast<int>(contract.value_or(0))}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (*before && (*before)->contract > kGuardContract)
      return invalid_request(fmt::format(
          "guard {} (contract {}) is installed here; this pawl knows contract {} only. Use a newer "
          "pawl.",
          (*before)->version, (*before)->contract, kGuardContract));
    const auto probed = probe_s3(bucket_.store(), bucket_.new_nonce());
    if (!probed) return probed.error();
    if (!probed->fatal.empty())
      return invalid_request(fmt::format("{} cannot be guarded: {}. Nothing was installed.",
                                         bucket_.store().name(), probed->fatal));
    const Installation offered{std::string(kVersion), kGuardContract};
    if (rehearse == Rehearse::kYes) return offered;
    const S3Installation wanted{offered.version, std::to_string(offered.contract), probed->form};
    const auto done = bucket_.store().put(kS3Installation, to_bytes(wanted), {}, probed->form);
    if (!done) return done.error();
    bucket_.use_form(probed->form);
    return offered;
  }

  Result<void> uninstall(Rehearse rehearse) override {
    const auto keys = guard_keys();
    if (!keys) return keys.error();
    if (rehearse == Rehearse::kYes) return {};
    for (const std::string& key : *keys) {
      const auto now = bucket_.load(key);
      if (now && *now) {
        if (const auto done = unprotect(key, Rehearse::kNo); !done) return done.error();
      }
      if (const auto done = drop(key, Rehearse::kNo); !done) return done.error();
    }
    return removed(kS3Installation);
  }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    const auto key = to_s3_key(wanted);
    if (!key) return key.error();
    const auto mode = parse_mode(wanted.mode);
    if (!mode || *mode == GuardMode::kCanary)
      return invalid_request("a guard begins in observe, shadow or enforce; canary comes later");
    const auto before = bucket_.store().get(*key, limits::kFencedContentMax);
    if (!before) return before.error();
    if (*before && (*before)->bytes.starts_with("pawl-fenced-object "))
      return invalid_request(fmt::format("{} is under guard already: unprotect it first", *key));
    if (rehearse == Rehearse::kYes) return *key;
    if (const auto done = make_fenced(*key, *mode, *before); !done) return done.error();
    return *key;
  }

  Result<std::string> access_advice(const std::string& guard) override {
    const auto keys = guard_keys();
    if (!keys) return keys.error();
    const auto policy = bucket_.store().policy();
    if (policy && *policy && policy_protects(**policy, guard)) return std::string();
    return fmt::format(
        "Others with the right to write {} can write around the guard. In Amazon's S3 this bucket "
        "policy refuses that:\n{}",
        guard, s3_policy_advice(front_.options().bucket, *keys));
  }

  // The object becomes a plain one with its content again; the record keeps the fence.
  Result<void> unprotect(const std::string& key, Rehearse rehearse) override {
    const auto now = need(key);
    if (!now) return now.error();
    const auto content = bucket_.content(now->envelope);
    if (!content) return content.error();
    if (rehearse == Rehearse::kYes) return {};
    const auto kept = bucket_.change_record(key, [&](S3Record& record) {
      record.fence = std::max(now->envelope.token, now->envelope.policy.floor);
      record.sequence = now->envelope.sequence;
      record.audit.insert(record.audit.begin(), audit_line("unprotect", key, ""));
    });
    if (!kept) return kept.error();
    const auto done = bucket_.store().put(
        key, content->value_or(""), {Precondition::Kind::kMatches, now->etag}, bucket_.form());
    bucket_.forget(key);
    if (!done) return done.error();
    if (done->refused)
      return Error{Code::kUnavailable,
                   fmt::format("{} was written meanwhile; it is still under guard", key)};
    return {};
  }

  Result<void> drop(const std::string& key, Rehearse rehearse) override {
    const auto now = bucket_.load(key);
    if (!now) return now.error();
    if (*now) return invalid_request(fmt::format("it guards {}: unprotect that first", key));
    if (const auto known = need_record(key); !known) return known.error();
    if (rehearse == Rehearse::kYes) return {};
    const auto data = bucket_.store().list(data_prefix(key));
    if (!data) return data.error();
    for (const std::string& object : *data) {
      if (const auto done = removed(object); !done) return done.error();
    }
    return removed(record_key(key));
  }

  Result<std::vector<Problem>> problems() override {
    const auto keys = guard_keys();
    if (!keys) return keys.error();
    std::vector<Problem> list;
    if (const auto whole = probe_problem(); !whole)
      return whole.error();
    else if (*whole)
      list.push_back(**whole);
    const auto policy = bucket_.store().policy();
    for (const std::string& key : *keys) {
      if (auto error = error_of(key)) list.push_back(*std::move(error));
      const std::string around = find_bypass(policy, key);
      if (!around.empty())
        list.push_back({"warning", key, key, around,
                        "put the bucket policy there that pawl guard protect s3 prints"});
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    auto keys = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_keys();
      if (!all) return all.error();
      keys = *std::move(all);
    }
    const auto whole = probe_problem();
    const auto policy = bucket_.store().policy();
    std::vector<Status> list;
    for (const std::string& key : keys) {
      const auto now = bucket_.load(key);
      if (!guard.empty() && now && !*now)
        return invalid_request(fmt::format("there is no guard \"{}\" here", guard));
      if (!now || !*now) continue;  // problems() names it.
      const auto record = bucket_.record(key);
      if (!record) return record.error();
      Status status = status_of((*now)->envelope, *record);
      const std::string around = find_bypass(policy, key);
      status.strength = around.empty() ? GuardStrength{Strength::kFenced, ""}
                                       : GuardStrength{Strength::kBestEffort, around};
      if (!whole) {
        weaken_by_problems(status, whole.error());
      } else if (*whole) {
        weaken_by_problems(status, std::vector<Problem>{**whole});
      }
      list.push_back(std::move(status));
    }
    return list;
  }

  Result<void> set_mode(const ModeChange& wanted, Rehearse rehearse) override {
    const auto mode = parse_mode(wanted.mode);
    if (!mode) return invalid_request("a mode is observe, shadow, canary or enforce");
    const bool canary = *mode == GuardMode::kCanary;
    if (canary != wanted.percent.has_value() ||
        (canary && (*wanted.percent < 1 || *wanted.percent > 100)))
      return invalid_request("canary needs a percentage from 1 to 100; other modes take none");
    if (*mode == GuardMode::kCanary || *mode == GuardMode::kEnforce) {
      if (const auto sound = insist_on_a_sound_store(); !sound) return sound.error();
    }
    return change_mode(wanted.guard, *mode, wanted.percent.value_or(100), "mode", wanted.reason,
                       rehearse);
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (wanted.bare_token) return invalid_request("bare_token is a policy of guards in PostgreSQL");
    if (wanted.max_step) {
      if (const auto good = check_s3_max_step(*wanted.max_step); !good) return good.error();
    }
    const auto equal = wanted.equal ? parse_equal(*wanted.equal) : Equal::kAccept;
    if (!equal) return invalid_request("equal is accept, once or refuse");
    const auto change = [&](S3Policy& policy) {
      if (wanted.require_token) policy.require_token = *wanted.require_token;
      if (wanted.equal) policy.equal = *equal;
      if (wanted.max_step) policy.max_step = *wanted.max_step;
    };
    const auto done = change_policy(wanted.guard, change, rehearse);
    if (!done || rehearse == Rehearse::kYes) return done;
    return note(wanted.guard, "policy", "changed", wanted.reason);
  }

  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    auto keys = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_keys();
      if (!all) return all.error();
      keys = *std::move(all);
    }
    for (const std::string& key : keys) {
      const auto done =
          change_mode(key, GuardMode::kShadow, 100, "emergency", reason, Rehearse::kNo);
      if (!done) return done.error();
    }
    return {};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const auto now = need(resource);
    if (!now) return now.error();
    const std::uint64_t max = std::max(now->envelope.token, now->envelope.policy.floor);
    return max == 0 ? std::optional<std::uint64_t>{} : max;
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict) return unable(Task::kEvict);
    return front_.advance(resource, token);
  }

  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    const auto now = need(guard);
    if (!now) return now.error();
    const S3Verdict verdict = judge_s3_token(now->envelope, below);
    if (verdict.verdict == Verdict::kAhead)
      return explain_s3_refusal(now->envelope, verdict, below, 0);
    const auto done = change_policy(
        guard, [&](S3Policy& policy) { policy.floor = std::max(policy.floor, below); }, rehearse);
    if (!done || rehearse == Rehearse::kYes) return done;
    return note(guard, "compact", fmt::format("below {}", below), "");
  }

  Result<Decision> put(const std::string& resource, std::uint64_t token, std::uint64_t operation,
                       const std::string& content) override {
    return front_.write({.held = {.token = token},
                         .key = resource,
                         .operation = operation,
                         .content = [&](const auto&) { return content; }});
  }

  Result<std::optional<std::string>> get(const std::string& resource) override {
    return front_.read(resource);
  }

  Result<std::vector<std::string>> collect(const std::string& guard, Rehearse rehearse) override {
    auto keys = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_keys();
      if (!all) return all.error();
      keys = *std::move(all);
    }
    std::vector<std::string> collected;
    for (const std::string& key : keys) {
      // First the list: what is uploaded after it was made is not in it.
      const auto data = bucket_.store().list(data_prefix(key));
      if (!data) return data.error();
      const auto now = need(key);
      if (!now) return now.error();
      for (const std::string& object :
           find_garbage(*data, now->envelope.sequence, now->envelope.content.object)) {
        if (rehearse == Rehearse::kNo) {
          if (const auto done = removed(object); !done) return done.error();
        }
        collected.push_back(object);
      }
    }
    return collected;
  }

 private:
  Result<std::vector<std::string>> guard_keys() {
    const auto records = bucket_.store().list(kS3Guards);
    if (!records) return records.error();
    std::vector<std::string> keys;
    for (const std::string& record : *records) {
      if (auto key = key_of_record(record)) keys.push_back(*std::move(key));
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  Result<S3Loaded> need(const std::string& key) {
    const auto now = bucket_.load(key);
    if (!now) return now.error();
    if (!*now) return not_under_s3_guard(key);
    return **now;
  }

  Result<void> need_record(const std::string& key) {
    const auto found = bucket_.store().get(record_key(key), limits::kStoreAnswerMax);
    if (!found) return found.error();
    if (!*found) return invalid_request(fmt::format("there is no guard \"{}\" here", key));
    return {};
  }

  Result<void> removed(const std::string& key) {
    const auto done = bucket_.store().remove(key, {}, bucket_.form());
    if (!done) return done.error();
    return {};
  }

  // The record first: a guard that was made in part is then in the list, and named by `check`.
  Result<void> make_fenced(const std::string& key, GuardMode mode,
                           const std::optional<StoredObject>& before) {
    const auto old = bucket_.record(key);
    if (!old) return old.error();
    if (const auto noted = bucket_.change_record(
            key,
            [&](S3Record& record) {
              record.since = now_seconds();
              record.audit.insert(record.audit.begin(), audit_line("protect", key, ""));
            });
        !noted)
      return noted.error();
    S3Envelope made{.key = key};
    made.policy.mode = mode;
    made.token = old->fence;
    // Somewhere else than an earlier life of this object, whose writers must not take a replacement
    // of this one for theirs.
    SystemRandom random;
    made.sequence = old->sequence != 0 ? old->sequence + 1
                                       : (std::uint64_t{1} << 32) + random.below(1ULL << 40);
    made.nonces = {bucket_.new_nonce()};
    if (before) {
      auto placed = bucket_.place(made, before->bytes, front_.options().inline_max);
      if (!placed) return placed.error();
      made.content = *std::move(placed);
    }
    const Precondition condition = before ? Precondition{Precondition::Kind::kMatches, before->etag}
                                          : Precondition{Precondition::Kind::kAbsent};
    const auto done = bucket_.store().put(key, to_bytes(made), condition, bucket_.form());
    if (done && !done->refused) return {};
    const auto now = bucket_.load(key);
    if (now && *now && (*now)->envelope.nonces.back() == made.nonces.front()) return {};
    if (!done) return done.error();
    return Error{Code::kUnavailable,
                 fmt::format("{} was written meanwhile; run the same again", key)};
  }

  Result<void> change_policy(const std::string& key, const std::function<void(S3Policy&)>& change,
                             Rehearse rehearse) {
    if (rehearse == Rehearse::kYes) {
      const auto now = need(key);
      if (!now) return now.error();
      return {};
    }
    S3ChangeOrder order{.key = key};
    order.plan = [&](const S3Envelope& now) -> std::variant<S3Plan, Decision, Error> {
      S3Plan plan{.next = now};
      change(plan.next.policy);
      return plan;
    };
    const auto done = S3Change(bucket_, std::move(order)).execute();
    if (!done) return done.error();
    return {};
  }

  Result<void> change_mode(const std::string& key, GuardMode mode, int percent,
                           std::string_view what, const std::string& reason, Rehearse rehearse) {
    GuardMode before{};
    const auto done = change_policy(
        key,
        [&](S3Policy& policy) {
          before = policy.mode;
          policy.mode = mode;
          policy.percent = percent;
        },
        rehearse);
    if (!done || rehearse == Rehearse::kYes) return done;
    return bucket_.change_record(key, [&](S3Record& record) {
      record.since = now_seconds();
      record.missing_before = record.missing;
      record.would_refuse_before = record.would_refuse;
      record.audit.insert(
          record.audit.begin(),
          audit_line(what, fmt::format("{} -> {}", to_text(before), to_text(mode)), reason));
    });
  }

  Result<void> note(const std::string& key, std::string_view what, const std::string& detail,
                    const std::string& reason) {
    return bucket_.change_record(key, [&](S3Record& record) {
      record.audit.insert(record.audit.begin(), audit_line(what, detail, reason));
    });
  }

  // Nothing: the store keeps conditions.
  Result<std::optional<Problem>> probe_problem() {
    using Found = std::optional<Problem>;
    const auto probed = probe_s3(bucket_.store(), bucket_.new_nonce());
    if (!probed) return probed.error();
    if (!probed->fatal.empty())
      return Found{{"error", "", bucket_.store().name(), probed->fatal,
                    "use a store that keeps conditions, and a bucket without versions where it "
                    "needs that; until then stale writes may pass"}};
    if (probed->form != bucket_.form())
      return Found{{"error", "", bucket_.store().name(),
                    "it takes ETags in another form than when the guard was installed, so that "
                    "every write is refused",
                    "pawl guard install s3"}};
    return Found{};
  }

  Result<void> insist_on_a_sound_store() {
    if (sound_) return {};
    const auto found = probe_problem();
    if (!found) return found.error();
    if (*found)
      return invalid_request(fmt::format("the mode stays as it is: {}: {}. {}", (*found)->object,
                                         (*found)->problem, (*found)->fix));
    sound_ = true;
    return {};
  }

  std::optional<Problem> error_of(const std::string& key) {
    const auto now = bucket_.load(key);
    if (now && *now) return std::nullopt;
    if (now) {
      const auto record = bucket_.record(key);
      if (record && record->sequence != 0) return std::nullopt;  // It was taken out on purpose.
      return Problem{"error", key, key,
                     "the fenced object is gone: it was deleted or overwritten, and every guarded "
                     "write is refused",
                     fmt::format("pawl guard protect s3 {} again, and then pawl guard compact s3 "
                                 "{}, which refuses all tokens older than the live ones",
                                 key, key)};
    }
    return Problem{"error", key, key, now.error().detail,
                   "restore it, or delete it and put it under guard again"};
  }

  static std::string find_bypass(const Result<std::optional<std::string>>& policy,
                                 const std::string& key) {
    if (!policy) return "the policy of the bucket cannot be read: " + policy.error().detail;
    if (*policy && policy_protects(**policy, key)) return "";
    return "no bucket policy keeps others from writing around it";
  }

  S3Front front_;
  S3Bucket& bucket_;
  bool sound_ = false;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_s3_administration(const std::string& dsn) {
  const auto options = parse_s3_dsn(dsn);
  if (!options) return options.error();
  if (const auto store = open_s3_store(*options); !store) return store.error();
  auto administration = std::make_unique<S3Administration>(*options);
  // Finds out how ETags are written here.
  if (const auto found = administration->installed(); !found) return found.error();
  return std::unique_ptr<Administration>(std::move(administration));
}

}  // namespace pawl::guard
