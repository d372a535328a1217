// What the naive model answers to reads, and how it speaks.
#include <algorithm>
#include <set>

#include "core/testlib/describe.h"
#include "core/testlib/naive_model.h"

namespace pawl::core::naive {
namespace {

Millis left(Tick due, Tick now) {
  return due > now ? std::chrono::floor<Millis>(due - now) : Millis{0};
}

HolderView view_of(const Lease& lease, Now now) {
  HolderView view;
  view.token = lease.token;
  view.owner = lease.spec.owner;
  view.mode = lease.spec.mode;
  view.limit = lease.spec.limit;
  view.slot = lease.slot;
  view.locks = lease.spec.locks;
  view.held = Millis(now.wall.value - lease.granted.value);
  view.expires_in = lease.started ? left(lease.due, now.tick) : lease.spec.ttl;
  view.renewals = lease.renewals;
  view.breaking = lease.breaking;
  view.meta = lease.spec.meta;
  return view;
}

}  // namespace

void Model::reply(WaiterId waiter, const Outcome& outcome, BatchId rests) {
  if (rests > durable_through_) rests_on[waiter] = std::max(rests_on[waiter], rests);
  replies.push_back(describe(Reply{waiter, outcome, BatchId{}}));
}

void Model::tell(EventKind kind, const Lease& lease, std::optional<Ending> ending) {
  for (const std::string& lock : lease.spec.locks) {
    Output output;
    output.text = lock + lease.spec.owner;
    Event event;
    event.kind = kind;
    event.token = lease.token;
    event.mode = lease.spec.mode;
    event.ending = ending;
    event.lock_size = static_cast<std::uint32_t>(lock.size());
    event.owner_at = event.lock_size;
    event.owner_size = static_cast<std::uint32_t>(lease.spec.owner.size());
    events.push_back(describe(output, event));
  }
}

LockView Model::inspect(const std::string& lock, Now now) const {
  LockView view;
  view.lock = lock;
  for (const Lease& lease : leases_) {
    if (!lease.spec.names(lock)) continue;
    if (lease.closed) {
      if (view.state == LockState::kFree) view.state = LockState::kClosed;
      view.reopens_in =
          std::max(view.reopens_in.value_or(Millis{0}), left(lease.reopens, now.tick));
      continue;
    }
    view.state = LockState::kHeld;
    view.token = std::max(view.token.value_or(Token{}), lease.token);
    view.holders.push_back(view_of(lease, now));
    view.holder_count = view.holders.size();
  }
  if (view.state != LockState::kClosed) view.reopens_in.reset();
  for (const Wait& wait : queue_) {
    if (!wait.spec.names(lock)) continue;
    ++view.waiters;
    if (view.queue.size() == 16) continue;
    view.queue.push_back(WaiterView{wait.spec.owner, wait.spec.mode,
                                    std::chrono::floor<Millis>(now.tick - wait.since)});
  }
  // The greatest that is still known of.
  for (const Lease& lease : leases_) {
    if (lease.spec.names(lock))
      view.last_token = std::max(view.last_token.value_or(Token{}), lease.token);
  }
  for (const auto& [ended, name] : ring()) {
    if (name == lock) view.last_token = std::max(view.last_token.value_or(Token{}), ended->token);
  }
  return view;
}

std::vector<std::string> Model::locks() const {
  std::set<std::string> names;
  for (const Lease& lease : leases_) names.insert(lease.spec.locks.begin(), lease.spec.locks.end());
  for (const Wait& wait : queue_) names.insert(wait.spec.locks.begin(), wait.spec.locks.end());
  return {names.begin(), names.end()};
}

std::vector<std::pair<const Model::Ended*, std::string>> Model::ring() const {
  std::vector<std::pair<const Ended*, std::string>> entries;
  for (auto ended = ended_.rbegin(); ended != ended_.rend(); ++ended) {
    for (auto lock = ended->spec.locks.rbegin(); lock != ended->spec.locks.rend(); ++lock) {
      if (entries.size() == options_.history_epochs) return entries;
      entries.emplace_back(&*ended, *lock);
    }
  }
  return entries;
}

std::optional<Model::Ended> Model::in_the_ring(LeaseId lease) const {
  for (const auto& [ended, lock] : ring()) {
    if (ended->id == lease && lock == ended->spec.locks[0]) return *ended;
  }
  return std::nullopt;
}

std::vector<EpochView> Model::history(const std::string& lock) const {
  std::vector<EpochView> epochs;
  for (const auto& [ended, name] : ring()) {
    if (name != lock) continue;
    epochs.push_back(EpochView{ended->token, ended->spec.owner, ended->spec.locks, ended->spec.mode,
                               ended->granted, ended->ended, ended->how});
  }
  return epochs;
}

Totals Model::totals() const {
  Totals totals;
  totals.last_token = last_token_;
  for (const Lease& lease : leases_) {
    if (lease.closed) continue;
    ++totals.leases;
    totals.oldest_live_token =
        std::min(totals.oldest_live_token.value_or(lease.token), lease.token);
  }
  totals.locks = locks().size();
  totals.waiters = queue_.size();
  return totals;
}

}  // namespace pawl::core::naive
