#include "server/lane.h"

#include <algorithm>

#include "base/assert.h"
#include "server/engine.h"

namespace pawl::server {

// --- Guest ---------------------------------------------------------------------------------------

std::optional<ConnectionId> Lane::open(std::string peer, std::string bytes, std::string user) {
  std::unique_lock lock(mutex_);
  if (lines_.size() >= bounds_.connections || full()) return std::nullopt;
  const ConnectionId id{kMark | ++last_};
  lines_.emplace(id, Line{});
  messages_.push_back({Kind::kOpen, id, std::move(peer), {}, std::move(user)});
  push(std::move(lock), {Kind::kBytes, id, std::move(bytes), {}});
  return id;
}

bool Lane::send(ConnectionId connection, std::string bytes) {
  std::unique_lock lock(mutex_);
  if (full()) return false;
  if (!lines_.contains(connection)) return true;
  push(std::move(lock), {Kind::kBytes, connection, std::move(bytes), {}});
  return true;
}

bool Lane::look(Look look) {
  std::unique_lock lock(mutex_);
  if (full()) return false;
  push(std::move(lock), {Kind::kLook, {}, {}, std::move(look)});
  return true;
}

// Not counted against the messages: there is at most one for each connection, and to refuse it
// would leave a waiter in line that is gone.
void Lane::hang_up(ConnectionId connection) {
  std::unique_lock lock(mutex_);
  const auto line = lines_.find(connection);
  if (line == lines_.end() || std::exchange(line->second.hung_up, true)) return;
  push(std::move(lock), {Kind::kHangup, connection, {}, {}});
}

void Lane::read(ConnectionId connection, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  const auto found = lines_.find(connection);
  if (found == lines_.end()) return;
  Line& line = found->second;
  PAWL_ASSERT(bytes <= line.unread);
  line.unread -= bytes;
  if (!line.stalled || line.unread >= bounds_.unread) return;
  line.stalled = false;
  push(std::move(lock), {Kind::kRoom, connection, {}, {}});
}

std::vector<Lane::Delivery> Lane::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(deliveries_, {});
}

// --- Loop ----------------------------------------------------------------------------------------

bool Lane::serve(Engine& engine, std::size_t most) {
  std::vector<Message> taken;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    while (!messages_.empty() && taken.size() < most) {
      taken.push_back(std::move(messages_.front()));
      messages_.pop_front();
    }
    more = !messages_.empty();
  }
  for (Message& message : taken) pass(engine, message);
  return more;
}

// Without the lock: the engine may answer from inside, through deliver() and close().
void Lane::pass(Engine& engine, Message& message) {
  switch (message.kind) {
    case Kind::kOpen:
      if (engine.connected(message.connection, message.text) && !message.user.empty())
        engine.identify(message.connection, message.user);
      return;
    case Kind::kBytes:
      return engine.received(message.connection, message.text);
    case Kind::kHangup:
      return engine.hangup(message.connection);
    case Kind::kRoom:
      return engine.writable(message.connection);
    case Kind::kLook:
      push(std::unique_lock(mutex_), Delivery{{}, {}, false, message.look(engine)});
      return;
  }
}

std::size_t Lane::deliver(ConnectionId connection, std::string_view bytes) {
  std::unique_lock lock(mutex_);
  const auto found = lines_.find(connection);
  PAWL_ASSERT(found != lines_.end());
  Line& line = found->second;
  const std::size_t taken =
      std::min(bytes.size(), bounds_.unread - std::min(bounds_.unread, line.unread));
  line.unread += taken;
  line.stalled = taken < bytes.size();
  if (taken > 0)
    push(std::move(lock), Delivery{connection, std::string(bytes.substr(0, taken)), false, {}});
  return taken;
}

void Lane::close(ConnectionId connection) {
  std::unique_lock lock(mutex_);
  const bool known = lines_.erase(connection) == 1;
  PAWL_ASSERT(known);
  push(std::move(lock), Delivery{connection, {}, true, {}});
}

// --- Small things --------------------------------------------------------------------------------

void Lane::push(std::unique_lock<std::mutex> lock, Message message) {
  messages_.push_back(std::move(message));
  lock.unlock();
  if (wake_loop_) wake_loop_();
}

// One wake for all that gathers until the guest takes it.
void Lane::push(std::unique_lock<std::mutex> lock, Delivery delivery) {
  const bool first = deliveries_.empty();
  deliveries_.push_back(std::move(delivery));
  lock.unlock();
  if (first && wake_guest_) wake_guest_();
}

}  // namespace pawl::server
