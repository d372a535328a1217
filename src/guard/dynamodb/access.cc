#include "guard/dynamodb/access.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "guard/dynamodb/expressions.h"
#include "guard/dynamodb/names.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr std::string_view kNever = "PawlGuardNever";
constexpr std::string_view kUnfenced = "PawlGuardUnfenced";

std::string member(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

const json::array* members(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

void read_key(const json::object& table, DynamoItems& key) {
  const auto* schema = members(table, "KeySchema");
  const auto* types = members(table, "AttributeDefinitions");
  if (schema == nullptr || types == nullptr) return;
  for (const json::value& each : *schema) {
    if (!each.is_object()) continue;
    const std::string name = member(each.get_object(), "AttributeName");
    const bool hash = member(each.get_object(), "KeyType") == "HASH";
    (hash ? key.hash : key.range) = name;
    for (const json::value& type : *types) {
      if (!type.is_object() || member(type.get_object(), "AttributeName") != name) continue;
      const std::string letter = member(type.get_object(), "AttributeType");
      (hash ? key.hash_type : key.range_type) = letter.empty() ? '?' : letter.front();
    }
  }
}

}  // namespace

std::string dynamo_table_policy(std::string_view arn, DynamoScope scope) {
  const std::string_view condition =
      scope == DynamoScope::kRow
          ? R"("ForAllValues:StringNotEquals": {"dynamodb:Attributes": ["pawl_token"]})"
          : R"("StringNotEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"})";
  const std::string_view never = scope == DynamoScope::kRow
                                     ? R"("dynamodb:BatchWriteItem", "dynamodb:DeleteItem",)"
                                     : R"("dynamodb:BatchWriteItem",)";
  const std::string_view fenced =
      scope == DynamoScope::kRow
          ? R"("dynamodb:PutItem", "dynamodb:UpdateItem")"
          : R"("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")";
  return fmt::format(R"({{
  "Version": "2012-10-17",
  "Statement": [
    {{
      "Sid": "{}",
      "Effect": "Deny",
      "Principal": "*",
      "Action": [
        {}
        "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:PartiQLDelete"
      ],
      "Resource": "{}"
    }},
    {{
      "Sid": "{}",
      "Effect": "Deny",
      "Principal": "*",
      "Action": [{}],
      "Resource": "{}",
      "Condition": {{{}}}
    }}
  ]
}}
)",
                     kNever, never, arn, kUnfenced, fenced, arn, condition);
}

bool policy_refuses_others(std::string_view policy) {
  boost::system::error_code failed;
  const json::value parsed = json::parse({policy.data(), policy.size()}, failed);
  if (failed || !parsed.is_object()) return false;
  const auto* statements = members(parsed.get_object(), "Statement");
  if (statements == nullptr) return false;
  std::set<std::string> found;
  for (const json::value& each : *statements) {
    if (each.is_object() && member(each.get_object(), "Effect") == "Deny")
      found.insert(member(each.get_object(), "Sid"));
  }
  return found.contains(std::string(kNever)) && found.contains(std::string(kUnfenced));
}

Result<std::optional<DynamoTable>> describe_table(DynamoStore& store, const std::string& table) {
  using Found = std::optional<DynamoTable>;
  const auto answer = store.call("DescribeTable", {{"TableName", table}});
  if (!answer) return answer.error();
  if (answer->failure == DynamoFailure::kNoTable) return Found{};
  if (answer->failure != DynamoFailure::kNone) return Error{Code::kInvalid, answer->message};
  const auto described = object_in(answer->body, "Table");
  if (!described) return Error{Code::kInvalid, "DynamoDB described no table"};
  DynamoTable found{member(*described, "TableArn"), member(*described, "TableStatus"), {table}};
  read_key(*described, found.key);
  const auto* replicas = members(*described, "Replicas");
  found.replicated = replicas != nullptr && !replicas->empty();
  return Found{std::move(found)};
}

bool has_time_to_live(DynamoStore& store, const std::string& table) {
  const auto answer = store.call("DescribeTimeToLive", {{"TableName", table}});
  if (!answer || answer->failure != DynamoFailure::kNone) return false;
  const auto described = object_in(answer->body, "TimeToLiveDescription");
  if (!described) return false;
  const std::string status = member(*described, "TimeToLiveStatus");
  return status == "ENABLED" || status == "ENABLING";
}

std::string find_bypass(DynamoStore& store, const std::string& table) {
  const auto described = describe_table(store, table);
  if (!described) return "the table cannot be described: " + described.error().detail;
  if (!*described) return "there is no such table";
  const auto answer = store.call("GetResourcePolicy", {{"ResourceArn", (*described)->arn}});
  if (!answer) return "its resource policy cannot be read: " + answer.error().detail;
  if (answer->failure == DynamoFailure::kNoOperation)
    return "this server has no resource policies, so that others can write around the guard";
  if (answer->failure == DynamoFailure::kNone &&
      policy_refuses_others(member(answer->body, "Policy")))
    return "";
  return "no resource policy keeps others from writing around the guard";
}

Result<std::vector<std::pair<std::string, json::object>>> list_guards(
    DynamoStore& store, const std::string& guards_table) {
  std::vector<std::pair<std::string, json::object>> guards;
  json::object request{
      {"TableName", guards_table},
      {"ConsistentRead", true},
      {"FilterExpression", "begins_with(#n, :guard)"},
      {"ExpressionAttributeNames", {{"#n", "name"}}},
      {"ExpressionAttributeValues", {{":guard", string_value(kDynamoGuardPrefix)}}}};
  while (true) {
    const auto page = call_or_fail(store, "Scan", request);
    if (!page) return page.error();
    if (const auto* items = members(*page, "Items")) {
      for (const json::value& each : *items) {
        if (!each.is_object()) continue;
        const std::string_view name = text_of(each.get_object(), "name", "S");
        if (name.starts_with(kDynamoGuardPrefix))
          guards.emplace_back(name.substr(kDynamoGuardPrefix.size()), each.get_object());
      }
    }
    const auto next = object_in(*page, "LastEvaluatedKey");
    if (!next) break;
    request["ExclusiveStartKey"] = *next;
  }
  std::sort(guards.begin(), guards.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return guards;
}

Result<std::vector<std::string>> guarded_tables(DynamoStore& store,
                                                const std::string& guards_table) {
  const auto guards = list_guards(store, guards_table);
  if (!guards) return guards.error();
  std::set<std::string> tables;
  for (const auto& [name, item] : *guards) {
    const auto policy = parse_dynamo_policy(text_of(item, "policy", "S"));
    if (!policy) continue;
    for (const DynamoItems& items : policy->items) tables.insert(items.table);
  }
  return std::vector<std::string>(tables.begin(), tables.end());
}

}  // namespace pawl::guard
