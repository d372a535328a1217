#include "client/keeper.h"

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mutants.h"
#include "client/deadline.h"

namespace pawl::client {
namespace {

Instant at_risk_from(Instant deadline, Millis ttl) {
  return deadline - Nanos(ttl) / 2;
}

// With a shorter timeout a pawld that is only busy would be taken for a dead one.
constexpr Millis kAnswerTimeoutMin{100};

// When all leases end at once (a restored pawld) they end for the same reason.
constexpr std::size_t kEndReasonQueriesMax = 100;
// Those beyond are told with a later renewal.
constexpr std::size_t kAskQueriesMax = 100;
constexpr std::string_view kOverReason = "pawld reports that it is over";
constexpr std::string_view kLostCode = "LOST ";

}  // namespace

LeaseNumber Keeper::add(const GrantedLease& granted, const KeepOptions& options, Instant now) {
  const LeaseNumber number{++last_number_};
  Entry& entry = entries_[number];
  entry.lease = granted.lease;
  entry.ttl = granted.ttl;
  entry.deadline = granted.deadline;
  entry.progress_every = options.progress_every;
  entry.progressed = now;
  entry.uncertain_before = options.uncertain_before.value_or(entry.ttl / 6);
  PAWL_ASSERT(entry.uncertain_before <= Nanos(entry.ttl) / 2);
  if (options.max_hold > Millis(0)) entry.capped_at = now + options.max_hold;
  count_ttl(entry);
  schedule_state_timer(number, entry);
  schedule_renewal(number, entry,
                   entry.deadline - Nanos(entry.ttl) * 2 / 3 - random_up_to(Nanos(entry.ttl) / 15));
  return number;
}

LeaseStatus Keeper::status(LeaseNumber lease, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end())
    return {.state = LeaseState::kLost, .reason = "released", .deadline = now};
  Entry& entry = found->second;
  update_state(lease, entry, now);
  return {entry.state, entry.reason,   entry.ending,    entry.deadline,
          entry.final, entry.renewals, entry.expires_in};
}

bool Keeper::awaits_ending(LeaseNumber lease) const {
  return std::any_of(end_reason_queries_.begin(), end_reason_queries_.end(),
                     [&](const auto& query) { return query.second == lease; });
}

void Keeper::progress(LeaseNumber lease, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.progressed = now;
  if (!std::exchange(entry.renewal_suspended, false)) return;
  entry.last_failure.clear();
  update_state(lease, entry, now);
  if (entry.state < LeaseState::kUncertain) schedule_renewal(lease, entry, now);
}

std::optional<CallId> Keeper::release(LeaseNumber lease, Instant give_up, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end() || found->second.released) return std::nullopt;
  Entry& entry = found->second;
  // Also when its deadline has passed: pawld's own deadline is later, and the next waiter need not
  // wait for it. Also when pawld refused to renew: a lease that is being broken keeps its locks
  // closed until its TTL ends or it is released.
  const CallId call = machine_.release({entry.lease, entry.ttl, give_up}, now);
  entry.released = true;
  update_state(lease, entry, now);
  if (entry.state != LeaseState::kLost) forget(lease);
  return call;
}

void Keeper::stop_renewing(LeaseNumber lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  found->second.renewal_stopped = true;
  schedule_renewal(lease, found->second, kNever);
}

void Keeper::mark_lost(LeaseNumber lease, std::string reason) {
  const auto found = entries_.find(lease);
  if (found != entries_.end())
    set_state(lease, found->second, LeaseState::kLost, std::move(reason));
}

void Keeper::forget(LeaseNumber lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  uncount_ttl(found->second);
  renewal_timers_.schedule(lease, found->second.renew_at, kNever);
  state_timers_.schedule(lease, found->second.state_timer, kNever);
  entries_.erase(found);
}

std::vector<LeaseNumber> Keeper::leases() const {
  std::vector<LeaseNumber> all;
  for (const auto& [number, entry] : entries_) all.push_back(number);
  return all;
}

// --- Answer timeout ------------------------------------------------------------------------------

void Keeper::count_ttl(Entry& entry) {
  entry.ttl_counted = true;
  if (++renewed_ttls_[entry.ttl] == 1) update_answer_timeout();
}

void Keeper::uncount_ttl(Entry& entry) {
  if (!std::exchange(entry.ttl_counted, false)) return;
  const auto found = renewed_ttls_.find(entry.ttl);
  if (--found->second > 0) return;
  renewed_ttls_.erase(found);
  update_answer_timeout();
}

void Keeper::update_answer_timeout() {
  if (answer_timeout_ == AnswerTimeout::kAsConfigured) return;
  machine_.limit_answer_timeout(
      renewed_ttls_.empty() ? Machine::kNoLimit
                            : std::max(kAnswerTimeoutMin, renewed_ttls_.begin()->first / 6));
}

// --- State ---------------------------------------------------------------------------------------

LeaseState Keeper::state_at(const Entry& entry, Instant now) {
  if (now >= entry.deadline) return LeaseState::kLost;
  if (now >= entry.deadline - entry.uncertain_before) return LeaseState::kUncertain;
  return now >= at_risk_from(entry.deadline, entry.ttl) ? LeaseState::kAtRisk : LeaseState::kHeld;
}

std::string Keeper::reason_for(const Entry& entry) {
  if (entry.final) return "max_hold was reached";
  return entry.last_failure.empty() ? "its renewal was not answered" : entry.last_failure;
}

void Keeper::update_state(LeaseNumber number, Entry& entry, Instant now) {
  const LeaseState next = state_at(entry, now);
  if (next == entry.state) return schedule_state_timer(number, entry);
  // An uncertain lease never recovers.
  if (next < entry.state && entry.state >= LeaseState::kUncertain) return;
  set_state(number, entry, next, next == LeaseState::kHeld ? std::string() : reason_for(entry));
}

void Keeper::set_state(LeaseNumber number, Entry& entry, LeaseState state, std::string reason) {
  if (entry.state == LeaseState::kLost) return;
  entry.state = state;
  entry.reason = std::move(reason);
  if (state == LeaseState::kLost) ++counters_.lost;
  if (state >= LeaseState::kUncertain) {
    schedule_renewal(number, entry, kNever);
    uncount_ttl(entry);
  }
  schedule_state_timer(number, entry);
  changes_.push_back({number, state, entry.reason});
}

void Keeper::schedule_state_timer(LeaseNumber number, Entry& entry) {
  Instant at = kNever;
  switch (entry.state) {
    case LeaseState::kHeld:
      at = at_risk_from(entry.deadline, entry.ttl);
      break;
    case LeaseState::kAtRisk:
      at = entry.deadline - entry.uncertain_before;
      break;
    case LeaseState::kUncertain:
      at = entry.deadline;
      break;
    case LeaseState::kLost:
      break;
  }
  state_timers_.schedule(number, entry.state_timer, at);
}

// --- Renewals ------------------------------------------------------------------------------------

// Jitter: leases that were acquired together must not be renewed together for ever.
Nanos Keeper::random_up_to(Nanos span) {
  return Nanos(random_.below(static_cast<std::uint64_t>(span.count()) + 1));
}

void Keeper::schedule_renewal(LeaseNumber number, Entry& entry, Instant at) {
  renewal_timers_.schedule(number, entry.renew_at, entry.renewal_stopped ? kNever : at);
}

// A live renewal thread does not prove that the work makes progress. Hard case 32.
bool Keeper::made_progress(Entry& entry, Instant now) const {
  if (entry.progress_every == Millis(0) || now - entry.progressed <= entry.progress_every)
    return true;
  entry.renewal_suspended = true;
  entry.last_failure = "no progress reported for " + std::to_string(entry.progress_every.count()) +
                       " ms, so it is not renewed";
  return false;
}

void Keeper::send_due_renewals(Instant now) {
  std::vector<LeaseNumber> batch;
  while (renewal_timers_.next_due() != kNever) {
    const LeaseNumber number = renewal_timers_.first();
    Entry& entry = entries_.at(number);
    // Leases that are due shortly after the first are sent along: one command instead of many.
    const Nanos early = batch.empty() ? Nanos(0) : Nanos(entry.ttl) / 50;
    if (entry.renew_at - early > now) break;
    schedule_renewal(number, entry, kNever);
    if (made_progress(entry, now)) batch.push_back(number);
    if (batch.size() == limits::kRenewsPerCall) send_renewals(std::exchange(batch, {}), now);
  }
  if (!batch.empty()) send_renewals(std::move(batch), now);
}

void Keeper::send_renewals(std::vector<LeaseNumber> batch, Instant now) {
  RenewManyCall call;
  call.give_up = now;
  for (const LeaseNumber number : batch) {
    const Entry& entry = entries_.at(number);
    call.leases.push_back(entry.lease);
    call.give_up = std::max(call.give_up, entry.deadline - entry.uncertain_before);
  }
  ++counters_.renewal_commands;
  in_flight_.emplace(machine_.renew_many(std::move(call), now), std::move(batch));
}

bool Keeper::on_completion(const Completion& done, Instant now) {
  if (const auto query = end_reason_queries_.extract(done.call)) {
    on_end_reason(query.mapped(), std::get<Result<RenewResult>>(done.outcome));
    return true;
  }
  if (const auto query = ask_queries_.extract(done.call)) {
    on_ask(query.mapped(), std::get<Result<RenewResult>>(done.outcome));
    return true;
  }
  auto batch = in_flight_.extract(done.call);
  if (batch.empty()) return false;
  const auto& renewals = std::get<Result<RenewManyResult>>(done.outcome);
  for (std::size_t i = 0; i < batch.mapped().size(); ++i) {
    const LeaseNumber number = batch.mapped()[i];
    const auto found = entries_.find(number);
    if (found == entries_.end()) continue;  // Released meanwhile.
    Entry& entry = found->second;
    if (entry.released || entry.refused) continue;
    if (!renewals) {
      on_renewal_failed(number, entry, renewals.error().detail, now);
    } else if (const wire::RenewedItem& answer = renewals->answered[i]; !answer.expires_in) {
      on_lease_over(number, entry, now);
    } else {
      on_renewed(number, entry, renewals->sent, *answer.expires_in, now);
      if (answer.ask != 0 && answer.ask != entry.heard_ask) query_ask(number, entry, now);
    }
  }
  return true;
}

// The loss is reported at once. MRENEW does not say how the lease ended; RENEW does, so that is
// asked next.
void Keeper::on_lease_over(LeaseNumber number, Entry& entry, Instant now) {
  entry.refused = true;
  ++counters_.renewal_failures;
  set_state(number, entry, LeaseState::kLost, std::string(kOverReason));
  if (end_reason_queries_.size() >= kEndReasonQueriesMax) return;
  end_reason_queries_.emplace(machine_.renew({entry.lease, entry.ttl, now + entry.ttl}, now),
                              number);
}

void Keeper::on_end_reason(LeaseNumber number, const Result<RenewResult>& answer) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || answer || answer.error().code != Code::kLeaseLost) return;
  std::string_view ending = answer.error().detail;
  if (ending.starts_with(kLostCode)) ending.remove_prefix(kLostCode.size());
  found->second.ending = ending;
  found->second.reason = std::string(kOverReason).append(": ").append(ending);
  changes_.push_back({number, LeaseState::kLost, found->second.reason, true});
}

// MRENEW says only that somebody has asked, in a few bytes for each of many leases; RENEW says who
// and why. pawld repeats the number with every renewal, so that a lost answer loses nothing.
void Keeper::query_ask(LeaseNumber number, Entry& entry, Instant now) {
  if (entry.ask_queried || ask_queries_.size() >= kAskQueriesMax) return;
  entry.ask_queried = true;
  ask_queries_.emplace(machine_.renew({entry.lease, entry.ttl, entry.deadline, true}, now), number);
}

// Its renewal is not counted: the deadline rests on the MRENEW before.
void Keeper::on_ask(LeaseNumber number, const Result<RenewResult>& answer) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.ask_queried = false;
  if (!answer || !answer->release_wanted || answer->release_wanted->ask == entry.heard_ask) return;
  if (entry.released || entry.state == LeaseState::kLost) return;
  entry.heard_ask = answer->release_wanted->ask;
  asks_.push_back({number, *answer->release_wanted});
}

void Keeper::on_renewed(LeaseNumber number, Entry& entry, Instant sent, Millis answered,
                        Instant now) {
  update_state(number, entry, now);
  if (entry.state >= LeaseState::kUncertain) return;  // Too late: the holder was notified to stop.
  ++counters_.renewals;
  ++entry.renewals;
  entry.expires_in = answered;
  const bool capped = entry.capped_at != kNever;
  const Instant until =
      deadline(RenewTiming{PAWL_MUTANT(renewal_from_reply) ? now : sent, answered, entry.ttl});
  entry.deadline = std::max(entry.deadline, std::min(until, entry.capped_at));
  entry.final = capped && (answered < entry.ttl || until >= entry.capped_at);
  entry.last_failure.clear();
  update_state(number, entry, now);
  if (entry.final || entry.state >= LeaseState::kUncertain) return;
  const Instant next =
      std::max(entry.deadline - Nanos(entry.ttl) * 2 / 3, now + Nanos(entry.ttl) / 10);
  schedule_renewal(number, entry, next - random_up_to(Nanos(entry.ttl) / 15));
}

void Keeper::on_renewal_failed(LeaseNumber number, Entry& entry, const std::string& why,
                               Instant now) {
  ++counters_.renewal_failures;
  entry.last_failure = "its renewal failed: " + why;
  if (PAWL_MUTANT(failed_renewal_extends)) entry.deadline = now + entry.ttl;
  update_state(number, entry, now);
  if (entry.state < LeaseState::kUncertain)
    schedule_renewal(number, entry, now + Nanos(entry.ttl) / 10);
}

void Keeper::on_timer(Instant now) {
  while (state_timers_.next_due() <= now) {
    const LeaseNumber number = state_timers_.first();
    update_state(number, entries_.at(number), now);
  }
  send_due_renewals(now);
}

Instant Keeper::next_timer() const {
  return std::min(state_timers_.next_due(), renewal_timers_.next_due());
}

}  // namespace pawl::client
