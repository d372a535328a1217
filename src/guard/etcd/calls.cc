#include "guard/etcd/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "guard/etcd/names.h"
#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

using End = EtcdAnswer::End;

// Each round fails only because somebody else's write came in between.
constexpr int kRoundsMax = 200;
constexpr std::size_t kRememberedMax = 1000;

End to_end(Verdict verdict) {
  return static_cast<End>(verdict);
}

EtcdClaim to_claim(const EtcdOrder& order) {
  EtcdClaim claim;
  if (order.token) claim.token = parse_token(*order.token);
  if (order.operation != 0) claim.operation = order.operation;
  return claim;
}

EtcdAnswer unguarded(std::string_view resource) {
  return {.end = End::kUnguarded,
          .text = fmt::format("unknown resource '{}': put it under guard with pawl guard protect "
                              "etcd, or find out how its guard was lost",
                              resource)};
}

EtcdAnswer malformed_token(std::string_view token) {
  std::string shown(token.substr(0, 40));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return {.end = End::kMalformed,
          .text = fmt::format("malformed token '{}'. It is a whole number from 1 to {}, as text "
                              "without sign, space or leading zero",
                              shown, kEtcdTokenMax)};
}

void add_changes(const EtcdOrder& order, etcd::TxnRequest& request) {
  for (const EtcdCondition& condition : order.conditions)
    request.compare.emplace_back(etcd::ModRevisionIs{condition.key, condition.mod_revision});
  for (const EtcdChange& change : order.changes) {
    if (const auto* put = std::get_if<EtcdPut>(&change)) {
      request.success.emplace_back(etcd::PutRequest{put->key, put->value});
    } else {
      const auto& removal = std::get<EtcdDelete>(change);
      request.success.emplace_back(etcd::DeleteRangeRequest{
          removal.key, removal.prefix ? etcd::end_of_prefix(removal.key) : ""});
    }
  }
}

std::vector<etcd::RequestOp> reads_of(const std::vector<std::string>& resources) {
  std::vector<etcd::RequestOp> reads;
  for (const std::string& resource : resources) {
    reads.emplace_back(etcd::RangeRequest{etcd_policy_key(guard_of(resource))});
    reads.emplace_back(etcd::RangeRequest{etcd_fence_key(resource)});
  }
  return reads;
}

void compare_range(const EtcdRange& range, const std::string& fence_key,
                   etcd::TxnRequest& request) {
  if (!range.after.empty())
    request.compare.emplace_back(etcd::ValueIsAfter{fence_key, range.after});
  request.compare.emplace_back(etcd::ValueIsBefore{fence_key, range.before});
  if (range.store) request.success.emplace_back(etcd::PutRequest{fence_key, to_text(*range.store)});
}

void compare_fence(const std::string& fence_key, const std::string& text,
                   etcd::TxnRequest& request) {
  if (text.empty()) {
    request.compare.emplace_back(etcd::CreateRevisionIs{fence_key, 0});
  } else {
    request.compare.emplace_back(etcd::ValueIs{fence_key, text});
  }
}

// The policies of all guards, each once.
void compare_policy(std::string_view guard, const std::string& text, etcd::TxnRequest& request) {
  const std::string key = etcd_policy_key(guard);
  for (const etcd::Compare& other : request.compare) {
    const auto* same = std::get_if<etcd::ValueIs>(&other);
    if (same != nullptr && same->key == key) return;
  }
  request.compare.emplace_back(etcd::ValueIs{key, text});
}

}  // namespace

Verdict verdict_of(EtcdAnswer::End end) {
  PAWL_ASSERT(end <= End::kAhead);
  return static_cast<Verdict>(end);
}

// --- What etcd has -------------------------------------------------------------------------------

Result<EtcdCalls::Views> EtcdCalls::read(const std::vector<std::string>& resources) {
  const auto found = transact_({.success = reads_of(resources)}, EtcdSending::kUntilDecided);
  if (!found) return found.error();
  return to_views(resources, found->answer);
}

Result<EtcdCalls::Views> EtcdCalls::to_views(const std::vector<std::string>& resources,
                                             const etcd::TxnResponse& answer) {
  std::vector<std::string> texts;
  for (const etcd::ResponseOp& op : answer.responses) {
    const auto* range = std::get_if<etcd::RangeResponse>(&op);
    if (range == nullptr) continue;
    texts.push_back(range->kvs.empty() ? "" : range->kvs.front().value);
  }
  if (texts.size() != 2 * resources.size())
    return Error{Code::kInvalid, "etcd answered a transaction without what was to be read"};
  Views views;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    View view{.policy_text = texts[2 * i], .fence_text = texts[2 * i + 1]};
    if (!view.policy_text.empty()) {
      view.policy = parse_etcd_policy(view.policy_text);
      if (!view.policy)
        return Error{Code::kInvalid, fmt::format("the policy of {} in etcd is damaged: it was "
                                                 "written around the guard",
                                                 guard_of(resources[i]))};
      const auto same = check_contract_version(view.policy->contract, view.policy->version);
      if (!same) return same.error();
    }
    if (!view.fence_text.empty()) {
      const auto fence = parse_etcd_fence(view.fence_text);
      if (!fence)
        return Error{Code::kInvalid, fmt::format("the fence of {} in etcd is damaged: it was "
                                                 "written around the guard",
                                                 resources[i])};
      view.fence = *fence;
    }
    remember(guard_of(resources[i]), view);
    remember_token(resources[i], view.fence.token);
    views.push_back(std::move(view));
  }
  return views;
}

void EtcdCalls::remember(std::string_view guard, const View& view) {
  if (!view.policy) {
    policies_.erase(std::string(guard));
    return;
  }
  if (policies_.size() >= kRememberedMax) policies_.clear();
  policies_.insert_or_assign(std::string(guard), Known{view.policy_text, *view.policy});
}

void EtcdCalls::remember_token(const std::string& resource, std::uint64_t token) {
  if (tokens_.size() >= kRememberedMax) tokens_.clear();
  tokens_.insert_or_assign(resource, token);
}

// --- Plans ---------------------------------------------------------------------------------------

std::optional<EtcdAnswer> EtcdCalls::find_fault(const EtcdOrder& order, const Views& views) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string& resource = order.resources[i];
    const auto& policy = views[i].policy;
    const bool is_static = policy && policy->scope == EtcdScope::kStatic;
    if (!policy || is_static == split_resource(resource).key.has_value())
      return unguarded(resource);
    // The only fence of a guard is there from the beginning.
    if (is_static && views[i].fence_text.empty()) return unguarded(resource);
  }
  if (order.token && !parse_token(*order.token)) return malformed_token(*order.token);
  for (const EtcdChange& change : order.changes) {
    bool named = false;
    bool guarded = false;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const EtcdOwner owner = owner_of(guard_of(order.resources[i]), *views[i].policy, change);
      guarded = guarded || owner.kind != EtcdOwner::Kind::kNone;
      named = named || (owner.kind == EtcdOwner::Kind::kOwn && owner.name == order.resources[i]);
    }
    if (named) continue;
    const std::string& first = order.resources.front();
    if (!guarded)
      return EtcdAnswer{.end = End::kUnguarded,
                        .text = fmt::format("the key {} is not under the guard of {}, which the "
                                            "token is for",
                                            key_of(change), first)};
    return EtcdAnswer{.end = End::kMissing,
                      .text = fmt::format("the key {} is not part of {}, which the token is for. A "
                                          "write may name several resources",
                                          key_of(change), first)};
  }
  return std::nullopt;
}

std::optional<EtcdCalls::Plan> EtcdCalls::plan_without_reading(const EtcdOrder& order) {
  const EtcdClaim claim = to_claim(order);
  if (!claim.token) return std::nullopt;
  Plan plan{.answer = {.end = End::kAdmitted, .max = *claim.token}};
  Views assumed;
  for (const std::string& resource : order.resources) {
    const auto known = policies_.find(guard_of(resource));
    if (known == policies_.end()) return std::nullopt;
    const Known& policy = known->second;
    std::optional<std::uint64_t> token;
    if (const auto seen = tokens_.find(resource); seen != tokens_.end()) token = seen->second;
    const auto range = range_of_admission(policy.policy, claim, token);
    if (!range) return std::nullopt;
    compare_policy(guard_of(resource), policy.text, plan.request);
    compare_range(*range, etcd_fence_key(resource), plan.request);
    plan.tokens.emplace_back(resource, *claim.token);
    assumed.push_back({policy.text, policy.policy, "?", {}});
  }
  if (find_fault(order, assumed)) return std::nullopt;
  add_changes(order, plan.request);
  plan.request.failure = reads_of(order.resources);
  return plan;
}

std::variant<EtcdCalls::Plan, EtcdAnswer> EtcdCalls::plan_from(const EtcdOrder& order,
                                                               const Views& views) {
  const EtcdClaim claim = to_claim(order);
  Plan plan{.answer = {.end = End::kAdmitted}};
  std::set<std::string> counted;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string& resource = order.resources[i];
    const EtcdPolicy& policy = *views[i].policy;
    const std::string_view guard = guard_of(resource);
    const EtcdJudgement found = judge_write(policy, claim, views[i].fence);
    const std::string verdict(to_text(found.verdict));
    if (i == 0 || plan.answer.end == End::kAdmitted) {
      plan.answer.end = to_end(found.verdict);
      plan.answer.max = found.verdict == Verdict::kAdmitted ? *claim.token : found.max;
      plan.answer.mode = policy.mode;
    }
    compare_policy(guard, views[i].policy_text, plan.request);
    if (found.verdict == Verdict::kReplayed) {
      count(guard, verdict);
      return EtcdAnswer{.end = End::kReplayed, .max = found.max, .mode = policy.mode};
    }
    if (found.verdict == Verdict::kAdmitted) {
      const std::string& text = views[i].fence_text;
      const auto range = range_of_admission(policy, claim, views[i].fence.token);
      if (range && range->after < text && text < range->before) {
        compare_range(*range, etcd_fence_key(resource), plan.request);
      } else {
        compare_fence(etcd_fence_key(resource), text, plan.request);
        if (found.store)
          plan.request.success.emplace_back(
              etcd::PutRequest{etcd_fence_key(resource), to_text(*found.store)});
      }
      plan.tokens.emplace_back(resource, *claim.token);
      continue;
    }
    const bool refusable = is_refusable(policy, claim, found.verdict);
    if (refusable && enforces(policy, resource)) {
      count(guard, verdict);
      return EtcdAnswer{.end = to_end(found.verdict),
                        .max = found.max,
                        .mode = policy.mode,
                        .text = explain_refusal(found.verdict, resource, claim, found.max, policy)};
    }
    plan.answer.let_through = true;
    counted.insert(etcd_count_key(guard, verdict));
    if (refusable && policy.mode != GuardMode::kObserve)
      counted.insert(etcd_count_key(guard, "would_refuse"));
  }
  for (const std::string& key : counted)
    plan.request.success.emplace_back(etcd::PutRequest{key, ""});
  add_changes(order, plan.request);
  plan.request.failure = reads_of(order.resources);
  return plan;
}

// --- Calls ---------------------------------------------------------------------------------------

Result<EtcdAnswer> EtcdCalls::write(const EtcdOrder& order) {
  PAWL_ASSERT(!order.resources.empty());
  // A number makes the transaction one that takes effect once, however often it is sent.
  const EtcdSending sending =
      order.operation != 0 && order.token ? EtcdSending::kUntilDecided : EtcdSending::kOnce;
  bool resent = false;
  std::optional<Views> views;
  std::optional<Plan> plan = plan_without_reading(order);
  if (!plan) {
    auto found = read(order.resources);
    if (!found) return found.error();
    views = *std::move(found);
  }
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!plan) {
      if (auto fault = find_fault(order, *views)) {
        if (fault->end == End::kMalformed) count(guard_of(order.resources.front()), "malformed");
        return *std::move(fault);
      }
      auto made = plan_from(order, *views);
      if (auto* answer = std::get_if<EtcdAnswer>(&made)) {
        // What an earlier send of this very call has done is admitted, not replayed.
        if (answer->end == End::kReplayed && resent) answer->end = End::kAdmitted;
        return *std::move(answer);
      }
      plan = std::get<Plan>(std::move(made));
    }
    const auto done = transact_(plan->request, sending);
    if (!done) return done.error();
    resent = resent || done->resent;
    if (done->answer.succeeded) {
      for (const auto& [resource, token] : plan->tokens) remember_token(resource, token);
      return plan->answer;
    }
    auto found = to_views(order.resources, done->answer);
    if (!found) return found.error();
    // All that was compared of the guards is as it was judged, so it was the caller's.
    if (views && *views == *found && !order.conditions.empty())
      return EtcdAnswer{.end = End::kUnmet, .max = plan->answer.max, .mode = plan->answer.mode};
    views = *std::move(found);
    plan.reset();
  }
  return Error{Code::kUnavailable,
               "other writers were faster each time; nothing happened. Try it again"};
}

Result<EtcdAnswer> EtcdCalls::advance(const std::string& resource, std::uint64_t token) {
  const EtcdOrder order{.resources = {resource}, .token = std::to_string(token)};
  const std::string key = etcd_fence_key(resource);
  const auto known = policies_.find(guard_of(resource));
  etcd::TxnRequest request{.failure = reads_of(order.resources)};
  std::uint64_t floor = 0;
  std::optional<EtcdRange> range;
  if (known != policies_.end()) range = range_of_advance(known->second.policy, token);
  if (range) {
    floor = known->second.policy.floor;
    compare_policy(guard_of(resource), known->second.text, request);
    request.success.emplace_back(etcd::RangeRequest{key});
    compare_range(*range, key, request);
  }
  for (int round = 0; round < kRoundsMax; ++round) {
    std::optional<Views> views;
    if (request.compare.empty()) {
      auto found = read(order.resources);
      if (!found) return found.error();
      views = *std::move(found);
    } else {
      const auto done = transact_(request, EtcdSending::kUntilDecided);
      if (!done) return done.error();
      if (done->answer.succeeded) {
        remember_token(resource, token);
        EtcdFence before;
        const auto* old = std::get_if<etcd::RangeResponse>(&done->answer.responses.front());
        if (old != nullptr && !old->kvs.empty())
          before = parse_etcd_fence(old->kvs.front().value).value_or(EtcdFence{});
        return EtcdAnswer{.end = End::kAdmitted, .max = std::max(before.token, floor)};
      }
      auto found = to_views(order.resources, done->answer);
      if (!found) return found.error();
      views = *std::move(found);
    }
    if (auto fault = find_fault(order, *views)) {
      if (fault->end == End::kMalformed) count(guard_of(resource), "malformed");
      return *std::move(fault);
    }
    const View& view = views->front();
    const EtcdJudgement judged = judge_token(*view.policy, token, view.fence);
    if (judged.verdict != Verdict::kAdmitted)
      return EtcdAnswer{
          .end = to_end(judged.verdict),
          .max = judged.max,
          .mode = view.policy->mode,
          .text = explain_refusal(judged.verdict, resource, {token, {}}, judged.max, *view.policy)};
    if (!judged.store) return EtcdAnswer{.end = End::kAdmitted, .max = judged.max};
    floor = view.policy->floor;
    request.compare.clear();
    request.success.clear();
    compare_policy(guard_of(resource), view.policy_text, request);
    compare_fence(key, view.fence_text, request);
    request.success.emplace_back(etcd::RangeRequest{key});
    request.success.emplace_back(etcd::PutRequest{key, to_text(*judged.store)});
  }
  return Error{Code::kUnavailable,
               "other writers were faster each time; nothing happened. Try it again"};
}

Result<EtcdAnswer> EtcdCalls::check(const std::string& resource, std::uint64_t token) {
  const EtcdOrder order{.resources = {resource}, .token = std::to_string(token)};
  const auto views = read(order.resources);
  if (!views) return views.error();
  if (auto fault = find_fault(order, *views)) return *std::move(fault);
  const View& view = views->front();
  const EtcdJudgement judged = judge_token(*view.policy, token, view.fence);
  return EtcdAnswer{
      .end = to_end(judged.verdict),
      .max = judged.max,
      .mode = view.policy->mode,
      .let_through = judged.verdict != Verdict::kAdmitted && !enforces(*view.policy, resource)};
}

Result<std::optional<std::uint64_t>> EtcdCalls::fence(const std::string& resource) {
  const auto views = read({resource});
  if (!views) return views.error();
  if (const auto fault = find_fault({.resources = {resource}}, *views))
    return Error{Code::kInvalid, fault->text};
  const std::uint64_t max = std::max(views->front().fence.token, views->front().policy->floor);
  return max == 0 ? std::optional<std::uint64_t>{} : max;
}

// For people: that one is lost now and then with a connection does no harm, that one is counted
// twice would.
void EtcdCalls::count(std::string_view guard, std::string_view what) {
  static_cast<void>(transact_({.success = {etcd::PutRequest{etcd_count_key(guard, what), ""}}},
                              EtcdSending::kOnce));
}

}  // namespace pawl::guard
