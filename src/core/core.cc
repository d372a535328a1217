#include "core/core.h"

#include "base/bytes.h"
#include "base/mutants.h"
#include "core/state.h"

namespace pawl::core {

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
  }
  return "unknown";
}

Core::State::State(const Options& given)
    : options(given),
      locks(given.hash_seed),
      requests(given.hash_seed, given.requests_remembered, given.request_memory),
      history(given.hash_seed, given.history_epochs),
      lease_timers(leases.items),
      waiter_timers(waiters.items) {}

BatchId Core::State::last_batch() const {
  if (!batch.empty()) return open_batch();
  return taken > durable ? taken : BatchId{};
}

// Once per batch: only the last one counts.
void Core::State::put_last_token() {
  if (last_token == recorded_token || PAWL_MUTANT(last_token_not_recorded)) return;
  recorded_token = last_token;
  scratch.clear();
  put_u64(scratch, last_token.value);
  batch.put(kLastTokenKey, scratch);
}

Core::Core(Options options) : state_(std::make_unique<State>(options)) {}
Core::~Core() = default;
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;

Output& Core::output() {
  return state_->output;
}
BatchId Core::last_batch() const {
  return state_->last_batch();
}

bool Core::remembers(std::string_view request) const {
  return !request.empty() && state_->requests.find(request) != kNone;
}

BatchId Core::take_batch(Batch& out) {
  State& s = *state_;
  out.clear();
  if (s.batch.empty()) return BatchId{};
  s.put_last_token();
  std::swap(out, s.batch);
  s.taken = s.open_batch();
  return s.taken;
}

// Model: lease.pml, action sync.
void Core::durable(BatchId batch, Now now) {
  State& s = *state_;
  PAWL_ASSERT(batch > s.durable && batch <= s.taken);
  s.durable = batch;
  while (!s.not_durable.empty() && s.not_durable.front().batch <= batch) {
    const State::Grant grant = s.not_durable.front();
    s.not_durable.pop_front();
    Lease& lease = s.leases.items[grant.lease];
    if (lease.token != grant.token || !lease.live()) continue;  // Released before it was durable.
    if (PAWL_MUTANT(ttl_from_apply)) continue;
    s.start_ttl(lease, now.tick);
    s.arm(grant.lease);
  }
}

void Core::apply(const Acquire& input, Now now) {
  state_->acquire(input, now);
}

// Model: lease.pml, action receive_renew.
void Core::apply(const Renew& input, Now now) {
  State& s = *state_;
  const Index index = s.leases.find(input.lease);
  if (index == kNone) {
    if (PAWL_MUTANT(renewal_after_expiry)) return s.reply(input.waiter, Renewed{Millis(500)}, {});
    // The end may rest on a batch that is not durable yet; whoever hears of it may act on it.
    s.reply(input.waiter, s.history.lost(input.lease), s.last_batch());
    return;
  }
  Lease& lease = s.leases.items[index];
  if (lease.phase == Phase::kBreaking && !PAWL_MUTANT(break_can_be_renewed)) {
    s.reply(input.waiter, Lost{Ending::kBroken, lease.token}, s.last_batch());
    return;
  }
  if (lease.ends == kNever) {  // Its grant is not durable yet: the full TTL is still to come.
    ++lease.renewals;
    s.reply(input.waiter, Renewed{lease.ttl(), lease.ttl()}, s.last_batch());
    return;
  }
  const bool capped = lease.extra != nullptr && !PAWL_MUTANT(max_hold_ignored);
  if (capped && lease.extra->hold_until <= now.tick) {
    const Token token = lease.token;
    s.end_lease(index, Ending::kMaxHold, now);
    s.reply(input.waiter, Lost{Ending::kMaxHold, token}, s.last_batch());
    return;
  }
  ++lease.renewals;
  const Millis before = std::chrono::floor<Millis>(lease.ends - now.tick);
  lease.ends = now.tick + lease.ttl();
  if (capped) lease.ends = std::min(lease.ends, lease.extra->hold_until);
  // Memory only (G4), so it waits for nothing; the wheel is left alone until the old deadline comes
  // up.
  s.reply(input.waiter, Renewed{std::chrono::floor<Millis>(lease.ends - now.tick), before},
          BatchId{});
}

namespace {

// For the planted bug release_by_name: RELEASE takes the lock from whoever has it.
template <class State>
Index whoever_holds_it_now(const State& s, LeaseId over) {
  const Token token = s.history.lost(over).token;
  for (Index i = 0; i < s.locks.items.end(); ++i) {
    const Lock& lock = s.locks.items[i];
    if (!lock.in_use() || lock.first_holder == kNone || !s.leases.items[lock.first_holder].live())
      continue;
    for (const EpochView& epoch : s.history.of(lock.name.view(), 10)) {
      if (token.value != 0 && epoch.token == token) return lock.first_holder;
    }
  }
  return kNone;
}

}  // namespace

// Model: lease.pml, action receive_release.
void Core::apply(const Release& input, Now now) {
  State& s = *state_;
  Index index = s.leases.find(input.lease);
  if (PAWL_MUTANT(release_by_name) && index == kNone) index = whoever_holds_it_now(s, input.lease);
  if (index != kNone) s.end_lease(index, Ending::kReleased, now);
  s.reply(input.waiter, Released{index != kNone}, s.last_batch());
}

void Core::apply(const Cancel& input, Now now) {
  const Index waiter = state_->waiters.find(input.waiter);
  if (waiter != kNone) state_->drop_waiter(waiter, now);
}

void Core::apply(const CancelRequest& input, Now now) {
  State& s = *state_;
  const Index request = s.requests.find(input.request);
  const bool waiting =
      request != kNone && s.requests.items[request].state == Request::State::kWaiting;
  if (waiting && !PAWL_MUTANT(cancel_keeps_waiting))
    s.end_wait(s.requests.items[request].subject, NotObtained::Why::kCancelled, now);
  s.reply(input.waiter, CancelDone{waiting}, s.last_batch());
}

void Core::apply(const Break& input, Now now) {
  State& s = *state_;
  const Index lock = s.locks.find(input.lock);
  Index index = lock == kNone ? kNone : s.locks.items[lock].first_holder;
  while (index != kNone && s.leases.items[index].token != input.token)
    index = s.leases.items[index].holder_after;
  if (index == kNone || !s.leases.items[index].live()) {
    s.reply(input.waiter, BreakDone{false}, s.last_batch());
    return;
  }
  Lease& lease = s.leases.items[index];
  if (input.now) {
    s.end_lease(index, Ending::kBroken, now, {.skip_delay = true, .reason = input.reason});
  } else if (lease.phase != Phase::kBreaking) {
    lease.phase = Phase::kBreaking;
    if (!PAWL_MUTANT(break_not_persisted)) s.put_record(lease);
    s.emit_for_locks(EventKind::kBreaking, lease, now, {}, input.reason);
  }
  s.reply(input.waiter, BreakDone{true}, s.last_batch());
}

void Core::apply(const Raise& input, Now now) {
  State& s = *state_;
  if (input.token <= s.last_token) {
    s.reply(input.waiter, Refused{Refused::Why::kRaiseBack}, s.last_batch());
    return;
  }
  if (input.token.value > limits::kTokenMax ||
      input.token.value - s.last_token.value > limits::kRaiseMax) {
    s.reply(input.waiter, Refused{Refused::Why::kRaiseTooFar}, s.last_batch());
    return;
  }
  s.last_token = input.token;
  if (PAWL_MUTANT(raise_not_persisted)) return s.reply(input.waiter, Raised{s.last_token}, {});
  s.put_last_token();
  s.batch.cover(s.last_token.value);
  Lease nobody;
  nobody.token = input.token;
  s.emit(EventKind::kRaised, nobody, {}, now, {}, input.reason);
  s.reply(input.waiter, Raised{s.last_token}, s.last_batch());
}

// Model: lease.pml, action expire.
void Core::tick(Now now) {
  State& s = *state_;
  const std::uint64_t passed = passed_ms(now.tick);
  for (Index index = s.lease_timers.pop(passed); index != kNone;
       index = s.lease_timers.pop(passed)) {
    Lease& lease = s.leases.items[index];
    if (due_ms(lease.ends) > lease.timer.due) {
      s.arm(index);  // Renewed since it was armed; once per TTL.
    } else if (lease.phase == Phase::kClosed) {
      s.give_back(index, now);
    } else if (lease.phase == Phase::kBreaking) {
      s.end_lease(index, Ending::kBroken, now);
    } else {
      const bool capped = lease.extra != nullptr && lease.ends == lease.extra->hold_until;
      s.end_lease(index, capped ? Ending::kMaxHold : Ending::kExpired, now);
    }
  }
  for (Index index = s.waiter_timers.pop(passed); index != kNone;
       index = s.waiter_timers.pop(passed)) {
    s.end_wait(index, NotObtained::Why::kTimeout, now);
  }
  s.requests.forget_before(now.tick);
  if (s.restoring() && now.tick >= s.grants_from) s.end_restoring(now);
}

Tick Core::next_deadline() const {
  const State& s = *state_;
  const std::uint64_t due = std::min(s.lease_timers.next_due(), s.waiter_timers.next_due());
  if (due == UINT64_MAX) return s.grants_from;
  return std::min(s.grants_from, Tick(Millis(due)));
}

}  // namespace pawl::core
