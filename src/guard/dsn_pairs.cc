#include "guard/dsn_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace pawl::guard {

Result<void> read_dsn_pairs(std::string_view text, const SetDsnPair& set) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view value = equals == pair.npos ? "" : pair.substr(equals + 1);
    if (const auto done = set(pair.substr(0, equals), value); !done) return done.error();
  }
  return {};
}

Result<std::uint32_t> parse_dsn_number(std::string_view key, std::string_view value,
                                       std::uint32_t least, std::uint32_t greatest) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || number < least ||
      number > greatest)
    return Error{Code::kInvalid, fmt::format("{} is a number from {} to {}", key, least, greatest)};
  return number;
}

Result<std::uint16_t> parse_dsn_port(std::string_view value) {
  const auto port = parse_dsn_number("port", value, 1, std::numeric_limits<std::uint16_t>::max());
  if (!port) return port.error();
  return static_cast<std::uint16_t>(*port);
}

}  // namespace pawl::guard
