// The network between an Engine and its clients, with the faults that a test injects: poll(2) on a
// few loopback sockets.
//
// Not server::Loop, which is made for ten thousand connections and stops on signals, which belong
// to the test program. Here bytes must be delayed, dropped and counted. For one thread only.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "server/engine.h"
#include "server/listener.h"
#include "server/network.h"

namespace pawl::testing {

// Bytes on one connection.
struct Traffic {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};
using TrafficByPort = std::map<std::uint16_t, Traffic>;  // By the port of the peer.

class FaultySockets final : public server::Network {
 public:
  explicit FaultySockets(server::Listener listener);

  // Waits until something arrives, `wake` is readable, or the timeout (-1: none), and passes the
  // input to the engine. Returns whether there was any.
  bool serve(server::Engine& engine, int wake, int timeout_ms);
  // Of the open connections.
  [[nodiscard]] TrafficByPort traffic() const;

  // --- Faults ------------------------------------------------------------------------------------
  // Bytes for clients are kept until release_output().
  void hold_output() { output_held_ = true; }
  void release_output();
  void lose_traffic() { traffic_lost_ = true; }
  void restore();
  void disconnect_all();
  void disconnect_at_next_reply() { disconnect_at_reply_ = true; }
  // The engine was destroyed, and its connections with it.
  void drop_all() { connections_.clear(); }

  // --- A connection without a socket, for our own commands. Faults do not affect it --------------
  server::ConnectionId open_internal(server::Engine& engine);
  [[nodiscard]] std::string take_internal(server::ConnectionId connection);

  // --- server::Network ---------------------------------------------------------------------------
  std::size_t send(server::ConnectionId connection, std::string_view bytes) override;
  void want_input(server::ConnectionId, bool) override {}  // A test does not flood its own pawld.
  void close(server::ConnectionId connection) override;

 private:
  struct Connection {
    UniqueFd socket;  // Empty: internal, or disconnected.
    bool internal = false;
    bool lost_bytes = false;       // Some bytes were lost by lose_traffic().
    bool hangup_reported = false;  // to the engine
    bool closing = false;          // The engine closed it; unsent bytes are still sent.
    std::uint16_t port = 0;
    Traffic traffic;
    std::string unsent;
  };

  void accept_all(server::Engine& engine);
  void read(server::Engine& engine, server::ConnectionId id, Connection& connection);
  void flush(Connection& connection);
  // Returns whether there were any.
  bool report_hangups(server::Engine& engine);
  static void disconnect(Connection& connection);

  const UniqueFd listener_;
  std::map<server::ConnectionId, Connection> connections_;
  std::uint64_t last_id_ = 0;
  bool output_held_ = false;
  bool traffic_lost_ = false;
  bool disconnect_at_reply_ = false;
};

}  // namespace pawl::testing
