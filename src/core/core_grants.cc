// Granting locks, serving their queues, and taking locks back.
#include <algorithm>
#include <utility>

#include "base/mutants.h"
#include "core/core.h"

namespace pawl::core {
namespace {

// What it costs to grant one more waiter, compared with visiting a node.
constexpr std::uint64_t kNodesPerGrant = 64;

// By the wall clock, which may have jumped, and from a record that may say anything.
Millis held_for(UnixMs granted, UnixMs now) {
  constexpr std::uint64_t kCentury = std::uint64_t{100} * 366 * 24 * 3600 * 1000;
  if (now.value <= granted.value) return Millis(0);
  return Millis(static_cast<std::int64_t>(std::min(now.value - granted.value, kCentury)));
}

EventKind event_of(Ending ending) {
  switch (ending) {
    case Ending::kReleased:
      return EventKind::kReleased;
    case Ending::kBroken:
      return EventKind::kBroken;
    case Ending::kExpired:
    case Ending::kMaxHold:
      break;
  }
  return EventKind::kExpired;
}

}  // namespace

// --- Granting ------------------------------------------------------------------------------------

// Model: lease.pml, action grant.
void Core::grant(const GrantInput& input, std::span<const Index> locks, Now now) {
  PAWL_ASSERT(!locks.empty() && !restore_wait_.active());
  const Lock& first = holders_.locks.items[locks.front()];
  LeaseRecord record;
  record.token = changes_.next_token();
  record.id = input.candidate;
  record.terms = input.terms;
  record.waited_ms = static_cast<std::uint32_t>(input.waited.count());
  record.granted = now.wall;
  record.floor = record.token;
  if (input.terms.mode == Mode::kLimit) record.slot = holders_.free_slot(first);
  if (input.terms.mode == Mode::kShared) record.floor = holders_.floor_of(first, record.token);
  PAWL_ASSERT(record.slot < input.terms.limit && record.floor <= record.token);
  record.owner = input.owner;
  record.meta = input.meta;
  if (input.request != kNone && !PAWL_MUTANT(request_not_persisted))
    record.request = requests_.items[input.request].id.view();
  for (const Index lock : locks) {
    const Lock& held = holders_.locks.items[lock];
    PAWL_ASSERT(holders_.admits(held, input.terms));  // G3.
    record.locks.push_back(held.name.view());
  }

  const Index index = holders_.add_lease(record, locks, input.request);
  Lease& lease = holders_.leases.items[index];
  lease.account = input.account;
  if (lease.extra != nullptr) lease.extra->bytes = input.bytes;
  accounts_.add_lease(input.account, input.bytes);
  holders_.leases.link_youngest(index);
  for (const Index lock : locks) holders_.join(lock, index);
  if (input.request != kNone) requests_.granted(input.request, index, lease.token);

  changes_.put_lease(record);
  pending_grants_.push_back({changes_.open_batch(), index, lease.token});
  if (PAWL_MUTANT(ttl_from_apply)) start_ttl(lease, now.tick), arm(index);
  add_events(EventKind::kGranted, lease, now);
  changes_.reply(input.waiter, holders_.granted(lease));
}

void Core::grant_waiter(Index index, Now now) {
  ShortList<Index, limits::kLocksPerLease> locks;
  waiters_.leave_all(index, locks);
  const Waiter& waiter = waiters_.items[index];
  PAWL_ASSERT(waiter.arrived <= now.tick);
  work_.add(kNodesPerGrant);
  accounts_.remove_waiter(waiter.account, waiter.bytes);
  grant({.waiter = waiter.id,
         .candidate = waiter.candidate,
         .terms = waiter.terms,
         .waited = std::chrono::floor<Millis>(now.tick - waiter.arrived),
         .owner = waiter.owner.view(),
         .meta = waiter.meta,
         .request = waiter.request,
         .account = waiter.account,
         .bytes = waiter.bytes},
        {locks.begin(), locks.size()}, now);
  waiters_.remove(index);
}

// --- Queues --------------------------------------------------------------------------------------

bool Core::has_turn(const Waiter& waiter) const {
  if (restore_wait_.active()) return false;
  return std::all_of(waiter.places.begin(), waiter.places.end(), [&](Index at) {
    const Lock& lock = holders_.locks.items[waiters_.places[at].lock];
    return (lock.first_waiter == at || PAWL_MUTANT(and_out_of_order)) &&
           holders_.admits(lock, waiter.terms);
  });
}

void Core::serve(Index lock, Now now) {
  std::vector<Index> unblocked;
  serve_one(lock, unblocked, now);
  // Only when tokens ran out. A loop, because a queue may be longer than the stack is deep.
  while (!unblocked.empty()) {
    const Index next = unblocked.back();
    unblocked.pop_back();
    serve_one(next, unblocked, now);
  }
}

void Core::serve_one(Index index, std::vector<Index>& unblocked, Now now) {
  Lock& lock = holders_.locks.items[index];
  while (lock.first_waiter != kNone) {
    const Index waiter = waiters_.places[lock.first_waiter].waiter;
    if (!has_turn(waiters_.items[waiter])) return;
    if (changes_.full()) {
      if (left_.empty() || left_.back() != index) left_.push_back(index);
      return;
    }
    if (changes_.tokens_left()) {
      grant_waiter(waiter, now);
    } else {
      changes_.reply(waiters_.items[waiter].id, Refused{Refused::Why::kExhausted});
      withdraw(waiter, unblocked);
    }
  }
  if (lock.in_use() && lock.holders == 0) holders_.locks.forget(index);
}

// A lock of the list may be forgotten by now, or another: serving one more does no harm.
void Core::serve_left(Now now) {
  for (const Index lock : std::exchange(left_, {})) {
    if (holders_.locks.items[lock].in_use()) serve(lock, now);
  }
}

void Core::end_wait(Index waiter, NotObtained::Why why, Now now) {
  changes_.reply(waiters_.items[waiter].id, NotObtained{why});
  drop_waiter(waiter, now);
}

void Core::drop_waiter(Index waiter, Now now) {
  std::vector<Index> left;
  withdraw(waiter, left);
  for (const Index lock : left) serve(lock, now);
}

void Core::withdraw(Index index, std::vector<Index>& left) {
  const Waiter& waiter = waiters_.items[index];
  PAWL_ASSERT(!waiter.places.empty());
  accounts_.remove_waiter(waiter.account, waiter.bytes);
  if (waiter.request != kNone) requests_.withdraw(waiter.request);
  waiters_.leave_all(index, left);
  waiters_.remove(index);
}

void Core::end_restore_wait(Now now) {
  restore_wait_.end();
  changes_.erase_restored();
  const Slab<Lock>& locks = holders_.locks.items;
  std::vector<Index> waited_for;
  for (Index index = 0; index < locks.end(); ++index) {
    if (locks[index].in_use() && locks[index].first_waiter != kNone) waited_for.push_back(index);
  }
  for (const Index index : waited_for) {
    if (locks[index].in_use()) serve(index, now);
  }
}

// --- The end of a lease --------------------------------------------------------------------------

void Core::end_lease(Index index, Ending ending, Now now, const EndOptions& options) {
  Lease& lease = holders_.leases.items[index];
  PAWL_ASSERT(lease.live());
  lease_timers_.disarm(index);
  holders_.leases.unlink(index);
  add_events(event_of(ending), lease, now, ending, options.reason);
  if (lease.extra != nullptr && lease.extra->request != kNone) {
    if (PAWL_MUTANT(request_forgotten_at_end)) {
      requests_.withdraw(lease.extra->request);
    } else {
      requests_.ended(lease.extra->request, ending, now.tick);
    }
    lease.extra->request = kNone;
  }
  add_to_history(lease, ending, now);
  const Millis delay = lease.extra == nullptr ? Millis(0) : lease.extra->delay;
  const bool closes = delay > Millis(0) && ending != Ending::kReleased && !options.skip_delay &&
                      !PAWL_MUTANT(delay_ignored);
  if (!closes) return hand_on(index, now);
  lease.phase = Phase::kClosed;
  closed_.add(holders_.locks_of(lease));
  lease.ends = now.tick + delay;
  put_lease(lease);
  arm(index);
}

void Core::hand_on(Index index, Now now) {
  const Lease& lease = holders_.leases.items[index];
  PAWL_ASSERT(lease.timer.slot == 0);
  if (!PAWL_MUTANT(release_not_persisted)) changes_.erase_lease(lease.token);
  ShortList<Index, limits::kLocksPerLease> locks;
  for (const Index lock : holders_.locks_of(lease)) locks.push_back(lock);
  if (lease.phase == Phase::kClosed) closed_.remove({locks.begin(), locks.size()});
  for (const Index lock : locks) {
    holders_.leave(lock, index);
    if (!asks_.empty()) forget_answered_ask(lock);
  }
  accounts_.remove_lease(lease.account, bytes_of(lease));
  holders_.leases.items.remove(index);
  for (const Index lock : locks) serve(lock, now);
}

void Core::forget_answered_ask(Index index) {
  const LockAsk* ask = asks_.find(index);
  if (ask == nullptr) return;
  // Holders are in order of token.
  const Index oldest = holders_.locks.items[index].first_holder;
  if (oldest == kNone || holders_.leases.items[oldest].token > ask->newest) asks_.forget(index);
}

void Core::add_to_history(const Lease& lease, Ending ending, Now now) {
  const std::span<const Index> locks = holders_.locks_of(lease);
  std::shared_ptr<const std::string> all;
  if (locks.size() > 1) {
    std::string names;
    for (const Index lock : locks) {
      if (!names.empty()) names += '\n';
      names += holders_.locks.items[lock].name.view();
    }
    all = std::make_shared<const std::string>(std::move(names));
  }
  std::size_t name_at = 0;
  for (const Index index : locks) {
    const Lock& lock = holders_.locks.items[index];
    Epoch epoch;
    if (all == nullptr) {
      epoch.lock = Text(lock.name.view());
    } else {
      epoch.locks = all;
      epoch.name_at = static_cast<std::uint16_t>(name_at);
      epoch.name_size = static_cast<std::uint16_t>(lock.name.view().size());
      name_at += lock.name.view().size() + 1;
    }
    epoch.lock_hash = lock.hash();
    epoch.owner = Text(lease.owner.view());
    epoch.lease = lease.id;
    epoch.token = lease.token;
    epoch.granted = lease.granted;
    epoch.ended = now.wall;
    epoch.mode = lease.mode;
    epoch.how = ending;
    epoch.first = index == locks.front();
    history_.add(std::move(epoch));
  }
}

void Core::start_ttl(Lease& lease, Tick now) {
  PAWL_ASSERT(lease.live());
  lease.ends = now + lease.ttl();
  if (lease.extra == nullptr || lease.extra->max_hold == Millis(0)) return;
  lease.extra->hold_until = now + lease.extra->max_hold;
  lease.ends = std::min(lease.ends, lease.extra->hold_until);
}

void Core::put_lease(const Lease& lease) {
  changes_.put_lease(record_of(lease));
}

void Core::add_events(EventKind kind, const Lease& lease, Now now, std::optional<Ending> ending,
                      std::string_view reason) {
  Event event;
  event.kind = kind;
  event.token = lease.token;
  event.mode = lease.mode;
  event.wall = now.wall;
  event.ending = ending;
  if (ending) event.held = held_for(lease.granted, now.wall);
  for (const Index lock : holders_.locks_of(lease))
    changes_.add_event(event, holders_.locks.items[lock].name.view(), lease.owner.view(), reason);
}

}  // namespace pawl::core
