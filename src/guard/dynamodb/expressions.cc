#include "guard/dynamodb/expressions.h"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace pawl::guard {
namespace {

namespace json = boost::json;
using OpKind = DynamoOp::Kind;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::toupper(static_cast<unsigned char>(x)) ==
           std::toupper(static_cast<unsigned char>(y));
  });
}

// Where the clause of an update expression begins, behind its word. SET and REMOVE are reserved, so
// that no attribute is called so without a #name.
std::optional<std::size_t> find_clause(std::string_view update, std::string_view word) {
  for (std::size_t at = 0; at < update.size();) {
    if (!is_word(update[at]) && update[at] != '#' && update[at] != ':' && update[at] != '.') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < update.size() && (is_word(update[end]) || update[end] == '.')) ++end;
    if (equals_ignoring_case(update.substr(at, end - at), word)) return end;
    at = end;
  }
  return std::nullopt;
}

void add_clause(std::string& update, std::string_view word, std::string_view actions) {
  if (const auto behind = find_clause(update, word)) {
    update.insert(*behind, fmt::format(" {},", actions));
  } else {
    update += fmt::format("{}{} {}", update.empty() ? "" : " ", word, actions);
  }
}

void add_condition(DynamoOp& op, const std::string& condition) {
  op.condition =
      op.condition.empty() ? condition : fmt::format("({}) AND ({})", op.condition, condition);
}

std::string exact_condition(DynamoOp& op, const DynamoFence& fence) {
  std::string nonce = "attribute_not_exists(#pawl_n)";
  op.names["#pawl_n"] = "pawl_nonce";
  if (!fence.nonce.empty()) {
    op.values[":pawl_isn"] = string_value(fence.nonce);
    nonce = "#pawl_n = :pawl_isn";
  }
  if (fence.token == 0) return "attribute_not_exists(#pawl_t) AND " + nonce;
  op.values[":pawl_is"] = number_value(fence.token);
  op.names["#pawl_o"] = "pawl_op";
  if (!fence.operation) return "#pawl_t = :pawl_is AND attribute_not_exists(#pawl_o) AND " + nonce;
  op.values[":pawl_iso"] = number_value(*fence.operation);
  return "#pawl_t = :pawl_is AND #pawl_o = :pawl_iso AND " + nonce;
}

bool is_reserved(std::string_view text) {
  return text.find("pawl_") != text.npos;
}

}  // namespace

json::object string_value(std::string_view text) {
  return {{"S", text}};
}

json::object number_value(std::uint64_t number) {
  return {{"N", std::to_string(number)}};
}

std::string_view operation_of(OpKind kind) {
  switch (kind) {
    case OpKind::kPut:
      return "PutItem";
    case OpKind::kUpdate:
      return "UpdateItem";
    case OpKind::kDelete:
      return "DeleteItem";
    case OpKind::kCheck:
      break;
  }
  return "TransactWriteItems";
}

json::object to_body(const DynamoOp& op) {
  json::object body;
  body["TableName"] = op.table;
  body[op.kind == OpKind::kPut ? "Item" : "Key"] = op.fields;
  if (!op.update.empty()) body["UpdateExpression"] = op.update;
  if (!op.condition.empty()) body["ConditionExpression"] = op.condition;
  if (!op.names.empty()) body["ExpressionAttributeNames"] = op.names;
  if (!op.values.empty()) body["ExpressionAttributeValues"] = op.values;
  if (op.return_old && !op.condition.empty())
    body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
  return body;
}

json::object to_element(const DynamoOp& op) {
  static constexpr std::string_view kWords[] = {"Put", "Update", "Delete", "ConditionCheck"};
  return {{kWords[static_cast<std::size_t>(op.kind)], to_body(op)}};
}

Result<void> check_reserved(const DynamoOp& op) {
  const Error reserved{Code::kInvalid,
                       "names that begin with pawl_, #pawl_ and :pawl_ are the guard's own"};
  if (is_reserved(op.update) || is_reserved(op.condition)) return reserved;
  for (const auto& [name, attribute] : op.names) {
    if (is_reserved(name) || (attribute.is_string() && is_reserved(attribute.get_string())))
      return reserved;
  }
  for (const auto& field : op.values) {
    if (is_reserved(field.key())) return reserved;
  }
  for (const auto& field : op.fields) {
    if (field.key().starts_with("pawl_")) return reserved;
  }
  return {};
}

void add_test(DynamoOp& op, const DynamoTest& test) {
  op.names["#pawl_t"] = "pawl_token";
  if (test.exact) {
    add_condition(op, exact_condition(op, *test.exact));
    return;
  }
  op.names["#pawl_o"] = "pawl_op";
  op.values[":pawl_from"] = number_value(test.least);
  op.values[":pawl_to"] = number_value(test.token - 1);
  op.values[":pawl_is"] = number_value(test.token);
  std::string condition = test.or_none ? "attribute_not_exists(#pawl_t) OR " : "";
  condition += "#pawl_t BETWEEN :pawl_from AND :pawl_to OR ";
  std::string before = "attribute_not_exists(#pawl_o)";
  if (test.operation != 0) {
    op.values[":pawl_before"] = number_value(test.operation);
    before = "(attribute_not_exists(#pawl_o) OR #pawl_o < :pawl_before)";
  }
  add_condition(op, fmt::format("{}(#pawl_t = :pawl_is AND {})", condition, before));
}

void add_policy_test(DynamoOp& op, std::uint64_t change) {
  op.names["#pawl_c"] = "pawl_change";
  op.values[":pawl_c"] = number_value(change);
  add_condition(op, "#pawl_c = :pawl_c");
}

void add_fence(DynamoOp& op, const DynamoFence& fence, const json::object& key) {
  if (op.kind == OpKind::kDelete) {
    if (fence.token == 0) return;  // There is none that could be lost.
    op.kind = OpKind::kPut;
    op.fields = key;
    op.fields["pawl_gone"] = json::object{{"BOOL", true}};
  }
  if (op.kind == OpKind::kPut) {
    if (fence.token != 0) op.fields["pawl_token"] = number_value(fence.token);
    if (fence.operation) op.fields["pawl_op"] = number_value(*fence.operation);
    op.fields["pawl_nonce"] = string_value(fence.nonce);
    return;
  }
  op.names["#pawl_n"] = "pawl_nonce";
  op.names["#pawl_g"] = "pawl_gone";
  op.values[":pawl_n"] = string_value(fence.nonce);
  std::string set = "#pawl_n = :pawl_n";
  std::string remove = "#pawl_g";
  if (fence.token != 0) {
    op.names["#pawl_t"] = "pawl_token";
    op.values[":pawl_t"] = number_value(fence.token);
    set += ", #pawl_t = :pawl_t";
  }
  if (fence.token != 0 && fence.operation) {
    op.names["#pawl_o"] = "pawl_op";
    op.values[":pawl_o"] = number_value(*fence.operation);
    set += ", #pawl_o = :pawl_o";
  } else if (fence.token != 0) {
    op.names["#pawl_o"] = "pawl_op";
    remove += ", #pawl_o";
  }
  add_clause(op.update, "SET", set);
  add_clause(op.update, "REMOVE", remove);
}

}  // namespace pawl::guard
