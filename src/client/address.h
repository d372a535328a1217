// Where pawld listens, as people write it: "db1:7295,db2", "127.0.0.1", "[::1]:7295".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::client {

inline constexpr std::uint16_t kDefaultPort = 7295;

struct Address {
  std::string host;  // without brackets
  std::uint16_t port = kDefaultPort;
  bool operator==(const Address&) const = default;
};

// One or more, separated by commas; spaces around them do not matter. kInvalid says what was expected.
[[nodiscard]] Result<std::vector<Address>> parse_addresses(std::string_view list);
[[nodiscard]] std::string to_text(const Address& address);

}  // namespace pawl::client
