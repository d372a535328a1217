// Names in a guarded Redis: of guards, of what is under guard, and of scratch resources. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/administration.h"
#include "pawl/result.h"

namespace pawl::guard {

// The forms of scratch resources.
enum class RedisForm : std::uint8_t {
  kStatic,  // one fence for all keys of a pattern
  kRow,     // a fence for each key
  kBy,      // a fence for each part of keys up to a separator
  kScript,  // as kStatic, by EVAL
};
inline constexpr std::array<std::string_view, 4> kRedisForms{"static", "row", "by", "script"};
[[nodiscard]] Result<RedisForm> parse_redis_form(std::string_view text);

// `orders` of `orders:*`, `{orders}:*` and `orders`. Empty: none can be made of it.
[[nodiscard]] std::string guard_name_of(std::string_view pattern);
// The hash tag of a key or pattern: what the first {…} encloses. Empty: it has none.
[[nodiscard]] std::string_view hash_tag(std::string_view key);
// Whether a key can be of both patterns.
[[nodiscard]] bool overlap(std::string_view one, std::string_view other);

// How a guard is to be made, as pawl_protect takes it.
struct RedisProtection {
  std::string guard;
  std::string kind;
  std::string by;
};
// kInvalid says what is wrong. In a Cluster the pattern needs the guard's hash tag.
[[nodiscard]] Result<RedisProtection> to_redis_protection(const Protection& wanted, bool cluster);

// The key of the log of a scratch resource.
[[nodiscard]] std::string scratch_key(RedisForm form, std::string_view resource);
[[nodiscard]] std::string scratch_bare(std::string_view prefix, std::uint64_t number);
[[nodiscard]] bool is_scratch_bare(std::string_view resource);

}  // namespace pawl::guard
