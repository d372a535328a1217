#include "net/resolve.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

namespace pawl::net {

std::string address_text(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<std::vector<Endpoint>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return Error{Code::kUnavailable, address_text(host, port) + ": " + gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    std::memcpy(&endpoint.address, to->ai_addr, to->ai_addrlen);
    endpoint.size = to->ai_addrlen;
    endpoint.name = address_text(host, port);
    endpoint.host = host;
  }
  return endpoints;
}

}  // namespace pawl::net
