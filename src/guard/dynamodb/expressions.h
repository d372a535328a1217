// The requests of guarded writes: what the program asked for, and the condition that the guard
// adds. Pure.
//
//   condition  (#s = :old) AND (attribute_not_exists(#pawl_t) OR #pawl_t BETWEEN :pawl_a AND …)
//   update     SET #pawl_t = :pawl_t, #pawl_o = :pawl_o, state = :new
//
// Names and values that begin with #pawl_ and :pawl_ are the guard's, so that they meet none of the
// program's.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include "guard/dynamodb/policy.h"
#include "guard/dynamodb/rules.h"
#include "pawl/result.h"

namespace pawl::guard {

// A change of one item.
struct DynamoOp {
  enum class Kind : std::uint8_t { kPut, kUpdate, kDelete, kCheck };
  Kind kind = Kind::kPut;
  std::string table = {};
  boost::json::object fields = {};  // the item, or its key
  std::string update = {};
  std::string condition = {};
  boost::json::object names = {};
  boost::json::object values = {};
  bool return_old = false;  // the item as it is, when a condition fails
};

// PutItem, UpdateItem, DeleteItem; nothing in DynamoDB is a kCheck of its own.
[[nodiscard]] std::string_view operation_of(DynamoOp::Kind kind);
// The body of that request.
[[nodiscard]] boost::json::object to_body(const DynamoOp& op);
// The same as an element of TransactItems.
[[nodiscard]] boost::json::object to_element(const DynamoOp& op);

// kInvalid: it uses what is reserved for the guard.
[[nodiscard]] Result<void> check_reserved(const DynamoOp& op);

// Adds a condition on the fence in the same item.
void add_test(DynamoOp& op, const DynamoTest& test);
// Adds that the policy, in the same item, has not changed.
void add_policy_test(DynamoOp& op, std::uint64_t change);
// What the fence becomes, in the same item; a deletion becomes an item with the fence alone.
// `key`: the attributes of the item's key.
void add_fence(DynamoOp& op, const DynamoFence& fence, const boost::json::object& key);

// Of a string, of a number.
[[nodiscard]] boost::json::object string_value(std::string_view text);
[[nodiscard]] boost::json::object number_value(std::uint64_t number);

}  // namespace pawl::guard
