// Looks up the addresses of a host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/socket.h"
#include "pawl/result.h"

namespace pawl::net {

// Every address of the host. Blocks while the name is looked up. kUnavailable, "HOST:PORT: why",
// when none was found. The caller sets what the endpoints need for TLS.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const std::string& host, std::uint16_t port);

// "db1:2379", "[::1]:2379"
[[nodiscard]] std::string address_text(const std::string& host, std::uint16_t port);

}  // namespace pawl::net
