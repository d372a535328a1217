#include "guard/dynamodb/replies.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "guard/dynamodb/limits.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

std::string text_in(const json::object& body, std::string_view name) {
  const auto* value = body.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::vector<DynamoReason> reasons_of(const json::object& body) {
  std::vector<DynamoReason> reasons;
  const auto* list = body.if_contains("CancellationReasons");
  if (list == nullptr || !list->is_array()) return reasons;
  for (const json::value& each : list->get_array()) {
    DynamoReason reason{"None"};
    if (const auto* object = each.if_object()) {
      reason = {text_in(*object, "Code"), printable(text_in(*object, "Message")),
                object_in(*object, "Item")};
      if (reason.code.empty()) reason.code = "None";
    }
    reasons.push_back(std::move(reason));
    if (reasons.size() > limits::kDynamoTransactMax) break;
  }
  return reasons;
}

std::optional<DynamoFailure> failure_of(std::string_view type) {
  if (type == "ConditionalCheckFailedException") return DynamoFailure::kCondition;
  if (type == "TransactionCanceledException") return DynamoFailure::kCancelled;
  if (is_one_of(type,
                {"ResourceNotFoundException", "PolicyNotFoundException", "TableNotFoundException"}))
    return DynamoFailure::kNoTable;
  if (type == "ResourceInUseException") return DynamoFailure::kExists;
  if (type == "UnknownOperationException") return DynamoFailure::kNoOperation;
  return std::nullopt;
}

}  // namespace

std::optional<json::object> object_in(const json::object& body, std::string_view name) {
  const auto* value = body.if_contains(name);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  return value->get_object();
}

Result<DynamoAnswer> read_dynamo_answer(int status, std::string_view bytes) {
  boost::system::error_code failed;
  json::parse_options options;
  options.max_depth = limits::kDynamoDepthMax;
  const json::value parsed = json::parse({bytes.data(), bytes.size()}, failed, {}, options);
  const auto* body = failed ? nullptr : parsed.if_object();
  DynamoAnswer answer;
  if (status == 200) {
    if (body == nullptr) return Error{Code::kUnknown, "DynamoDB answered 200 without JSON"};
    answer.body = *body;
    return answer;
  }
  std::string type = body == nullptr ? "" : text_in(*body, "__type");
  if (const std::size_t mark = type.find('#'); mark != type.npos) type.erase(0, mark + 1);
  std::string message = body == nullptr ? "" : text_in(*body, "message");
  if (message.empty() && body != nullptr) message = text_in(*body, "Message");
  const std::string text =
      fmt::format("DynamoDB answered {} {}: {}", status, printable(type),
                  printable(message.empty() ? "no message" : message.substr(0, 1000)));
  // Nothing says whether what was asked for has happened all the same.
  if (status >= 500 || status < 400) return Error{Code::kUnknown, text};
  if (const auto failure = failure_of(type)) {
    answer.failure = *failure;
    answer.message = text;
    answer.item = object_in(*body, "Item");
    answer.reasons = reasons_of(*body);
    return answer;
  }
  if (is_one_of(type,
                {"ProvisionedThroughputExceededException", "ThrottlingException",
                 "RequestLimitExceeded", "LimitExceededException", "TransactionConflictException",
                 "TransactionInProgressException", "ThrottledException"}) ||
      status == 429)
    return Error{Code::kUnavailable, text};
  if (is_one_of(type, {"AccessDeniedException", "UnrecognizedClientException",
                       "InvalidSignatureException", "MissingAuthenticationTokenException",
                       "MissingAuthenticationToken", "ExpiredTokenException",
                       "IncompleteSignatureException"}) ||
      status == 401 || status == 403)
    return Error{Code::kDenied, text};
  return Error{Code::kInvalid, text};
}

}  // namespace pawl::guard
