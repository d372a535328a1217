// The loop: sockets of RESP clients for an Engine, on one thread, with epoll.
//
//   Loop loop(log);
//   loop.listen(std::move(listener));
//   loop.run(engine);                 // until SIGTERM or SIGINT, which the caller has blocked in every thread
//
// Each turn reads every socket that is ready, at most one buffer of each (level-triggered, so the rest comes next time),
// tells the engine of hang-ups, and lets it take its turn; the engine sends through send(), once per connection and turn.
// In the steady state that is one recv and one send per message, and no epoll_ctl. Interest in a socket changes only when
// its peer does not keep up: output that the socket would not take, or input that the engine does not want yet.
// EPOLLRDHUP is always watched, so a hang-up is noticed also of a connection that is blocked or not read from.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"
#include "pawl/result.h"
#include "server/engine.h"
#include "server/lane.h"
#include "server/listener.h"
#include "server/network.h"

namespace pawl::server {

class Loop final : public Network {
 public:
  explicit Loop(Log& log);

  // Sets up epoll and the signals.
  Result<void> open();
  Result<void> listen(Listener listener);
  // Serves what another thread asks, beside the sockets. After open(); the lane outlives run().
  Result<void> attach(Lane& lane);
  // Serves until a signal asks to stop; then stops accepting, answers what is durable and closes every connection.
  void run(Engine& engine);

  // --- Network ---
  std::size_t send(ConnectionId connection, std::string_view bytes) override;
  void want_input(ConnectionId connection, bool wanted) override;
  void close(ConnectionId connection) override;

 private:
  struct Connection {
    UniqueFd socket;
    std::uint32_t watched = 0;  // what epoll was told
    bool reading = true;        // the engine wants input
    bool stalled = false;       // the socket would not take all
    bool hung_up = false;       // the engine was told
    bool broken = false;        // nobody is there to send to
  };

  void turn(Engine& engine, int timeout_ms);
  int gather(Engine& engine, int timeout_ms);
  void serve_lane(Engine& engine);
  void accept_some(Engine& engine);
  void accept_one(Engine& engine, UniqueFd socket);
  void turn_away();
  void serve(Engine& engine, ConnectionId id, std::uint32_t events);
  // Reads one buffer, or, of a peer that has hung up, all there is up to a bound. True when the end was seen.
  bool read(Engine& engine, ConnectionId id, Connection& connection, bool to_the_end);
  void watch(ConnectionId id, Connection& connection);
  void rewatch(ConnectionId id, Connection& connection);
  void control(int operation, ConnectionId id, const Connection& connection);
  [[nodiscard]] Connection* find(ConnectionId id);

  Log& log_;
  UniqueFd epoll_, signals_, listener_;
  Lane* lane_ = nullptr;
  UniqueFd lane_wake_;  // an eventfd: the lane has messages
  bool lane_ready_ = false;
  UniqueFd spare_;  // Given up for a moment when descriptors run out, so that a connection can be told so.
  std::unordered_map<ConnectionId, Connection> connections_;
  std::uint64_t last_id_ = 0;
  bool turning_away_ = false;  // and said so in the log
  bool stopping_ = false;
  std::vector<epoll_event> events_;
  // Small enough that ten thousand talkative clients fit in memory; what is left in a socket comes next turn.
  std::array<char, 16 * 1024> buffer_;
};

}  // namespace pawl::server
