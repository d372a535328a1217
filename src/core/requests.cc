#include "core/requests.h"

#include "core/hash.h"

namespace pawl::core {

std::uint64_t Requests::hash_of(std::string_view id) const {
  return hash_bytes(id, seed_);
}

Index Requests::find(std::string_view id) const {
  return by_id_.find(hash_of(id), [&](Index i) { return items[i].id.view() == id; });
}

Index Requests::add_waiting(std::string_view id, std::uint64_t fingerprint, Index waiter) {
  PAWL_ASSERT(!id.empty());
  const Index index = items.add();
  Request& request = items[index];
  request.id = Text(id);
  request.fingerprint = fingerprint;
  request.subject = waiter;
  by_id_.insert(hash_of(id), index);
  return index;
}

void Requests::granted(Index index, Index lease, Token token) {
  Request& request = items[index];
  PAWL_ASSERT(request.state == Request::State::kWaiting && token.value != 0);
  request.state = Request::State::kHeld;
  request.subject = lease;
  request.token = token;
}

void Requests::ended(Index index, Ending ending, Tick now) {
  Request& request = items[index];
  PAWL_ASSERT(request.state == Request::State::kHeld);
  request.state = Request::State::kEnded;
  request.subject = kNone;
  request.ending = ending;
  request.forget_at = now + memory_;
  (newest_ == kNone ? oldest_ : items[newest_].ended_after) = index;
  newest_ = index;
  if (++ended_count_ > remembered_max_) forget_oldest();
}

void Requests::withdraw(Index index) {
  remove(index);
}

void Requests::forget_before(Tick now) {
  while (oldest_ != kNone && items[oldest_].forget_at <= now) forget_oldest();
}

void Requests::forget_oldest() {
  const Index index = oldest_;
  PAWL_ASSERT(index != kNone && ended_count_ > 0);
  PAWL_ASSERT(items[index].state == Request::State::kEnded);
  oldest_ = items[index].ended_after;
  if (oldest_ == kNone) newest_ = kNone;
  --ended_count_;
  remove(index);
}

void Requests::remove(Index index) {
  by_id_.erase(hash_of(items[index].id.view()), index);
  items.remove(index);
}

}  // namespace pawl::core
