// ACL: which users of a Redis may write what is under a guard without calling the guard.
//
// Redis checks the commands inside a function against the rights of its caller, and patterns of
// keys only allow. So no rule makes a user write through the guard alone. What a rule can do is to
// keep all other users from writing these keys: writers have an account of their own, and it may
// call nothing but the guard's functions and ordinary commands on these keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/redis/health.h"

namespace pawl::guard {

// The accounts of writers begin with this: pawl-orders.
inline constexpr std::string_view kWriterPrefix = "pawl-";

struct RedisAccess {
  // That may write around the guard, or erase its fences: every enabled one that could, but for
  // administrators (who may change the rules) other than `default`. Writers must write the keys,
  // and are named only if they may erase everything or replace the functions.
  std::vector<std::string> users;
  std::string unknown = {};  // why it could not be found out
};
[[nodiscard]] RedisAccess find_access(const RedisSend& send, std::string_view guard,
                                      const std::vector<std::string>& patterns);

// The commands that keep the others out, for an administrator to adapt.
[[nodiscard]] std::string access_rules(std::string_view guard,
                                       const std::vector<std::string>& patterns);

}  // namespace pawl::guard
