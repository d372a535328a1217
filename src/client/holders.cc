#include "client/holders.h"

#include <utility>

namespace pawl::client {
namespace {

// Readers share with readers, and slots of a limited lock may be free: both may be granted.
bool excludes(Mode held, Mode asked) {
  return held == Mode::kExclusive || held != asked;
}

}  // namespace

void Holders::add(LeaseNumber lease, std::shared_ptr<Holder> holder) {
  for (const std::string& lock : holder->locks) by_lock_.emplace(lock, lease);
  holders_.emplace(lease, std::move(holder));
}

void Holders::remove(LeaseNumber lease) {
  const auto found = holders_.find(lease);
  if (found == holders_.end()) return;
  for (const std::string& lock : found->second->locks) {
    const auto [first, last] = by_lock_.equal_range(lock);
    for (auto at = first; at != last; ++at) {
      if (at->second != lease) continue;
      by_lock_.erase(at);
      break;
    }
  }
  holders_.erase(found);
}

std::shared_ptr<Holder> Holders::find(LeaseNumber lease) const {
  const auto found = holders_.find(lease);
  return found == holders_.end() ? nullptr : found->second;
}

std::vector<LeaseNumber> Holders::on_locks(const std::vector<std::string>& locks) const {
  std::vector<LeaseNumber> found;
  for (const std::string& lock : locks) {
    const auto [first, last] = by_lock_.equal_range(lock);
    for (auto at = first; at != last; ++at) found.push_back(at->second);
  }
  return found;
}

std::vector<LeaseNumber> Holders::held_by_same_thread(const Holder& request) const {
  std::vector<LeaseNumber> found;
  if (request.thread == kNoThread) return found;
  for (const LeaseNumber lease : on_locks(request.locks)) {
    const Holder& holder = *holders_.at(lease);
    if (holder.thread == request.thread && excludes(holder.mode, request.mode))
      found.push_back(lease);
  }
  return found;
}

}  // namespace pawl::client
