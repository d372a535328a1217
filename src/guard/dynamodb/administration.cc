// The administration of guards in DynamoDB. A change of a policy is a write on the condition that
// the policy is still the one that it was made from.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

#include "base/limits.h"
#include "base/version.h"
#include "guard/dynamodb/access.h"
#include "guard/dynamodb/dsn.h"
#include "guard/dynamodb/front.h"
#include "guard/dynamodb/kind.h"
#include "guard/dynamodb/names.h"
#include "guard/dynamodb/probe.h"
#include "guard/dynamodb/tables.h"
#include "guard/dynamodb/writer.h"
#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr int kChangesMax = 100;
constexpr std::size_t kAuditBytes = 8 * 1024;

std::uint64_t now_seconds() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

std::string time_text(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

Error invalid_request(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

// A guard with its name and its log of changes.
struct Entry {
  std::string name;
  DynamoRecord record = {};
  std::string audit = {};
};

std::vector<std::string> reasons_to_wait(const DynamoPolicy& policy, const DynamoCounts& counts) {
  std::vector<std::string> because;
  const std::string since = time_text(policy.since);
  if (policy.mode == GuardMode::kObserve)
    because.emplace_back("nothing is judged in observe: shadow comes next");
  if (counts.at("missing") > policy.missing_before)
    because.push_back(fmt::format("{} writes came without a token since {}",
                                  counts.at("missing") - policy.missing_before, since));
  if (policy.mode != GuardMode::kEnforce && counts.at("would_refuse") > policy.would_refuse_before)
    because.push_back(fmt::format("{} writes would have been refused since {}",
                                  counts.at("would_refuse") - policy.would_refuse_before, since));
  return because;
}

Status status_of(const Entry& entry, const DynamoCounts& counts) {
  const DynamoPolicy& policy = entry.record.policy;
  Status status;
  status.guard = entry.name;
  status.kind = to_text(policy.scope);
  for (const DynamoItems& items : policy.items) status.tables.push_back(to_pattern(items));
  status.mode = to_text(policy.mode);
  if (policy.mode == GuardMode::kCanary) status.percent = static_cast<int>(policy.percent);
  status.require_token = policy.require_token;
  status.equal = to_text(policy.equal);
  status.max_step = policy.max_step;
  status.floor = policy.floor;
  if (entry.record.fence.token != 0) status.fence = entry.record.fence.token;
  status.replayed = counts.at("replayed");
  status.stale = counts.at("stale");
  status.missing = counts.at("missing");
  status.ahead = counts.at("ahead");
  status.malformed = counts.at("malformed");
  status.would_refuse = counts.at("would_refuse");
  status.because = reasons_to_wait(policy, counts);
  status.ready = status.because.empty();
  return status;
}

class DynamoAdministration final : public Administration {
 public:
  explicit DynamoAdministration(const DynamoOptions& options)
      : front_(open_dynamo_store(options), options),
        store_(front_.store()),
        guards_(options.guards_table) {}

  [[nodiscard]] std::string_view title() const override { return "DynamoDB"; }
  // Nothing runs in DynamoDB, writes do not wait for each other, and items do not say who wrote
  // them.
  [[nodiscard]] bool can(Task task) const override {
    return task != Task::kBlockers && task != Task::kEvict && task != Task::kSightings &&
           task != Task::kScript && task != Task::kCollect;
  }

  Result<std::optional<Installation>> installed() override {
    using Found = std::optional<Installation>;
    const auto item = installation();
    if (!item) return item.error();
    if (!*item) return Found{};
    const auto contract = parse_whole(text_of(**item, "contract", "N"));
    return Found{
        {std::string(text_of(**item, "version", "S")), static_cast<int>(contract.value_or(0))}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (*before && (*before)->contract > kGuardContract)
      return invalid_request(fmt::format(
          "guard {} (contract {}) is installed here; this pawl knows contract {} only. Use a newer "
          "pawl.",
          (*before)->version, (*before)->contract, kGuardContract));
    const Installation offered{std::string(kVersion), kGuardContract};
    if (rehearse == Rehearse::kYes) return offered;
    if (const auto made = create_table(store_, guards_, "name"); !made) return made.error();
    const auto probed = probe_dynamo(store_, guards_, front_.calls().new_nonce());
    if (!probed) return probed.error();
    if (!probed->fatal.empty())
      return invalid_request(fmt::format("{} cannot be guarded: {}. Only the table {} was made.",
                                         store_.name(), probed->fatal, guards_));
    json::object item{{"name", string_value(kDynamoInstallation)},
                      {"version", string_value(offered.version)},
                      {"contract", number_value(static_cast<std::uint64_t>(offered.contract))},
                      {"transactions", {{"BOOL", probed->transactions}}}};
    const auto put =
        call_or_fail(store_, "PutItem", {{"TableName", guards_}, {"Item", std::move(item)}});
    if (!put) return put.error();
    return offered;
  }

  Result<void> uninstall(Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) return {};
    const auto done = call_or_fail(store_, "DeleteTable", {{"TableName", guards_}});
    if (!done) return done.error();
    return {};
  }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    const auto made = to_dynamo_protection(wanted);
    if (!made) return made.error();
    if (wanted.mode != "observe" && wanted.mode != "shadow" && wanted.mode != "enforce")
      return invalid_request("a guard begins in observe, shadow or enforce; canary comes later");
    auto items = find_items(*made);
    if (!items) return items.error();
    if (const auto able = insist_on_transactions(made->scope, *parse_mode(wanted.mode)); !able)
      return able.error();
    const auto others = entries("");
    if (!others) return others.error();
    for (const Entry& other : *others) {
      for (const DynamoItems& each : other.record.policy.items) {
        if (other.name == made->guard && each == *items)
          return invalid_request(
              fmt::format("{} is under guard already: unprotect it first", wanted.table));
        if (overlap(each, *items))
          return invalid_request(fmt::format("{} is under guard {} already, which has {}",
                                             wanted.table, other.name, to_pattern(each)));
      }
    }
    const auto join = [&](DynamoPolicy& policy) -> Result<void> {
      if (policy.scope != made->scope)
        return invalid_request(fmt::format("the guard exists, and is {}, not {}",
                                           to_text(policy.scope), to_text(made->scope)));
      if (policy.scope == DynamoScope::kRow && !policy.items.empty())
        return invalid_request(
            "a guard with a fence for each item is for one table: take another "
            "--guard");
      policy.items.push_back(*items);
      return {};
    };
    const auto begin = [&] {
      return DynamoPolicy{.version = std::string(kVersion),
                          .contract = std::to_string(kGuardContract),
                          .mode = *parse_mode(wanted.mode),
                          .scope = made->scope,
                          .since = now_seconds()};
    };
    const auto done = change(made->guard, {"protect", wanted.table, "", rehearse}, join, begin);
    if (!done) return done.error();
    return made->guard;
  }

  Result<std::string> access_advice(const std::string& guard) override {
    const auto found = entries(guard);
    if (!found) return found.error();
    std::string advice;
    for (const DynamoItems& items : found->front().record.policy.items) {
      if (find_bypass(store_, items.table).empty()) continue;
      const auto table = describe_table(store_, items.table);
      const std::string arn = table && *table ? (*table)->arn : items.table;
      advice += fmt::format(
          "Others with the right to write {} can write around the guard. In Amazon's DynamoDB this "
          "resource policy refuses programs that know nothing of it\n(aws dynamodb "
          "put-resource-policy --resource-arn {} --policy file://policy.json):\n{}",
          items.table, arn, dynamo_table_policy(arn, found->front().record.policy.scope));
      advice += fmt::format(
          "Writers of {} also need GetItem and UpdateItem on {}; give nobody else a right there.\n",
          items.table, guards_);
    }
    return advice;
  }

  Result<void> unprotect(const std::string& pattern, Rehearse rehearse) override {
    const auto all = entries("");
    if (!all) return all.error();
    for (const Entry& entry : *all) {
      for (const DynamoItems& items : entry.record.policy.items) {
        if (to_pattern(items) != pattern) continue;
        return change(entry.name, {"unprotect", pattern, "", rehearse},
                      [&](DynamoPolicy& policy) -> Result<void> {
                        std::erase(policy.items, items);
                        return {};
                      });
      }
    }
    return invalid_request(fmt::format("{} is not under guard", pattern));
  }

  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    const auto found = entries(guard);
    if (!found) return found.error();
    const DynamoPolicy& policy = found->front().record.policy;
    if (!policy.items.empty())
      return invalid_request(
          fmt::format("it guards {}: unprotect that first", to_pattern(policy.items.front())));
    if (rehearse == Rehearse::kYes) return {};
    for (const std::string& name : {guard_item_name(guard), count_item_name(guard)}) {
      const auto done = call_or_fail(
          store_, "DeleteItem", {{"TableName", guards_}, {"Key", {{"name", string_value(name)}}}});
      if (!done) return done.error();
    }
    return {};
  }

  Result<std::vector<Problem>> problems() override {
    const auto all = entries("");
    if (!all) return all.error();
    std::vector<Problem> list;
    if (has_time_to_live(store_, guards_))
      list.push_back({"error", "", guards_, "items of this table expire, and guards with them",
                      "switch TTL off for this table"});
    for (const Entry& entry : *all) {
      for (Problem& problem : errors_of(entry)) list.push_back(std::move(problem));
      for (const DynamoItems& items : entry.record.policy.items) {
        const std::string around = find_bypass(store_, items.table);
        if (!around.empty())
          list.push_back({"warning", entry.name, items.table, around,
                          "the policy that pawl guard protect dynamodb prints; see the how-to"});
      }
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    const auto found = entries(guard);
    if (!found) return found.error();
    std::vector<Status> list;
    for (const Entry& entry : *found) {
      const auto counts = read_counts(store_, guards_, entry.name);
      if (!counts) return counts.error();
      Status status = status_of(entry, *counts);
      status.strength = {Strength::kFenced, ""};
      for (const DynamoItems& items : entry.record.policy.items) {
        std::string around = find_bypass(store_, items.table);
        if (!around.empty())
          status.strength = {Strength::kBestEffort,
                             fmt::format("{}: {}", items.table, std::move(around))};
      }
      weaken_by_problems(status, errors_of(entry));
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
    const auto found = entries(wanted.guard);
    if (!found) return found.error();
    const Entry& entry = found->front();
    if (const auto able = insist_on_transactions(entry.record.policy.scope, *mode); !able)
      return able.error();
    if (canary || *mode == GuardMode::kEnforce) {
      if (const auto errors = errors_of(entry); !errors.empty())
        return invalid_request(fmt::format("the mode stays as it is: {}: {}. {}",
                                           errors.front().object, errors.front().problem,
                                           errors.front().fix));
    }
    return change_mode("mode", wanted, *mode, rehearse);
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (wanted.bare_token) return invalid_request("bare_token is a policy of guards in PostgreSQL");
    const auto equal = wanted.equal ? parse_dynamo_equal(*wanted.equal) : Equal::kAccept;
    if (!equal) return invalid_request("equal is accept, once or refuse");
    if (wanted.max_step &&
        (*wanted.max_step < kDynamoStepMin || *wanted.max_step > limits::kTokenMax))
      return invalid_request(
          fmt::format("max_step is from {} to {}", kDynamoStepMin, limits::kTokenMax));
    const auto set = [&](DynamoPolicy& policy) -> Result<void> {
      if (policy.scope == DynamoScope::kRow && *equal != Equal::kAccept)
        return invalid_request(
            "with a fence for each item equal is accept: writers judge by the policy that they "
            "have seen last, and would not notice the change in time");
      if (wanted.require_token) policy.require_token = *wanted.require_token;
      if (wanted.equal) policy.equal = *equal;
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
    const auto found = entries(guard);
    if (!found) return found.error();
    for (const Entry& entry : *found) {
      const auto done = change_mode("emergency", {entry.name, "shadow", {}, reason},
                                    GuardMode::kShadow, Rehearse::kNo);
      if (!done) return done.error();
    }
    return {};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return front_.calls().fence(resource);
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict) return unable(Task::kEvict);
    const auto answer = front_.calls().advance(resource, token);
    if (!answer) return answer.error();
    if (!answer->text.empty()) return to_error(*answer);
    return answer->max;
  }

  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    return change(
        guard, {"compact", fmt::format("below {}", below), "", rehearse},
        [&](DynamoPolicy& policy) -> Result<void> {
          if (policy.scope == DynamoScope::kRow)
            return invalid_request(
                "a guard with a fence for each item cannot be compacted: the fences are "
                "in the items, and stay there");
          policy.floor = std::max(policy.floor, below);
          return {};
        },
        nullptr, below);
  }

  // The content of an item is its attributes in DynamoDB's JSON.
  Result<Decision> put(const std::string& resource, std::uint64_t token, std::uint64_t operation,
                       const std::string& content) override {
    const auto place = find_item(resource);
    if (!place) return place.error();
    boost::system::error_code failed;
    const json::value parsed = json::parse(content, failed);
    if (failed || !parsed.is_object())
      return invalid_request(
          "the content is the attributes of an item in DynamoDB's JSON: "
          "{\"state\": {\"S\": \"sent\"}}");
    DynamoPut change{place->table};
    for (const auto& field : parsed.get_object())
      change.item.insert_or_assign(field.key(), DynamoValue::json(json::serialize(field.value())));
    for (const auto& field : place->key)
      change.item.insert_or_assign(field.key(), DynamoValue::json(json::serialize(field.value())));
    const auto done =
        front_.write({.token = token}, {resource}, {std::move(change)}, {.operation = operation});
    if (!done) return done.error();
    return done->decision;
  }

  Result<std::optional<std::string>> get(const std::string& resource) override {
    using Found = std::optional<std::string>;
    const auto place = find_item(resource);
    if (!place) return place.error();
    const auto item = front_.calls().read_item(place->table, place->key);
    if (!item) return item.error();
    if (!*item || (*item)->contains("pawl_gone")) return Found{};
    json::object plain;
    for (const auto& field : **item) {
      if (!field.key().starts_with("pawl_")) plain[field.key()] = field.value();
    }
    return Found{json::serialize(plain) + "\n"};
  }

 private:
  struct Audit {
    std::string what;
    std::string detail;
    std::string reason;
    Rehearse rehearse;
  };
  struct Place {
    std::string table;
    json::object key;
  };
  using Mutate = std::function<Result<void>(DynamoPolicy&)>;

  Result<std::optional<json::object>> installation() {
    using Found = std::optional<json::object>;
    const auto answer =
        store_.call("GetItem", {{"TableName", guards_},
                                {"Key", {{"name", string_value(kDynamoInstallation)}}},
                                {"ConsistentRead", true}});
    if (!answer) return answer.error();
    if (answer->failure == DynamoFailure::kNoTable) return Found{};
    if (answer->failure != DynamoFailure::kNone) return invalid_request(answer->message);
    return object_in(answer->body, "Item");
  }

  // Of a guard with a fence for each item.
  Result<Place> find_item(const std::string& resource) {
    const ResourceName name = split_resource(resource);
    const auto found = entries(name.guard);
    if (!found) return found.error();
    const DynamoPolicy& policy = found->front().record.policy;
    if (policy.scope != DynamoScope::kRow || !name.key || policy.items.empty())
      return invalid_request(
          "an item is written and read by command where each has a fence of its "
          "own: GUARD:KEY");
    auto key = key_fields(policy.items.front(), *name.key);
    if (!key) return key.error();
    return Place{policy.items.front().table, *std::move(key)};
  }

  Result<DynamoItems> find_items(const DynamoProtection& wanted) {
    const auto table = describe_table(store_, wanted.pattern.table);
    if (!table) return table.error();
    if (!*table) return invalid_request(fmt::format("there is no table {}", wanted.pattern.table));
    if (wanted.pattern.table == guards_)
      return invalid_request(fmt::format("{} has the guards themselves", guards_));
    DynamoItems items = (*table)->key;
    items.prefix = wanted.pattern.prefix;
    const auto plain = [](const std::string& name) {
      return name.find(' ') == name.npos && name.find('\n') == name.npos;
    };
    const auto known = [](char type) { return type == 'S' || type == 'N'; };
    if (items.hash.empty() || !plain(items.hash) || !plain(items.range) ||
        !known(items.hash_type) || (!items.range.empty() && !known(items.range_type)))
      return invalid_request(
          "the attributes of the key are of type S or N, and their names have no spaces");
    if (!items.prefix.empty() && items.hash_type != 'S')
      return invalid_request("only a partition key of type S has a beginning: name the table");
    return items;
  }

  // A server without transactions can only refuse.
  Result<void> insist_on_transactions(DynamoScope scope, GuardMode mode) {
    const auto item = installation();
    if (!item) return item.error();
    if (!*item) return invalid_request("no guard is installed here: pawl guard install dynamodb");
    const auto* flag = (*item)->if_contains("transactions");
    const bool has = flag != nullptr && flag->is_object() && flag->get_object().contains("BOOL") &&
                     flag->get_object().at("BOOL") == json::value(true);
    if (has || (scope == DynamoScope::kRow && mode == GuardMode::kEnforce)) return {};
    return invalid_request(
        "this server has no TransactWriteItems: only guards with a fence for "
        "each item work here (--key '*'), in mode enforce");
  }

  std::vector<Problem> errors_of(const Entry& entry) {
    std::vector<Problem> errors;
    for (const DynamoItems& items : entry.record.policy.items) {
      const auto table = describe_table(store_, items.table);
      if (!table || !*table) {
        errors.push_back({"error", entry.name, items.table,
                          table ? "the table is gone" : table.error().detail,
                          "unprotect it, or make the table again and compact the guard"});
        continue;
      }
      if ((*table)->replicated)
        errors.push_back({"error", entry.name, items.table,
                          "it is a global table: a fence holds in one region, and a write in "
                          "another overwrites it",
                          "write in one region only, or take a table without replicas"});
      if (entry.record.policy.scope == DynamoScope::kRow && has_time_to_live(store_, items.table))
        errors.push_back({"error", entry.name, items.table,
                          "its items expire, and their fences with them",
                          "switch TTL off, or guard the table without --key"});
    }
    return errors;
  }

  // Of one guard, or of all when `guard` is empty.
  Result<std::vector<Entry>> entries(const std::string& guard) {
    std::vector<std::pair<std::string, json::object>> items;
    if (guard.empty()) {
      auto all = list_guards(store_, guards_);
      if (!all) return all.error();
      items = *std::move(all);
    } else {
      const auto item =
          front_.calls().read_item(guards_, {{"name", string_value(guard_item_name(guard))}});
      if (!item) return item.error();
      if (!*item) return invalid_request(fmt::format("there is no guard \"{}\" here", guard));
      items.emplace_back(guard, **item);
    }
    std::vector<Entry> list;
    for (const auto& [name, item] : items) {
      auto record = read_record(name, item);
      if (!record) return record.error();
      list.push_back({name, *std::move(record), std::string(text_of(item, "audit", "S"))});
    }
    return list;
  }

  // Makes a new policy of the present one and puts it, unless it was changed meanwhile; then again.
  // `begin`: the policy of a guard that is not there yet. `below`: refused if it is too far ahead.
  Result<void> change(const std::string& guard, const Audit& audit, const Mutate& mutate,
                      const std::function<DynamoPolicy()>& begin = nullptr,
                      std::uint64_t below = 0) {
    for (int round = 0; round < kChangesMax; ++round) {
      const auto item =
          front_.calls().read_item(guards_, {{"name", string_value(guard_item_name(guard))}});
      if (!item) return item.error();
      const bool is_new = !*item;
      if (is_new && !begin)
        return invalid_request(fmt::format("there is no guard \"{}\" here", guard));
      Entry entry{guard};
      if (is_new) {
        entry.record.policy = begin();
        // Elsewhere than an earlier guard of this name.
        SystemRandom random;
        entry.record.change = random.below(std::uint64_t{1} << 48);
      } else {
        auto record = read_record(guard, **item);
        if (!record) return record.error();
        entry.record = *std::move(record);
        entry.audit = text_of(**item, "audit", "S");
      }
      const DynamoPolicy& policy = entry.record.policy;
      const std::uint64_t known = std::max(policy.floor, entry.record.fence.token);
      if (below != 0 && known > 0 && below > known && below - known > policy.max_step)
        return invalid_request(
            explain_dynamo_refusal(Verdict::kAhead, guard, {below, {}}, known, policy));
      if (const auto done = mutate(entry.record.policy); !done) return done.error();
      if (audit.rehearse == Rehearse::kYes) return {};
      const auto done = put_policy(entry, audit, is_new);
      if (!done) return done.error();
      if (*done) return {};
    }
    return Error{Code::kUnavailable, "others have changed the guard each time. Try it again"};
  }

  // False: it was changed meanwhile. The fence stays as it is, whatever that is by then.
  Result<bool> put_policy(const Entry& entry, const Audit& audit, bool is_new) {
    std::string line = fmt::format("{} {}: {}{}{}{}", time_text(now_seconds()), audit.what,
                                   audit.detail, audit.reason.empty() ? "" : " (", audit.reason,
                                   audit.reason.empty() ? "" : ")");
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
    DynamoOp op{.kind = DynamoOp::Kind::kUpdate,
                .table = guards_,
                .fields = {{"name", string_value(guard_item_name(entry.name))}}};
    op.names["#p"] = "policy";
    op.names["#a"] = "audit";
    op.names["#pawl_c"] = "pawl_change";
    op.values[":p"] = string_value(to_text(entry.record.policy));
    op.values[":a"] = string_value((line + "\n" + entry.audit).substr(0, kAuditBytes));
    op.values[":next"] = number_value(entry.record.change + 1);
    op.update = "SET #p = :p, #a = :a, #pawl_c = :next";
    if (is_new) {
      op.condition = "attribute_not_exists(#pawl_c)";
    } else {
      add_policy_test(op, entry.record.change);
    }
    const auto answer = store_.call("UpdateItem", to_body(op));
    if (!answer) return answer.error();
    if (answer->failure == DynamoFailure::kNone) return true;
    if (answer->failure == DynamoFailure::kCondition) return false;
    return invalid_request(answer->message);
  }

  Result<void> change_mode(const std::string& what, const ModeChange& wanted, GuardMode mode,
                           Rehearse rehearse) {
    const auto before = entries(wanted.guard);
    if (!before) return before.error();
    const auto counts = read_counts(store_, guards_, wanted.guard);
    if (!counts) return counts.error();
    const std::string percent = wanted.percent ? fmt::format(" {}", *wanted.percent) : "";
    const std::string detail = fmt::format(
        "{} -> {}{}", to_text(before->front().record.policy.mode), to_text(mode), percent);
    return change(wanted.guard, {what, detail, wanted.reason, rehearse},
                  [&](DynamoPolicy& policy) -> Result<void> {
                    policy.mode = mode;
                    policy.percent = static_cast<std::uint64_t>(wanted.percent.value_or(100));
                    policy.since = now_seconds();
                    policy.missing_before = counts->at("missing");
                    policy.would_refuse_before = counts->at("would_refuse");
                    return {};
                  });
  }

  DynamoFront front_;
  DynamoStore& store_;
  const std::string guards_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_dynamo_administration(const std::string& dsn) {
  const auto options = parse_dynamo_dsn(dsn);
  if (!options) return options.error();
  if (const auto store = open_dynamo_store(*options); !store) return store.error();
  return std::unique_ptr<Administration>(std::make_unique<DynamoAdministration>(*options));
}

}  // namespace pawl::guard
