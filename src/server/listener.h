// A listening TCP socket.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "pawl/result.h"

namespace pawl::server {

// "127.0.0.1:7295", "[::1]:7295", "localhost:7295", port 0 for a free one.
struct ListenAddress {
  std::string host;
  std::string port;
};
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

// Whether everything the address stands for is reachable from this machine alone. An error when it
// stands for nothing.
[[nodiscard]] Result<bool> is_loopback(const ListenAddress& address);

struct Listener {
  UniqueFd socket;      // non-blocking
  std::string address;  // as bound, the port filled in
};
// kBusy: another process listens there.
[[nodiscard]] Result<Listener> listen_on(const ListenAddress& address);

// "127.0.0.1:40312" of the other end; "?" when it is unknown.
[[nodiscard]] std::string peer_of(int socket);

}  // namespace pawl::server
