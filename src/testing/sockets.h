// The network between an Engine and its clients, with the faults a test asks for: poll(2) on a few
// loopback sockets.
//
// Why not server::Loop: that one is made for ten thousand connections and stops on signals, which
// are the test program's own. Here bytes must be held back, swallowed and counted. All of it
// belongs to one thread.
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

// Bytes that went over one connection.
struct Traffic {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};
using TrafficByPort = std::map<std::uint16_t, Traffic>;  // The port of the other end.

class Sockets final : public server::Network {
 public:
  explicit Sockets(server::Listener listener);

  // Waits until something arrives, or `wake` can be read, or the time is over (-1: never), and
  // gives the engine what there is. Whether anything was there.
  bool serve(server::Engine& engine, int wake, int timeout_ms);
  // Of the connections that are not broken.
  [[nodiscard]] TrafficByPort traffic() const;

  // --- Faults ------------------------------------------------------------------------------------
  // Bytes for clients wait here until let_go().
  void hold_back() { held_back_ = true; }
  void let_go();
  void cut() { cut_ = true; }
  void mend();
  void break_all();
  void break_at_next_reply() { break_at_reply_ = true; }
  // The engine is gone; so are its connections.
  void forget_all() { connections_.clear(); }

  // --- A connection without a socket, for questions of our own; faults leave it alone ------------
  server::ConnectionId open_inside(server::Engine& engine);
  [[nodiscard]] std::string take_inside(server::ConnectionId connection);

  // --- server::Network ---------------------------------------------------------------------------
  std::size_t send(server::ConnectionId connection, std::string_view bytes) override;
  void want_input(server::ConnectionId, bool) override {}  // A test does not flood its own pawld.
  void close(server::ConnectionId connection) override;

 private:
  struct Connection {
    UniqueFd socket;  // Empty: inside, or broken.
    bool inside = false;
    bool spoiled = false;  // Something was lost in the cut.
    bool told = false;     // The engine knows of the hang-up.
    bool closing = false;  // The engine is done with it; what is unsent still goes out.
    std::uint16_t port = 0;
    Traffic traffic;
    std::string unsent;
  };

  void accept_all(server::Engine& engine);
  void read(server::Engine& engine, server::ConnectionId id, Connection& connection);
  void flush(Connection& connection);
  // Whether there were any.
  bool tell_hangups(server::Engine& engine);
  static void break_off(Connection& connection);

  const UniqueFd listener_;
  std::map<server::ConnectionId, Connection> connections_;
  std::uint64_t last_id_ = 0;
  bool held_back_ = false;
  bool cut_ = false;
  bool break_at_reply_ = false;
};

}  // namespace pawl::testing
