// Asking for locks: at once, in line, and again with the same request id.
#include <algorithm>

#include "base/bytes.h"
#include "base/mutants.h"
#include "core/state.h"

namespace pawl::core {
namespace {

std::string encode_meta(const AcquireSpec& spec) {
  std::string meta;
  if (spec.meta.empty()) return meta;
  put_u8(meta, static_cast<std::uint8_t>(spec.meta.size()));
  for (const MetaPair& pair : spec.meta) {
    put_text(meta, pair.key);
    put_text(meta, pair.value);
  }
  return meta;
}

}  // namespace

// Model: lease.pml, action receive_ask.
void Core::State::acquire(const Acquire& input, Now now) {
  const AcquireSpec& spec = input.spec;
  PAWL_ASSERT(!spec.locks.empty() && spec.terms.limit >= 1 &&
              spec.terms.limit <= limits::kHoldersMax);
  PAWL_ASSERT(spec.terms.mode == Mode::kExclusive || spec.locks.size() == 1);
  PAWL_ASSERT(spec.terms.mode == Mode::kLimit || spec.terms.limit == 1);

  if (!spec.request.empty()) {
    requests.forget_before(now.tick);
    const Index known = requests.find(spec.request);
    if (known != kNone && !PAWL_MUTANT(retry_is_a_new_request)) return retry(known, input, now);
  }
  std::string meta = encode_meta(spec);
  if (restoring() || !free_for(spec)) {
    if (spec.wait == Millis(0) && restoring())
      return reply(input.waiter, Refused{Refused::Why::kRestoring, restoring_for(now)},
                   last_batch());
    if (spec.wait == Millis(0))
      return reply(input.waiter, NotObtained{NotObtained::Why::kBusy}, last_batch());
    return enqueue(input, std::move(meta), now);
  }
  if (!tokens_left()) return reply(input.waiter, Refused{Refused::Why::kExhausted}, last_batch());

  ShortList<Index, limits::kLocksPerLease> found;
  for (const std::string_view name : spec.locks) found.push_back(locks.find_or_add(name));
  Index request = kNone;
  if (!spec.request.empty())
    request = requests.add_waiting(spec.request, fingerprint(spec.locks, spec.terms), kNone);
  grant({.waiter = input.waiter,
         .candidate = input.candidate,
         .terms = spec.terms,
         .owner = spec.owner,
         .meta = meta,
         .request = request},
        {found.begin(), found.size()}, now);
}

// No barging: whoever comes behind an earlier waiter waits as well, readers included.
bool Core::State::free_for(const AcquireSpec& spec) const {
  return std::all_of(spec.locks.begin(), spec.locks.end(), [&](std::string_view name) {
    const Index index = locks.find(name);
    if (index == kNone) return true;
    const Lock& lock = locks.items[index];
    return (lock.waiters == 0 || PAWL_MUTANT(barging)) &&
           admits(lock, spec.terms.mode, spec.terms.limit);
  });
}

// The same request id again: the caller did not hear the answer, or asks whether there is one yet.
void Core::State::retry(Index index, const Acquire& input, Now now) {
  const Request& request = requests.items[index];
  if (request.fingerprint != fingerprint(input.spec.locks, input.spec.terms) &&
      !PAWL_MUTANT(conflict_not_noticed)) {
    return reply(input.waiter, Refused{Refused::Why::kConflict}, last_batch());
  }
  switch (request.state) {
    case Request::State::kWaiting:
      return rejoin(request.subject, input, now);
    case Request::State::kEnded:
      return reply(input.waiter, Lost{request.ending, request.token}, last_batch());
    case Request::State::kHeld:
      break;
  }
  const Lease& lease = leases.items[request.subject];
  if (lease.phase == Phase::kBreaking)
    return reply(input.waiter, Lost{Ending::kBroken, lease.token}, last_batch());
  reply(input.waiter, granted_view(lease), last_batch());
}

// The newest asker owns the wait and keeps its place; whoever owned it before is told.
void Core::State::rejoin(Index index, const Acquire& input, Now now) {
  Waiter& waiter = waiters.items[index];
  if (waiter.id != input.waiter) {
    reply(waiter.id, NotObtained{NotObtained::Why::kSuperseded}, last_batch());
    waiters.rename(index, input.waiter);
  }
  if (input.spec.wait == Millis(0)) {  // It no longer wants to wait.
    return end_wait(index, NotObtained::Why::kBusy, now);
  }
  waiter.gives_up = now.tick + input.spec.wait;
  waiter_timers.disarm(index);
  waiter_timers.arm(index, due_ms(waiter.gives_up));
  if (input.spec.async) reply(input.waiter, Queued{position(index)}, last_batch());
}

void Core::State::enqueue(const Acquire& input, std::string meta, Now now) {
  const AcquireSpec& spec = input.spec;
  if (waiters.items.size() >= options.waiters_max) {
    return reply(input.waiter, Refused{Refused::Why::kWaitersFull}, last_batch());
  }
  const Index index = waiters.add(input.waiter);
  Waiter& waiter = waiters.items[index];
  waiter.candidate = input.candidate;
  waiter.arrived = now.tick;
  waiter.gives_up = now.tick + spec.wait;
  waiter.owner = Text(spec.owner);
  waiter.meta = std::move(meta);
  waiter.terms = spec.terms;
  waiter.places.reserve(spec.locks.size());
  std::uint64_t furthest = 0;
  for (const std::string_view name : spec.locks) {
    const Index lock = locks.find_or_add(name);
    waiters.join(index, lock, locks.items[lock]);
    furthest = std::max<std::uint64_t>(furthest, locks.items[lock].waiters);
  }
  if (!spec.request.empty())
    waiter.request = requests.add_waiting(spec.request, fingerprint(spec.locks, spec.terms), index);
  waiter_timers.arm(index, due_ms(waiter.gives_up));
  if (spec.async) reply(input.waiter, Queued{furthest}, last_batch());
}

std::uint64_t Core::State::position(Index waiter) const {
  std::uint64_t furthest = 0;
  for (const Index place : waiters.items[waiter].places)
    furthest = std::max(furthest, waiters.position(place));
  return furthest;
}

void Core::State::end_wait(Index waiter, NotObtained::Why why, Now now) {
  reply(waiters.items[waiter].id, NotObtained{why}, last_batch());
  drop_waiter(waiter, now);
}

// Whoever stood behind it may now have the turn.
void Core::State::drop_waiter(Index index, Now now) {
  std::vector<Index> left;
  take_out(index, left);
  for (const Index lock : left) serve(lock, now);
}

// Out of every line it stood in; the locks it left are added to `left`.
void Core::State::take_out(Index index, std::vector<Index>& left) {
  Waiter& waiter = waiters.items[index];
  if (waiter.request != kNone) requests.withdraw(waiter.request);
  waiter_timers.disarm(index);
  for (const Index place : waiter.places) {
    left.push_back(waiters.places[place].lock);
    waiters.leave(place, locks.items[left.back()]);
  }
  waiters.remove(index);
}

// Locks count as a set, so their hashes are added.
std::uint64_t Core::State::fingerprint(const LockNames& names, const LeaseTerms& terms) const {
  std::uint64_t sum = names.size();
  for (const std::string_view name : names) sum += hash_bytes(name, options.hash_seed);
  const std::uint64_t rest =
      (static_cast<std::uint64_t>(terms.mode) << 48) | (std::uint64_t{terms.limit} << 32);
  return fold(sum ^ 0x9e3779b97f4a7c15,
              rest ^ static_cast<std::uint64_t>(terms.ttl.count()) ^ 0xd6e8feb86659fd93);
}

}  // namespace pawl::core
