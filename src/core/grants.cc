// Handing locks out, and taking them back.
#include <algorithm>
#include <bitset>

#include "base/bytes.h"
#include "base/mutants.h"
#include "core/state.h"

namespace pawl::core {
namespace {

// By the wall clock, which may have jumped, and from a record that may say anything.
Millis held_for(UnixMs granted, UnixMs now) {
  constexpr std::uint64_t kCentury = std::uint64_t{100} * 366 * 24 * 3600 * 1000;
  if (now.value <= granted.value) return Millis(0);
  return Millis(static_cast<std::int64_t>(std::min(now.value - granted.value, kCentury)));
}

}  // namespace

// LIMIT n: live holders + 1 ≤ the least of n and the limits of all holders; exclusive is LIMIT 1.
// Readers share with readers only. Closed holders keep their place.
bool Core::State::admits(const Lock& lock, Mode mode, std::uint32_t limit) const {
  if (lock.holders == 0) return true;
  if (PAWL_MUTANT(reader_beside_writer) && mode == Mode::kShared) return true;
  const bool held_shared = leases.items[lock.first_holder].mode == Mode::kShared;
  if (held_shared || mode == Mode::kShared) return held_shared && mode == Mode::kShared;
  const std::uint32_t joined = lock.holders + (PAWL_MUTANT(limit_off_by_one) ? 0 : 1);
  if (joined > limit) return false;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    if (joined > leases.items[i].limit) return false;
  }
  return true;
}

// First in line at every lock it named, and all of them would have it. Strict, so that nobody
// starves and no cycle of waiters exists: whoever came first of all is first in every line it
// stands in.
bool Core::State::has_its_turn(const Waiter& waiter) const {
  if (restoring()) return false;
  return std::all_of(waiter.places.begin(), waiter.places.end(), [&](Index at) {
    const Lock& lock = locks.items[waiters.places[at].lock];
    return (lock.first_waiter == at || PAWL_MUTANT(and_out_of_order)) &&
           admits(lock, waiter.terms.mode, waiter.terms.limit);
  });
}

// Model: lease.pml, action grant.
void Core::State::grant(const GrantInput& input, std::span<const Index> held, Now now) {
  PAWL_ASSERT(tokens_left() && !held.empty());
  last_token.value += 1;
  const Index index = leases.add(input.candidate);
  Lease& lease = leases.items[index];
  lease.token = last_token;
  lease.granted = now.wall;
  lease.owner = Text(input.owner);
  lease.waited_ms = static_cast<std::uint32_t>(input.waited.count());
  lease.lock = held.front();
  lease.phase = Phase::kLive;
  const Lock& first = locks.items[lease.lock];
  if (input.terms.mode == Mode::kLimit) lease.slot = free_slot(first);
  if (held.size() > 1 || input.request != kNone || !input.meta.empty() ||
      Extra::needed_for(input.terms)) {
    lease.extra = std::make_unique<Extra>();
    Extra& extra = *lease.extra;
    if (held.size() > 1) extra.locks.assign(held.begin(), held.end());
    extra.request = input.request;
    extra.floor = input.terms.mode == Mode::kShared ? floor_of(first, lease.token) : lease.token;
    extra.meta = input.meta;
  }
  lease.set_terms(input.terms);
  leases.link_youngest(index);
  for (const Index lock : held) add_holder(lock, index);
  if (input.request != kNone) requests.granted(input.request, index, lease.token);

  put_record(lease);
  batch.cover(last_token.value);
  not_durable.push_back({open_batch(), index, lease.token});
  if (PAWL_MUTANT(ttl_from_apply)) start_ttl(lease, now.tick), arm(index);
  emit_for_locks(EventKind::kGranted, lease, now);
  reply(input.waiter, granted_view(lease), last_batch());
}

void Core::State::grant_waiter(Index index, Now now) {
  Waiter& waiter = waiters.items[index];
  const GrantInput input{.waiter = waiter.id,
                         .candidate = waiter.candidate,
                         .terms = waiter.terms,
                         .waited = std::chrono::floor<Millis>(now.tick - waiter.arrived),
                         .owner = waiter.owner.view(),
                         .meta = waiter.meta,
                         .request = waiter.request};
  ShortList<Index, limits::kLocksPerLease> held;
  for (const Index place : waiter.places) {
    const Index lock = waiters.places[place].lock;
    waiters.leave(place, locks.items[lock]);
    held.push_back(lock);
  }
  waiter_timers.disarm(index);
  grant(input, {held.begin(), held.size()}, now);
  waiters.remove(index);
}

void Core::State::serve(Index index, Now now) {
  std::vector<Index> unblocked;
  serve_one(index, unblocked, now);
  while (!unblocked
              // Only when tokens ran out; a loop, because a queue may be longer than the stack.
              .empty()) {
    const Index next = unblocked.back();
    unblocked.pop_back();
    serve_one(next, unblocked, now);
  }
}

void Core::State::serve_one(Index index, std::vector<Index>& unblocked, Now now) {
  Lock& lock = locks.items[index];
  while (lock.first_waiter != kNone) {
    const Index waiter = waiters.places[lock.first_waiter].waiter;
    if (!has_its_turn(waiters.items[waiter])) return;
    if (tokens_left()) {
      grant_waiter(waiter, now);
    } else {
      reply(waiters.items[waiter].id, Refused{Refused::Why::kExhausted}, last_batch());
      take_out(waiter, unblocked);
    }
  }
  if (lock.in_use() && lock.holders == 0) locks.forget(index);
}

// How it ended is known to everyone from here on; what it held passes on now, or after its delay.
void Core::State::end_lease(Index index, Ending ending, Now now, const Parting& parting) {
  Lease& lease = leases.items[index];
  PAWL_ASSERT(lease.live());
  lease_timers.disarm(index);
  leases.unlink(index);
  const EventKind kind = ending == Ending::kReleased ? EventKind::kReleased
                         : ending == Ending::kBroken ? EventKind::kBroken
                                                     : EventKind::kExpired;
  emit_for_locks(kind, lease, now, ending, parting.reason);
  if (lease.extra != nullptr && lease.extra->request != kNone) {
    if (!PAWL_MUTANT(request_forgotten_at_end))
      requests.ended(lease.extra->request, ending, now.tick);
    if (PAWL_MUTANT(request_forgotten_at_end)) requests.withdraw(lease.extra->request);
    lease.extra->request = kNone;
  }
  const Millis delay = lease.extra == nullptr ? Millis(0) : lease.extra->delay;
  const bool closes = delay > Millis(0) && ending != Ending::kReleased && !parting.skip_delay &&
                      !PAWL_MUTANT(delay_ignored);
  remember(index, ending, now);
  if (!closes) return give_back(index, now);
  lease.phase = Phase::kClosed;
  closed_locks += locks_of(lease).size();
  lease.ends = now.tick + delay;
  put_record(lease);
  arm(index);
}

void Core::State::give_back(Index index, Now now) {
  const Lease& lease = leases.items[index];
  if (!PAWL_MUTANT(release_not_persisted)) batch.erase(lease_key(lease.token));
  ShortList<Index, limits::kLocksPerLease> held;
  for (const Index lock : locks_of(lease)) held.push_back(lock);
  if (lease.phase == Phase::kClosed) closed_locks -= held.size();
  for (const Index lock : held) remove_holder(lock, index);
  leases.items.remove(index);
  for (const Index lock : held) serve(lock, now);
}

void Core::State::remember(Index index, Ending ending, Now now) {
  const Lease& lease = leases.items[index];
  const std::span<const Index> held = locks_of(lease);
  std::string all;
  if (held.size() > 1) {
    for (const Index lock : held) {
      if (!all.empty()) all += '\n';
      all += locks.items[lock].name.view();
    }
  }
  for (const Index lock : held) {
    Epoch epoch;
    epoch.lock = Text(locks.items[lock].name.view());
    epoch.lock_hash = locks.items[lock].hash();
    epoch.owner = Text(lease.owner.view());
    epoch.locks = Text(all);
    epoch.lease = lease.id;
    epoch.token = lease.token;
    epoch.granted = lease.granted;
    epoch.ended = now.wall;
    epoch.mode = lease.mode;
    epoch.how = ending;
    epoch.first = lock == held.front();
    history.add(std::move(epoch));
  }
}

void Core::State::add_holder(Index lock_index, Index index) {
  Lock& lock = locks.items[lock_index];
  Lease& lease = leases.items[index];
  PAWL_ASSERT(lock.holders == 0 || (lease.extra == nullptr || lease.extra->locks.empty()));
  PAWL_ASSERT(lock.holders == 0 || leases.items[lock.last_holder].token < lease.token);
  if (lock.last_holder != kNone) {
    lease.holder_before = lock.last_holder;
    leases.items[lock.last_holder].holder_after = index;
  } else {
    lock.first_holder = index;
  }
  lock.last_holder = index;
  ++lock.holders;
}

void Core::State::remove_holder(Index lock_index, Index index) {
  Lock& lock = locks.items[lock_index];
  Lease& lease = leases.items[index];
  (lease.holder_before == kNone ? lock.first_holder
                                : leases.items[lease.holder_before].holder_after) =
      lease.holder_after;
  (lease.holder_after == kNone ? lock.last_holder
                               : leases.items[lease.holder_after].holder_before) =
      lease.holder_before;
  --lock.holders;
}

bool Core::State::slot_taken(const Lock& lock, std::uint16_t slot) const {
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    if (leases.items[i].slot == slot) return true;
  }
  return false;
}

std::uint16_t Core::State::free_slot(const Lock& lock) const {
  if (PAWL_MUTANT(slot_given_twice)) return 0;
  std::bitset<limits::kHoldersMax> used;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after)
    used.set(leases.items[i].slot);
  std::uint16_t slot = 0;
  while (used.test(slot)) ++slot;
  return slot;
}

// The smallest live token on the lock, a reader that is about to join included.
Token Core::State::floor_of(const Lock& lock, Token otherwise) const {
  if (PAWL_MUTANT(floor_is_own_token)) return otherwise;
  for (Index i = lock.first_holder; i != kNone; i = leases.items[i].holder_after) {
    if (leases.items[i].live()) return leases.items[i].token;
  }
  return otherwise;
}

std::span<const Index> Core::State::locks_of(const Lease& lease) const {
  if (lease.extra != nullptr && !lease.extra->locks.empty()) return lease.extra->locks;
  return {&lease.lock, 1};
}

Granted Core::State::granted_view(const Lease& lease) const {
  Granted granted{lease.id,     lease.token, lease.token,
                  std::nullopt, lease.ttl(), Millis(lease.waited_ms)};
  if (lease.mode == Mode::kShared) granted.floor = lease.extra->floor;
  if (lease.mode == Mode::kLimit) granted.slot = lease.slot;
  return granted;
}

void Core::State::arm(Index index) {
  lease_timers.arm(index, due_ms(leases.items[index].ends));
}

void Core::State::start_ttl(Lease& lease, Tick now) {
  lease.ends = now + lease.ttl();
  if (lease.extra == nullptr || lease.extra->max_hold == Millis(0)) return;
  lease.extra->hold_until = now + lease.extra->max_hold;
  lease.ends = std::min(lease.ends, lease.extra->hold_until);
}

void Core::State::put_record(const Lease& lease) {
  LeaseRecord record;
  record.token = lease.token;
  record.phase = lease.phase;
  record.id = lease.id;
  record.terms = lease.terms();
  record.slot = lease.slot;
  record.waited_ms = lease.waited_ms;
  record.granted = lease.granted;
  record.floor = lease.token;
  record.owner = lease.owner.view();
  if (lease.extra != nullptr) {
    const Extra& extra = *lease.extra;
    record.floor = extra.floor;
    if (extra.request != kNone && !PAWL_MUTANT(request_not_persisted))
      record.request = requests.items[extra.request].id.view();
    record.meta = extra.meta;
  }
  for (const Index lock : locks_of(lease)) record.locks.push_back(locks.items[lock].name.view());
  encode(record, scratch);
  batch.put(lease_key(lease.token), scratch);
}

void Core::State::emit(EventKind kind, const Lease& lease, std::string_view lock, Now now,
                       std::optional<Ending> ending, std::string_view reason) {
  Event event;
  event.kind = kind;
  event.token = lease.token;
  event.mode = lease.mode;
  event.wall = now.wall;
  event.ending = ending;
  if (ending) event.held = held_for(lease.granted, now.wall);
  const auto keep = [&](std::string_view text, std::uint32_t& at, std::uint32_t& size) {
    if (text.empty()) return;
    at = static_cast<std::uint32_t>(output.text.size());
    size = static_cast<std::uint32_t>(text.size());
    output.text.append(text);
  };
  keep(lock, event.lock_at, event.lock_size);
  keep(lease.owner.view(), event.owner_at, event.owner_size);
  keep(reason, event.reason_at, event.reason_size);
  event.after = open_batch();  // Every event belongs to a change of the batch that is being filled.
  output.events.push_back(event);
}

void Core::State::emit_for_locks(EventKind kind, const Lease& lease, Now now,
                                 std::optional<Ending> ending, std::string_view reason) {
  for (const Index lock : locks_of(lease))
    emit(kind, lease, locks.items[lock].name.view(), now, ending, reason);
}

}  // namespace pawl::core
