#include "client/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/assert.h"

namespace pawl::client {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

timespec to_timespec(Nanos span) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

// 0, or the error.
int await_connect(int fd, Millis timeout) {
  pollfd ready{fd, POLLOUT, 0};
  const timespec limit = to_timespec(timeout);
  int polled = 0;
  do polled = ppoll(&ready, 1, &limit, nullptr);
  while (polled < 0 && errno == EINTR);
  if (polled < 0) return errno;
  if (polled == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  PAWL_ASSERT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  return error;
}

// 0, or the error.
int try_connect(int fd, const addrinfo& to, Millis timeout) {
  if (fd < 0) return errno;
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  return errno == EINPROGRESS ? await_connect(fd, timeout) : errno;
}

}  // namespace

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  sent_ = 0;
  received_ = 0;
}

Result<void> Socket::connect(const Address& address, Millis timeout) {
  close();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) return Error{Code::kUnavailable, to_text(address) + ": " + gai_strerror(failed)};
  const AddressInfo owner(found, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int fd = ::socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
    error = try_connect(fd, *to, timeout);
    if (error == 0) {
      fd_ = fd;
      return {};
    }
    if (fd >= 0) ::close(fd);
  }
  return Error{Code::kUnavailable, to_text(address) + ": " + error_text(error)};
}

std::uint16_t Socket::local_port() const {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&local), &size) != 0) return 0;
  // The port is at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in&>(local).sin_port);
}

bool Socket::send(std::string& bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
    bytes.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool Socket::wait(std::string& received, bool wants_send, Nanos timeout, std::string& why) {
  pollfd ready{fd_, static_cast<short>(POLLIN | (wants_send ? POLLOUT : 0)), 0};
  const timespec limit = to_timespec(std::max(timeout, Nanos(0)));
  if (ppoll(&ready, 1, &limit, nullptr) <= 0)
    return true;  // Time is up, or a signal: the caller looks again.
  if ((ready.revents & ~POLLOUT) == 0) return true;
  return receive(received, why);
}

bool Socket::receive(std::string& received, std::string& why) {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(fd_, buffer, sizeof(buffer), 0);
  if (got > 0) {
    received_.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    received.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  why = got == 0 ? "the connection was closed" : error_text(errno);
  return false;
}

}  // namespace pawl::client
