// What keeps others from writing around a guard in DynamoDB: the resource policy of the table.
// Where it is in force, a program that knows nothing of tokens is refused; nothing can demand of one that
// does to send the right condition.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/dynamodb/policy.h"
#include "guard/dynamodb/store.h"
#include "pawl/result.h"

namespace pawl::guard {

// The policy of a table, for an administrator to put there. Pure.
[[nodiscard]] std::string dynamo_table_policy(std::string_view arn, DynamoScope scope);
// Whether a policy has what the above has. Pure.
[[nodiscard]] bool policy_refuses_others(std::string_view policy);

// Why others can write around the guard of this table; empty: they cannot.
[[nodiscard]] std::string find_bypass(DynamoStore& store, const std::string& table);

struct DynamoTable {
  std::string arn;
  std::string status;
  DynamoItems key = {};  // its key; the types may be others than S and N
  bool replicated = false;
};
// Nothing: there is none.
[[nodiscard]] Result<std::optional<DynamoTable>> describe_table(DynamoStore& store,
                                                                const std::string& table);
// Whether items expire.
[[nodiscard]] bool has_time_to_live(DynamoStore& store, const std::string& table);

// The items of all guards, by their names.
[[nodiscard]] Result<std::vector<std::pair<std::string, boost::json::object>>> list_guards(
    DynamoStore& store, const std::string& guards_table);
// The tables that stand under them, each once.
[[nodiscard]] Result<std::vector<std::string>> guarded_tables(DynamoStore& store,
                                                              const std::string& guards_table);

}  // namespace pawl::guard
