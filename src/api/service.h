// Pawl over HTTP: requests come in as exchanges, become commands on connections of the mailbox,
// and their replies answers.
//
//   api::Service service(mailbox, {.hosts = config.http_hosts});
//   http::Server server(log, [&](auto exchange) { service.handle(std::move(exchange)); });
//   mailbox.wake_client_with([&] { server.post([&] { service.take_deliveries(); }); });
//
// Each request that needs the engine has a connection of its own to it, for as long as it takes; so
// a client that hangs up while waiting for a lock leaves the line like any other, and the engine's
// table of permissions is the only one. `Authorization: Bearer USER:SECRET` is that connection's
// AUTH; a client certificate names the user without one.
//
// Everything here runs on the HTTP server's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/route.h"
#include "base/limits.h"
#include "http/server.h"
#include "server/engine_mailbox.h"

namespace pawl::api {

class Service {
 public:
  struct Settings {
    std::vector<std::string> hosts;  // that may stand in Host, beside the loopback ones
    std::string data;                // the directory of the store, whose size /metrics shows
    Millis ttl_max = limits::kTtlMaxDefault;
    bool users = false;  // pawld knows users: a request without one is a stranger's
    // How many connections the HTTP server has, for /metrics.
    std::function<http::Server::Usage()> usage = [] { return http::Server::Usage{}; };
  };
  Service(server::EngineMailbox& mailbox, Settings settings);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] const RouteTable& routes() const { return routes_; }

  void handle(std::shared_ptr<http::Exchange> exchange);
  // The mailbox has deliveries.
  void take_deliveries();

 private:
  struct PendingRequest;
  struct ExpectedReply;
  using Handle = std::shared_ptr<PendingRequest>;
  // What a reply leads to; nothing: the next reply decides.
  using Then = std::function<std::optional<Step>(const wire::Value&)>;
  using ConnectionId = server::ConnectionId;

  // The first step, or what is wrong before any route is asked.
  [[nodiscard]] Step first_step(PendingRequest& pending) const;
  [[nodiscard]] Step route_step(PendingRequest& pending, const Match& match,
                                const http::Target& target) const;

  // Nothing: what its client asks is served on its connection.
  [[nodiscard]] static std::optional<http::Problem> refuse_place(const PendingRequest& pending);

  void advance(const Handle& pending, Step step);
  void answer(const Handle& pending, http::Response response);
  void send_command(const Handle& pending, const std::vector<std::string>& command, Then then);
  // On its connection, which is made when first used.
  void send(const Handle& pending, std::string bytes);
  void ask_engine(const Handle& pending, const EngineQuery& query);
  void observe(const Handle& pending, const Stream& stream);

  void receive(const Handle& pending, std::string_view bytes);
  void take(const Handle& pending, const wire::Value& value);
  // An error reply to `command`, as the sender of the request is to see it.
  [[nodiscard]] static http::Problem refusal(const PendingRequest& pending,
                                             std::string_view command, std::string_view line);
  // Whether it was an event for the reader of a stream.
  bool send_event(const Handle& pending, const wire::Value& value);
  void closed(const Handle& pending);
  void gone(const Handle& pending, http::Gone how);
  // Nothing more is to be done for it.
  void forget(const Handle& pending);

  server::EngineMailbox& mailbox_;
  const Settings settings_;
  RouteTable routes_;
  std::unordered_map<std::uint64_t, Handle> pending_;       // by number
  std::unordered_map<ConnectionId, Handle> by_connection_;  // those that are connected
  std::uint64_t last_ = 0;
};

}  // namespace pawl::api
