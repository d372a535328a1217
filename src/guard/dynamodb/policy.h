// What a guard keeps in DynamoDB: its policy, and its fences. Pure. The format is documented in
// docs/reference/dynamodb-format.md.
//
// The table of guards has an item for each of them:
//
//   name         "guard NAME"
//   policy       lines `name=value`, in the order of DynamoPolicy
//   pawl_change  grows with each change of the policy
//   pawl_token, pawl_op, pawl_nonce   the fence, of a guard that has one
//
// A guard with a fence for each item has it in the item itself, in the same three attributes, and
// pawl_gone where the item was deleted.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/scratch.h"
#include "pawl/guard.h"

namespace pawl::guard {

inline constexpr std::uint64_t kDynamoStepMin = std::uint64_t{1} << 41;

// What one fence covers.
enum class DynamoScope : std::uint8_t {
  kStatic,  // all items under the guard
  kRow,     // each item
};
[[nodiscard]] std::string_view to_text(DynamoScope scope);

// Items of one table: all, or those whose partition key begins with `prefix`.
struct DynamoItems {
  std::string table;
  std::string hash = {};  // the attributes of the key, and their types: S or N
  char hash_type = 'S';
  std::string range = {};  // empty: the key has only one attribute
  char range_type = 'S';
  std::string prefix = {};

  bool operator==(const DynamoItems&) const = default;
};

struct DynamoPolicy {
  std::string version = {};
  std::string contract = {};
  GuardMode mode = GuardMode::kObserve;
  std::uint64_t percent = 100;
  bool require_token = false;
  Equal equal = Equal::kAccept;
  std::uint64_t max_step = std::uint64_t{1} << 44;
  std::uint64_t floor = 0;
  DynamoScope scope = DynamoScope::kStatic;
  std::uint64_t since = 0;           // when the mode was set; seconds since 1970
  std::uint64_t missing_before = 0;  // the counters at that time
  std::uint64_t would_refuse_before = 0;
  std::vector<DynamoItems> items = {};

  bool operator==(const DynamoPolicy&) const = default;
};
[[nodiscard]] std::string to_text(const DynamoPolicy& policy);
// Nothing: this is no policy. Unknown lines are skipped.
[[nodiscard]] std::optional<DynamoPolicy> parse_dynamo_policy(std::string_view text);

[[nodiscard]] std::optional<Equal> parse_dynamo_equal(std::string_view text);

struct DynamoFence {
  std::uint64_t token = 0;                      // 0: none yet
  std::optional<std::uint64_t> operation = {};  // nothing: only advanced to. 0: without a number
  std::string nonce = {};                       // of the write that made it what it is

  bool operator==(const DynamoFence&) const = default;
};
// Of an item. Nothing: its attributes are damaged.
[[nodiscard]] std::optional<DynamoFence> read_fence(const boost::json::object& item);

// The text of an attribute of this type ("S", "N"). Empty: there is none.
[[nodiscard]] std::string_view text_of(const boost::json::object& item, std::string_view attribute,
                                       std::string_view type);
// A whole number in decimal digits, without sign and leading zeros, of at most 2^53 − 1; 0 is one.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

}  // namespace pawl::guard
