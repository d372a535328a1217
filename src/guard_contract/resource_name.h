// How a resource is named, in every guard and every tool: GUARD or GUARD:KEY. Pure.
//
//   orders          the guard `orders` has one fence
//   accounts:7      the guard `accounts` has a fence for each key; this is that of key 7
//   files:a:b       the first ':' splits: the key is `a:b`
//
// A guard's name has 1 to 200 characters, none of them ':' or a control character. A key has at
// most 512 characters and may be empty. Both are compared byte by byte: where a resource has
// several spellings of one key (7 and 07, upper and lower case), the guard itself turns them into
// one before it compares. A guard may allow less (S3 keys, column widths), never more.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::guard {

inline constexpr std::size_t kGuardNameMax = 200;    // characters
inline constexpr std::size_t kResourceKeyMax = 512;  // characters

struct ResourceName {
  std::string guard;
  std::optional<std::string> key;  // nothing: there was no ':'

  bool operator==(const ResourceName&) const = default;
};

// Splits at the first ':' and checks nothing.
[[nodiscard]] ResourceName split_resource(std::string_view resource);
// The same for names that come from users. kInvalid says which rule the name breaks.
[[nodiscard]] Result<ResourceName> parse_resource(std::string_view resource);
// What parse_resource() reads back.
[[nodiscard]] std::string to_text(const ResourceName& name);

}  // namespace pawl::guard
