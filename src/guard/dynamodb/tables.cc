#include "guard/dynamodb/tables.h"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "guard/dynamodb/access.h"
#include "guard/dynamodb/expressions.h"
#include "guard/dynamodb/names.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kActiveLimit{3};
constexpr std::chrono::milliseconds kActivePause{100};

}  // namespace

Result<void> create_table(DynamoStore& store, const std::string& table, std::string_view key) {
  json::array definitions;
  definitions.push_back(json::object{{"AttributeName", key}, {"AttributeType", "S"}});
  json::array schema;
  schema.push_back(json::object{{"AttributeName", key}, {"KeyType", "HASH"}});
  const auto made = store.call("CreateTable", {{"TableName", table},
                                               {"BillingMode", "PAY_PER_REQUEST"},
                                               {"AttributeDefinitions", std::move(definitions)},
                                               {"KeySchema", std::move(schema)}});
  if (!made) return made.error();
  if (made->failure != DynamoFailure::kNone && made->failure != DynamoFailure::kExists)
    return Error{Code::kInvalid, made->message};
  const auto until = std::chrono::steady_clock::now() + kActiveLimit;
  while (true) {
    const auto found = describe_table(store, table);
    if (!found) return found.error();
    if (*found && (*found)->status == "ACTIVE") {
      if ((*found)->key.hash == key && (*found)->key.range.empty()) return {};
      return Error{Code::kInvalid, fmt::format("the table {} is there, and is not Pawl's: its key "
                                               "is not {} alone",
                                               table, key)};
    }
    if (std::chrono::steady_clock::now() >= until)
      return Error{
          Code::kUnavailable,
          fmt::format("the table {} is still being made: install again in a minute", table)};
    std::this_thread::sleep_for(kActivePause);
  }
}

Result<DynamoCounts> read_counts(DynamoStore& store, const std::string& guards_table,
                                 std::string_view guard) {
  const auto answer = call_or_fail(store, "GetItem",
                                   {{"TableName", guards_table},
                                    {"Key", {{"name", string_value(count_item_name(guard))}}},
                                    {"ConsistentRead", true}});
  if (!answer) return answer.error();
  const auto item = object_in(*answer, "Item").value_or(json::object{});
  DynamoCounts counts;
  for (const char* what : {"replayed", "stale", "missing", "ahead", "malformed", "would_refuse"})
    counts[what] = parse_whole(text_of(item, what, "N")).value_or(0);
  return counts;
}

}  // namespace pawl::guard
