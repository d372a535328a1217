// The administration of guards in etcd, over a connection of its own. A change of a policy is a
// transaction that compares the policy it was made from.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <functional>
#include <utility>

#include "base/assert.h"
#include "guard/etcd/calls.h"
#include "guard/etcd/health.h"
#include "guard/etcd/kind.h"
#include "guard/etcd/names.h"
#include "guard/etcd/writer.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr const char* kEtcdGuardVersion = "0.1.0";
constexpr std::uint64_t kAuditMax = 1000;
constexpr int kChangesMax = 100;
constexpr std::size_t kForgetAtOnce = 50;

std::string time_text(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

// What etcd has of one guard, but for the fences of keys.
struct EtcdRecord {
  std::string name;
  std::string policy_text = {};  // empty: it is gone
  EtcdPolicy policy = {};
  std::optional<EtcdFence> fence = {};  // of a guard with one fence; nothing: lost or damaged
  bool fence_expires = false;
  std::map<std::string, std::uint64_t> counts = {};

  [[nodiscard]] std::uint64_t count(const std::string& what) const {
    const auto found = counts.find(what);
    return found == counts.end() ? 0 : found->second;
  }
};

std::vector<std::string> reasons_to_wait(const EtcdRecord& record) {
  std::vector<std::string> because;
  const EtcdPolicy& policy = record.policy;
  const std::string since = time_text(policy.since);
  if (policy.mode == GuardMode::kObserve)
    because.emplace_back("nothing is judged in observe: shadow comes next");
  if (record.count("missing") > policy.missing_before)
    because.push_back(fmt::format("{} writes came without a token since {}",
                                  record.count("missing") - policy.missing_before, since));
  if (policy.mode != GuardMode::kEnforce &&
      record.count("would_refuse") > policy.would_refuse_before)
    because.push_back(fmt::format("{} writes would have been refused since {}",
                                  record.count("would_refuse") - policy.would_refuse_before,
                                  since));
  return because;
}

Status status_of(const EtcdRecord& record) {
  const EtcdPolicy& policy = record.policy;
  Status status;
  status.guard = record.name;
  status.kind = to_text(policy.scope);
  status.tables = policy.keys;
  status.mode = to_text(policy.mode);
  if (policy.mode == GuardMode::kCanary) status.percent = static_cast<int>(policy.percent);
  status.require_token = policy.require_token;
  status.equal = to_text(policy.equal);
  status.max_step = policy.max_step;
  status.floor = policy.floor;
  if (record.fence && record.fence->token != 0) status.fence = record.fence->token;
  status.replayed = record.count("replayed");
  status.stale = record.count("stale");
  status.missing = record.count("missing");
  status.ahead = record.count("ahead");
  status.malformed = record.count("malformed");
  status.would_refuse = record.count("would_refuse");
  status.because = reasons_to_wait(record);
  status.ready = status.because.empty();
  return status;
}

// What makes a guard refuse everything, or will.
std::vector<Problem> errors_of(const EtcdRecord& record) {
  const std::string again = fmt::format(
      "pawl guard compact etcd {}, which refuses all tokens older than the live ones", record.name);
  if (record.policy_text.empty())
    return {{"error", record.name, etcd_policy_key(record.name),
             "the guard is gone: its key was deleted, and every guarded write is refused",
             "pawl guard protect etcd again, and then " + again}};
  if (record.policy.scope != EtcdScope::kStatic) return {};
  const std::string key = etcd_fence_key(record.name);
  if (!record.fence)
    return {{"error", record.name, key,
             "the fence was deleted or damaged around the guard, and every guarded write is "
             "refused",
             again}};
  if (record.fence_expires)
    return {{"error", record.name, key,
             "the fence has a lease of etcd: it will be deleted, and every guarded write refused",
             again}};
  return {};
}

class EtcdAdministration final : public Administration {
 public:
  explicit EtcdAdministration(std::shared_ptr<EtcdConnection> connection)
      : connection_(std::move(connection)), calls_(connection_->as_function()) {}

  [[nodiscard]] std::string_view title() const override { return "etcd"; }
  // Nothing runs in etcd, transactions do not wait for each other, and keys do not say who wrote
  // them.
  [[nodiscard]] bool can(Task task) const override {
    return task != Task::kBlockers && task != Task::kEvict && task != Task::kSightings &&
           task != Task::kScript;
  }

  Result<std::optional<Installation>> installed() override {
    using Found = std::optional<Installation>;
    const auto mark = connection_->range(std::string(kEtcdMark), "");
    if (!mark) return mark.error();
    if (mark->empty()) return Found{};
    const std::string& text = mark->front().value;
    const std::size_t space = text.find(' ');
    if (space == text.npos) return Found{};
    int contract = 0;
    std::from_chars(text.data() + space + 1, text.data() + text.size(), contract);
    return Found{{text.substr(0, space), contract}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (*before && (*before)->contract > kGuardContract)
      return Error{Code::kInvalid,
                   fmt::format("guard {} (contract {}) is installed here; this pawl knows contract "
                               "{} only. Use a newer pawl.",
                               (*before)->version, (*before)->contract, kGuardContract)};
    const Installation offered{kEtcdGuardVersion, kGuardContract};
    if (rehearse == Rehearse::kYes) return offered;
    const std::string mark = fmt::format("{} {}", kEtcdGuardVersion, kGuardContract);
    if (const auto put = apply({.success = {etcd::PutRequest{std::string(kEtcdMark), mark}}}); !put)
      return put.error();
    if (const auto sound = probe(mark); !sound) return sound.error();
    return offered;
  }

  Result<void> uninstall(Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) return {};
    etcd::TxnRequest request;
    for (const std::string_view prefix : {kEtcdOwn, kEtcdIndex})
      request.success.emplace_back(
          etcd::DeleteRangeRequest{std::string(prefix), etcd::end_of_prefix(prefix)});
    request.success.emplace_back(etcd::DeleteRangeRequest{std::string(kEtcdMark)});
    return apply(request);
  }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    const auto made = to_etcd_protection(wanted);
    if (!made) return made.error();
    if (wanted.mode != "observe" && wanted.mode != "shadow" && wanted.mode != "enforce")
      return Error{Code::kInvalid,
                   "a guard begins in observe, shadow or enforce; canary comes later"};
    const auto others = records("");
    if (!others) return others.error();
    for (const EtcdRecord& other : *others) {
      for (const std::string& pattern : other.policy.keys) {
        if (other.name == made->guard && pattern == wanted.table)
          return Error{Code::kInvalid,
                       fmt::format("{} is under guard already: unprotect it first", wanted.table)};
        if (other.name != made->guard && etcd_patterns_overlap(pattern, wanted.table))
          return Error{Code::kInvalid, fmt::format("{} is under guard {} already, which has {}",
                                                   wanted.table, other.name, pattern)};
      }
    }
    const auto join = [&](EtcdPolicy& policy) -> Result<void> {
      if (policy.scope != made->scope || policy.by != made->by)
        return Error{Code::kInvalid, fmt::format("the guard exists, and is {}, not {}",
                                                 to_text(policy.scope), to_text(made->scope))};
      policy.keys.push_back(wanted.table);
      return {};
    };
    const auto begin = [&] {
      return EtcdPolicy{.version = kEtcdGuardVersion,
                        .contract = std::to_string(kGuardContract),
                        .mode = *parse_mode(wanted.mode),
                        .scope = made->scope,
                        .by = made->by,
                        .since = static_cast<std::uint64_t>(std::time(nullptr))};
    };
    const auto done = change(made->guard, {"protect", wanted.table, "", rehearse}, join, begin);
    if (!done) return done.error();
    return made->guard;
  }

  [[nodiscard]] Result<std::string> access_advice(const std::string& guard) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const auto& patterns = found->front().policy.keys;
    if (describe(find_etcd_access(*connection_, guard, patterns)).empty()) return std::string();
    return etcd_access_commands(guard, patterns);
  }

  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    const auto all = records("");
    if (!all) return all.error();
    for (const EtcdRecord& record : *all) {
      const auto& keys = record.policy.keys;
      if (std::find(keys.begin(), keys.end(), table) == keys.end()) continue;
      return change(record.name, {"unprotect", table, "", rehearse},
                    [&](EtcdPolicy& policy) -> Result<void> {
                      std::erase(policy.keys, table);
                      return {};
                    });
    }
    return Error{Code::kInvalid, fmt::format("{} is not under guard", table)};
  }

  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const EtcdRecord& record = found->front();
    if (!record.policy.keys.empty())
      return Error{Code::kInvalid,
                   fmt::format("it guards {}: unprotect that first", record.policy.keys.front())};
    if (rehearse == Rehearse::kYes) return {};
    const std::string prefix = etcd_prefix_of(guard);
    return apply({.success = {etcd::DeleteRangeRequest{prefix, etcd::end_of_prefix(prefix)},
                              etcd::DeleteRangeRequest{std::string(kEtcdIndex) + guard}}});
  }

  Result<std::vector<Problem>> problems() override {
    const auto names = guard_names();
    if (!names) return names.error();
    std::vector<Problem> list;
    for (const std::string& alarm : find_etcd_alarms(connection_->endpoints()))
      list.push_back({"warning", "", "etcd", alarm,
                      "etcdctl compact, etcdctl defrag, and then etcdctl alarm disarm"});
    for (const std::string& name : *names) {
      const auto record = read_record(name);
      if (!record) return record.error();
      for (Problem& error : errors_of(*record)) list.push_back(std::move(error));
      const std::string around =
          describe(find_etcd_access(*connection_, name, record->policy.keys));
      if (around.empty()) continue;
      for (const std::string& pattern : record->policy.keys)
        list.push_back({"warning", name, pattern, around,
                        "the commands that pawl guard protect etcd prints; see the how-to"});
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const auto weaknesses = find_etcd_weaknesses(connection_->endpoints());
    std::vector<Status> list;
    for (const EtcdRecord& record : *found) {
      Status status = status_of(record);
      auto why = weaknesses;
      if (std::string around =
              describe(find_etcd_access(*connection_, record.name, record.policy.keys));
          !around.empty())
        why.push_back(std::move(around));
      status.strength = to_etcd_strength(why);
      weaken_by_problems(status, errors_of(record));
      list.push_back(std::move(status));
    }
    return list;
  }

  Result<void> set_mode(const ModeChange& wanted, Rehearse rehearse) override {
    const auto mode = parse_mode(wanted.mode);
    if (!mode) return Error{Code::kInvalid, "a mode is observe, shadow, canary or enforce"};
    if ((mode == GuardMode::kCanary) != wanted.percent.has_value() ||
        (wanted.percent && (*wanted.percent < 1 || *wanted.percent > 100)))
      return Error{Code::kInvalid,
                   "canary needs a percentage from 1 to 100; other modes take none"};
    if (mode == GuardMode::kCanary || mode == GuardMode::kEnforce) {
      if (const auto sound = insist_on_no_error(wanted.guard); !sound) return sound.error();
    }
    return change_mode("mode", wanted, *mode, rehearse);
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (wanted.bare_token)
      return Error{Code::kInvalid, "bare_token is a policy of guards in PostgreSQL"};
    std::optional<EtcdEqual> equal;
    if (wanted.equal) {
      equal = parse_etcd_equal(*wanted.equal);
      if (!equal) return Error{Code::kInvalid, "equal is accept, once or refuse"};
    }
    if (wanted.max_step && (*wanted.max_step < kEtcdStepMin || *wanted.max_step > kEtcdTokenMax))
      return Error{Code::kInvalid,
                   fmt::format("max_step is from {} to {}", kEtcdStepMin, kEtcdTokenMax)};
    const auto set = [&](EtcdPolicy& policy) -> Result<void> {
      if (wanted.require_token) policy.require_token = *wanted.require_token;
      if (equal) policy.equal = *equal;
      if (wanted.max_step) policy.max_step = *wanted.max_step;
      return {};
    };
    const std::string detail =
        fmt::format("require_token={} equal={} max_step={}",
                    wanted.require_token ? (*wanted.require_token ? "on" : "off") : "as it is",
                    wanted.equal.value_or("as it is"),
                    wanted.max_step ? std::to_string(*wanted.max_step) : "as it is");
    return change(wanted.guard, {"policy", detail, wanted.reason, rehearse}, set);
  }

  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    auto names = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_names();
      if (!all) return all.error();
      names = *std::move(all);
    }
    for (const std::string& name : names) {
      const auto done =
          change_mode("emergency", {name, "shadow", {}, reason}, GuardMode::kShadow, Rehearse::kNo);
      if (!done) return done.error();
    }
    return {};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return calls_.fence(resource);
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict) return unable(Task::kEvict);
    const auto answer = calls_.advance(resource, token);
    if (!answer) return answer.error();
    if (!answer->text.empty()) return to_error(*answer);
    return answer->max;
  }

  // The floor first: once it stands in the policy, no fence below it matters any more.
  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const EtcdRecord& record = found->front();
    const std::uint64_t known =
        std::max(record.policy.floor, record.fence.value_or(EtcdFence{}).token);
    if (record.policy.scope == EtcdScope::kStatic && known > 0 && below > known &&
        below - known > record.policy.max_step)
      return Error{Code::kInvalid,
                   explain_refusal(Verdict::kAhead, guard, {below, {}}, known, record.policy)};
    const auto raised = change(guard, {"compact", fmt::format("below {}", below), "", rehearse},
                               [&](EtcdPolicy& policy) -> Result<void> {
                                 policy.floor = std::max(policy.floor, below);
                                 return {};
                               });
    if (!raised || rehearse == Rehearse::kYes) return raised;
    if (record.policy.scope == EtcdScope::kStatic) return restore_fence(record);
    return forget_fences(guard, below);
  }

 private:
  struct Audit {
    std::string what;
    std::string detail;
    std::string reason;
    Rehearse rehearse;
  };
  using Mutate = std::function<Result<void>(EtcdPolicy&)>;

  // Without comparisons, or with some that must hold.
  Result<void> apply(const etcd::TxnRequest& request) {
    const auto done = connection_->transact(request, EtcdSending::kUntilDecided);
    if (!done) return done.error();
    if (!done->answer.succeeded)
      return Error{Code::kUnavailable, "somebody else has changed it at the same time"};
    return {};
  }

  // Whether this is an etcd that compares values as bytes: what only looks like one may not.
  Result<void> probe(const std::string& mark) {
    const std::string key(kEtcdMark);
    const etcd::TxnRequest holds{
        .compare = {etcd::ValueIsAfter{key, "!"}, etcd::ValueIsBefore{key, mark + "~"}}};
    const etcd::TxnRequest does_not{.compare = {etcd::ValueIsBefore{key, "!"}}};
    for (const auto& [request, wanted] : {std::pair(holds, true), std::pair(does_not, false)}) {
      const auto asked = connection_->transact(request, EtcdSending::kUntilDecided);
      if (!asked) return asked.error();
      if (asked->answer.succeeded != wanted)
        return Error{Code::kInvalid,
                     "this server does not compare the values of keys as etcd does, so that "
                     "nothing can be guarded here"};
    }
    return {};
  }

  Result<std::vector<std::string>> guard_names() {
    const auto found = connection_->range(std::string(kEtcdIndex), etcd::end_of_prefix(kEtcdIndex));
    if (!found) return found.error();
    std::vector<std::string> names;
    for (const etcd::KeyValue& each : *found) names.push_back(each.key.substr(kEtcdIndex.size()));
    return names;
  }

  Result<EtcdRecord> read_record(const std::string& name) {
    EtcdRecord record{.name = name};
    const auto policy = connection_->range(etcd_policy_key(name), "");
    if (!policy) return policy.error();
    const auto fence = connection_->range(etcd_fence_key(name), "");
    if (!fence) return fence.error();
    if (!fence->empty()) {
      record.fence = parse_etcd_fence(fence->front().value);
      record.fence_expires = fence->front().lease != 0;
    }
    if (policy->empty()) return record;
    const auto parsed = parse_etcd_policy(policy->front().value);
    if (!parsed)
      return Error{Code::kInvalid,
                   fmt::format("{} is damaged: it was written around the guard. Delete it, and "
                               "protect the keys again",
                               etcd_policy_key(name))};
    record.policy_text = policy->front().value;
    record.policy = *parsed;
    const std::string counters = etcd_count_key(name, "");
    const auto counts = connection_->range(counters, etcd::end_of_prefix(counters));
    if (!counts) return counts.error();
    for (const etcd::KeyValue& each : *counts)
      record.counts[each.key.substr(counters.size())] = static_cast<std::uint64_t>(each.version);
    return record;
  }

  // Of one guard, or of all that are there when `guard` is empty.
  Result<std::vector<EtcdRecord>> records(const std::string& guard) {
    auto names = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_names();
      if (!all) return all.error();
      names = *std::move(all);
    }
    std::vector<EtcdRecord> list;
    for (const std::string& name : names) {
      auto record = read_record(name);
      if (!record) return record.error();
      if (!record->policy_text.empty()) {
        list.push_back(*std::move(record));
      } else if (!guard.empty()) {
        return Error{Code::kInvalid, fmt::format("there is no guard \"{}\" here", guard)};
      }
    }
    return list;
  }

  // Makes a new policy of the present one and puts it, unless it was changed meanwhile; then again.
  // `begin`: the policy of a guard that is not there yet.
  Result<void> change(const std::string& guard, const Audit& audit, const Mutate& mutate,
                      const std::function<EtcdPolicy()>& begin = nullptr) {
    for (int round = 0; round < kChangesMax; ++round) {
      auto record = read_record(guard);
      if (!record) return record.error();
      const bool is_new = record->policy_text.empty();
      if (is_new && !begin)
        return Error{Code::kInvalid, fmt::format("there is no guard \"{}\" here", guard)};
      EtcdPolicy policy = is_new ? begin() : record->policy;
      if (const auto done = mutate(policy); !done) return done.error();
      if (audit.rehearse == Rehearse::kYes) return {};
      policy.change += 1;
      const auto done = connection_->transact(to_change(*record, policy, audit, is_new),
                                              EtcdSending::kUntilDecided);
      if (!done) return done.error();
      if (done->answer.succeeded) return {};
      // It was sent twice, and the first time it was applied.
      const auto after = connection_->range(etcd_policy_key(guard), "");
      if (done->resent && after && !after->empty() && after->front().value == to_text(policy))
        return {};
    }
    return Error{Code::kUnavailable, "others have changed the guard each time. Try it again"};
  }

  static etcd::TxnRequest to_change(const EtcdRecord& record, const EtcdPolicy& policy,
                                    const Audit& audit, bool is_new) {
    etcd::TxnRequest request;
    const std::string key = etcd_policy_key(record.name);
    if (is_new) {
      request.compare.emplace_back(etcd::CreateRevisionIs{key, 0});
      request.success.emplace_back(etcd::PutRequest{std::string(kEtcdIndex) + record.name, ""});
      // What is left of a guard that was lost keeps its fence.
      if (policy.scope == EtcdScope::kStatic && !record.fence) {
        request.compare.emplace_back(etcd::CreateRevisionIs{etcd_fence_key(record.name), 0});
        request.success.emplace_back(
            etcd::PutRequest{etcd_fence_key(record.name), first_fence_of(0)});
      }
    } else {
      request.compare.emplace_back(etcd::ValueIs{key, record.policy_text});
    }
    request.success.emplace_back(etcd::PutRequest{key, to_text(policy)});
    request.success.emplace_back(etcd::PutRequest{
        fmt::format("{}audit/{:03}", etcd_prefix_of(record.name), policy.change % kAuditMax),
        fmt::format("change={} at={} what={} detail={} reason={}", policy.change,
                    time_text(static_cast<std::uint64_t>(std::time(nullptr))), audit.what,
                    audit.detail, audit.reason)});
    return request;
  }

  Result<void> change_mode(const std::string& what, const ModeChange& wanted, GuardMode mode,
                           Rehearse rehearse) {
    const auto before = records(wanted.guard);
    if (!before) return before.error();
    const EtcdRecord& record = before->front();
    const std::string percent = wanted.percent ? fmt::format(" {}", *wanted.percent) : "";
    const std::string detail =
        fmt::format("{} -> {}{}", to_text(record.policy.mode), to_text(mode), percent);
    return change(wanted.guard, {what, detail, wanted.reason, rehearse},
                  [&](EtcdPolicy& policy) -> Result<void> {
                    policy.mode = mode;
                    policy.percent = static_cast<std::uint64_t>(wanted.percent.value_or(100));
                    policy.since = static_cast<std::uint64_t>(std::time(nullptr));
                    policy.missing_before = record.count("missing");
                    policy.would_refuse_before = record.count("would_refuse");
                    return {};
                  });
  }

  Result<void> insist_on_no_error(const std::string& guard) {
    const auto found = records(guard);
    if (!found) return found.error();
    const auto errors = errors_of(found->front());
    if (errors.empty()) return {};
    const Problem& first = errors.front();
    return Error{Code::kInvalid, fmt::format("the mode stays as it is: {}: {}. {}", first.object,
                                             first.problem, first.fix)};
  }

  // After a loss, which the floor makes good. Putting it again also takes a lease off it.
  Result<void> restore_fence(const EtcdRecord& record) {
    const std::string key = etcd_fence_key(record.name);
    if (record.fence && !record.fence_expires) return {};
    if (!record.fence) return apply({.success = {etcd::PutRequest{key, first_fence_of(0)}}});
    const std::string text = to_text(*record.fence);
    return apply({.compare = {etcd::ValueIs{key, text}}, .success = {etcd::PutRequest{key, text}}});
  }

  Result<void> forget_fences(const std::string& guard, std::uint64_t below) {
    const std::string prefix = etcd_fence_key(guard) + "/";
    const auto fences = connection_->range(prefix, etcd::end_of_prefix(prefix));
    if (!fences) return fences.error();
    etcd::TxnRequest request;
    for (const etcd::KeyValue& each : *fences) {
      if (each.value >= first_fence_of(below)) continue;
      request.compare.emplace_back(etcd::ValueIs{each.key, each.value});
      request.success.emplace_back(etcd::DeleteRangeRequest{each.key});
      if (request.success.size() < kForgetAtOnce) continue;
      if (const auto done = forget(std::exchange(request, {})); !done) return done.error();
    }
    return forget(request);
  }

  // A fence that has risen meanwhile stays; the next compaction takes the others of this step.
  Result<void> forget(const etcd::TxnRequest& request) {
    if (request.success.empty()) return {};
    const auto done = connection_->transact(request, EtcdSending::kUntilDecided);
    if (!done) return done.error();
    return {};
  }

  const std::shared_ptr<EtcdConnection> connection_;
  EtcdCalls calls_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_etcd_administration(const std::string& dsn) {
  auto connection = connect_etcd(dsn);
  if (!connection) return connection.error();
  return std::unique_ptr<Administration>(
      std::make_unique<EtcdAdministration>(*std::move(connection)));
}

}  // namespace pawl::guard
