#include "client/poll_connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"

namespace pawl::client {
namespace {

std::string error_text(int error) {
  return std::generic_category().message(error);
}

// A clock that was suspended is looked at again now and then.
int poll_timeout(Instant until) {
  constexpr Millis kLongest{60'000};
  const Instant now = boot_now();
  if (until <= now) return 0;
  if (until - now > kLongest) return static_cast<int>(kLongest.count());
  return static_cast<int>(std::chrono::ceil<Millis>(until - now).count());
}

}  // namespace

Result<std::vector<Endpoint>> resolve(const std::vector<Address>& addresses) {
  std::vector<Endpoint> endpoints;
  std::string why;
  for (const Address& address : addresses) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failed =
        getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    if (failed != 0) {
      why += (why.empty() ? "" : "; ") + to_text(address) + ": " + gai_strerror(failed);
      continue;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
      Endpoint& endpoint = endpoints.emplace_back();
      std::memcpy(&endpoint.address, to->ai_addr, to->ai_addrlen);
      endpoint.size = to->ai_addrlen;
      endpoint.name = to_text(address);
    }
  }
  if (endpoints.empty()) return Error{Code::kUnavailable, why};
  return endpoints;
}

PollConnection::PollConnection(std::vector<Endpoint> endpoints, Random& random, MachineOptions options,
                               Millis connect_timeout)
    : endpoints_(std::move(endpoints)),
      connect_timeout_(connect_timeout),
      machine_(random, std::move(options)) {
  PAWL_ASSERT(!endpoints_.empty());
}

pollfd PollConnection::interest() const {
  const bool writes = connecting_ || !unsent_.empty();
  return {socket_.get(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0};
}

Instant PollConnection::next_timer() const {
  // While an attempt is under way, the machine's wish for a connection is being met.
  const Instant next = connecting_ && machine_.wants_connection(boot_now()) ? kNever : machine_.next_timer();
  return connecting_ ? std::min(next, connect_limit_) : next;
}

void PollConnection::turn(short revents) {
  if (connecting_ && (revents != 0 || boot_now() >= connect_limit_)) {
    revents != 0 ? end_connect() : connect_failed(ETIMEDOUT);
  } else if (!connecting_ && socket_ && (revents & ~POLLOUT) != 0) {
    read();
  }
  machine_.timer(boot_now());
  if (machine_.wants_close()) hang_up(machine_.trouble());
  if (!connecting_ && machine_.wants_connection(boot_now())) begin_connect();
  flush();
}

void PollConnection::wait_and_turn() {
  pollfd socket = interest();
  if (::poll(&socket, 1, poll_timeout(next_timer())) < 0) socket.revents = 0;
  turn(socket.revents);
}

void PollConnection::begin_connect() {
  const Endpoint& to = endpoints_[at_];
  socket_ = UniqueFd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return connect_failed(errno);
  const int yes = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  connecting_ = true;
  connect_limit_ = boot_now() + connect_timeout_;
  const auto* address = reinterpret_cast<const sockaddr*>(&to.address);
  if (::connect(socket_.get(), address, to.size) == 0) return end_connect();
  if (errno != EINPROGRESS) connect_failed(errno);
}

void PollConnection::end_connect() {
  int error = 0;
  socklen_t size = sizeof(error);
  PAWL_ASSERT(getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  if (error != 0) return connect_failed(error);
  connecting_ = false;
  tried_ = 0;
  why_.clear();
  machine_.connected(boot_now());
}

// The next endpoint at once; after all of them the machine backs off.
void PollConnection::connect_failed(int error) {
  socket_.reset();
  connecting_ = false;
  why_ += (why_.empty() ? "" : "; ") + endpoints_[at_].name + ": " + error_text(error);
  at_ = (at_ + 1) % endpoints_.size();
  if (++tried_ < endpoints_.size()) return begin_connect();
  tried_ = 0;
  machine_.disconnected(std::exchange(why_, {}), boot_now());
  if (!patient_) machine_.unreachable();
}

void PollConnection::flush() {
  if (connecting_ || !socket_) return;
  unsent_ += machine_.take_output();
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return hang_up(error_text(errno));
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
}

void PollConnection::read() {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) return hang_up(got == 0 ? "the connection was closed" : error_text(errno));
  // The clock after the socket: an answer must never look younger than it is.
  machine_.received({buffer, static_cast<std::size_t>(got)}, boot_now());
}

void PollConnection::hang_up(const std::string& why) {
  socket_.reset();
  unsent_.clear();
  const std::string at = endpoints_[at_].name;
  at_ = (at_ + 1) % endpoints_.size();
  machine_.disconnected(at + ": " + why, boot_now());
}

}  // namespace pawl::client
