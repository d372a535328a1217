// Names in a guarded DynamoDB: which items stand under a guard, and how their keys are the names of
// resources. Pure.
//
//   orders            all items of the table orders (what users give to `pawl guard protect`)
//   shop/order#*      those of the table shop whose partition key begins with order#
//
// With a fence for each item the resource is GUARD:KEY. KEY is the partition key without the
// prefix; where the key has a sort key, too, it is PARTITION:SORT, with %3A and %25 for the ':' and
// '%' in PARTITION.
#pragma once

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "guard/administration.h"
#include "guard/dynamodb/policy.h"
#include "pawl/result.h"

namespace pawl::guard {

// The keys in the table of guards.
inline constexpr std::string_view kDynamoInstallation = "installation";
inline constexpr std::string_view kDynamoGuardPrefix = "guard ";
[[nodiscard]] std::string guard_item_name(std::string_view guard);
[[nodiscard]] std::string count_item_name(std::string_view guard);

[[nodiscard]] std::string_view dynamo_guard_of(std::string_view resource);

// TABLE, or TABLE/PREFIX*.
struct DynamoPattern {
  std::string table;
  std::string prefix = {};
};
[[nodiscard]] Result<DynamoPattern> parse_dynamo_pattern(std::string_view text);
[[nodiscard]] std::string to_pattern(const DynamoItems& items);
[[nodiscard]] bool overlap(const DynamoItems& one, const DynamoItems& other);

// How a guard is to be made.
struct DynamoProtection {
  std::string guard;
  DynamoScope scope = DynamoScope::kStatic;
  DynamoPattern pattern;
};
[[nodiscard]] Result<DynamoProtection> to_dynamo_protection(const Protection& wanted);

// The one way to write a number: 7, -0.5; nothing: it is none, or has more than 38 digits. DynamoDB
// takes many spellings of a key for one.
[[nodiscard]] std::optional<std::string> canonical_number(std::string_view text);

// Whether an item (or its key) stands under these.
[[nodiscard]] bool is_under(const DynamoItems& items, std::string_view table,
                            const boost::json::object& fields);
// The KEY of an item in names of resources. kInvalid: the item lacks a part of its key, or the name
// would be too long.
[[nodiscard]] Result<std::string> key_text(const DynamoItems& items,
                                           const boost::json::object& fields);
// The key of the item with this KEY. kInvalid: it is not spelled as key_text() spells it.
[[nodiscard]] Result<boost::json::object> key_fields(const DynamoItems& items,
                                                     std::string_view key);
// The attributes of the key alone.
[[nodiscard]] boost::json::object only_key(const DynamoItems& items,
                                           const boost::json::object& fields);

}  // namespace pawl::guard
