#include "client/keeper.h"

#include <algorithm>

#include "base/limits.h"
#include "base/mutants.h"
#include "client/deadline.h"

namespace pawl::client {
namespace {

Instant at_risk_from(Instant deadline, Millis ttl) {
  return deadline - Nanos(ttl) / 2;
}

Instant uncertain_from(Instant deadline, Millis ttl) {
  return deadline - Nanos(ttl) / 6;
}

// Shorter than this would take a pawld that is merely busy for one that is gone.
constexpr Millis kPatienceMin{100};

// When all leases end at once (a restored pawld), one reason is like the other.
constexpr std::size_t kInquiriesMax = 100;
constexpr std::string_view kOver = "pawld says that it is over";

}  // namespace

LeaseNumber Keeper::adopt(const Held& held, const KeepOptions& keep, Instant now) {
  const LeaseNumber number{++last_number_};
  Entry& entry = entries_[number];
  entry.lease = held.lease;
  entry.ttl = held.ttl;
  entry.deadline = held.deadline;
  entry.progress_every = keep.progress_every;
  entry.progressed = now;
  if (keep.max_hold > Millis(0)) entry.capped_at = now + keep.max_hold;
  stake(entry);
  plan_judgement(number, entry);
  plan_renewal(number, entry,
               entry.deadline - Nanos(entry.ttl) * 2 / 3 - up_to(Nanos(entry.ttl) / 15));
  return number;
}

Standing Keeper::look(LeaseNumber lease, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return {LeaseState::kLost, "released", now};
  Entry& entry = found->second;
  judge(lease, entry, now);
  return {entry.state, entry.reason, entry.deadline};
}

void Keeper::progress(LeaseNumber lease, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.progressed = now;
  if (!std::exchange(entry.withheld, false)) return;
  entry.trouble.clear();
  judge(lease, entry, now);
  if (entry.state < LeaseState::kUncertain) plan_renewal(lease, entry, now);
}

std::optional<CallId> Keeper::release(LeaseNumber lease, Instant give_up, Instant now) {
  const auto found = entries_.find(lease);
  if (found == entries_.end() || found->second.released) return std::nullopt;
  Entry& entry = found->second;
  // Also when its deadline has passed: pawld's own comes later, and the next in the queue need not
  // wait for it. Also when pawld has called it over: one that is being broken keeps its locks
  // closed until its time is over, or until this.
  const CallId call = machine_.release({entry.lease, entry.ttl, give_up}, now);
  entry.released = true;
  judge(lease, entry, now);
  if (entry.state != LeaseState::kLost) forget(lease);
  return call;
}

void Keeper::end(LeaseNumber lease, std::string reason) {
  const auto found = entries_.find(lease);
  if (found != entries_.end()) turn(lease, found->second, LeaseState::kLost, std::move(reason));
}

void Keeper::forget(LeaseNumber lease) {
  const auto found = entries_.find(lease);
  if (found == entries_.end()) return;
  unstake(found->second);
  renewals_.move(lease, found->second.renew_at, kNever);
  judgements_.move(lease, found->second.judge_at, kNever);
  entries_.erase(found);
}

std::vector<LeaseNumber> Keeper::leases() const {
  std::vector<LeaseNumber> all;
  for (const auto& [number, entry] : entries_) all.push_back(number);
  return all;
}

// --- What is at stake ----------------------------------------------------------------------------

void Keeper::stake(Entry& entry) {
  entry.at_stake = true;
  if (++at_stake_[entry.ttl] == 1) tell_patience();
}

void Keeper::unstake(Entry& entry) {
  if (!std::exchange(entry.at_stake, false)) return;
  const auto found = at_stake_.find(entry.ttl);
  if (--found->second > 0) return;
  at_stake_.erase(found);
  tell_patience();
}

void Keeper::tell_patience() {
  if (patience_ == Patience::kAsGiven) return;
  machine_.set_patience(at_stake_.empty() ? Machine::kPatient
                                          : std::max(kPatienceMin, at_stake_.begin()->first / 6));
}

// --- What a lease is worth -----------------------------------------------------------------------

LeaseState Keeper::worth(const Entry& entry, Instant now) {
  if (now >= entry.deadline) return LeaseState::kLost;
  if (now >= uncertain_from(entry.deadline, entry.ttl)) return LeaseState::kUncertain;
  return now >= at_risk_from(entry.deadline, entry.ttl) ? LeaseState::kAtRisk : LeaseState::kHeld;
}

std::string Keeper::why(const Entry& entry) {
  if (entry.final) return "max_hold is reached";
  return entry.trouble.empty() ? "its renewal has not been answered" : entry.trouble;
}

void Keeper::judge(LeaseNumber number, Entry& entry, Instant now) {
  const LeaseState worth_now = worth(entry, now);
  if (worth_now == entry.state) return plan_judgement(number, entry);
  if (worth_now < entry.state && entry.state >= LeaseState::kUncertain)
    return;  // There is no way back.
  turn(number, entry, worth_now, worth_now == LeaseState::kHeld ? std::string() : why(entry));
}

void Keeper::turn(LeaseNumber number, Entry& entry, LeaseState state, std::string reason) {
  if (entry.state == LeaseState::kLost) return;
  entry.state = state;
  entry.reason = std::move(reason);
  if (state == LeaseState::kLost) ++counters_.lost;
  if (state >= LeaseState::kUncertain) {
    plan_renewal(number, entry, kNever);
    unstake(entry);
  }
  plan_judgement(number, entry);
  changes_.push_back({number, state, entry.reason});
}

void Keeper::plan_judgement(LeaseNumber number, Entry& entry) {
  Instant at = kNever;
  switch (entry.state) {
    case LeaseState::kHeld:
      at = at_risk_from(entry.deadline, entry.ttl);
      break;
    case LeaseState::kAtRisk:
      at = uncertain_from(entry.deadline, entry.ttl);
      break;
    case LeaseState::kUncertain:
      at = entry.deadline;
      break;
    case LeaseState::kLost:
      break;
  }
  judgements_.move(number, entry.judge_at, at);
}

// --- Renewals ------------------------------------------------------------------------------------

// Jitter: leases taken together must not be renewed together for ever.
Nanos Keeper::up_to(Nanos span) {
  return Nanos(random_.below(static_cast<std::uint64_t>(span.count()) + 1));
}

void Keeper::plan_renewal(LeaseNumber number, Entry& entry, Instant at) {
  renewals_.move(number, entry.renew_at, at);
}

// A renewal thread that is alive proves nothing about the work. Hard case 32.
bool Keeper::gets_on(Entry& entry, Instant now) const {
  if (entry.progress_every == Millis(0) || now - entry.progressed <= entry.progress_every)
    return true;
  entry.withheld = true;
  entry.trouble = "no progress was reported for " + std::to_string(entry.progress_every.count()) +
                  " ms, so it is not renewed";
  return false;
}

void Keeper::renew_due(Instant now) {
  std::vector<LeaseNumber> batch;
  while (renewals_.next() != kNever) {
    const LeaseNumber number = renewals_.first();
    Entry& entry = entries_.at(number);
    // With the first that is due go those that would be due soon: one command instead of many.
    const Nanos soon = batch.empty() ? Nanos(0) : Nanos(entry.ttl) / 50;
    if (entry.renew_at - soon > now) break;
    plan_renewal(number, entry, kNever);
    if (gets_on(entry, now)) batch.push_back(number);
    if (batch.size() == limits::kRenewsPerCall) send(std::exchange(batch, {}), now);
  }
  if (!batch.empty()) send(std::move(batch), now);
}

void Keeper::send(std::vector<LeaseNumber> batch, Instant now) {
  RenewManyCall call;
  call.give_up = now;
  for (const LeaseNumber number : batch) {
    const Entry& entry = entries_.at(number);
    call.leases.push_back(entry.lease);
    call.give_up = std::max(call.give_up, uncertain_from(entry.deadline, entry.ttl));
  }
  ++counters_.renewal_commands;
  under_way_.emplace(machine_.renew_many(std::move(call), now), std::move(batch));
}

bool Keeper::take(const Completion& done, Instant now) {
  if (const auto inquiry = inquiries_.extract(done.call)) {
    explain(inquiry.mapped(), std::get<Result<Renewal>>(done.outcome));
    return true;
  }
  auto batch = under_way_.extract(done.call);
  if (batch.empty()) return false;
  const auto& renewals = std::get<Result<Renewals>>(done.outcome);
  for (std::size_t i = 0; i < batch.mapped().size(); ++i) {
    const LeaseNumber number = batch.mapped()[i];
    const auto found = entries_.find(number);
    if (found == entries_.end()) continue;  // Released meanwhile.
    Entry& entry = found->second;
    if (entry.released || entry.refused) continue;
    if (!renewals) {
      failed(number, entry, renewals.error().detail, now);
    } else if (!renewals->answered[i]) {
      over(number, entry, now);
    } else {
      renewed(number, entry, renewals->sent, *renewals->answered[i], now);
    }
  }
  return true;
}

// The holder is told at once. MRENEW says only that it is over; how it ended is asked for, and
// known a little later.
void Keeper::over(LeaseNumber number, Entry& entry, Instant now) {
  entry.refused = true;
  ++counters_.renewal_failures;
  turn(number, entry, LeaseState::kLost, std::string(kOver));
  if (inquiries_.size() >= kInquiriesMax) return;
  inquiries_.emplace(machine_.renew({entry.lease, entry.ttl, now + entry.ttl}, now), number);
}

void Keeper::explain(LeaseNumber number, const Result<Renewal>& answer) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || answer || answer.error().code != Code::kLeaseLost) return;
  found->second.reason = std::string(kOver) + ": " + answer.error().detail;
  changes_.push_back({number, LeaseState::kLost, found->second.reason, true});
}

void Keeper::renewed(LeaseNumber number, Entry& entry, Instant sent, Millis answered, Instant now) {
  judge(number, entry, now);
  if (entry.state >= LeaseState::kUncertain)
    return;  // It came too late; the holder has been told to stop.
  ++counters_.renewals;
  const bool capped = entry.capped_at != kNever;
  const Instant until =
      deadline(Renewed{PAWL_MUTANT(renewal_from_reply) ? now : sent, answered, entry.ttl});
  entry.deadline = std::max(entry.deadline, std::min(until, entry.capped_at));
  entry.final = capped && (answered < entry.ttl || until >= entry.capped_at);
  entry.trouble.clear();
  judge(number, entry, now);
  if (entry.final || entry.state >= LeaseState::kUncertain) return;
  const Instant next =
      std::max(entry.deadline - Nanos(entry.ttl) * 2 / 3, now + Nanos(entry.ttl) / 10);
  plan_renewal(number, entry, next - up_to(Nanos(entry.ttl) / 15));
}

void Keeper::failed(LeaseNumber number, Entry& entry, const std::string& why, Instant now) {
  ++counters_.renewal_failures;
  entry.trouble = "its renewal failed: " + why;
  if (PAWL_MUTANT(failed_renewal_extends)) entry.deadline = now + entry.ttl;
  judge(number, entry, now);
  if (entry.state < LeaseState::kUncertain)
    plan_renewal(number, entry, now + Nanos(entry.ttl) / 10);
}

void Keeper::timer(Instant now) {
  while (judgements_.next() <= now) {
    const LeaseNumber number = judgements_.first();
    judge(number, entries_.at(number), now);
  }
  renew_due(now);
}

Instant Keeper::next_timer() const {
  return std::min(judgements_.next(), renewals_.next());
}

}  // namespace pawl::client
