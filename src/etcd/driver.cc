#include "etcd/driver.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "net/resolve.h"

namespace pawl::etcd {
namespace {

// Reads of one connection in one pump(), of 16 KiB each, so that none keeps the loop for long.
constexpr int kReadsMax = 64;

Error invalid_endpoint(std::string_view text) {
  return {Code::kInvalid,
          "\"" + std::string(text) + "\" is no endpoint of etcd; write HOST:PORT, as in db1:2379"};
}

std::optional<std::uint16_t> read_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stopped != end || port == 0) return std::nullopt;
  return port;
}

Result<EndpointAddress> parse_endpoint(std::string_view text) {
  EndpointAddress address;
  const bool bracketed = text.starts_with('[');
  const std::size_t host_end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && host_end == std::string_view::npos) return invalid_endpoint(text);
  address.host = text.substr(bracketed ? 1 : 0, host_end - (bracketed ? 1 : 0));
  std::string_view rest =
      host_end == std::string_view::npos ? "" : text.substr(host_end + (bracketed ? 1 : 0));
  if (address.host.empty() || address.host.find('/') != std::string::npos)
    return invalid_endpoint(text);
  if (rest.empty()) return address;
  const auto port = rest.starts_with(':') ? read_port(rest.substr(1)) : std::nullopt;
  if (!port) return invalid_endpoint(text);
  address.port = *port;
  return address;
}

}  // namespace

Result<std::vector<EndpointAddress>> parse_endpoints(std::string_view list) {
  std::vector<EndpointAddress> endpoints;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    auto endpoint = parse_endpoint(one);
    if (!endpoint) return endpoint.error();
    endpoints.push_back(std::move(*endpoint));
    if (comma == std::string_view::npos) return endpoints;
    list.remove_prefix(comma + 1);
  }
}

struct Driver::Connection {
  std::vector<net::Endpoint> addresses;
  std::size_t next = 0;  // Of addresses: each attempt takes another.
  net::Socket socket = {};
  std::string unsent = {};
  std::string error = {};  // Not empty: it has failed, and the client is to be told.
};

Result<std::unique_ptr<Driver>> Driver::create(DriverOptions options) {
  PAWL_ASSERT(!options.endpoints.empty());
  std::vector<std::unique_ptr<Connection>> connections;
  options.client.endpoints.clear();
  options.client.tls = options.tls != nullptr;
  for (const EndpointAddress& endpoint : options.endpoints) {
    auto addresses = net::resolve(endpoint.host, endpoint.port);
    if (!addresses) return addresses.error();
    for (net::Endpoint& address : *addresses) {
      address.tls = options.tls;
      if (options.tls) address.alpn = "h2";
    }
    options.client.endpoints.push_back(net::address_text(endpoint.host, endpoint.port));
    connections.push_back(std::make_unique<Connection>());
    connections.back()->addresses = std::move(*addresses);
  }
  return std::unique_ptr<Driver>(new Driver(std::move(options), std::move(connections)));
}

Driver::Driver(DriverOptions options, std::vector<std::unique_ptr<Connection>> connections)
    : connections_(std::move(connections)), client_(std::move(options.client), *this) {}

Driver::~Driver() = default;

// --- What the client asks for --------------------------------------------------------------------

void Driver::connect(std::size_t endpoint) {
  Connection& connection = *connections_[endpoint];
  connection.unsent.clear();
  connection.error.clear();
  const net::Endpoint& to = connection.addresses[connection.next++ % connection.addresses.size()];
  // Whatever it is, the next pump() sees it: a socket that is connected is writable at once.
  if (connection.socket.start(to) == net::Socket::Progress::kFailed)
    connection.error = connection.socket.error();
}

void Driver::send(std::size_t endpoint, std::string_view bytes) {
  Connection& connection = *connections_[endpoint];
  connection.unsent.append(bytes);
  write(connection);
}

void Driver::close(std::size_t endpoint) {
  Connection& connection = *connections_[endpoint];
  connection.socket.close();
  connection.unsent.clear();
  connection.error.clear();
}

void Driver::write(Connection& connection) {
  if (connection.socket.is_open() && !connection.socket.send(connection.unsent))
    connection.error = "the connection was closed";
}

// --- The loop ------------------------------------------------------------------------------------

std::vector<pollfd> Driver::interest() const {
  std::vector<pollfd> wanted;
  for (const auto& connection : connections_) {
    if (connection->socket.fd() >= 0)
      wanted.push_back(connection->socket.interest(!connection->unsent.empty()));
  }
  return wanted;
}

void Driver::pump(Instant now) {
  std::vector<pollfd> ready;
  for (const auto& connection : connections_)
    ready.push_back(connection->socket.interest(!connection->unsent.empty()));
  if (::poll(ready.data(), ready.size(), 0) < 0) {
    for (pollfd& one : ready) one.revents = 0;  // EINTR; the next round sees it.
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) pump_connection(i, ready[i].revents, now);
  client_.pump(now);
}

void Driver::pump_connection(std::size_t endpoint, short ready, Instant now) {
  Connection& connection = *connections_[endpoint];
  if (connection.error.empty() && connection.socket.is_connecting() && ready != 0) {
    const auto progress = connection.socket.continue_connect();
    if (progress == net::Socket::Progress::kFailed) connection.error = connection.socket.error();
    if (progress == net::Socket::Progress::kOpen) client_.on_connected(endpoint, now);
  } else if (connection.error.empty() && connection.socket.is_open() && ready != 0) {
    write(connection);
    read(endpoint, now);
  }
  if (!connection.error.empty())
    client_.on_closed(endpoint, std::exchange(connection.error, {}), now);
}

void Driver::read(std::size_t endpoint, Instant now) {
  Connection& connection = *connections_[endpoint];
  for (int i = 0; i < kReadsMax && connection.socket.is_open(); ++i) {
    std::string received, why;
    const bool alive = connection.socket.receive(received, why);
    if (!received.empty()) client_.on_received(endpoint, received, now);
    if (!alive && connection.socket.is_open()) connection.error = why;
    if (!alive || received.empty()) return;
  }
}

}  // namespace pawl::etcd
