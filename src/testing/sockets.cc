#include "testing/sockets.h"

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

Sockets::Sockets(server::Listener listener) : listener_(std::move(listener.socket)) {}

// --- Receiving -----------------------------------------------------------------------------------

bool Sockets::serve(server::Engine& engine, int wake, int timeout_ms) {
  const bool broke = tell_hangups(engine);
  std::vector<pollfd> watched{{wake, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  std::vector<server::ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    if (!connection.socket) continue;
    const bool writes = !connection.unsent.empty() && !held_back_;
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
  return tell_hangups(engine) || any;
}

void Sockets::accept_all(server::Engine& engine) {
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

void Sockets::read(server::Engine& engine, server::ConnectionId id, Connection& connection) {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(connection.socket.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) connection.traffic.received += static_cast<std::uint64_t>(got);
  if (cut_) {
    connection.spoiled = true;
    if (got <= 0) connection.socket.reset();  // The other end is gone, which pawld cannot know yet.
  } else if (got <= 0) {
    break_off(connection);
  } else {
    engine.received(id, {buffer, static_cast<std::size_t>(got)});
  }
}

// Between turns, never inside one: what breaks while the engine sends is told to it here.
bool Sockets::tell_hangups(server::Engine& engine) {
  bool any = false;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const server::ConnectionId id = at->first;
    Connection& connection = (at++)->second;
    if (connection.inside || connection.socket || (connection.spoiled && cut_)) continue;
    if (connection.closing) {
      connections_.erase(id);
    } else if (!std::exchange(connection.told, true)) {
      engine.hangup(id);
      any = true;
    }
  }
  return any;
}

// --- Sending -------------------------------------------------------------------------------------

std::size_t Sockets::send(server::ConnectionId id, std::string_view bytes) {
  Connection& connection = connections_.at(id);
  if (connection.inside) {
    connection.unsent += bytes;
  } else if (cut_) {
    connection.spoiled = true;
  } else if (break_at_reply_ && connection.traffic.sent > 0) {
    break_at_reply_ = false;
    break_off(connection);
  } else if (connection.socket) {
    connection.unsent += bytes;
    flush(connection);
  }
  return bytes.size();
}

void Sockets::flush(Connection& connection) {
  if (held_back_ || !connection.socket) return;
  while (!connection.unsent.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.unsent.data(),
                                connection.unsent.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return break_off(connection);
    connection.traffic.sent += static_cast<std::uint64_t>(sent);
    connection.unsent.erase(0, static_cast<std::size_t>(sent));
  }
  if (connection.closing) connection.socket.reset();
}

void Sockets::close(server::ConnectionId id) {
  Connection& connection = connections_.at(id);
  connection.closing = true;
  if (connection.unsent.empty()) connection.socket.reset();
}

// --- Faults --------------------------------------------------------------------------------------

void Sockets::break_off(Connection& connection) {
  connection.socket.reset();
  connection.unsent.clear();
}

void Sockets::let_go() {
  held_back_ = false;
  for (auto& [id, connection] : connections_) {
    if (!connection.inside) flush(connection);
  }
}

void Sockets::mend() {
  cut_ = false;
  for (auto& [id, connection] : connections_) {
    if (std::exchange(connection.spoiled, false)) break_off(connection);
  }
}

void Sockets::break_all() {
  for (auto& [id, connection] : connections_) {
    if (!connection.inside) break_off(connection);
  }
}

// --- Looking -------------------------------------------------------------------------------------

TrafficByPort Sockets::traffic() const {
  TrafficByPort all;
  for (const auto& [id, connection] : connections_) {
    if (connection.socket) all[connection.port] = connection.traffic;
  }
  return all;
}

server::ConnectionId Sockets::open_inside(server::Engine& engine) {
  const server::ConnectionId id{++last_id_};
  connections_[id].inside = true;
  PAWL_ASSERT(engine.connected(id, "the test"));
  return id;
}

std::string Sockets::take_inside(server::ConnectionId id) {
  return std::exchange(connections_.at(id).unsent, {});
}

}  // namespace pawl::testing
