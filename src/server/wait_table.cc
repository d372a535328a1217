#include "server/wait_table.h"

#include "base/assert.h"

namespace pawl::server {
namespace {
constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;
}

Wait& WaitTable::add(ConnectionId connection, std::uint32_t& chain) {
  if (free_.empty()) {
    const std::size_t slot = slots_.size();
    free_.push_back(static_cast<std::uint32_t>(slot));
    slots_.emplace_back().id = WaiterId{slot};
  }
  Wait& wait = slots_[free_.back()];
  wait.id.value += kGeneration;
  wait.connection = connection;
  wait.async = wait.queued = false;
  wait.arrival = ++arrivals_;
  wait.request.clear();
  wait.before = 0;
  wait.next = chain;
  if (chain != 0) at(chain).before = free_.back() + 1;
  chain = free_.back() + 1;
  free_.pop_back();
  return wait;
}

Wait* WaitTable::find(WaiterId id) {
  const std::uint64_t slot = id.value % kGeneration;
  if (slot >= slots_.size() || slots_[slot].id != id || slots_[slot].connection == ConnectionId{})
    return nullptr;
  return &slots_[slot];
}

void WaitTable::remove(Wait& wait, std::uint32_t& chain) {
  PAWL_ASSERT(wait.connection != ConnectionId{});
  (wait.before != 0 ? at(wait.before).next : chain) = wait.next;
  if (wait.next != 0) at(wait.next).before = wait.before;
  wait.connection = {};
  free_.push_back(static_cast<std::uint32_t>(wait.id.value % kGeneration));
}

}  // namespace pawl::server
