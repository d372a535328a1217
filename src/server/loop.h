// The loop: sockets of RESP clients for an Engine, on one thread, with epoll.
//
//   Loop loop(log);
//   loop.open();
//   loop.listen(std::move(listener));
//   loop.on_reload([&] { … });  // SIGHUP; between turns, on this thread
//   store.wake_with(&loop);     // a store that completes later wakes it
//   loop.run(engine);           // until SIGTERM or SIGINT; all three are blocked in every thread
//
// Each turn reads every socket that is ready, at most one buffer of each. Edge-triggered: a socket
// whose buffer was filled is registered again (rewatch()), so the rest comes in the next turn. The
// turn passes hang-ups to the engine and lets it take its turn; the engine sends through send(),
// once per connection and turn. In the steady state that is one recv and one send per message, and
// no epoll_ctl. Interest in a socket changes only when its peer does not keep up:
// output that the socket would not take, or input that the engine does not want yet. EPOLLRDHUP is
// always watched, so a hang-up is noticed also of a connection that is blocked or not read from.
//
// With use_tls() connections speak TLS (loop_tls.cc). The engine learns of one when its handshake
// is over; until then it is bounded in number and time, and a flood of handshakes takes a fixed
// share of each turn.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/rate_limited_log.h"
#include "base/readable.h"
#include "base/unique_fd.h"
#include "base/waker.h"
#include "pawl/result.h"
#include "server/engine.h"
#include "server/engine_mailbox.h"
#include "server/listener.h"
#include "server/network.h"
#include "server/tls_handshakes.h"
#include "tls/context.h"
#include "tls/stream.h"

namespace pawl::server {

class Loop final : public Network, public Waker {
 public:
  struct Limits {
    std::size_t handshakes = limits::kHandshakesMax;
    std::size_t newcomers = limits::kNewcomersMax;  // of the engine
  };
  Loop(Log& log, Limits limits);
  explicit Loop(Log& log) : Loop(log, Limits{}) {}

  // Sets up epoll and the signals.
  Result<void> open();
  Result<void> listen(Listener listener);
  // Serves what is ready, without waiting; false once a signal asks to stop. For an
  // engine that still loads.
  bool poll(Engine& engine);
  // Connections from now on speak TLS under this context; those connected already go on as
  // they are.
  void use_tls(std::shared_ptr<const tls::ServerContext> context);
  // What SIGHUP, which the caller has blocked too, asks for. It holds up every connection while it
  // runs.
  void on_reload(std::function<void()> reload) { reload_ = std::move(reload); }
  // Serves what another thread asks, beside the sockets. The mailbox outlives run().
  void attach(EngineMailbox& mailbox);
  // Watches something else beside the sockets, and lets it run before the turn of the engine. It
  // outlives run().
  Result<void> attach(Readable& readable);
  // What must be done between the signal to stop and the end: `begin` is called once, then turns go
  // on until `done`, but not longer than `limit`.
  struct Drain {
    std::function<void()> begin;
    std::function<bool()> done;
    Nanos limit{0};
  };
  void on_stop(Drain drain) { drain_ = std::move(drain); }
  // Serves until a signal asks to stop; then drains, stops accepting, answers what is durable and
  // closes every connection.
  void run(Engine& engine);

  // From any thread, after open(): a turn follows, which asks the mailbox and the store what is
  // new.
  void wake() override;

  // --- Network -----------------------------------------------------------------------------------
  std::size_t send(ConnectionId connection, std::string_view bytes) override;
  void want_input(ConnectionId connection, bool wanted) override;
  void close(ConnectionId connection) override;

 private:
  struct Connection {
    UniqueFd socket;
    std::uint32_t watched = 0;         // the events registered with epoll
    bool reading = true;               // the engine wants input
    bool stalled = false;              // the socket would not take all
    bool hung_up = false;              // the engine knows
    bool broken = false;               // there is no peer to send to
    bool in_handshake = false;         // the engine does not know it yet
    std::unique_ptr<tls::Stream> tls;  // nullptr: plain
  };

  void turn(Engine& engine, int timeout_ms);
  [[nodiscard]] int patience_ms(const Engine& engine) const;
  void drain(Engine& engine);
  int gather(Engine& engine, int timeout_ms);
  void take_signals();
  void take_wake();
  void accept_some(Engine& engine);
  void accept_one(Engine& engine, UniqueFd socket);
  // False: not even that was possible.
  bool refuse_connection();
  // For a moment, in which no connection could be accepted anyway.
  void pause_accepting();
  void resume_accepting();
  [[nodiscard]] Nanos accept_patience() const;
  [[nodiscard]] static Nanos monotonic_now();
  void serve(Engine& engine, ConnectionId id, std::uint32_t events);
  // Reads one buffer, or, of a peer that has hung up, all there is up to a bound. True when the end
  // was seen.
  bool read(Engine& engine, ConnectionId id, Connection& connection, bool to_the_end);
  // Takes what the socket has room for, and everything when there is no peer.
  static std::size_t to_socket(Connection& connection, std::string_view bytes);
  void end_input(Engine& engine, ConnectionId id, Connection& connection);
  void watch(ConnectionId id, Connection& connection);
  void rewatch(ConnectionId id, Connection& connection);
  void control(int operation, ConnectionId id, const Connection& connection);
  [[nodiscard]] Connection* find(ConnectionId id);

  // --- TLS (loop_tls.cc) -------------------------------------------------------------------------
  void begin_handshake(Engine& engine, ConnectionId id, Connection& connection);
  [[nodiscard]] Nanos handshake_patience() const;
  void advance_handshakes(Engine& engine);
  void advance_handshake(Engine& engine, ConnectionId id);
  void pass_to_engine(Engine& engine, ConnectionId id, Connection& connection);
  void drop_handshake(ConnectionId id, std::string_view why);
  bool decrypt(Engine& engine, ConnectionId id, Connection& connection);
  void flush_tls(ConnectionId id, Connection& connection);
  static std::size_t encrypt_and_send(Connection& connection, std::string_view bytes);
  static void send_tls_close(Connection& connection);

  Log& log_;
  const std::size_t accepts_at_once_;
  UniqueFd epoll_, signals_, listener_;
  UniqueFd wake_;  // an eventfd: another thread has called wake()
  bool woken_ = false;
  EngineMailbox* mailbox_ = nullptr;
  Readable* readable_ = nullptr;
  std::optional<Drain> drain_;
  // Given up for a moment when descriptors run out, so that a connection can be refused with an
  // error.
  UniqueFd spare_;
  std::unordered_map<ConnectionId, Connection> connections_;
  std::uint64_t last_id_ = 0;
  std::optional<Nanos> accepting_paused_until_;
  bool turning_away_ = false;  // connections, for lack of descriptors; it is logged already
  bool stopping_ = false;
  std::function<void()> reload_;
  std::shared_ptr<const tls::ServerContext> tls_;  // nullptr: connections are plain
  SystemRandom random_;
  TlsHandshakes handshakes_;
  RateLimitedLog peer_log_{log_};  // about peers, which anyone can be
  std::vector<epoll_event> events_;
  // Small enough that ten thousand talkative clients fit in memory; what is left in a socket comes
  // next turn.
  std::array<char, 16 * 1024> buffer_;
};

}  // namespace pawl::server
