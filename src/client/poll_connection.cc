#include "client/poll_connection.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"

namespace pawl::client {

PollConnection::PollConnection(std::vector<Endpoint> endpoints, Random& random,
                               MachineOptions options, Millis connect_timeout)
    : endpoints_(std::move(endpoints)),
      connect_timeout_(connect_timeout),
      machine_(random, std::move(options)) {
  PAWL_ASSERT(!endpoints_.empty());
}

Instant PollConnection::next_timer() const {
  if (!socket_.is_connecting()) return machine_.next_timer();
  // The machine wants a connection now, which is on its way.
  const Instant next = machine_.wants_connection(boot_now()) ? kNever : machine_.next_timer();
  return std::min(next, connect_limit_);
}

void PollConnection::process(short revents) {
  if (socket_.is_connecting()) {
    if (revents != 0) {
      on_connect_progress(socket_.continue_connect());
    } else if (boot_now() >= connect_limit_) {
      socket_.time_out();
      on_connect_failed();
    }
  } else if (socket_.is_open() && (revents & ~POLLOUT) != 0) {
    receive();
  }
  machine_.on_timer(boot_now());
  if (machine_.wants_close()) hang_up(machine_.last_error());
  if (!socket_.is_connecting() && machine_.wants_connection(boot_now())) start_connect();
  flush();
}

void PollConnection::wait_and_process(Instant until) {
  pollfd socket = interest();
  const Instant next = std::min(next_timer(), until);
  if (::poll(&socket, 1, poll_timeout(next - boot_now())) < 0) socket.revents = 0;
  process(socket.revents);
}

void PollConnection::flush() {
  if (!socket_.is_open()) return;
  unsent_ += machine_.take_output();
  // If it fails, receive() learns why.
  if (!unsent_.empty()) static_cast<void>(socket_.send(unsent_));
}

// --- Connecting ----------------------------------------------------------------------------------

void PollConnection::start_connect() {
  connect_limit_ = boot_now() + connect_timeout_;
  on_connect_progress(socket_.start(endpoints_[current_]));
}

void PollConnection::on_connect_progress(Socket::Progress progress) {
  if (progress == Socket::Progress::kFailed) return on_connect_failed();
  if (progress == Socket::Progress::kPending) return;
  failed_ = 0;
  errors_.clear();
  machine_.connected(boot_now(), endpoints_[current_].name);
}

// Tries the next endpoint at once; after all of them the machine backs off.
void PollConnection::on_connect_failed() {
  if (socket_.is_tls_mismatch()) ++tls_mismatches_;
  errors_ += (errors_.empty() ? "" : "; ") + endpoints_[current_].name + ": " + socket_.error();
  current_ = (current_ + 1) % endpoints_.size();
  if (++failed_ < endpoints_.size()) return start_connect();
  failed_ = 0;
  machine_.disconnected(std::exchange(errors_, {}), boot_now());
  if (!keep_retrying_) machine_.all_addresses_failed();
}

// --- Receiving -----------------------------------------------------------------------------------

void PollConnection::receive() {
  std::string received, why;
  const bool alive = socket_.receive(received, why);
  if (!received.empty()) {
    tls_mismatches_ = 0;
    // The clock after the socket: an answer must never be dated earlier than it arrived.
    machine_.received(received, boot_now());
  }
  if (!alive) hang_up(why);
}

void PollConnection::hang_up(const std::string& why) {
  socket_.close();
  if (socket_.is_tls_mismatch()) ++tls_mismatches_;
  unsent_.clear();
  const std::string& name = endpoints_[current_].name;
  current_ = (current_ + 1) % endpoints_.size();
  machine_.disconnected(name + ": " + why, boot_now());
  if (tls_mismatches_ >= endpoints_.size() && !keep_retrying_) machine_.all_addresses_failed();
}

}  // namespace pawl::client
