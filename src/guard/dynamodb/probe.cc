#include "guard/dynamodb/probe.h"

#include <boost/json/array.hpp>

#include <utility>

#include "base/limits.h"
#include "guard/dynamodb/expressions.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

// A write on the condition that the number in the item is from `least` to `most`.
DynamoOp put_between(const std::string& table, const std::string& name, std::uint64_t least,
                     std::uint64_t most) {
  DynamoOp op{.table = table, .fields = {{"name", string_value(name)}}};
  op.fields["probe"] = number_value(limits::kTokenMax);
  op.condition = "#p BETWEEN :least AND :most";
  op.names["#p"] = "probe";
  op.values[":least"] = number_value(least);
  op.values[":most"] = number_value(most);
  return op;
}

Result<DynamoFailure> try_put(DynamoStore& store, const DynamoOp& op) {
  const auto answer = store.call("PutItem", to_body(op));
  if (!answer) return answer.error();
  return answer->failure;
}

Result<bool> has_transactions(DynamoStore& store, const DynamoOp& good, const DynamoOp& bad) {
  json::array elements;
  elements.push_back(to_element(good));
  elements.push_back(to_element(bad));
  const auto answer = store.call("TransactWriteItems", {{"TransactItems", std::move(elements)}});
  if (!answer) return answer.error();
  return answer->failure == DynamoFailure::kCancelled;
}

}  // namespace

Result<DynamoProbe> probe_dynamo(DynamoStore& store, const std::string& guards_table,
                                 const std::string& nonce) {
  const std::string name = "probe " + nonce;
  const std::uint64_t most = limits::kTokenMax;
  DynamoProbe probe;
  DynamoOp first{.table = guards_table, .fields = {{"name", string_value(name)}}};
  first.fields["probe"] = number_value(most);
  first.condition = "attribute_not_exists(#p)";
  first.names["#p"] = "probe";
  const auto made = try_put(store, first);
  if (!made) return made.error();
  const auto again = try_put(store, first);
  if (!again) return again.error();
  // One less than the greatest token is another number.
  const auto below = try_put(store, put_between(guards_table, name, 0, most - 1));
  if (!below) return below.error();
  const auto equal = try_put(store, put_between(guards_table, name, most, most));
  if (!equal) return equal.error();
  if (*made != DynamoFailure::kNone || *equal != DynamoFailure::kNone)
    probe.fatal = "it refuses writes whose condition holds";
  if (*again != DynamoFailure::kCondition) probe.fatal = "it ignores conditions, and overwrites";
  if (*below != DynamoFailure::kCondition)
    probe.fatal = "it does not compare numbers exactly up to 2^53 - 1";
  if (probe.fatal.empty()) {
    const auto whole = has_transactions(store, put_between(guards_table, name + " 2", 0, most),
                                        put_between(guards_table, name, 0, most - 1));
    if (!whole) return whole.error();
    probe.transactions = *whole;
  }
  static_cast<void>(store.call(
      "DeleteItem", {{"TableName", guards_table}, {"Key", {{"name", string_value(name)}}}}));
  return probe;
}

}  // namespace pawl::guard
