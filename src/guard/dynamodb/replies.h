// What DynamoDB answers. Pure.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::guard {

// Failures that a caller may build on.
enum class DynamoFailure : std::uint8_t {
  kNone,
  kCondition,  // of a single request: nothing was written
  kCancelled,  // a transaction: nothing was written; `reasons` say why
  kNoTable,    // also: no such thing
  kExists,
  kNoOperation,  // the server does not know this request
};

// Of one element of a transaction.
struct DynamoReason {
  std::string code;  // None, ConditionalCheckFailed, TransactionConflict, …
  std::string message = {};
  std::optional<boost::json::object> item = {};  // as it is, where that was asked for
};

struct DynamoAnswer {
  DynamoFailure failure = DynamoFailure::kNone;
  boost::json::object body = {};                 // of a success
  std::string message = {};                      // of a failure, for people
  std::optional<boost::json::object> item = {};  // kCondition: as it is, where it was told
  std::vector<DynamoReason> reasons = {};        // kCancelled
};

// An answer with this HTTP status. An error is kUnavailable (throttled), kUnknown (5xx), kDenied or
// kInvalid.
[[nodiscard]] Result<DynamoAnswer> read_dynamo_answer(int status, std::string_view body);

// The attributes below `name`; nothing: there are none.
[[nodiscard]] std::optional<boost::json::object> object_in(const boost::json::object& body,
                                                           std::string_view name);

}  // namespace pawl::guard
