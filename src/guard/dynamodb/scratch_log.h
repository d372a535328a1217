// The log of a scratch resource in DynamoDB: the attribute `log` of one item, a list of lines
// "TOKEN VALUE". Pure.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/dynamodb/expressions.h"
#include "guard/scratch.h"

namespace pawl::guard {

// TABLE_NAME is the beginning of all names of guards in one space, so that a session in another
// process finds it.
[[nodiscard]] std::string dynamo_scratch_table(std::string_view resource);
[[nodiscard]] std::string dynamo_scratch_pattern(std::string_view guard);
// Adds a line to the log.
[[nodiscard]] DynamoOp dynamo_log_op(std::string_view resource, std::uint64_t token,
                                     std::string_view value);
[[nodiscard]] boost::json::object dynamo_log_key(std::string_view resource);
[[nodiscard]] std::vector<Effect> dynamo_log_effects(const boost::json::object& item);

// A scratch item without a guard.
inline constexpr std::string_view kDynamoBare = "_bare_";

}  // namespace pawl::guard
