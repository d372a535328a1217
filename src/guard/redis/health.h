// What makes a guard in this Redis weaker than it looks, as INFO, CONFIG and ACL tell it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/redis/connection.h"
#include "pawl/guard.h"

namespace pawl::guard {

using RedisSend = std::function<RedisAnswer(const RedisWords&)>;

// The value of `name:` in the text that INFO answers; empty: there is none.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

// Why acknowledged fences may be lost: persistence, replication, eviction. Each is a clause that
// says what to do. Empty: nothing is known to be wrong.
[[nodiscard]] std::vector<std::string> find_weaknesses(const RedisSend& send);
[[nodiscard]] GuardStrength to_strength(const std::vector<std::string>& weaknesses);

}  // namespace pawl::guard
