// Requests to DynamoDB, signed, one at a time.
#pragma once

#include <boost/json/object.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aws/http.h"
#include "guard/dynamodb/replies.h"
#include "pawl/dynamodb.h"
#include "pawl/result.h"

namespace pawl::guard {

class DynamoStore {
 public:
  virtual ~DynamoStore() = default;
  // For messages.
  [[nodiscard]] virtual std::string name() const = 0;
  //   kUnavailable   nothing happened: not reached, or throttled.
  //   kUnknown       it may have happened.
  //   kDenied, kInvalid   DynamoDB's own words.
  // Failures that a caller may build on are no errors, but a DynamoAnswer with a `failure`.
  [[nodiscard]] virtual Result<DynamoAnswer> call(std::string_view operation,
                                                  const boost::json::object& body) = 0;
};

// kInvalid: the options are wrong.
[[nodiscard]] Result<std::unique_ptr<DynamoStore>> open_dynamo_store(const DynamoOptions& options);
[[nodiscard]] Result<std::unique_ptr<DynamoStore>> open_dynamo_store(
    const DynamoOptions& options, std::unique_ptr<aws::Http> http);

// The answer of a request that must succeed: what fails is an error.
[[nodiscard]] Result<boost::json::object> call_or_fail(DynamoStore& store,
                                                       std::string_view operation,
                                                       const boost::json::object& body);

}  // namespace pawl::guard
