#include "server/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace pawl::server {
namespace {

constexpr int kBacklog = 4096;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (problem != 0) {
    return Error{Code::kInvalid,
                 fmt::format("{}:{}: {}", address.host, address.port, ::gai_strerror(problem))};
  }
  return AddressList(found, &::freeaddrinfo);
}

// A name like localhost may stand for both; what people type next to it (redis-cli -p …) means
// IPv4.
const addrinfo& preferred(const addrinfo& list) {
  for (const addrinfo* one = &list; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) return *one;
  }
  return list;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::string to_text(const sockaddr_storage& storage) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(in.sin_port));
  }
  const auto& in = reinterpret_cast<const sockaddr_in6&>(storage);
  ::inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof host);
  return fmt::format("[{}]:{}", host, ntohs(in.sin6_port));
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return Error{
        Code::kInvalid,
        fmt::format("\"{}\" is not an address; write host:port, e.g. 127.0.0.1:7295", text)};
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const bool digits = port.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits || port.size() > 5 || std::stoi(std::string(port)) > 65535) {
    return Error{Code::kInvalid, fmt::format("\"{}\" is not a port; it must be 0 to 65535", port)};
  }
  return ListenAddress{std::string(host), std::string(port)};
}

Result<bool> is_loopback(const ListenAddress& address) {
  const auto list = resolve(address);
  if (!list) return list.error();
  for (const addrinfo* one = list->get(); one != nullptr; one = one->ai_next) {
    if (!is_loopback(one->ai_addr)) return false;
  }
  return true;
}

Result<Listener> listen_on(const ListenAddress& address) {
  const auto list = resolve(address);
  if (!list) return list.error();
  const addrinfo& first = preferred(*list->get());
  const auto problem = [&](const char* what) {
    return Error{
        errno == EADDRINUSE ? Code::kBusy : Code::kUnavailable,
        fmt::format("cannot {} {}:{}: {}", what, address.host, address.port, std::strerror(errno))};
  };
  Listener listener;
  listener.socket =
      UniqueFd(::socket(first.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.socket) return problem("make a socket for");
  const int on = 1;
  ::setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.socket.get(), first.ai_addr, first.ai_addrlen) != 0)
    return problem("bind to");
  if (::listen(listener.socket.get(), kBacklog) != 0) return problem("listen on");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return problem("find the port of");
  }
  listener.address = to_text(bound);
  return listener;
}

std::string peer_of(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "?";
  return to_text(peer);
}

}  // namespace pawl::server
