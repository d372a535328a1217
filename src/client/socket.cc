#include "client/socket.h"

#include <string>
#include <utility>

#include "net/resolve.h"

namespace pawl::client {

Result<std::vector<Endpoint>> resolve(const std::vector<Address>& addresses) {
  std::vector<Endpoint> endpoints;
  std::string why;
  for (const Address& address : addresses) {
    auto found = net::resolve(address.host, address.port);
    if (!found) {
      why += (why.empty() ? "" : "; ") + found.error().detail;
      continue;
    }
    for (Endpoint& endpoint : *found) {
      endpoint.name = to_text(address);
      endpoint.tls = address.context;
      endpoints.push_back(std::move(endpoint));
    }
  }
  if (endpoints.empty()) return Error{Code::kUnavailable, why};
  return endpoints;
}

}  // namespace pawl::client
