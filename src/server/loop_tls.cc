// The loop's connections that speak TLS: their handshakes, and the bytes under and over it.
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "server/loop.h"
#include "wire/error_code.h"

namespace pawl::server {
namespace {

using namespace std::chrono_literals;
using State = tls::Stream::State;

// Of each turn. Renewals are served in every turn, so this is what a flood of handshakes can delay
// one by.
constexpr Nanos kShareOfTurn = 5ms;
constexpr std::string_view kSpeakTls =
    "-ERR this port speaks TLS: connect to tls://host:port, or with redis-cli --tls\r\n";
static_assert(kSpeakTls.find(wire::kPortSpeaksTls) == std::string_view("-ERR ").size());

}  // namespace

void Loop::use_tls(std::shared_ptr<const tls::ServerContext> context) {
  PAWL_ASSERT(context != nullptr);
  tls_ = std::move(context);
}

// --- Handshakes ----------------------------------------------------------------------------------

// The engine learns of it when the handshake is over.
void Loop::begin_handshake(Engine& engine, ConnectionId id, Connection& connection) {
  connection.tls = std::make_unique<tls::Stream>(*tls_);
  connection.in_handshake = true;
  watch(id, connection);
  if (const auto oldest = handshakes_.begin(id, monotonic_now())) {
    engine.count_closed_handshake(Unwanted::kDisplaced);
    drop_handshake(*oldest,
                   "too many are under way, and this one has waited for its client the longest");
  }
}

Nanos Loop::handshake_patience() const {
  return handshakes_.empty() ? Nanos::max() : handshakes_.patience(monotonic_now());
}

void Loop::advance_handshakes(Engine& engine) {
  const Nanos begun = monotonic_now();
  while (const auto id = handshakes_.next_ready()) {
    advance_handshake(engine, *id);
    if (monotonic_now() - begun >= kShareOfTurn) break;
  }
  while (const auto late = handshakes_.next_late(monotonic_now())) {
    engine.count_closed_handshake(Unwanted::kLate);
    drop_handshake(*late,
                   fmt::format("not over within {} s", limits::kHandshakeTime.count() / 1000));
  }
}

void Loop::advance_handshake(Engine& engine, ConnectionId id) {
  Connection& connection = *find(id);
  tls::Stream& stream = *connection.tls;
  const ssize_t count = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count > 0) {
    stream.receive({buffer_.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    stream.receive_end();
  }
  flush_tls(id, connection);
  if (stream.state() == State::kFailed) {
    if (stream.peer_is_plain()) (void)to_socket(connection, kSpeakTls);
    handshakes_.end(id);
    drop_handshake(id, stream.error());
  } else if (stream.state() == State::kHandshake) {
    if (static_cast<std::size_t>(count) == buffer_.size()) rewatch(id, connection);
  } else {
    handshakes_.end(id);
    pass_to_engine(engine, id, connection);
  }
}

// The handshake is over: from here on the engine knows it.
void Loop::pass_to_engine(Engine& engine, ConnectionId id, Connection& connection) {
  connection.in_handshake = false;
  const std::string user = connection.tls->peer_name();
  // If not, it is closed already.
  if (!engine.connected(id, peer_of(connection.socket.get()), user)) return;
  if (!decrypt(engine, id, connection)) return end_input(engine, id, connection);
  // What happened to the socket during the handshake, a hang-up too, is to be reported again.
  rewatch(id, connection);
}

void Loop::drop_handshake(ConnectionId id, std::string_view why) {
  Connection& connection = *find(id);
  const std::string peer = peer_of(connection.socket.get());
  peer_log_.warning(monotonic_now(), fmt::format("TLS handshake with {} failed: {}", peer, why),
                    {{"event", "tls_handshake_failed"}, {"address", peer}});
  ::shutdown(connection.socket.get(), SHUT_WR);
  // Closing with unread input resets the connection, and the peer could miss why.
  (void)::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  connections_.erase(id);
}

// --- Bytes ---------------------------------------------------------------------------------------

// Hands on what has been received. False when there will be no more.
bool Loop::decrypt(Engine& engine, ConnectionId id, Connection& connection) {
  tls::Stream& stream = *connection.tls;
  while (const std::size_t count = stream.read(buffer_))
    engine.received(id, {buffer_.data(), count});
  // While it is stalled, so may be the engine, and both go on once there is room.
  if (!connection.stalled) flush_tls(id, connection);
  if (stream.state() == State::kFailed) {
    const std::string peer = peer_of(connection.socket.get());
    peer_log_.warning(monotonic_now(), fmt::format("TLS with {} failed: {}", peer, stream.error()),
                      {{"event", "tls_failed"}, {"address", peer}});
    connection.broken = true;
  }
  return stream.state() == State::kOpen;
}

// What TLS itself has to say.
void Loop::flush_tls(ConnectionId id, Connection& connection) {
  const bool stalled =
      !connection.tls->flush([&](std::string_view out) { return to_socket(connection, out); });
  if (stalled == connection.stalled) return;
  connection.stalled = stalled;
  watch(id, connection);
}

std::size_t Loop::encrypt_and_send(Connection& connection, std::string_view bytes) {
  const std::size_t sent =
      connection.tls->send(bytes, [&](std::string_view out) { return to_socket(connection, out); });
  return connection.broken ? bytes.size() : sent;
}

void Loop::send_tls_close(Connection& connection) {
  connection.tls->close();
  (void)connection.tls->flush([&](std::string_view out) { return to_socket(connection, out); });
}

}  // namespace pawl::server
