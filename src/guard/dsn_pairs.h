// Where a database is, as users spell it: `key=value` pairs with spaces between, such as
// `host=127.0.0.1 port=3306 user=app`. What the keys are is each kind's own. Pure.
//
// An error names a key and never repeats a value, which may be a password.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::guard {

// Calls `set` for each pair, in their order, until it fails. A word without `=` has an empty value.
using SetDsnPair = std::function<Result<void>(std::string_view key, std::string_view value)>;
[[nodiscard]] Result<void> read_dsn_pairs(std::string_view text, const SetDsnPair& set);

// A key whose value is kept as it is.
template <class Dsn>
struct DsnText {
  std::string_view key;
  std::string Dsn::*field;
};

// False: none of them has this key.
template <class Dsn, std::size_t kCount>
bool set_dsn_text(Dsn& dsn, const DsnText<Dsn> (&known)[kCount], std::string_view key,
                  std::string_view value) {
  for (const DsnText<Dsn>& each : known) {
    if (each.key != key) continue;
    dsn.*each.field = value;
    return true;
  }
  return false;
}

// A whole number in decimal digits.
[[nodiscard]] Result<std::uint32_t> parse_dsn_number(std::string_view key, std::string_view value,
                                                     std::uint32_t least, std::uint32_t greatest);
[[nodiscard]] Result<std::uint16_t> parse_dsn_port(std::string_view value);

}  // namespace pawl::guard
