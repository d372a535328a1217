#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/assert.h"
#include "client/fork_guard.h"
#include "pawl/testing/server.h"
#include "server/listener.h"
#include "testing/server_thread.h"
#include "testing/test_clocks.h"

namespace pawl {

// The one way to a client with a clock of our own; pawl/client.h names it as a friend.
struct client::TestAccess {
  static Client make(std::string_view address, ClientOptions options,
                     std::shared_ptr<TestTime> time) {
    return Client(address, std::move(options), std::move(time));
  }
};

namespace testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kIdleLimit = 1'000ms;    // For one client; a callback may be stuck.
constexpr auto kSettleLimit = 5'000ms;  // For all of them together.
// While other threads use their clients, the traffic may never stop. What was due at the start is
// done after this many round trips: no call has more than three (HELLO, request, confirmation).
constexpr int kBusyRounds = 4;

enum class Break : std::uint8_t { kWhenExpired, kNow };

server::Listener listen() {
  auto listener = server::listen_on({"127.0.0.1", "0"});
  if (!listener) throw std::runtime_error("pawl::testing::Server: " + listener.error().detail);
  return *std::move(listener);
}

// Whether `check` holds for every connected client and pawld's count of its traffic.
template <class Check>
bool all_connected(const std::vector<client::IdleState>& idle_clients, const TrafficByPort& traffic,
                   Check check) {
  return std::all_of(idle_clients.begin(), idle_clients.end(), [&](const client::IdleState& idle) {
    if (idle.ended || idle.local_port == 0) return true;
    const auto other_end = traffic.find(idle.local_port);
    return other_end != traffic.end() && check(idle, other_end->second);
  });
}

// No byte is in flight: both ends have sent and received the same counts.
bool all_delivered(const std::vector<client::IdleState>& idle_clients,
                   const TrafficByPort& traffic) {
  return all_connected(idle_clients, traffic,
                       [](const client::IdleState& idle, const Traffic& pawld) {
                         return pawld.received == idle.sent && pawld.sent == idle.received;
                       });
}

// Everything that was sent before the last round has arrived, though other threads send more.
bool all_keep_up(const std::vector<client::IdleState>& idle_clients, const TrafficByPort& traffic,
                 const TrafficByPort& before) {
  return all_connected(idle_clients, traffic,
                       [&](const client::IdleState& idle, const Traffic& pawld) {
                         const auto earlier = before.find(idle.local_port);
                         return pawld.received >= idle.sent && earlier != before.end() &&
                                idle.received >= earlier->second.sent;
                       });
}

Nanos next_timer_of(const std::vector<client::IdleState>& idle_clients) {
  Nanos next = Nanos::max();
  for (const client::IdleState& idle : idle_clients) next = std::min(next, idle.next_timer);
  return next;
}

// Empty for an invalid name.
std::vector<Holder> holders_in(const wire::Value& inspected) {
  std::vector<Holder> holders;
  const wire::Value* listed = inspected.find("holders");
  if (listed == nullptr) return holders;
  for (const wire::Value& one : listed->items) {
    const wire::Value* token = one.find("token");
    const wire::Value* owner = one.find("owner");
    PAWL_ASSERT(token != nullptr && owner != nullptr);
    holders.push_back({static_cast<std::uint64_t>(token->as_integer().value_or(0)),
                       std::string(owner->as_text().value_or(""))});
  }
  return holders;
}

}  // namespace

struct Server::State {
  const client::ForkGuard fork_guard;
  std::shared_ptr<ClientTestClock> time = std::make_shared<ClientTestClock>();
  ServerThread server{listen(), time};
  std::mutex moving;  // Held while time is moved.

  Nanos settle();
  bool break_lock(std::string_view lock, Break how);
  wire::Value inspect(std::string_view lock) {
    return server.ask({"INSPECT", lock, "HOLDERS", "1000"});
  }
};

// Waits until all clients and pawld are idle. Returns how long they will be.
Nanos Server::State::settle() {
  const auto limit = std::chrono::steady_clock::now() + kSettleLimit;
  TrafficByPort before;
  int kept_up = 0;
  for (;;) {
    std::vector<client::IdleState> idle_clients;
    for (const auto& client : time->clients())
      idle_clients.push_back(client->wait_until_idle(kIdleLimit));
    TrafficByPort traffic = server.settle();
    if (all_delivered(idle_clients, traffic)) return next_timer_of(idle_clients);
    if (all_keep_up(idle_clients, traffic, before)) ++kept_up;
    if (kept_up == kBusyRounds || std::chrono::steady_clock::now() >= limit)
      return next_timer_of(idle_clients);
    before = std::move(traffic);
  }
}

Server::Server() : state_(std::make_unique<State>()) {}
Server::~Server() {
  // Leaked: its thread does not exist in this process, so it cannot be destroyed.
  if (state_->fork_guard.forked()) static_cast<void>(state_.release());
}

std::string Server::address() const {
  return state_->server.address();
}

Client Server::client(ClientOptions options) {
  return client::TestAccess::make(address(), std::move(options), state_->time);
}

// --- Time ----------------------------------------------------------------------------------------

void Server::advance(std::chrono::nanoseconds time) {
  const std::lock_guard lock(state_->moving);
  state_->settle();
  // pawld counts whole milliseconds: one more, so that exactly its TTL ends a lease.
  if (time > 0ns) state_->server.advance_clock(time + 1ms);
  state_->settle();
}

void Server::run_for(std::chrono::nanoseconds time) {
  const std::lock_guard lock(state_->moving);
  Nanos next = state_->settle();
  for (Nanos left = time; left > 0ns;) {
    // From one timer to the next; pawld itself wakes at least this often.
    const Nanos step = std::min(left, std::clamp<Nanos>(next, 1ms, server::kWakeEvery));
    state_->server.advance_clock(step);
    next = state_->settle();
    left -= step;
  }
}

// --- Faults --------------------------------------------------------------------------------------

void Server::stop_answering() {
  state_->server.with_sockets([](FaultySockets& sockets) { sockets.lose_traffic(); });
}

void Server::answer_again() {
  state_->server.with_sockets([](FaultySockets& sockets) { sockets.restore(); });
}

void Server::drop_connections() {
  state_->server.with_sockets([](FaultySockets& sockets) { sockets.disconnect_all(); });
}

void Server::lose_next_reply() {
  state_->server.with_sockets([](FaultySockets& sockets) { sockets.disconnect_at_next_reply(); });
}

void Server::restart() {
  state_->server.restart();
}

// --- Operator actions and state ------------------------------------------------------------------

bool Server::State::break_lock(std::string_view lock, Break how) {
  bool any = false;
  const wire::Value seen = inspect(lock);
  for (const Holder& holder : holders_in(seen)) {
    const std::string token = std::to_string(holder.token);
    std::vector<std::string_view> words{"BREAK", lock, "TOKEN", token};
    if (how == Break::kNow) words.push_back("NOW");
    words.insert(words.end(), {"REASON", "a test"});
    any = server.ask(words).as_integer() == 1 || any;
  }
  return any;
}

bool Server::break_lock(std::string_view lock) {
  return state_->break_lock(lock, Break::kWhenExpired);
}

bool Server::break_lock_now(std::string_view lock) {
  return state_->break_lock(lock, Break::kNow);
}

bool Server::ask_for(std::string_view lock, std::string_view by, std::string_view reason) {
  std::vector<std::string_view> words{"ASK", lock};
  if (!by.empty()) words.insert(words.end(), {"OWNER", by});
  if (!reason.empty()) words.insert(words.end(), {"REASON", reason});
  const wire::Value asked = state_->server.ask(words);
  const wire::Value* holders = asked.find("holders");
  return holders != nullptr && holders->as_integer().value_or(0) > 0;
}

std::vector<Holder> Server::holders(std::string_view lock) const {
  return holders_in(state_->inspect(lock));
}

std::size_t Server::waiters(std::string_view lock) const {
  const wire::Value seen = state_->inspect(lock);
  const wire::Value* waiters = seen.find("waiters");
  return waiters == nullptr ? 0 : static_cast<std::size_t>(waiters->as_integer().value_or(0));
}

}  // namespace testing
}  // namespace pawl
