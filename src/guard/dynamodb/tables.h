// The tables that Pawl makes itself, and the counters in them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "guard/dynamodb/store.h"
#include "pawl/result.h"

namespace pawl::guard {

// A table with a partition key of type S, paid by request; returns once it can be used. It may
// exist.
[[nodiscard]] Result<void> create_table(DynamoStore& store, const std::string& table,
                                        std::string_view key);

// How often a guard has given each verdict; all of them are in the map.
using DynamoCounts = std::map<std::string, std::uint64_t, std::less<>>;
[[nodiscard]] Result<DynamoCounts> read_counts(DynamoStore& store, const std::string& guards_table,
                                               std::string_view guard);

}  // namespace pawl::guard
