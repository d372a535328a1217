#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/boot_clock.h"
#include "tls/stream.h"

namespace pawl::net {

struct Socket::Secure {
  explicit Secure(const Endpoint& to) : stream(*to.tls, to.host, to.alpn) {}
  mutable std::mutex mutex;
  tls::Stream stream;  // guarded by mutex once the socket is open
};

Socket::Socket() = default;

Socket::~Socket() {
  close();
}

void Socket::close() {
  tls_mismatch_ = is_tls_mismatch();
  if (is_open() && secure_) {
    bool lost = false;
    const std::lock_guard lock(secure_->mutex);
    secure_->stream.close();
    secure_->stream.flush([&](std::string_view out) { return send_some(out, lost); });
  }
  fd_.reset();
  secure_.reset();
  state_ = State::kClosed;
  sent_ = 0;
  received_ = 0;
}

// --- Connecting ----------------------------------------------------------------------------------

Socket::Progress Socket::fail(std::string error) {
  error_ = std::move(error);
  close();
  return Progress::kFailed;
}

Socket::Progress Socket::start(const Endpoint& to) {
  close();
  tls_mismatch_ = false;
  to_ = &to;
  fd_ = UniqueFd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_) return fail(error_text(errno));
  const int yes = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  state_ = State::kConnecting;
  if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0)
    return finish_tcp();
  return errno == EINPROGRESS ? Progress::kPending : fail(error_text(errno));
}

Socket::Progress Socket::continue_connect() {
  PAWL_ASSERT(is_connecting());
  return state_ == State::kConnecting ? finish_tcp() : continue_handshake();
}

Socket::Progress Socket::finish_tcp() {
  int error = 0;
  socklen_t size = sizeof(error);
  PAWL_ASSERT(getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  if (error != 0) return fail(error_text(error));
  if (!to_->tls) {
    state_ = State::kOpen;
    return Progress::kOpen;
  }
  state_ = State::kHandshake;
  secure_ = std::make_unique<Secure>(*to_);
  bool lost = false;
  secure_->stream.flush([&](std::string_view out) { return send_some(out, lost); });
  return Progress::kPending;
}

// One step. No other thread uses this socket yet, so the lock is not needed.
Socket::Progress Socket::continue_handshake() {
  tls::Stream& stream = secure_->stream;
  char buffer[16 * 1024];
  const ssize_t got = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
  if (got > 0) stream.receive({buffer, static_cast<std::size_t>(got)});
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) stream.receive_end();
  bool lost = false;
  // Also when it failed: the server learns why we refuse it.
  stream.flush([&](std::string_view out) { return send_some(out, lost); });
  if (stream.state() == tls::Stream::State::kHandshake) return Progress::kPending;
  if (stream.state() == tls::Stream::State::kFailed)
    return fail("TLS handshake: " + stream.error());
  if (stream.alpn() != to_->alpn)
    return fail("TLS handshake: the server does not offer " + to_->alpn);
  state_ = State::kOpen;
  return Progress::kOpen;
}

void Socket::time_out() {
  PAWL_ASSERT(is_connecting());
  const std::string during = state_ == State::kHandshake ? "TLS handshake: " : "";
  fail(during + error_text(ETIMEDOUT));
}

Result<void> Socket::connect(const Endpoint& to, Millis timeout) {
  const Instant until = boot_now() + timeout;
  Progress progress = start(to);
  while (progress == Progress::kPending) {
    pollfd ready = interest(false);
    const int polled = ::poll(&ready, 1, poll_timeout(until - boot_now()));
    if (polled < 0 && errno == EINTR) continue;
    if (polled > 0) {
      progress = continue_connect();
    } else if (boot_now() >= until) {
      time_out();
      progress = Progress::kFailed;
    }
  }
  if (progress == Progress::kOpen) return {};
  return Error{tls_mismatch_ ? Code::kInvalid : Code::kUnavailable, to.name + ": " + error_};
}

bool Socket::is_tls_mismatch() const {
  if (!secure_) return tls_mismatch_;
  const std::lock_guard lock(secure_->mutex);
  return secure_->stream.failed_by_configuration();
}

// --- Polling -------------------------------------------------------------------------------------

pollfd Socket::interest(bool has_unsent) const {
  bool writes = has_unsent;
  if (state_ == State::kConnecting) writes = true;
  if (state_ == State::kHandshake) writes = secure_->stream.has_output();
  return {fd_.get(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0};
}

std::uint16_t Socket::local_port() const {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  if (getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) return 0;
  // The port is at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in&>(local).sin_port);
}

// --- Bytes ---------------------------------------------------------------------------------------

std::size_t Socket::send_some(std::string_view bytes, bool& lost) {
  for (;;) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    lost = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    if (sent < 0) return 0;
    sent_.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
    return static_cast<std::size_t>(sent);
  }
}

bool Socket::send(std::string& bytes) {
  bool lost = false;
  const auto out = [&](std::string_view some) { return send_some(some, lost); };
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

bool Socket::receive(std::string& received, std::string& why) {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
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
  char buffer[16 * 1024];
  bool lost = false;
  const std::lock_guard lock(secure_->mutex);
  tls::Stream& stream = secure_->stream;
  stream.receive(bytes);
  while (const std::size_t count = stream.read(buffer)) received.append(buffer, count);
  stream.flush([&](std::string_view out) { return send_some(out, lost); });
  if (stream.state() == tls::Stream::State::kFailed) why = "TLS: " + stream.error();
  if (stream.state() == tls::Stream::State::kEnded) why = "the connection was closed";
  return stream.state() == tls::Stream::State::kOpen;
}

}  // namespace pawl::net
