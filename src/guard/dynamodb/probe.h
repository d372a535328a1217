// What a server really does with conditions, tried with items of Pawl's own.
#pragma once

#include <string>

#include "guard/dynamodb/store.h"
#include "pawl/result.h"

namespace pawl::guard {

struct DynamoProbe {
  std::string fatal = {};     // why nothing can be guarded here; empty: it can
  bool transactions = false;  // whether it has TransactWriteItems
};
// `nonce` makes the names of its items.
[[nodiscard]] Result<DynamoProbe> probe_dynamo(DynamoStore& store, const std::string& guards_table,
                                               const std::string& nonce);

}  // namespace pawl::guard
