// The address of pawld as text: "db1:7295,db2", "127.0.0.1", "[::1]:7295", "tls://db1:7295".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::client {

inline constexpr std::uint16_t kDefaultPort = 7295;

struct Address {
  std::string host;  // without brackets
  std::uint16_t port = kDefaultPort;
  bool tls = false;                                        // written tls://host:port
  std::shared_ptr<const tls::ClientContext> context = {};  // set by use_tls()
  bool operator==(const Address&) const = default;
};

// One or more addresses, separated by commas; spaces around them do not matter. Either all use TLS
// or none: with a mixed list an attacker on the network could choose. kInvalid says what was
// expected.
[[nodiscard]] Result<std::vector<Address>> parse_addresses(std::string_view list);
// Loads the TLS context of the addresses that use TLS. kInvalid says which file is wrong, and why.
// Files are read only when one of the addresses needs them.
[[nodiscard]] Result<void> use_tls(std::vector<Address>& addresses, const tls::ClientFiles& files);
[[nodiscard]] std::string to_text(const Address& address);

}  // namespace pawl::client
