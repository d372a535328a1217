#include "testing/faulty_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace pawl::testing {
namespace {

std::uint16_t port_of_peer(int socket) {
  sockaddr_in peer{};
  socklen_t size = sizeof(peer);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  return ntohs(peer.sin_port);
}

}  // namespace

FaultySockets::FaultySockets(server::Listener listener) : listener_(std::move(listener.socket)) {}

// --- Receiving -----------------------------------------------------------------------------------

bool FaultySockets::serve(server::Engine& engine, int wake, int timeout_ms) {
  const bool broke = report_hangups(engine);
  std::vector<pollfd> watched{{wake, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  std::vector<server::ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (!connection.socket) continue;
    const bool writes = !connection.unsent.empty() && !output_held_;
    watched.push_back(
        {connection.socket.get(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
    ids.push_back(id);
  }
  const int ready = ::poll(watched.data(), watched.size(), broke ? 0 : timeout_ms);
  PAWL_ASSERT(ready >= 0 || errno == EINTR);
  bool any = broke;
  for (std::size_t i = 0; ready > 0 && i < ids.size(); ++i) {
    const short events = watched[i + 2].revents;
    if (events == 0) continue;
    any = true;
    Connection& connection = connections_.at(ids[i]);
    if ((events & POLLOUT) != 0) flush(connection);
    if ((events & ~POLLOUT) != 0) read(engine, ids[i], connection);
  }
  if (watched[1].revents != 0) {
    any = true;
    accept_all(engine);
  }
  return report_hangups(engine) || any;
}

void FaultySockets::accept_all(server::Engine& engine) {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::string peer = server::peer_of(socket.get());
    const server::ConnectionId id{++last_id_};
    Connection& connection = connections_[id];
    connection.port = port_of_peer(socket.get());
    connection.socket = std::move(socket);
    engine.connected(id, peer);
  }
}

void FaultySockets::read(server::Engine& engine, server::ConnectionId id, Connection& connection) {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(connection.socket.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) connection.traffic.received += static_cast<std::uint64_t>(got);
  if (traffic_lost_) {
    connection.lost_bytes = true;
    if (got <= 0) connection.socket.reset();  // The peer is gone, which pawld cannot know yet.
  } else if (got <= 0) {
    disconnect(connection);
  } else {
    engine.received(id, {buffer, static_cast<std::size_t>(got)});
  }
}

// Between turns, never within one: connections that broke while the engine sent are reported here.
bool FaultySockets::report_hangups(server::Engine& engine) {
  bool any = false;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const server::ConnectionId id = at->first;
    Connection& connection = (at++)->second;
    if (connection.internal || connection.socket || (connection.lost_bytes && traffic_lost_))
      continue;
    if (connection.closing) {
      connections_.erase(id);
    } else if (!std::exchange(connection.hangup_reported, true)) {
      engine.hangup(id);
      any = true;
    }
  }
  return any;
}

// --- Sending -------------------------------------------------------------------------------------

std::size_t FaultySockets::send(server::ConnectionId id, std::string_view bytes) {
  Connection& connection = connections_.at(id);
  if (connection.internal) {
    connection.unsent += bytes;
  } else if (traffic_lost_) {
    connection.lost_bytes = true;
  } else if (disconnect_at_reply_ && connection.traffic.sent > 0) {
    disconnect_at_reply_ = false;
    disconnect(connection);
  } else if (connection.socket) {
    connection.unsent += bytes;
    flush(connection);
  }
  return bytes.size();
}

void FaultySockets::flush(Connection& connection) {
  if (output_held_ || !connection.socket) return;
  while (!connection.unsent.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.unsent.data(),
                                connection.unsent.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return disconnect(connection);
    connection.traffic.sent += static_cast<std::uint64_t>(sent);
    connection.unsent.erase(0, static_cast<std::size_t>(sent));
  }
  if (connection.closing) connection.socket.reset();
}

void FaultySockets::close(server::ConnectionId id) {
  Connection& connection = connections_.at(id);
  connection.closing = true;
  if (connection.unsent.empty()) connection.socket.reset();
}

// --- Faults --------------------------------------------------------------------------------------

void FaultySockets::disconnect(Connection& connection) {
  connection.socket.reset();
  connection.unsent.clear();
}

void FaultySockets::release_output() {
  output_held_ = false;
  for (auto& [id, connection] : connections_) {
    if (!connection.internal) flush(connection);
  }
}

void FaultySockets::restore() {
  traffic_lost_ = false;
  for (auto& [id, connection] : connections_) {
    if (std::exchange(connection.lost_bytes, false)) disconnect(connection);
  }
}

void FaultySockets::disconnect_all() {
  for (auto& [id, connection] : connections_) {
    if (!connection.internal) disconnect(connection);
  }
}

// --- State ---------------------------------------------------------------------------------------

TrafficByPort FaultySockets::traffic() const {
  TrafficByPort all;
  for (const auto& [id, connection] : connections_) {
    if (connection.socket) all[connection.port] = connection.traffic;
  }
  return all;
}

server::ConnectionId FaultySockets::open_internal(server::Engine& engine) {
  const server::ConnectionId id{++last_id_};
  connections_[id].internal = true;
  PAWL_ASSERT(engine.connected(id, "the test"));
  return id;
}

std::string FaultySockets::take_internal(server::ConnectionId id) {
  return std::exchange(connections_.at(id).unsent, {});
}

}  // namespace pawl::testing
