// Limits of requests to DynamoDB and of its answers; what all of Pawl is limited by is in
// base/limits.h.
#pragma once

#include <cstddef>

namespace pawl::limits {

// DynamoDB takes items of 400 KB, and 100 of them, with 4 MB, in a transaction.
inline constexpr std::size_t kDynamoRequestMax = 16 * 1024 * 1024;
inline constexpr std::size_t kDynamoAnswerMax = 64 * 1024 * 1024;
inline constexpr std::size_t kDynamoTransactMax = 100;
// How deep values are nested; DynamoDB itself takes 32 levels.
inline constexpr std::size_t kDynamoDepthMax = 100;

}  // namespace pawl::limits
