#include "client/poll_connection.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "client/boot_clock.h"

namespace pawl::client {

namespace {

// Each name once, in order.
template <class Target>
std::vector<Target> group(std::vector<Endpoint> endpoints) {
  std::vector<Target> targets;
  for (Endpoint& endpoint : endpoints) {
    if (targets.empty() || targets.back().name != endpoint.name)
      targets.push_back({endpoint.name, {}});
    targets.back().endpoints.push_back(std::move(endpoint));
  }
  return targets;
}

template <class Target>
MachineOptions with_nodes(MachineOptions options, const std::vector<Target>& targets) {
  for (const Target& target : targets) {
    auto address = parse_addresses(target.name);
    PAWL_ASSERT(address && address->size() == 1);
    address->front().context = target.endpoints.front().tls;
    options.nodes.push_back(std::move(address->front()));
  }
  return options;
}

}  // namespace

PollConnection::PollConnection(std::vector<Endpoint> endpoints, Random& random,
                               MachineOptions options, Millis connect_timeout)
    : connect_timeout_(connect_timeout),
      targets_(group<Target>(std::move(endpoints))),
      configured_(targets_.size()),
      machine_(random, with_nodes(std::move(options), targets_)) {
  PAWL_ASSERT(!targets_.empty());
}

std::size_t PollConnection::endpoints() const {
  std::size_t count = 0;
  for (const Target& target : targets_) count += target.endpoints.size();
  return count;
}

Instant PollConnection::next_timer() const {
  if (!is_busy()) return machine_.next_timer();
  // The machine wants a connection now, which is on its way.
  const Instant next = machine_.wants_connection(boot_now()) ? kNever : machine_.next_timer();
  return std::min(next, connect_limit_);
}

void PollConnection::process(short revents) {
  if (lookup_.busy()) {
    if (auto endpoints = lookup_.take()) {
      on_looked_up(*std::move(endpoints));
    } else if (boot_now() >= connect_limit_) {
      lookup_.give_up();
      on_node_failed("looking up its name took too long");
    }
  } else if (socket_.is_connecting()) {
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
  while (!is_busy() && machine_.wants_connection(boot_now())) connect_to_node();
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

void PollConnection::connect_to_node() {
  const std::string name = to_text(machine_.node());
  const auto found = std::find_if(targets_.begin(), targets_.end(),
                                  [&](const Target& target) { return target.name == name; });
  if (found != targets_.end()) {
    target_ = static_cast<std::size_t>(found - targets_.begin());
    endpoint_ = 0;
    return start_connect();
  }
  connect_limit_ = boot_now() + connect_timeout_;
  lookup_.start(machine_.node());
  if (auto endpoints = lookup_.take()) on_looked_up(*std::move(endpoints));
}

void PollConnection::on_looked_up(Result<std::vector<Endpoint>> endpoints) {
  if (!endpoints) return on_node_failed(endpoints.error().detail);
  // The oldest one makes room; if it is named again, it is looked up again.
  if (targets_.size() == configured_ + limits::kNodesLearnt)
    targets_.erase(targets_.begin() + static_cast<std::ptrdiff_t>(configured_));
  targets_.push_back({to_text(machine_.node()), *std::move(endpoints)});
  target_ = targets_.size() - 1;
  endpoint_ = 0;
  start_connect();
}

void PollConnection::start_connect() {
  connect_limit_ = boot_now() + connect_timeout_;
  on_connect_progress(socket_.start(targets_[target_].endpoints[endpoint_]));
}

void PollConnection::on_connect_progress(Socket::Progress progress) {
  if (progress == Socket::Progress::kFailed) return on_connect_failed();
  if (progress == Socket::Progress::kPending) return;
  any_answered_ = true;
  errors_.clear();
  machine_.connected(boot_now(), targets_[target_].name);
}

// Tries the next endpoint at once, then the next pawld; after all of them the machine backs off.
void PollConnection::on_connect_failed() {
  if (socket_.is_tls_mismatch()) ++tls_mismatches_;
  const std::string why = socket_.error();
  if (++endpoint_ < targets_[target_].endpoints.size()) {
    errors_ += (errors_.empty() ? "" : "; ") + targets_[target_].name + ": " + why;
    return start_connect();
  }
  on_node_failed(why);
}

void PollConnection::on_node_failed(const std::string& why) {
  errors_ += (errors_.empty() ? "" : "; ") + to_text(machine_.node()) + ": " + why;
  machine_.disconnected(errors_, boot_now());
  if (!machine_.round_is_over()) return;
  errors_.clear();
  // One that stands by is no reason to fail: another will take over.
  if (!std::exchange(any_answered_, false) && !keep_retrying_) machine_.all_addresses_failed();
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
  machine_.disconnected(targets_[target_].name + ": " + why, boot_now());
  if (machine_.round_is_over()) any_answered_ = false;
  if (tls_mismatches_ >= endpoints() && !keep_retrying_) machine_.all_addresses_failed();
}

}  // namespace pawl::client
