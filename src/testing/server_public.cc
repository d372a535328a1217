#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/assert.h"
#include "client/fork_guard.h"
#include "pawl/testing/server.h"
#include "server/listener.h"
#include "testing/moved_time.h"
#include "testing/node.h"

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

constexpr auto kRestLimit = 1'000ms;    // For one client; a callback may be stuck.
constexpr auto kSettleLimit = 5'000ms;  // For all of them together.
// While other threads use their clients there may never be quiet. What was due when we began is
// done after so many questions and answers: none has more than three in a row (greeting, request,
// confirmation).
constexpr int kBusyRounds = 4;

enum class Break : std::uint8_t { kWhenRunOut, kNow };

server::Listener listen() {
  auto listener = server::listen_on({"127.0.0.1", "0"});
  if (!listener) throw std::runtime_error("pawl::testing::Server: " + listener.error().detail);
  return *std::move(listener);
}

// Of what a client says when it rests, and pawld after that.
template <class Judge>
bool all_of_them(const std::vector<client::Rest>& rests, const TrafficByPort& traffic,
                 Judge judge) {
  return std::all_of(rests.begin(), rests.end(), [&](const client::Rest& rest) {
    if (rest.ended || rest.local_port == 0) return true;
    const auto other_end = traffic.find(rest.local_port);
    return other_end != traffic.end() && judge(rest, other_end->second);
  });
}

// No byte is under way: a client that rested before pawld did, with the same figures, has heard all
// there is to hear.
bool all_quiet(const std::vector<client::Rest>& rests, const TrafficByPort& traffic) {
  return all_of_them(rests, traffic, [](const client::Rest& rest, const Traffic& pawld) {
    return pawld.received == rest.sent && pawld.sent == rest.received;
  });
}

// What had been said a round ago has been heard, though other threads have more to say.
bool all_keep_up(const std::vector<client::Rest>& rests, const TrafficByPort& traffic,
                 const TrafficByPort& before) {
  return all_of_them(rests, traffic, [&](const client::Rest& rest, const Traffic& pawld) {
    const auto earlier = before.find(rest.local_port);
    return pawld.received >= rest.sent && earlier != before.end() &&
           rest.received >= earlier->second.sent;
  });
}

Nanos next_of(const std::vector<client::Rest>& rests) {
  Nanos next = Nanos::max();
  for (const client::Rest& rest : rests) next = std::min(next, rest.next_timer);
  return next;
}

// An invalid name is nobody's.
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
  std::shared_ptr<MovedTime> time = std::make_shared<MovedTime>();
  Node node{listen(), time};
  std::mutex moving;  // Held by whoever moves time.

  Nanos settle();
  bool break_lock(std::string_view lock, Break how);
  wire::Value inspect(std::string_view lock) { return node.ask({"INSPECT", lock}); }
};

// Until everyone is at rest; returns for how long they will be.
Nanos Server::State::settle() {
  const auto limit = std::chrono::steady_clock::now() + kSettleLimit;
  TrafficByPort before;
  int kept_up = 0;
  for (;;) {
    std::vector<client::Rest> rests;
    for (const auto& subject : time->subjects()) rests.push_back(subject->rest(kRestLimit));
    TrafficByPort traffic = node.settle();
    if (all_quiet(rests, traffic)) return next_of(rests);
    if (all_keep_up(rests, traffic, before)) ++kept_up;
    if (kept_up == kBusyRounds || std::chrono::steady_clock::now() >= limit) return next_of(rests);
    before = std::move(traffic);
  }
}

Server::Server() : state_(std::make_unique<State>()) {}
Server::~Server() {
  // Not even destroyed: what belongs to a thread that does not exist here cannot be.
  if (state_->fork_guard.forked()) static_cast<void>(state_.release());
}

std::string Server::address() const {
  return state_->node.address();
}

Client Server::client(ClientOptions options) {
  return client::TestAccess::make(address(), std::move(options), state_->time);
}

// --- Time ----------------------------------------------------------------------------------------

void Server::advance(std::chrono::nanoseconds time) {
  const std::lock_guard lock(state_->moving);
  state_->settle();
  // pawld counts in whole milliseconds: with one more, exactly its TTL ends a lease.
  if (time > 0ns) state_->node.jump(time + 1ms);
  state_->settle();
}

void Server::run_for(std::chrono::nanoseconds time) {
  const std::lock_guard lock(state_->moving);
  Nanos next = state_->settle();
  for (Nanos left = time; left > 0ns;) {
    // From one thing that is due to the next; while pawld has something running out it wakes as
    // often as this, too.
    const Nanos step = std::min(left, std::clamp<Nanos>(next, 1ms, server::kWakeEvery));
    state_->node.jump(step);
    next = state_->settle();
    left -= step;
  }
}

// --- Faults --------------------------------------------------------------------------------------

void Server::stop_answering() {
  state_->node.with_sockets([](Sockets& sockets) { sockets.cut(); });
}

void Server::answer_again() {
  state_->node.with_sockets([](Sockets& sockets) { sockets.mend(); });
}

void Server::drop_connections() {
  state_->node.with_sockets([](Sockets& sockets) { sockets.break_all(); });
}

void Server::lose_next_reply() {
  state_->node.with_sockets([](Sockets& sockets) { sockets.break_at_next_reply(); });
}

void Server::restart() {
  state_->node.restart();
}

// --- What an operator does, and sees -------------------------------------------------------------

bool Server::State::break_lock(std::string_view lock, Break how) {
  bool any = false;
  const wire::Value seen = inspect(lock);
  for (const Holder& holder : holders_in(seen)) {
    const std::string token = std::to_string(holder.token);
    std::vector<std::string_view> words{"BREAK", lock, "TOKEN", token};
    if (how == Break::kNow) words.push_back("NOW");
    words.insert(words.end(), {"REASON", "a test"});
    any = node.ask(words).as_integer() == 1 || any;
  }
  return any;
}

bool Server::break_lock(std::string_view lock) {
  return state_->break_lock(lock, Break::kWhenRunOut);
}

bool Server::break_lock_now(std::string_view lock) {
  return state_->break_lock(lock, Break::kNow);
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
