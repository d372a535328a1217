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
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"
#include "tls/stream.h"

namespace pawl::client {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

timespec to_timespec(Nanos span) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

// 0, or the error.
int await(int fd, short events, Nanos timeout) {
  pollfd ready{fd, events, 0};
  const timespec limit = to_timespec(std::max(timeout, Nanos(0)));
  int polled = 0;
  do polled = ppoll(&ready, 1, &limit, nullptr);
  while (polled < 0 && errno == EINTR);
  if (polled < 0) return errno;
  return polled == 0 ? ETIMEDOUT : 0;
}

// 0, or the error.
int await_connect(int fd, Millis timeout) {
  if (const int error = await(fd, POLLOUT, timeout); error != 0) return error;
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

struct Socket::Secure {
  Secure(const tls::ClientContext& context, const std::string& host) : stream(context, host) {}
  mutable std::mutex mutex;
  tls::Stream stream;  // guarded by mutex
};

Socket::Socket() = default;

Socket::~Socket() {
  close();
}

void Socket::close() {
  if (fd_ >= 0 && secure_) {
    bool lost = false;
    const std::lock_guard lock(secure_->mutex);
    secure_->stream.close();
    secure_->stream.flush([&](std::string_view out) { return to_socket(out, lost); });
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  secure_.reset();
  sent_ = 0;
  received_ = 0;
}

Result<void> Socket::connect(const Address& address, Millis timeout) {
  close();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) return Error{Code::kUnavailable, to_text(address) + ": " + gai_strerror(failed)};
  const AddressInfo owner(found, &freeaddrinfo);
  Error why{Code::kUnavailable, error_text(EADDRNOTAVAIL)};
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const Instant until = boot_now() + timeout;
    fd_ = ::socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
    const int error = try_connect(fd_, *to, timeout);
    const auto done = error != 0    ? Error{Code::kUnavailable, error_text(error)}
                      : address.tls ? shake_hands(address, until)
                                    : Result<void>();
    if (done) return {};
    // Of several, what does not fit says more than what was not there.
    if (why.code != Code::kInvalid) why = done.error();
    close();
  }
  return Error{why.code, to_text(address) + ": " + why.detail};
}

// --- TLS -----------------------------------------------------------------------------------------

Result<void> Socket::shake_hands(const Address& address, Instant until) {
  PAWL_ASSERT(address.context != nullptr);
  secure_ = std::make_unique<Secure>(*address.context, address.host);
  tls::Stream& stream = secure_->stream;  // Nobody else has this socket yet.
  using State = tls::Stream::State;
  while (stream.state() == State::kHandshake) {
    bool lost = false;
    const bool all = stream.flush([&](std::string_view out) { return to_socket(out, lost); });
    const auto events = static_cast<short>(POLLIN | (all ? 0 : POLLOUT));
    if (const int error = await(fd_, events, until - boot_now()); error != 0) {
      return Error{Code::kUnavailable, "TLS handshake: " + error_text(error)};
    }
    char buffer[16 * 1024];
    const ssize_t got = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (got > 0) stream.receive({buffer, static_cast<std::size_t>(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) stream.receive_end();
  }
  bool lost = false;
  stream.flush(
      [&](std::string_view out) { return to_socket(out, lost); });  // Also why we refuse it.
  if (stream.state() != State::kFailed) return {};
  return Error{stream.failed_by_configuration() ? Code::kInvalid : Code::kUnavailable,
               "TLS handshake: " + stream.error()};
}

bool Socket::is_misfit() const {
  if (!secure_) return false;
  const std::lock_guard lock(secure_->mutex);
  return secure_->stream.failed_by_configuration();
}

std::size_t Socket::to_socket(std::string_view bytes, bool& lost) {
  for (;;) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    lost = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    if (sent < 0) return 0;
    sent_.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
    return static_cast<std::size_t>(sent);
  }
}

std::uint16_t Socket::local_port() const {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&local), &size) != 0) return 0;
  // The port is at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in&>(local).sin_port);
}

// --- Bytes ---------------------------------------------------------------------------------------

bool Socket::send(std::string& bytes) {
  bool lost = false;
  const auto out = [&](std::string_view some) { return to_socket(some, lost); };
  if (secure_) {
    const std::lock_guard lock(secure_->mutex);
    bytes.erase(0, secure_->stream.send(bytes, out));
    return !lost && secure_->stream.state() != tls::Stream::State::kFailed;
  }
  while (!bytes.empty() && !lost) {
    const std::size_t sent = out(bytes);
    if (sent == 0) break;
    bytes.erase(0, sent);
  }
  return !lost;
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
    const std::string_view bytes(buffer, static_cast<std::size_t>(got));
    if (secure_) return decrypt(bytes, received, why);
    received.append(bytes);
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  why = got == 0 ? "the connection was closed" : error_text(errno);
  return false;
}

bool Socket::decrypt(std::string_view bytes, std::string& received, std::string& why) {
  using State = tls::Stream::State;
  char buffer[16 * 1024];
  bool lost = false;
  const std::lock_guard lock(secure_->mutex);
  tls::Stream& stream = secure_->stream;
  stream.receive(bytes);
  while (const std::size_t count = stream.read(buffer)) received.append(buffer, count);
  stream.flush([&](std::string_view out) { return to_socket(out, lost); });
  if (stream.state() == State::kFailed) why = "TLS: " + stream.error();
  if (stream.state() == State::kEnded) why = "the connection was closed";
  return stream.state() == State::kOpen;
}

}  // namespace pawl::client
