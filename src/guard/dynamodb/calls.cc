#include "guard/dynamodb/calls.h"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/text.h"
#include "guard/dynamodb/names.h"
#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;
using End = DynamoVerdict::End;
using OpKind = DynamoOp::Kind;

// Each round fails only because somebody else's write came in between.
constexpr int kRoundsMax = 200;
constexpr std::size_t kRememberedMax = 1000;

DynamoClaim to_claim(const DynamoOrder& order) {
  DynamoClaim claim;
  if (order.token) claim.token = parse_token(*order.token);
  if (order.operation != 0) claim.operation = order.operation;
  return claim;
}

DynamoVerdict unguarded(std::string_view resource) {
  return {.end = End::kUnguarded,
          .text = fmt::format("unknown resource '{}': put it under guard with pawl guard protect "
                              "dynamodb, or find out how its guard was lost",
                              resource)};
}

DynamoVerdict malformed_token(std::string_view token) {
  return {.end = End::kMalformed,
          .text = fmt::format("malformed token '{}'. It is a whole number from 1 to {}, as text "
                              "without sign, space or leading zero",
                              printable(token.substr(0, 40)), limits::kTokenMax)};
}

// Which of the tables of this guard an item belongs to.
const DynamoItems* find_items(const DynamoPolicy& policy, const DynamoOp& op) {
  for (const DynamoItems& items : policy.items) {
    if (is_under(items, op.table, op.fields)) return &items;
  }
  return nullptr;
}

// Whether the item of this change is a part of the resource.
bool is_part(const std::string& resource, const DynamoPolicy& policy, const DynamoOp& op) {
  const DynamoItems* items = find_items(policy, op);
  if (items == nullptr) return false;
  if (policy.scope == DynamoScope::kStatic) return true;
  const auto key = key_text(*items, op.fields);
  return key && split_resource(resource).key == *key;
}

Error busy() {
  return {Code::kUnavailable,
          "other writers were faster each time; nothing happened. Try it again"};
}

}  // namespace

Verdict verdict_of(End end) {
  PAWL_ASSERT(end <= End::kAhead);
  return static_cast<Verdict>(end);
}

Result<DynamoRecord> read_record(std::string_view guard, const json::object& item) {
  const auto policy = parse_dynamo_policy(text_of(item, "policy", "S"));
  const auto change = parse_whole(text_of(item, "pawl_change", "N"));
  const auto fence = read_fence(item);
  if (!policy || !change || !fence)
    return Error{Code::kInvalid, fmt::format("the item of the guard {} in DynamoDB is damaged: it "
                                             "was written around the guard",
                                             guard)};
  return DynamoRecord{*policy, *change, *fence};
}

std::string DynamoCalls::new_nonce() {
  return fmt::format("{:016x}{:016x}", random_.next(), random_.next());
}

// --- What DynamoDB has ---------------------------------------------------------------------------

Result<std::optional<DynamoRecord>> DynamoCalls::read_guard(std::string_view guard) {
  using Found = std::optional<DynamoRecord>;
  const auto answer = call_or_fail(store_, "GetItem",
                                   {{"TableName", guards_table_},
                                    {"Key", {{"name", string_value(guard_item_name(guard))}}},
                                    {"ConsistentRead", true}});
  if (!answer) return answer.error();
  const auto item = object_in(*answer, "Item");
  if (!item || item->empty()) {
    records_.erase(std::string(guard));
    return Found{};
  }
  auto record = read_record(guard, *item);
  if (!record) return record.error();
  if (const auto same = check_contract_version(record->policy.contract, record->policy.version);
      !same)
    return same.error();
  if (records_.size() >= kRememberedMax) records_.clear();
  records_.insert_or_assign(std::string(guard), *record);
  return Found{*std::move(record)};
}

Result<std::optional<json::object>> DynamoCalls::read_item(const std::string& table,
                                                           const json::object& key) {
  const auto answer = call_or_fail(store_, "GetItem",
                                   {{"TableName", table}, {"Key", key}, {"ConsistentRead", true}});
  if (!answer) return answer.error();
  auto item = object_in(*answer, "Item");
  if (item && item->empty()) item.reset();
  return item;
}

Result<DynamoFence> DynamoCalls::fence_in(const std::string& resource, const json::object& item) {
  const auto fence = read_fence(item);
  if (!fence)
    return Error{Code::kInvalid, fmt::format("the fence of {} in DynamoDB is damaged: it was "
                                             "written around the guard",
                                             resource)};
  remember(resource, *fence);
  return *fence;
}

Result<DynamoCalls::View> DynamoCalls::read_view(const std::string& resource) {
  const ResourceName name = split_resource(resource);
  auto record = read_guard(name.guard);
  if (!record) return record.error();
  View view{*std::move(record)};
  if (!view.record) return view;
  const DynamoPolicy& policy = view.record->policy;
  if (policy.scope == DynamoScope::kStatic) {
    view.fence = view.record->fence;
    remember(resource, view.fence);
    return view;
  }
  if (!name.key || policy.items.empty()) return view;  // A fault, found later.
  const auto key = key_fields(policy.items.front(), *name.key);
  if (!key) return key.error();
  const auto item = read_item(policy.items.front().table, *key);
  if (!item) return item.error();
  view.absent = !*item;
  const auto fence = fence_in(resource, *item ? **item : json::object{});
  if (!fence) return fence.error();
  view.fence = *fence;
  return view;
}

Result<DynamoCalls::Views> DynamoCalls::read_views(const std::vector<std::string>& resources) {
  Views views;
  for (const std::string& resource : resources) {
    auto view = read_view(resource);
    if (!view) return view.error();
    views.push_back(*std::move(view));
  }
  return views;
}

// Of what was not told with the failure, it is read.
Result<DynamoCalls::Views> DynamoCalls::views_after(const DynamoOrder& order, const Plan& plan,
                                                    const Failed& failed) {
  Views views;
  for (std::size_t i = 0; i < order.resources.size(); ++i) {
    const std::string& resource = order.resources[i];
    const std::string guard(dynamo_guard_of(resource));
    const auto& item = failed.items.at(plan.places[i]);
    const auto known = records_.find(guard);
    const bool is_static =
        known != records_.end() && known->second.policy.scope == DynamoScope::kStatic;
    if (!item) {
      auto view = read_view(resource);
      if (!view) return view.error();
      views.push_back(*std::move(view));
      continue;
    }
    if (is_static) {
      auto record = read_record(guard, *item);
      if (!record) return record.error();
      records_.insert_or_assign(guard, *record);
      remember(resource, record->fence);
      const DynamoFence fence = record->fence;
      views.push_back({*std::move(record), fence});
      continue;
    }
    const auto fence = fence_in(resource, *item);
    if (!fence) return fence.error();
    // Only the policy as it is now refuses, and lets through.
    if (known != records_.end() &&
        judge_dynamo_write(known->second.policy, to_claim(order), *fence).verdict ==
            Verdict::kAdmitted) {
      views.push_back({known->second, *fence});
      continue;
    }
    auto record = read_guard(guard);
    if (!record) return record.error();
    views.push_back({*std::move(record), *fence});
  }
  return views;
}

void DynamoCalls::remember(const std::string& resource, const DynamoFence& fence) {
  if (fences_.size() >= kRememberedMax) fences_.clear();
  fences_.insert_or_assign(resource, fence);
}

// --- Plans ---------------------------------------------------------------------------------------

std::optional<DynamoVerdict> DynamoCalls::find_fault(const DynamoOrder& order, const Views& views) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string& resource = order.resources[i];
    const auto& record = views[i].record;
    if (!record || record->policy.items.empty() ||
        (record->policy.scope == DynamoScope::kStatic) == split_resource(resource).key.has_value())
      return unguarded(resource);
  }
  if (order.token && !parse_token(*order.token)) return malformed_token(*order.token);
  for (const DynamoOp& op : order.ops) {
    bool named = false;
    bool guarded = false;
    for (std::size_t i = 0; i < views.size(); ++i) {
      guarded = guarded || find_items(views[i].record->policy, op) != nullptr;
      named = named || is_part(order.resources[i], views[i].record->policy, op);
    }
    if (named) continue;
    const std::string& first = order.resources.front();
    if (!guarded)
      return DynamoVerdict{.end = End::kUnguarded,
                           .text = fmt::format("an item of {} is not under the guard of {}, which "
                                               "the token is for",
                                               op.table, first)};
    return DynamoVerdict{.end = End::kMissing,
                         .text = fmt::format("an item of {} is not part of {}, which the token is "
                                             "for. A write may name several resources",
                                             op.table, first)};
  }
  return std::nullopt;
}

void DynamoCalls::add_to_plan(Plan& plan, const DynamoOrder& order, const std::string& resource,
                              const DynamoRecord& record, const DynamoTest& test,
                              const DynamoFence& store, bool check_policy) {
  DynamoFence fence = store;
  fence.nonce = order.nonce;
  plan.tests.push_back(test);
  plan.fences.push_back(fence);
  plan.changes.push_back(record.change);
  DynamoOp own{.table = guards_table_,
               .fields = {{"name", string_value(guard_item_name(dynamo_guard_of(resource)))}},
               .return_old = true};
  if (record.policy.scope == DynamoScope::kStatic) {
    own.kind = OpKind::kUpdate;
    add_policy_test(own, record.change);
    add_test(own, test);
    add_fence(own, fence, {});
    plan.places.push_back(plan.ops.size());
    plan.ops.push_back(std::move(own));
    return;
  }
  const DynamoItems& items = record.policy.items.front();
  std::size_t place = 0;
  while (place < plan.ops.size() && !is_part(resource, record.policy, plan.ops[place])) ++place;
  if (place == plan.ops.size()) {  // Named, and not changed: the token must be good all the same.
    const auto key = key_fields(items, split_resource(resource).key.value_or(""));
    DynamoOp check{.kind = OpKind::kCheck, .table = items.table};
    if (key) check.fields = *key;
    plan.ops.push_back(std::move(check));
    plan.fences.back() = {};
  }
  DynamoOp& op = plan.ops[place];
  add_test(op, test);
  if (op.kind != OpKind::kCheck) add_fence(op, fence, only_key(items, op.fields));
  op.return_old = true;
  plan.places.push_back(place);
  if (!check_policy) return;
  own.kind = OpKind::kCheck;
  add_policy_test(own, record.change);
  for (const DynamoOp& other : plan.ops) {
    if (other.table == own.table && other.fields == own.fields) return;
  }
  plan.ops.push_back(std::move(own));
}

std::optional<DynamoCalls::Plan> DynamoCalls::plan_without_reading(const DynamoOrder& order) {
  const DynamoClaim claim = to_claim(order);
  if (!claim.token) return std::nullopt;
  Plan plan{.ops = order.ops, .answer = {.end = End::kAdmitted, .max = *claim.token}};
  Views assumed;
  std::vector<DynamoAdmission> admissions;
  for (const std::string& resource : order.resources) {
    const auto record = records_.find(dynamo_guard_of(resource));
    if (record == records_.end()) return std::nullopt;
    std::optional<DynamoFence> known;
    if (const auto seen = fences_.find(resource); seen != fences_.end()) known = seen->second;
    const auto admission = find_admission(record->second.policy, claim, known);
    if (!admission) return std::nullopt;
    admissions.push_back(*admission);
    assumed.push_back({record->second, known.value_or(DynamoFence{})});
  }
  if (find_fault(order, assumed)) return std::nullopt;
  for (std::size_t i = 0; i < order.resources.size(); ++i)
    add_to_plan(plan, order, order.resources[i], *assumed[i].record, admissions[i].test,
                admissions[i].store, false);
  return plan;
}

std::variant<DynamoCalls::Plan, DynamoVerdict> DynamoCalls::plan_from(const DynamoOrder& order,
                                                                      const Views& views) {
  const DynamoClaim claim = to_claim(order);
  Plan plan{.ops = order.ops, .answer = {.end = End::kAdmitted}};
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string& resource = order.resources[i];
    const DynamoRecord& record = *views[i].record;
    const DynamoPolicy& policy = record.policy;
    const std::string guard(dynamo_guard_of(resource));
    const DynamoFence& fence = views[i].fence;
    const DynamoJudgement found = judge_dynamo_write(policy, claim, fence);
    const std::string verdict(to_text(found.verdict));
    if (i == 0 || plan.answer.end == End::kAdmitted) {
      plan.answer.end = static_cast<End>(found.verdict);
      plan.answer.max = found.verdict == Verdict::kAdmitted ? *claim.token : found.max;
      plan.answer.mode = policy.mode;
    }
    if (found.verdict == Verdict::kReplayed) {
      count(guard, verdict);
      return DynamoVerdict{.end = End::kReplayed, .max = found.max, .mode = policy.mode};
    }
    if (found.verdict == Verdict::kAdmitted) {
      const auto wide = find_admission(policy, claim, fence);
      if (wide && holds(wide->test, fence)) {
        add_to_plan(plan, order, resource, record, wide->test, wide->store, false);
      } else {
        add_to_plan(plan, order, resource, record, {.exact = fence}, found.store.value_or(fence),
                    false);
      }
      continue;
    }
    const bool refusable = is_refusable(policy, claim, found.verdict);
    if (refusable && enforces(policy, resource)) {
      count(guard, verdict);
      return DynamoVerdict{
          .end = static_cast<End>(found.verdict),
          .max = found.max,
          .mode = policy.mode,
          .text = explain_dynamo_refusal(found.verdict, resource, claim, found.max, policy)};
    }
    plan.answer.let_through = true;
    plan.counts.emplace_back(guard, verdict);
    if (refusable && policy.mode != GuardMode::kObserve)
      plan.counts.emplace_back(guard, "would_refuse");
    add_to_plan(plan, order, resource, record, {.exact = fence}, fence, true);
  }
  return plan;
}

// --- Calls ---------------------------------------------------------------------------------------

// True: it was applied.
Result<std::variant<bool, DynamoCalls::Failed>> DynamoCalls::send(const Plan& plan) {
  using Sent = std::variant<bool, Failed>;
  sent_ = plan.tests;
  Failed failed{std::vector<std::optional<json::object>>(plan.ops.size())};
  if (plan.ops.size() == 1) {
    auto answer = store_.call(operation_of(plan.ops.front().kind), to_body(plan.ops.front()));
    if (!answer) return answer.error();
    if (answer->failure == DynamoFailure::kNone) return Sent(true);
    if (answer->failure != DynamoFailure::kCondition) return Error{Code::kInvalid, answer->message};
    failed.items.front() = std::move(answer->item);
    return Sent(std::move(failed));
  }
  json::array elements;
  for (const DynamoOp& op : plan.ops) elements.push_back(to_element(op));
  // Should libcurl send it twice, DynamoDB applies it once.
  auto answer = store_.call("TransactWriteItems", {{"TransactItems", std::move(elements)},
                                                   {"ClientRequestToken", new_nonce()}});
  if (!answer) return answer.error();
  if (answer->failure == DynamoFailure::kNone) return Sent(true);
  if (answer->failure == DynamoFailure::kNoOperation)
    return Error{Code::kInvalid,
                 "this server has no TransactWriteItems, which this write needs: what a mode lets "
                 "through, and changes of several items, are transactions"};
  if (answer->failure != DynamoFailure::kCancelled) return Error{Code::kInvalid, answer->message};
  bool condition = false;
  for (std::size_t i = 0; i < answer->reasons.size() && i < failed.items.size(); ++i) {
    const DynamoReason& reason = answer->reasons[i];
    condition = condition || reason.code == "ConditionalCheckFailed";
    if (reason.code == "ValidationError" || reason.code == "ItemCollectionSizeLimitExceeded")
      return Error{Code::kInvalid, fmt::format("DynamoDB: {}: {}", reason.code, reason.message)};
    failed.items[i] = reason.item;
  }
  // A conflict with another transaction, or throttled.
  if (!condition) return Error{Code::kUnavailable, answer->message};
  return Sent(std::move(failed));
}

Result<DynamoVerdict> DynamoCalls::write(const DynamoOrder& order) {
  PAWL_ASSERT(!order.resources.empty() && !order.ops.empty() && !order.nonce.empty());
  for (const DynamoOp& op : order.ops) {
    if (const auto good = check_reserved(op); !good) return good.error();
  }
  const bool conditions = std::any_of(order.ops.begin(), order.ops.end(),
                                      [](const DynamoOp& op) { return !op.condition.empty(); });
  std::optional<Views> views;
  std::optional<Plan> plan = plan_without_reading(order);
  if (!plan) {
    auto found = read_views(order.resources);
    if (!found) return found.error();
    views = *std::move(found);
  }
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!plan) {
      if (auto fault = find_fault(order, *views)) {
        if (fault->end == End::kMalformed)
          count(dynamo_guard_of(order.resources.front()), "malformed");
        return *std::move(fault);
      }
      auto made = plan_from(order, *views);
      if (auto* answer = std::get_if<DynamoVerdict>(&made)) return *std::move(answer);
      plan = std::get<Plan>(std::move(made));
    }
    auto sent = send(*plan);
    if (!sent) return sent.error();
    if (std::holds_alternative<bool>(*sent)) {
      for (std::size_t i = 0; i < order.resources.size(); ++i) {
        if (plan->fences[i].token != 0) remember(order.resources[i], plan->fences[i]);
      }
      for (const auto& [guard, what] : plan->counts) count(guard, what);
      return plan->answer;
    }
    auto found = views_after(order, *plan, std::get<Failed>(*sent));
    if (!found) return found.error();
    views = *std::move(found);
    // A copy of it was sent before, and has landed.
    if (std::any_of(views->begin(), views->end(),
                    [&](const View& view) { return view.fence.nonce == order.nonce; }))
      return plan->answer;
    bool held = conditions;
    for (std::size_t i = 0; held && i < views->size(); ++i) {
      const View& view = (*views)[i];
      held = view.record && view.record->change == plan->changes[i] &&
             holds(plan->tests[i], view.fence);
    }
    // All that was compared of the guards is as it should be, so it was the caller's.
    if (held)
      return DynamoVerdict{.end = End::kUnmet, .max = plan->answer.max, .mode = plan->answer.mode};
    if (order.unsettled && order.operation == 0)
      return Error{Code::kUnknown, "another write came in between"};
    plan.reset();
  }
  return busy();
}

// The value is the fence before.
Result<std::variant<std::uint64_t, DynamoCalls::Failed>> DynamoCalls::send_advance(
    const std::string& resource, const View& view, const DynamoAdmission& admission) {
  using Sent = std::variant<std::uint64_t, Failed>;
  const DynamoRecord& record = *view.record;
  DynamoOp op{.kind = OpKind::kUpdate, .return_old = true};
  DynamoFence fence = admission.store;
  fence.nonce = new_nonce();
  if (record.policy.scope == DynamoScope::kStatic) {
    op.table = guards_table_;
    op.fields = {{"name", string_value(guard_item_name(dynamo_guard_of(resource)))}};
    add_policy_test(op, record.change);
  } else {
    const DynamoItems& items = record.policy.items.front();
    auto key = key_fields(items, split_resource(resource).key.value_or(""));
    if (!key) return key.error();
    op.table = items.table;
    op.fields = *std::move(key);
    op.names["#pawl_k"] = items.hash;
    op.condition = view.absent ? "attribute_not_exists(#pawl_k)" : "attribute_exists(#pawl_k)";
  }
  add_test(op, admission.test);
  if (view.absent) {  // An item with the fence alone.
    op.kind = OpKind::kDelete;
    add_fence(op, fence, op.fields);
  } else {
    add_fence(op, fence, {});
    // An item that was deleted stays so.
    const std::size_t at = op.update.find("REMOVE #pawl_g, ");
    PAWL_ASSERT(at != std::string::npos);
    op.update.erase(at + 7, 9);
    op.names.erase("#pawl_g");
  }
  json::object body = to_body(op);
  body["ReturnValues"] = "ALL_OLD";
  auto answer = store_.call(operation_of(op.kind), body);
  if (!answer) return answer.error();
  if (answer->failure == DynamoFailure::kCondition) return Sent(Failed{{std::move(answer->item)}});
  if (answer->failure != DynamoFailure::kNone) return Error{Code::kInvalid, answer->message};
  remember(resource, fence);
  const auto before = object_in(answer->body, "Attributes");
  const auto old = before ? read_fence(*before) : DynamoFence{};
  return Sent(old ? old->token : 0);
}

Result<DynamoVerdict> DynamoCalls::advance(const std::string& resource, std::uint64_t token) {
  const DynamoOrder order{.resources = {resource}, .token = std::to_string(token)};
  // Without reading, where the policy is known and the item is likely to be there.
  std::optional<View> view;
  if (const auto known = records_.find(dynamo_guard_of(resource)); known != records_.end())
    view = View{known->second};
  bool fresh = false;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!view) {
      auto found = read_view(resource);
      if (!found) return found.error();
      view = *std::move(found);
      fresh = true;
    }
    if (auto fault = find_fault(order, {*view})) {
      if (fault->end == End::kMalformed) count(dynamo_guard_of(resource), "malformed");
      return *std::move(fault);
    }
    const DynamoPolicy& policy = view->record->policy;
    if (fresh) {
      const DynamoJudgement judged = judge_dynamo_token(policy, token, view->fence);
      if (judged.verdict != Verdict::kAdmitted)
        return DynamoVerdict{.end = static_cast<End>(judged.verdict),
                             .max = judged.max,
                             .mode = policy.mode,
                             .text = explain_dynamo_refusal(judged.verdict, resource, {token, {}},
                                                            judged.max, policy)};
      if (!judged.store) return DynamoVerdict{.end = End::kAdmitted, .max = judged.max};
    }
    if (const auto admission = find_advance(policy, token)) {
      auto sent = send_advance(resource, *view, *admission);
      if (!sent) return sent.error();
      if (const auto* before = std::get_if<std::uint64_t>(&*sent))
        return DynamoVerdict{.end = End::kAdmitted, .max = std::max(*before, policy.floor)};
    }
    view.reset();
  }
  return busy();
}

Result<DynamoVerdict> DynamoCalls::check(const std::string& resource, std::uint64_t token) {
  const DynamoOrder order{.resources = {resource}, .token = std::to_string(token)};
  const auto view = read_view(resource);
  if (!view) return view.error();
  if (auto fault = find_fault(order, {*view})) return *std::move(fault);
  const DynamoPolicy& policy = view->record->policy;
  const DynamoJudgement judged = judge_dynamo_token(policy, token, view->fence);
  return DynamoVerdict{
      .end = static_cast<End>(judged.verdict),
      .max = judged.max,
      .mode = policy.mode,
      .let_through = judged.verdict != Verdict::kAdmitted && !enforces(policy, resource)};
}

Result<std::optional<std::uint64_t>> DynamoCalls::fence(const std::string& resource) {
  const auto view = read_view(resource);
  if (!view) return view.error();
  if (const auto fault = find_fault({.resources = {resource}}, {*view}))
    return Error{Code::kInvalid, fault->text};
  const std::uint64_t max = std::max(view->fence.token, view->record->policy.floor);
  return max == 0 ? std::optional<std::uint64_t>{} : max;
}

Result<DynamoCalls::Landing> DynamoCalls::find_landing(const DynamoOrder& order) {
  const auto views = read_views(order.resources);
  if (!views) return views.error();
  bool unchanged = sent_.size() == views->size();
  for (std::size_t i = 0; i < views->size(); ++i) {
    if ((*views)[i].fence.nonce == order.nonce) return Landing::kApplied;
    unchanged = unchanged && holds(sent_[i], (*views)[i].fence);
  }
  return unchanged ? Landing::kMayRepeat : Landing::kCannotTell;
}

// For people: that one is lost now and then with a connection does no harm.
void DynamoCalls::count(std::string_view guard, std::string_view what) {
  static_cast<void>(
      store_.call("UpdateItem", {{"TableName", guards_table_},
                                 {"Key", {{"name", string_value(count_item_name(guard))}}},
                                 {"UpdateExpression", "ADD #w :one"},
                                 {"ExpressionAttributeNames", {{"#w", what}}},
                                 {"ExpressionAttributeValues", {{":one", number_value(1)}}}}));
}

}  // namespace pawl::guard
