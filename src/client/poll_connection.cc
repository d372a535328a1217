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
#include "client/socket.h"

namespace pawl::client {
namespace {}  // namespace

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
      endpoint.host = address.host;
      endpoint.tls = address.context;
    }
  }
  if (endpoints.empty()) return Error{Code::kUnavailable, why};
  return endpoints;
}

PollConnection::PollConnection(std::vector<Endpoint> endpoints, Random& random,
                               MachineOptions options, Millis connect_timeout)
    : endpoints_(std::move(endpoints)),
      connect_timeout_(connect_timeout),
      machine_(random, std::move(options)) {
  PAWL_ASSERT(!endpoints_.empty());
}

pollfd PollConnection::interest() const {
  const bool writes =
      stream_ && connecting_ ? stream_->has_output() : connecting_ || !unsent_.empty();
  return {socket_.get(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0};
}

Instant PollConnection::next_timer() const {
  // While an attempt is under way, the machine's wish for a connection is being met.
  const Instant next =
      connecting_ && machine_.wants_connection(boot_now()) ? kNever : machine_.next_timer();
  return connecting_ ? std::min(next, connect_limit_) : next;
}

void PollConnection::turn(short revents) {
  if (connecting_ && (revents != 0 || boot_now() >= connect_limit_)) {
    if (revents == 0) {
      connect_failed(stream_ ? "TLS handshake: " + error_text(ETIMEDOUT) : error_text(ETIMEDOUT));
    } else {
      stream_ ? shake_hands() : end_connect();
    }
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
  if (::poll(&socket, 1, poll_timeout(next_timer() - boot_now())) < 0) socket.revents = 0;
  turn(socket.revents);
}

void PollConnection::begin_connect() {
  const Endpoint& to = endpoints_[at_];
  socket_ = UniqueFd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return connect_failed(error_text(errno));
  const int yes = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  connecting_ = true;
  connect_limit_ = boot_now() + connect_timeout_;
  const auto* address = reinterpret_cast<const sockaddr*>(&to.address);
  if (::connect(socket_.get(), address, to.size) == 0) return end_connect();
  if (errno != EINPROGRESS) connect_failed(error_text(errno));
}

void PollConnection::end_connect() {
  int error = 0;
  socklen_t size = sizeof(error);
  PAWL_ASSERT(getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  if (error != 0) return connect_failed(error_text(error));
  endpoints_[at_].tls ? begin_handshake() : established();
}

void PollConnection::begin_handshake() {
  const Endpoint& to = endpoints_[at_];
  stream_ = std::make_unique<tls::Stream>(*to.tls, to.host);
  stream_->flush([this](std::string_view out) { return to_socket(out); });
}

// One step of the TLS handshake.
void PollConnection::shake_hands() {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (got > 0) stream_->receive({buffer, static_cast<std::size_t>(got)});
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) stream_->receive_end();
  stream_->flush([this](std::string_view out) { return to_socket(out); });
  if (stream_->state() == tls::Stream::State::kHandshake) return;
  if (stream_->state() != tls::Stream::State::kFailed) return established();
  if (stream_->failed_by_configuration()) ++misfits_;
  connect_failed("TLS handshake: " + stream_->error());
}

void PollConnection::established() {
  connecting_ = false;
  tried_ = 0;
  why_.clear();
  machine_.connected(boot_now(), endpoints_[at_].name);
}

// The next endpoint at once; after all of them the machine backs off.
void PollConnection::connect_failed(const std::string& why) {
  socket_.reset();
  stream_.reset();
  connecting_ = false;
  why_ += (why_.empty() ? "" : "; ") + endpoints_[at_].name + ": " + why;
  at_ = (at_ + 1) % endpoints_.size();
  if (++tried_ < endpoints_.size()) return begin_connect();
  tried_ = 0;
  machine_.disconnected(std::exchange(why_, {}), boot_now());
  if (!patient_) machine_.unreachable();
}

void PollConnection::flush() {
  if (connecting_ || !socket_) return;
  unsent_ += machine_.take_output();
  lost_ = 0;
  const auto out = [this](std::string_view bytes) { return to_socket(bytes); };
  if (stream_) {
    unsent_.erase(0, stream_->send(unsent_, out));
  } else {
    for (std::size_t sent = 1; sent > 0 && !unsent_.empty();) unsent_.erase(0, sent = out(unsent_));
  }
  if (lost_ != 0) hang_up(error_text(lost_));
}

// What the socket has room for; nothing, when nobody is there.
std::size_t PollConnection::to_socket(std::string_view bytes) {
  for (;;) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) lost_ = errno;
    return 0;
  }
}

void PollConnection::read() {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) return hang_up(got == 0 ? "the connection was closed" : error_text(errno));
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  if (stream_) return decrypt(bytes);
  // The clock after the socket: an answer must never look younger than it is.
  machine_.received(bytes, boot_now());
}

void PollConnection::decrypt(std::string_view bytes) {
  char buffer[16 * 1024];
  stream_->receive(bytes);
  while (const std::size_t count = stream_->read(buffer)) {
    misfits_ = 0;
    machine_.received({buffer, count}, boot_now());
  }
  stream_->flush([this](std::string_view out) { return to_socket(out); });
  if (stream_->state() == tls::Stream::State::kEnded) hang_up("the connection was closed");
  if (stream_ && stream_->state() == tls::Stream::State::kFailed)
    hang_up("TLS: " + stream_->error());
}

void PollConnection::hang_up(const std::string& why) {
  if (stream_ && stream_->failed_by_configuration()) ++misfits_;
  socket_.reset();
  stream_.reset();
  unsent_.clear();
  const std::string at = endpoints_[at_].name;
  at_ = (at_ + 1) % endpoints_.size();
  machine_.disconnected(at + ": " + why, boot_now());
  if (misfits_ >= endpoints_.size() && !patient_) machine_.unreachable();
}

}  // namespace pawl::client
