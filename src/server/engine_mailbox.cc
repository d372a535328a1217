#include "server/engine_mailbox.h"

#include <algorithm>

#include "base/assert.h"
#include "server/engine.h"

namespace pawl::server {

// --- Client --------------------------------------------------------------------------------------

std::optional<ConnectionId> EngineMailbox::open(std::string peer, std::string bytes,
                                                std::string user) {
  std::unique_lock lock(mutex_);
  if (channels_.size() >= bounds_.connections || full()) return std::nullopt;
  const ConnectionId id{kMark | ++last_};
  channels_.emplace(id, Channel{});
  messages_.push_back({Kind::kOpen, id, std::move(peer), {}, std::move(user)});
  push(std::move(lock), {Kind::kBytes, id, std::move(bytes), {}});
  return id;
}

bool EngineMailbox::send(ConnectionId connection, std::string bytes) {
  std::unique_lock lock(mutex_);
  if (full()) return false;
  if (!channels_.contains(connection)) return true;
  push(std::move(lock), {Kind::kBytes, connection, std::move(bytes), {}});
  return true;
}

bool EngineMailbox::query(Query query) {
  std::unique_lock lock(mutex_);
  if (full()) return false;
  push(std::move(lock), {Kind::kQuery, {}, {}, std::move(query)});
  return true;
}

// Not counted against the messages: there is at most one for each connection, and refusing it would
// leave a waiter in line that is gone.
void EngineMailbox::hang_up(ConnectionId connection) {
  std::unique_lock lock(mutex_);
  const auto channel = channels_.find(connection);
  if (channel == channels_.end() || std::exchange(channel->second.hung_up, true)) return;
  push(std::move(lock), {Kind::kHangup, connection, {}, {}});
}

void EngineMailbox::read(ConnectionId connection, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  const auto found = channels_.find(connection);
  if (found == channels_.end()) return;
  Channel& channel = found->second;
  PAWL_ASSERT(bytes <= channel.unread);
  channel.unread -= bytes;
  if (!channel.stalled || channel.unread >= bounds_.unread) return;
  channel.stalled = false;
  push(std::move(lock), {Kind::kWritable, connection, {}, {}});
}

std::vector<EngineMailbox::Delivery> EngineMailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(deliveries_, {});
}

// --- Loop ----------------------------------------------------------------------------------------

bool EngineMailbox::serve(Engine& engine, std::size_t most) {
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
void EngineMailbox::pass(Engine& engine, Message& message) {
  switch (message.kind) {
    case Kind::kOpen:
      engine.connected(message.connection, message.text, message.user);
      return;
    case Kind::kBytes:
      return engine.received(message.connection, message.text);
    case Kind::kHangup:
      return engine.hangup(message.connection);
    case Kind::kWritable:
      return engine.writable(message.connection);
    case Kind::kQuery:
      push(std::unique_lock(mutex_), Delivery{{}, {}, false, message.query(engine)});
      return;
  }
}

std::size_t EngineMailbox::deliver(ConnectionId connection, std::string_view bytes) {
  std::unique_lock lock(mutex_);
  const auto found = channels_.find(connection);
  PAWL_ASSERT(found != channels_.end());
  Channel& channel = found->second;
  const std::size_t taken =
      std::min(bytes.size(), bounds_.unread - std::min(bounds_.unread, channel.unread));
  channel.unread += taken;
  channel.stalled = taken < bytes.size();
  if (taken > 0)
    push(std::move(lock), Delivery{connection, std::string(bytes.substr(0, taken)), false, {}});
  return taken;
}

void EngineMailbox::close(ConnectionId connection) {
  std::unique_lock lock(mutex_);
  const bool known = channels_.erase(connection) == 1;
  PAWL_ASSERT(known);
  push(std::move(lock), Delivery{connection, {}, true, {}});
}

// --- Small things --------------------------------------------------------------------------------

void EngineMailbox::push(std::unique_lock<std::mutex> lock, Message message) {
  messages_.push_back(std::move(message));
  lock.unlock();
  if (loop_waker_ != nullptr) loop_waker_->wake();
}

// One wake for all that gathers until the client takes it.
void EngineMailbox::push(std::unique_lock<std::mutex> lock, Delivery delivery) {
  const bool first = deliveries_.empty();
  deliveries_.push_back(std::move(delivery));
  lock.unlock();
  if (first && wake_client_) wake_client_();
}

}  // namespace pawl::server
