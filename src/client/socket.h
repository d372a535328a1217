// The TCP connections of the client (net/socket.h), and where they lead to.
#pragma once

#include <vector>

#include "client/address.h"
#include "net/socket.h"
#include "pawl/result.h"

namespace pawl::client {

using net::Endpoint;
using net::error_text;
using net::Socket;

// Every address of every host. Blocks while names are looked up. kUnavailable when none was found.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const std::vector<Address>& addresses);

}  // namespace pawl::client
