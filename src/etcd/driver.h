// Connects an etcd::Client to real sockets. It has no thread: the owner's loop waits for the
// descriptors and the deadline, and calls pump().
//
//   auto driver = Driver::create({.endpoints = *endpoints, .user = …});
//   const CallId call = (*driver)->client().transact(bytes);
//   for (;;) {
//     (*driver)->pump(now);
//     for (Event& event : (*driver)->client().take_events()) …
//     poll((*driver)->interest(), until (*driver)->deadline());
//   }
//
// `now` must be read before pump() is called, and after whatever made the caller send: what is
// counted from the send of a call is then counted too early rather than too late.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/boot_time.h"
#include "etcd/client.h"
#include "net/socket.h"
#include "pawl/result.h"
#include "tls/context.h"

namespace pawl::etcd {

inline constexpr std::uint16_t kDefaultPort = 2379;

struct EndpointAddress {
  std::string host;  // Without brackets.
  std::uint16_t port = kDefaultPort;
  bool operator==(const EndpointAddress&) const = default;
};
// "db1:2379,db2,[::1]:2379"; without a port, kDefaultPort. kInvalid says what was expected.
[[nodiscard]] Result<std::vector<EndpointAddress>> parse_endpoints(std::string_view list);

struct DriverOptions {
  std::vector<EndpointAddress> endpoints;
  std::shared_ptr<const tls::ClientContext> tls = {};  // nullptr: plain TCP.
  ClientOptions client = {};                           // `endpoints` and `tls` of it are set here.
};

class Driver final : private Network {
 public:
  // Looks the hosts up, which may block. kUnavailable: one of them has no address.
  [[nodiscard]] static Result<std::unique_ptr<Driver>> create(DriverOptions options);
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Client& client() { return client_; }

  // What to wait for. It changes with every pump().
  [[nodiscard]] std::vector<pollfd> interest() const;
  [[nodiscard]] Instant deadline() const { return client_.deadline(); }
  // Reads and sends what can be read and sent without waiting, and does what is due.
  void pump(Instant now);

 private:
  struct Connection;

  Driver(DriverOptions options, std::vector<std::unique_ptr<Connection>> connections);
  void connect(std::size_t endpoint) override;
  void send(std::size_t endpoint, std::string_view bytes) override;
  void close(std::size_t endpoint) override;
  void pump_connection(std::size_t endpoint, short ready, Instant now);
  void read(std::size_t endpoint, Instant now);
  void write(Connection& connection);

  const std::vector<std::unique_ptr<Connection>> connections_;
  Client client_;
};

}  // namespace pawl::etcd
