// The inputs, in the order of core.h.
#include "core/core.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/mutants.h"
#include "core/hash.h"

namespace pawl::core {
namespace {

// What an item of an MRENEW costs, compared with visiting a node.
constexpr std::uint64_t kNodesPerRenewal = 4;

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

// Within what the wire checks.
void assert_valid(const AcquireSpec& spec) {
  PAWL_ASSERT(!spec.locks.empty() && spec.terms.ttl > Millis(0));
  PAWL_ASSERT(spec.terms.limit >= 1 && spec.terms.limit <= limits::kHoldersMax);
  PAWL_ASSERT(spec.terms.mode == Mode::kLimit || spec.terms.limit == 1);
  PAWL_ASSERT(spec.terms.mode == Mode::kExclusive || spec.locks.size() == 1);
  PAWL_ASSERT(spec.wait >= Millis(0) && spec.terms.delay >= Millis(0) &&
              spec.terms.max_hold >= Millis(0));
}

}  // namespace

Core::Core(Options options)
    : options_(options),
      holders_(options.hash_seed),
      waiters_(holders_.locks),
      requests_(options.hash_seed, options.requests_remembered, options.request_memory),
      history_(options.hash_seed, {options.history_epochs, options.history_bytes}),
      lease_timers_(holders_.leases.items),
      accounts_(options.in_all, options.per_user),
      asks_(options.asks) {}

// --- Acquire -------------------------------------------------------------------------------------

// Model: lease.pml, action receive_ask.
void Core::apply(const Acquire& input, Now now) {
  const AcquireSpec& spec = input.spec;
  assert_valid(spec);
  if (!spec.request.empty()) {
    requests_.forget_before(now.tick);
    const Index known = requests_.find(spec.request);
    if (known != kNone && !PAWL_MUTANT(retry_is_a_new_request)) return retry(known, input, now);
  }
  std::string meta = encode_meta(spec);
  if (restore_wait_.active() || !free_for(spec)) {
    if (spec.wait > Millis(0)) return enqueue(input, std::move(meta), now);
    if (!restore_wait_.active())
      return changes_.reply(input.waiter, NotObtained{NotObtained::Why::kBusy});
    return changes_.reply(input.waiter,
                          Refused{Refused::Why::kRestoring, restore_wait_.left(now.tick)});
  }
  if (!changes_.tokens_left())
    return changes_.reply(input.waiter, Refused{Refused::Why::kExhausted});
  const std::uint32_t bytes = bytes_of(spec.locks, spec.owner, meta, spec.request);
  if (const auto refused = accounts_.check(input.account, bytes, false))
    return changes_.reply(input.waiter, *refused);

  ShortList<Index, limits::kLocksPerLease> locks;
  for (const std::string_view name : spec.locks) locks.push_back(holders_.locks.find_or_add(name));
  Index request = kNone;
  if (!spec.request.empty())
    request = requests_.add_waiting(spec.request, fingerprint(spec.locks, spec.terms), kNone);
  grant({.waiter = input.waiter,
         .candidate = input.candidate,
         .terms = spec.terms,
         .owner = spec.owner,
         .meta = meta,
         .request = request,
         .account = input.account,
         .bytes = bytes},
        {locks.begin(), locks.size()}, now);
}

std::uint32_t Core::bytes_of(const LockNames& locks, std::string_view owner, std::string_view meta,
                             std::string_view request) {
  std::size_t bytes = limits::kLeaseBytesFixed + owner.size() + meta.size() + request.size();
  for (const std::string_view name : locks) bytes += name.size();
  return static_cast<std::uint32_t>(bytes);
}

// One that has no Extra has one lock, and neither metadata nor a request id.
std::uint32_t Core::bytes_of(const Lease& lease) const {
  if (lease.extra != nullptr) return lease.extra->bytes;
  return static_cast<std::uint32_t>(limits::kLeaseBytesFixed + lease.owner.view().size() +
                                    holders_.locks.items[lease.lock].name.view().size());
}

bool Core::free_for(const AcquireSpec& spec) const {
  return std::all_of(spec.locks.begin(), spec.locks.end(), [&](std::string_view name) {
    const Index index = holders_.locks.find(name);
    if (index == kNone) return true;
    const Lock& lock = holders_.locks.items[index];
    return (lock.waiters == 0 || PAWL_MUTANT(barging)) && holders_.admits(lock, spec.terms);
  });
}

void Core::retry(Index index, const Acquire& input, Now now) {
  const Request& request = requests_.items[index];
  if (request.fingerprint != fingerprint(input.spec.locks, input.spec.terms) &&
      !PAWL_MUTANT(conflict_not_noticed)) {
    return changes_.reply(input.waiter, Refused{Refused::Why::kConflict});
  }
  switch (request.state) {
    case Request::State::kWaiting:
      if (input.hung_up) return changes_.reply(input.waiter, NotObtained{NotObtained::Why::kBusy});
      return rejoin(request.subject, input, now);
    case Request::State::kEnded:
      return changes_.reply(input.waiter, Lost{request.ending, request.token});
    case Request::State::kHeld:
      break;
  }
  const Lease& lease = holders_.leases.items[request.subject];
  PAWL_ASSERT(lease.live() && lease.token == request.token);
  if (lease.phase == Phase::kBreaking)
    return changes_.reply(input.waiter, Lost{Ending::kBroken, lease.token});
  changes_.reply(input.waiter, holders_.granted(lease));
}

void Core::rejoin(Index index, const Acquire& input, Now now) {
  const Waiter& waiter = waiters_.items[index];
  PAWL_ASSERT(!waiter.places.empty());
  if (waiter.id != input.waiter) {
    changes_.reply(waiter.id, NotObtained{NotObtained::Why::kSuperseded});
    waiters_.reassign(index, input.waiter);
  }
  if (input.spec.wait == Millis(0))  // It no longer wants to wait.
    return end_wait(index, NotObtained::Why::kBusy, now);
  waiters_.set_end(index, now.tick + input.spec.wait);
  if (input.spec.async) changes_.reply(input.waiter, Queued{waiters_.position(index)});
}

void Core::enqueue(const Acquire& input, std::string meta, Now now) {
  const AcquireSpec& spec = input.spec;
  const std::uint32_t bytes = bytes_of(spec.locks, spec.owner, meta, spec.request);
  if (const auto refused = accounts_.check(input.account, bytes, true))
    return changes_.reply(input.waiter, *refused);
  accounts_.add_waiter(input.account, bytes);
  const Index index = waiters_.add(input.waiter);
  Waiter& waiter = waiters_.items[index];
  waiter.candidate = input.candidate;
  waiter.account = input.account;
  waiter.bytes = bytes;
  waiter.arrived = now.tick;
  waiter.owner = Text(spec.owner);
  waiter.meta = std::move(meta);
  waiter.terms = spec.terms;
  waiter.places.reserve(spec.locks.size());
  std::uint64_t furthest = 0;
  for (const std::string_view name : spec.locks) {
    const Index lock = holders_.locks.find_or_add(name);
    waiters_.join(index, lock);
    furthest = std::max<std::uint64_t>(furthest, holders_.locks.items[lock].waiters);
  }
  if (!spec.request.empty())
    waiter.request =
        requests_.add_waiting(spec.request, fingerprint(spec.locks, spec.terms), index);
  waiters_.set_end(index, now.tick + spec.wait);
  if (spec.async) changes_.reply(input.waiter, Queued{furthest});
}

// Locks count as a set, so their hashes are added.
std::uint64_t Core::fingerprint(const LockNames& locks, const LeaseTerms& terms) const {
  std::uint64_t sum = locks.size();
  for (const std::string_view name : locks) sum += hash_bytes(name, options_.hash_seed);
  const std::uint64_t rest =
      (static_cast<std::uint64_t>(terms.mode) << 48) | (std::uint64_t{terms.limit} << 32);
  return fold(sum ^ 0x9e3779b97f4a7c15,
              rest ^ static_cast<std::uint64_t>(terms.ttl.count()) ^ 0xd6e8feb86659fd93);
}

// --- Renew and release ---------------------------------------------------------------------------

// Model: lease.pml, action receive_renew.
void Core::apply(const Renew& input, Now now) {
  work_.add(kNodesPerRenewal);
  const Index index = holders_.leases.find(input.lease);
  if (index == kNone) {
    if (PAWL_MUTANT(renewal_after_expiry))
      return changes_.reply_at_once(input.waiter, Renewed{Millis(500)});
    // The end may rest on a batch that is not durable yet, and its holder may act on the answer.
    return changes_.reply(input.waiter, history_.lost(input.lease));
  }
  Lease& lease = holders_.leases.items[index];
  PAWL_ASSERT(lease.live());
  if (lease.account == 0 && input.account != 0) {
    accounts_.adopt_lease(input.account, bytes_of(lease));
    lease.account = input.account;
  }
  if (lease.phase == Phase::kBreaking && !PAWL_MUTANT(break_can_be_renewed))
    return changes_.reply(input.waiter, Lost{Ending::kBroken, lease.token});
  const Index asked = asks_.empty() ? kNone : asked_lock(lease);
  const std::uint64_t ask = asked == kNone ? 0 : asks_.find(asked)->number;
  if (lease.ends == kNever) {  // Its grant is not durable yet: the full TTL is still to come.
    ++lease.renewals;
    return changes_.reply(input.waiter, Renewed{lease.ttl(), lease.ttl(), ask});
  }
  const bool capped = lease.extra != nullptr && !PAWL_MUTANT(max_hold_ignored);
  if (capped && lease.extra->hold_until <= now.tick) {
    const Token token = lease.token;
    // Without room it is left to tick(), which cannot be far.
    if (!changes_.full()) end_lease(index, Ending::kMaxHold, now);
    return changes_.reply(input.waiter, Lost{Ending::kMaxHold, token});
  }
  ++lease.renewals;
  const Millis before = std::chrono::floor<Millis>(lease.ends - now.tick);
  lease.ends = now.tick + lease.ttl();
  if (capped) lease.ends = std::min(lease.ends, lease.extra->hold_until);
  // Memory only (G4), so the answer waits for nothing. The wheel is left alone until the old
  // deadline comes up.
  changes_.reply_at_once(input.waiter,
                         Renewed{std::chrono::floor<Millis>(lease.ends - now.tick), before, ask});
}

namespace {

// Exists only for the planted bug release_by_name, in which RELEASE of a lease that is over takes
// the lock from its next holder.
Index planted_bug_next_holder(const Holders& holders, const History& history, LeaseId over) {
  const Token token = history.lost(over).token;
  for (Index i = 0; i < holders.locks.items.end(); ++i) {
    const Lock& lock = holders.locks.items[i];
    if (!lock.in_use() || lock.first_holder == kNone ||
        !holders.leases.items[lock.first_holder].live())
      continue;
    for (const EpochView& epoch : history.of(lock.name.view(), 10)) {
      if (token.value != 0 && epoch.token == token) return lock.first_holder;
    }
  }
  return kNone;
}

}  // namespace

// Model: lease.pml, action receive_release.
void Core::apply(const Release& input, Now now) {
  Index index = holders_.leases.find(input.lease);
  if (PAWL_MUTANT(release_by_name) && index == kNone)
    index = planted_bug_next_holder(holders_, history_, input.lease);
  if (index != kNone) end_lease(index, Ending::kReleased, now);
  changes_.reply(input.waiter, Released{index != kNone});
}

// --- Cancel --------------------------------------------------------------------------------------

void Core::apply(const Cancel& input, Now now) {
  const Index waiter = waiters_.find(input.waiter);
  if (waiter != kNone) drop_waiter(waiter, now);
}

void Core::apply(const CancelRequest& input, Now now) {
  const Index request = requests_.find(input.request);
  const bool waiting =
      request != kNone && requests_.items[request].state == Request::State::kWaiting;
  if (waiting && !PAWL_MUTANT(cancel_keeps_waiting))
    end_wait(requests_.items[request].subject, NotObtained::Why::kCancelled, now);
  changes_.reply(input.waiter, CancelDone{waiting});
}

// --- Ask -----------------------------------------------------------------------------------------

// The answer and the event rest on nothing that is stored.
void Core::apply(const Ask& input, Now now) {
  const Index index = holders_.locks.find(input.lock);
  const std::uint32_t holders =
      index == kNone ? 0 : holders_.locks.items[index].holders - closed_.on(index);
  if (holders == 0) return changes_.reply(input.waiter, AskDone{});
  Index newest = holders_.locks.items[index].last_holder;
  for (; !holders_.leases.items[newest].live();
       newest = holders_.leases.items[newest].holder_before)
    work_.add();
  const Lease& lease = holders_.leases.items[newest];
  AskDone done{AskDone::State::kAsked, holders, lease.token};
  const LockAsk* before = asks_.find(index);
  if (before != nullptr && now.tick < before->at + limits::kAskAgainAfter) {
    done.state = AskDone::State::kAlreadyAsked;
    return changes_.reply(input.waiter, done);
  }
  if (const auto refused = asks_.check(input.account, before))
    return changes_.reply(input.waiter, *refused);
  asks_.put(index,
            {.at = now.tick,
             .newest = lease.token,
             .account = input.account,
             .by = std::string(input.by),
             .reason = std::string(input.reason)},
            now.wall);
  Event event;
  event.kind = EventKind::kReleaseWanted;
  event.token = lease.token;
  event.mode = lease.mode;
  event.wall = now.wall;
  changes_.add_event(event, input.lock, input.by, input.reason);
  changes_.reply(input.waiter, done);
}

// --- Break and raise -----------------------------------------------------------------------------

void Core::apply(const Break& input, Now now) {
  const Index lock = holders_.locks.find(input.lock);
  Index index = lock == kNone ? kNone : holders_.locks.items[lock].first_holder;
  while (index != kNone && holders_.leases.items[index].token != input.token) {
    index = holders_.leases.items[index].holder_after;
    work_.add();
  }
  if (index == kNone || !holders_.leases.items[index].live())
    return changes_.reply(input.waiter, BreakDone{false});
  Lease& lease = holders_.leases.items[index];
  if (input.now) {
    end_lease(index, Ending::kBroken, now, {.skip_delay = true, .reason = input.reason});
  } else if (lease.phase != Phase::kBreaking) {
    lease.phase = Phase::kBreaking;
    if (!PAWL_MUTANT(break_not_persisted)) put_lease(lease);
    add_events(EventKind::kBreaking, lease, now, {}, input.reason);
  }
  changes_.reply(input.waiter, BreakDone{true});
}

void Core::apply(const Raise& input, Now now) {
  const Token last = changes_.last_token();
  if (input.token <= last) return changes_.reply(input.waiter, Refused{Refused::Why::kRaiseBack});
  if (input.token.value > limits::kTokenMax || input.token.value - last.value > limits::kRaiseMax)
    return changes_.reply(input.waiter, Refused{Refused::Why::kRaiseTooFar});
  changes_.raise_token(input.token);
  if (PAWL_MUTANT(raise_not_persisted))
    return changes_.reply_at_once(input.waiter, Raised{input.token});
  Event event;
  event.kind = EventKind::kRaised;
  event.token = input.token;
  event.wall = now.wall;
  changes_.add_event(event, {}, {}, input.reason);
  changes_.reply(input.waiter, Raised{input.token});
}

// --- Time and durability -------------------------------------------------------------------------

// Model: lease.pml, action expire.
void Core::tick(Now now) {
  if (!left_.empty()) serve_left(now);
  const std::uint64_t passed = passed_ms(now.tick);
  while (!changes_.full()) {
    const Index index = lease_timers_.pop(passed);
    if (index == kNone) break;
    const Lease& lease = holders_.leases.items[index];
    PAWL_ASSERT(lease.phase != Phase::kUnused);
    if (due_ms(lease.ends) > lease.timer.due) {
      arm(index);  // Renewed since it was armed; once per TTL.
    } else if (lease.phase == Phase::kClosed) {
      hand_on(index, now);
    } else if (lease.phase == Phase::kBreaking) {
      end_lease(index, Ending::kBroken, now);
    } else {
      const bool capped = lease.extra != nullptr && lease.ends == lease.extra->hold_until;
      end_lease(index, capped ? Ending::kMaxHold : Ending::kExpired, now);
    }
  }
  for (Index waiter = waiters_.pop_ended(now.tick); waiter != kNone;
       waiter = waiters_.pop_ended(now.tick)) {
    end_wait(waiter, NotObtained::Why::kTimeout, now);
  }
  requests_.forget_before(now.tick);
  if (restore_wait_.active() && now.tick >= restore_wait_.ends() && !changes_.full())
    end_restore_wait(now);
}

Tick Core::next_deadline() const {
  if (!left_.empty()) return Tick{};
  const std::uint64_t due = std::min(lease_timers_.next_due(), waiters_.next_due());
  if (due == UINT64_MAX) return restore_wait_.ends();
  return std::min(restore_wait_.ends(), Tick(Millis(due)));
}

// Model: lease.pml, action sync.
void Core::durable(BatchId batch, Now now) {
  changes_.mark_durable(batch);
  while (!pending_grants_.empty() && pending_grants_.front().batch <= batch) {
    const PendingGrant grant = pending_grants_.front();
    pending_grants_.pop_front();
    Lease& lease = holders_.leases.items[grant.lease];
    if (lease.token != grant.token || !lease.live()) continue;  // Released before it was durable.
    if (PAWL_MUTANT(ttl_from_apply)) continue;
    start_ttl(lease, now.tick);
    arm(grant.lease);
  }
}

// --- Names ---------------------------------------------------------------------------------------

std::string_view to_text(Ending ending) {
  switch (ending) {
    case Ending::kReleased:
      return "released";
    case Ending::kExpired:
      return "expired";
    case Ending::kBroken:
      return "broken";
    case Ending::kMaxHold:
      return "max_hold";
  }
  return "unknown";
}

std::string_view to_text(AskDone::State state) {
  switch (state) {
    case AskDone::State::kAsked:
      return "asked";
    case AskDone::State::kAlreadyAsked:
      return "already_asked";
    case AskDone::State::kNotHeld:
      return "not_held";
  }
  return "unknown";
}

std::string_view to_text(EventKind kind) {
  switch (kind) {
    case EventKind::kGranted:
      return "granted";
    case EventKind::kReleased:
      return "released";
    case EventKind::kExpired:
      return "expired";
    case EventKind::kBreaking:
      return "breaking";
    case EventKind::kBroken:
      return "broken";
    case EventKind::kRaised:
      return "raised";
    case EventKind::kReleaseWanted:
      return "release_wanted";
  }
  return "unknown";
}

}  // namespace pawl::core
