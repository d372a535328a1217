#include "drill/tcp_proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace pawl::drill {
namespace {

// Per direction; a sender of more has to wait. Far more than a worker and pawld ever send.
constexpr std::size_t kWaitingMax = 1U << 20;

bool is_transient(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS ||
         error == ENOTCONN;
}

// The number of bytes appended to `waiting`; nothing: none now, try later.
std::optional<std::size_t> receive(int from, std::string& waiting, bool& ended) {
  std::array<char, 16'384> bytes;
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && is_transient(errno)) return std::nullopt;
  // A reset counts as an end as well: during a cut the other side must not see it yet.
  if (got <= 0) {
    ended = true;
    return std::nullopt;
  }
  waiting.append(bytes.data(), static_cast<std::size_t>(got));
  return static_cast<std::size_t>(got);
}

}  // namespace

Result<std::unique_ptr<TcpProxy>> TcpProxy::open(const std::vector<client::Address>& server) {
  auto endpoints = client::resolve(server);
  if (!endpoints) return endpoints.error();
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!listener ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return Error{Code::kUnavailable,
                 fmt::format("cannot open a port for the proxy: {}", std::strerror(errno))};
  }
  return std::unique_ptr<TcpProxy>(new TcpProxy(std::move(listener), *std::move(endpoints)));
}

TcpProxy::TcpProxy(UniqueFd listener, std::vector<client::Endpoint> server)
    : listener_(std::move(listener)), server_(std::move(server)) {}

std::string TcpProxy::address() const {
  return fmt::format("127.0.0.1:{}", port());
}

std::uint16_t TcpProxy::port() const {
  sockaddr_in at{};
  socklen_t size = sizeof(at);
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

void TcpProxy::silence_connections() {
  for (Connection& each : connections_) each.silent = true;
}

void TcpProxy::close_at(CloseAt when, std::string request) {
  PAWL_ASSERT(!request.empty());
  close_when_ = when;
  close_request_ = std::move(request);
}

std::vector<pollfd> TcpProxy::interest() const {
  std::vector<pollfd> wanted{{listener_.get(), POLLIN, 0}};
  const auto events = [](const Channel& in, const Channel& out, bool out_passes) {
    const bool reads = !in.ended && in.waiting.size() < kWaitingMax;
    const bool writes = out_passes && !out.waiting.empty();
    return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  };
  for (const Connection& each : connections_) {
    const short client =
        each.silent ? short{0} : events(each.to_server, each.from_server, passes(Cut::kFromServer));
    const short server =
        each.silent ? short{0} : events(each.from_server, each.to_server, passes(Cut::kToServer));
    // poll() reports hang-ups even when no event is asked for, which would spin.
    wanted.push_back({client == 0 ? -1 : each.client.get(), client, 0});
    wanted.push_back({server == 0 ? -1 : each.server.get(), server, 0});
  }
  return wanted;
}

void TcpProxy::on_ready(std::span<const pollfd> ready) {
  PAWL_ASSERT(ready.size() == 1 + 2 * connections_.size());
  std::size_t at = 1;
  std::deque<Connection> kept;
  for (Connection& each : connections_) {
    if (each.silent || serve(each, ready[at], ready[at + 1])) kept.push_back(std::move(each));
    at += 2;
  }
  connections_ = std::move(kept);
  if (ready[0].revents != 0) accept();
}

bool TcpProxy::serve(Connection& connection, const pollfd& client, const pollfd& server) {
  if (client.revents != 0 && !receive_request(connection)) return false;
  if (server.revents != 0 && !receive_reply(connection)) return false;
  if (passes(Cut::kToServer) && !send(connection.server.get(), connection.to_server)) return false;
  return !passes(Cut::kFromServer) || send(connection.client.get(), connection.from_server);
}

bool TcpProxy::receive_request(Connection& connection) {
  Channel& channel = connection.to_server;
  const auto got = receive(connection.client.get(), channel.waiting, channel.ended);
  if (!got || close_request_.empty()) return true;
  const std::string_view arrived =
      std::string_view(channel.waiting).substr(channel.waiting.size() - *got);
  if (arrived.find(close_request_) == arrived.npos) return true;
  close_request_.clear();
  if (close_when_ == CloseAt::kRequest) return false;
  connection.close_on_reply = true;
  return true;
}

bool TcpProxy::receive_reply(Connection& connection) {
  Channel& channel = connection.from_server;
  const auto got = receive(connection.server.get(), channel.waiting, channel.ended);
  return !(got && connection.close_on_reply);
}

bool TcpProxy::send(int to, Channel& channel) {
  while (!channel.waiting.empty()) {
    const ssize_t sent =
        ::send(to, channel.waiting.data(), channel.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return is_transient(errno);
    channel.waiting.erase(0, static_cast<std::size_t>(sent));
  }
  return !channel.ended;  // One side has closed, so the other is closed too.
}

void TcpProxy::accept() {
  UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client) return;
  UniqueFd server = connect();
  if (!server) return;
  const int yes = 1;
  for (const int fd : {client.get(), server.get()})
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  connections_.push_back({std::move(client), std::move(server), {}, {}});
}

// Does not wait: a connection that fails is noticed by the first read or write, and the next one
// goes to the next address.
UniqueFd TcpProxy::connect() {
  const client::Endpoint& to = server_[next_++ % server_.size()];
  UniqueFd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0 &&
      errno != EINPROGRESS)
    return UniqueFd();
  return fd;
}

}  // namespace pawl::drill
