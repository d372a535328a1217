#include "core/history.h"

#include <algorithm>

#include "core/hash.h"

namespace pawl::core {
namespace {

std::vector<std::string> split_lines(std::string_view lines) {
  std::vector<std::string> parts;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    parts.emplace_back(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return parts;
}

EpochView view_of(const Epoch& epoch) {
  const std::string_view locks =
      epoch.locks == nullptr ? epoch.lock.view() : std::string_view(*epoch.locks);
  return EpochView{epoch.token,        std::string(epoch.owner.view()),
                   split_lines(locks), epoch.mode,
                   epoch.granted,      epoch.ended,
                   epoch.how};
}

}  // namespace

Index History::newest_of(std::uint64_t hash) const {
  return by_lock_.find(hash, [&](Index i) { return ring_[i].lock_hash == hash; });
}

void History::forget_oldest() {
  PAWL_ASSERT(oldest_ <= count_);
  const auto slot = static_cast<Index>((oldest_ - 1) % capacity_);
  Epoch& epoch = ring_[slot];
  (void)by_lock_.erase_if_found(epoch.lock_hash, slot);  // Unless the lock has a newer one.
  if (epoch.first) by_lease_.erase(epoch.lease.low, slot);
  bytes_ -= epoch.bytes();
  epoch = Epoch{};
  ++oldest_;
}

void History::add(Epoch epoch) {
  if (capacity_ == 0) return;
  PAWL_ASSERT(epoch.token.value != 0 && !epoch.name().empty());
  const std::size_t bytes = epoch.bytes();
  while (oldest_ <= count_ && (count_ - oldest_ + 1 == capacity_ || bytes_ + bytes > bytes_max_))
    forget_oldest();
  const auto slot = static_cast<Index>(count_ % capacity_);
  if (slot == ring_.size()) ring_.emplace_back();
  bytes_ += bytes;
  ++count_;

  const std::uint64_t hash = epoch.lock_hash;
  const Index newest = newest_of(hash);
  epoch.greatest = epoch.token;
  if (newest != kNone) {
    epoch.greatest = std::max(epoch.greatest, ring_[newest].greatest);
    const std::uint64_t behind = (slot + capacity_ - newest) % capacity_;
    epoch.older = count_ - behind;
    PAWL_ASSERT(epoch.older < count_);
    by_lock_.replace(hash, newest, slot);
  } else {
    by_lock_.insert(hash, slot);
  }
  if (epoch.first) by_lease_.insert(epoch.lease.low, slot);
  ring_[slot] = std::move(epoch);
}

std::vector<EpochView> History::of(std::string_view lock, std::size_t count) const {
  std::vector<EpochView> found;
  const Index newest = newest_of(hash_bytes(lock, seed_));
  if (newest == kNone) return found;
  for (const Epoch* epoch = &ring_[newest]; found.size() < count;) {
    if (epoch->name() == lock) found.push_back(view_of(*epoch));
    if (!kept(epoch->older)) break;
    epoch = &ring_[(epoch->older - 1) % capacity_];
  }
  return found;
}

std::optional<Token> History::last_token(std::string_view lock) const {
  const Index newest = newest_of(hash_bytes(lock, seed_));
  if (newest == kNone || ring_[newest].name() != lock) return std::nullopt;
  return ring_[newest].greatest;
}

Lost History::lost(LeaseId lease) const {
  const Index slot = by_lease_.find(lease.low, [&](Index i) { return ring_[i].lease == lease; });
  if (slot == kNone) return Lost{};
  return Lost{ring_[slot].how, ring_[slot].token};
}

}  // namespace pawl::core
