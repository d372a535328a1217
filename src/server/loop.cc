#include "server/loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/assert.h"

namespace pawl::server {
namespace {

constexpr std::uint64_t kListenerKey = 0;  // Connections count from kFirstConnection.
constexpr std::uint64_t kSignalsKey = 1;
constexpr std::uint64_t kWakeKey = 2;
constexpr std::uint64_t kReadableKey = 3;
constexpr std::uint64_t kFirstConnection = 4;

// Every ready socket is seen in one turn: a hang-up must not hide behind a full list of events.
constexpr std::size_t kEventsMax = limits::kConnectionsMax + limits::kConnectionsReserved +
                                   limits::kNewcomersMax + limits::kHandshakesMax + 16;
// Looks again, without waiting, before a turn: what arrived while the sockets were read shares its
// commit.
constexpr int kGatherMore = 2;
// At most so many connections are accepted at once, and at most a quarter of the newcomers that
// there may be: otherwise one would be displaced before what it has sent was read.
constexpr std::size_t kAcceptsAtOnce = 256;
// When no descriptor is left in the whole system.
constexpr Millis kAcceptPause{100};
// An idle loop takes a turn this often, to notice that it was paused, or that the disk is full or
// no longer full.
constexpr Millis kIdleWake{250};
// Bytes read of a peer that has hung up.
constexpr std::size_t kReadAfterHangupMax = 2 * limits::kFrameMax;

Error system_error(const char* what) {
  return Error{Code::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno))};
}

int to_epoll_timeout(Nanos patience) {
  return static_cast<int>(std::chrono::ceil<Millis>(patience).count());
}

UniqueFd open_spare() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Loop::Loop(Log& log, Limits limits)
    : log_(log),
      accepts_at_once_(std::clamp<std::size_t>(limits.newcomers / 4, 1, kAcceptsAtOnce)),
      spare_(open_spare()),
      last_id_(kFirstConnection - 1),
      handshakes_({.under_way = limits.handshakes, .random = &random_}),
      events_(kEventsMax) {}

Nanos Loop::monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

Result<void> Loop::open() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_error("epoll_create1");
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&handled, signal);
  signals_ = UniqueFd(::signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) return system_error("signalfd");
  wake_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_) return system_error("eventfd");
  epoll_event signal{EPOLLIN, {.u64 = kSignalsKey}};
  epoll_event wake{EPOLLIN, {.u64 = kWakeKey}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, signals_.get(), &signal) != 0 ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &wake) != 0)
    return system_error("epoll_ctl");
  return {};
}

Result<void> Loop::listen(Listener listener) {
  listener_ = std::move(listener.socket);
  epoll_event event{EPOLLIN, {.u64 = kListenerKey}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0)
    return system_error("epoll_ctl");
  return {};
}

bool Loop::poll(Engine& engine) {
  turn(engine, 0);
  return !stopping_;
}

void Loop::attach(EngineMailbox& mailbox) {
  mailbox_ = &mailbox;
  mailbox.wake_loop_with(this);
}

Result<void> Loop::attach(Readable& readable) {
  readable_ = &readable;
  epoll_event event{EPOLLIN, {.u64 = kReadableKey}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, readable.fd(), &event) != 0)
    return system_error("epoll_ctl");
  return {};
}

void Loop::wake() {
  (void)::eventfd_write(wake_.get(), 1);
}

// Before what woke it is looked at: a wake() that comes meanwhile is not lost.
void Loop::take_wake() {
  eventfd_t count = 0;
  (void)::eventfd_read(wake_.get(), &count);
  woken_ = true;
}

void Loop::run(Engine& engine) {
  while (!stopping_) turn(engine, patience_ms(engine));
  if (drain_) drain(engine);
  listener_.reset();
  engine.stop();
  connections_.clear();
}

int Loop::patience_ms(const Engine& engine) const {
  return to_epoll_timeout(
      std::min({engine.patience(), handshake_patience(), accept_patience(), Nanos(kIdleWake)}));
}

void Loop::drain(Engine& engine) {
  const Nanos end = monotonic_now() + drain_->limit;
  drain_->begin();
  while (!drain_->done() && monotonic_now() < end) turn(engine, patience_ms(engine));
}

void Loop::turn(Engine& engine, int timeout_ms) {
  engine.expect_sleep(Millis(timeout_ms));
  if (accepting_paused_until_) resume_accepting();
  int ready = gather(engine, timeout_ms);
  for (int more = 0; more < kGatherMore && ready > 0; ++more) ready = gather(engine, 0);
  if (!handshakes_.empty()) advance_handshakes(engine);
  // A bounded share of each turn; what is left comes in the next one.
  if (std::exchange(woken_, false) && mailbox_ != nullptr &&
      mailbox_->serve(engine, limits::kMailboxPerTurn))
    wake();
  engine.run_turn();
}

// Reads every socket that is ready, and returns how many were.
int Loop::gather(Engine& engine, int timeout_ms) {
  const int count =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  PAWL_ASSERT(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.u64 == kListenerKey) {
      accept_some(engine);
    } else if (event.data.u64 == kSignalsKey) {
      take_signals();
    } else if (event.data.u64 == kWakeKey) {
      take_wake();
    } else if (event.data.u64 == kReadableKey) {
      readable_->run();
    } else {
      serve(engine, ConnectionId{event.data.u64}, event.events);
    }
  }
  return count;
}

void Loop::take_signals() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
    if (signal.ssi_signo != static_cast<std::uint32_t>(SIGHUP)) {
      stopping_ = true;
    } else if (reload_) {
      reload_();
    }
  }
}

// --- Accepting -----------------------------------------------------------------------------------

void Loop::accept_some(Engine& engine) {
  for (std::size_t i = 0; i < accepts_at_once_ && !handshakes_.full(); ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      turning_away_ = false;
      accept_one(engine, std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE) {
      engine.count_refused_connection();
      if (!refuse_connection()) return pause_accepting();
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void Loop::accept_one(Engine& engine, UniqueFd socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const ConnectionId id{++last_id_};
  Connection& connection = connections_[id];
  connection.socket = std::move(socket);
  if (tls_) return begin_handshake(engine, id, connection);
  if (engine.connected(id, peer_of(connection.socket.get()))) watch(id, connection);
}

// No descriptor is left. A connection in the backlog is refused with an error; left there it would
// wake the loop for ever.
bool Loop::refuse_connection() {
  spare_.reset();
  bool refused = false;
  {
    const UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    static constexpr std::string_view kRefusal =
        "-BUSY file descriptors: the limit of this process is reached\r\n";
    refused = static_cast<bool>(socket);
    if (socket) (void)::send(socket.get(), kRefusal.data(), kRefusal.size(), MSG_NOSIGNAL);
  }
  spare_ = open_spare();
  if (!std::exchange(turning_away_, true)) {
    log_.warning(
        "connections are refused: out of file descriptors (raise LimitNOFILE or ulimit -n)",
        {{"event", "out_of_descriptors"}});
  }
  return refused;
}

// What waits in the backlog would wake the loop for ever.
void Loop::pause_accepting() {
  if (!accepting_paused_until_)
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accepting_paused_until_ = monotonic_now() + kAcceptPause;
}

void Loop::resume_accepting() {
  if (monotonic_now() < *accepting_paused_until_) return;
  epoll_event event{EPOLLIN, {.u64 = kListenerKey}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) return;
  accepting_paused_until_.reset();
}

Nanos Loop::accept_patience() const {
  if (!accepting_paused_until_) return Nanos::max();
  return std::max(*accepting_paused_until_ - monotonic_now(), Nanos(0));
}

// --- Reading -------------------------------------------------------------------------------------

void Loop::serve(Engine& engine, ConnectionId id, std::uint32_t events) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (connection->in_handshake) return handshakes_.mark_ready(id);
  const bool ended = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (connection->hung_up) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) connection->broken = true;
  } else if (ended || (events & EPOLLIN) != 0) {
    const bool end_seen = read(engine, id, *connection, ended);
    if (ended || end_seen) end_input(engine, id, *connection);
  }
  if ((events & EPOLLOUT) != 0 && connection->tls) flush_tls(id, *connection);
  if ((events & EPOLLOUT) != 0 || connection->broken) engine.writable(id);
}

void Loop::end_input(Engine& engine, ConnectionId id, Connection& connection) {
  connection.hung_up = true;
  engine.hangup(id);
  watch(id, connection);
}

bool Loop::read(Engine& engine, ConnectionId id, Connection& connection, bool to_the_end) {
  if (!connection.reading) return false;
  for (std::size_t total = 0;;) {
    const ssize_t count = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
    if (count == 0) return true;
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      connection.broken = true;
      return true;
    }
    const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(count));
    if (!connection.tls) {
      engine.received(id, bytes);
    } else if (connection.tls->receive(bytes); !decrypt(engine, id, connection)) {
      return true;
    }
    total += static_cast<std::size_t>(count);
    if (to_the_end && total < kReadAfterHangupMax) continue;
    // Only a full buffer can have left something behind, and epoll reports a socket only once.
    if (static_cast<std::size_t>(count) == buffer_.size()) rewatch(id, connection);
    return false;
  }
}

// --- What the engine asks ------------------------------------------------------------------------

std::size_t Loop::to_socket(Connection& connection, std::string_view bytes) {
  const ssize_t sent = ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  connection.broken = true;
  return bytes.size();
}

std::size_t Loop::send(ConnectionId id, std::string_view bytes) {
  if (EngineMailbox::owns(id)) return mailbox_->deliver(id, bytes);
  Connection* connection = find(id);
  PAWL_ASSERT(connection != nullptr);
  if (connection->broken) return bytes.size();
  const std::size_t sent =
      connection->tls ? encrypt_and_send(*connection, bytes) : to_socket(*connection, bytes);
  const bool stalled = sent < bytes.size();
  if (stalled != connection->stalled) {
    connection->stalled = stalled;
    watch(id, *connection);
  }
  return sent;
}

void Loop::want_input(ConnectionId id, bool wanted) {
  if (EngineMailbox::owns(id)) return;  // The mailbox bounds what it takes in by itself.
  Connection* connection = find(id);
  PAWL_ASSERT(connection != nullptr);
  connection->reading = wanted;
  watch(id, *connection);
}

void Loop::close(ConnectionId id) {
  if (EngineMailbox::owns(id)) return mailbox_->close(id);
  Connection* connection = find(id);
  PAWL_ASSERT(connection != nullptr);
  if (connection->tls && !connection->broken) send_tls_close(*connection);
  // Closing with unread input resets the connection, and the peer could miss the last reply.
  if (!connection->hung_up) {
    ::shutdown(connection->socket.get(), SHUT_WR);
    (void)::recv(connection->socket.get(), buffer_.data(), buffer_.size(), 0);
  }
  connections_.erase(id);  // Closing takes it out of epoll.
}

void Loop::watch(ConnectionId id, Connection& connection) {
  std::uint32_t wanted = connection.stalled ? std::uint32_t{EPOLLOUT} : 0U;
  if (!connection.hung_up)
    wanted |= (connection.reading ? std::uint32_t{EPOLLIN} : 0U) | EPOLLRDHUP;
  if (wanted == connection.watched) return;
  // A socket that hung up and owes nothing leaves epoll: EPOLLHUP cannot be masked, and would wake
  // the loop for ever.
  const int operation = connection.watched == 0 ? EPOLL_CTL_ADD
                        : wanted == 0           ? EPOLL_CTL_DEL
                                                : EPOLL_CTL_MOD;
  connection.watched = wanted;
  control(operation, id, connection);
}

// What is ready already is reported once more.
void Loop::rewatch(ConnectionId id, Connection& connection) {
  if (connection.watched != 0) control(EPOLL_CTL_MOD, id, connection);
}

// Edge-triggered: otherwise the kernel polls every socket that was ready a second time, at the next
// turn, to find out that it no longer is. That was a twentieth of all time.
void Loop::control(int operation, ConnectionId id, const Connection& connection) {
  epoll_event event{connection.watched | EPOLLET, {.u64 = id.value}};
  const int done = ::epoll_ctl(epoll_.get(), operation, connection.socket.get(), &event);
  PAWL_ASSERT(done == 0);
}

Loop::Connection* Loop::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

}  // namespace pawl::server
