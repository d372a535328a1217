#include "core/testlib/naive_model.h"

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "core/testlib/describe.h"

namespace pawl::core::naive {
namespace {

using std::chrono::ceil;
using std::chrono::floor;

// Deadlines are kept in whole milliseconds, rounded up: nothing ends early.
bool is_over(Tick due, Tick now) {
  return due != kNever &&
         ceil<Millis>(due.time_since_epoch()) <= floor<Millis>(now.time_since_epoch());
}
Millis until(Tick due, Tick now) {
  return due > now ? floor<Millis>(due - now) : Millis{0};
}

template <class T>
std::size_t place_in(const std::vector<T>& order, const T& item) {
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), item) - order.begin());
}

}  // namespace

AcquireSpec Spec::view() const {
  AcquireSpec spec;
  for (const std::string& lock : locks) spec.locks.push_back(lock);
  spec.terms = *this;
  spec.wait = wait;
  spec.async = async;
  spec.owner = owner;
  spec.request = request;
  for (const auto& [key, value] : meta) spec.meta.push_back(MetaPair{key, value});
  return spec;
}

bool Spec::names(std::string_view lock) const {
  return std::find(locks.begin(), locks.end(), lock) != locks.end();
}

bool Spec::shares_a_lock_with(const Spec& other) const {
  return std::any_of(locks.begin(), locks.end(),
                     [&](const std::string& lock) { return other.names(lock); });
}

bool Spec::same_request_as(const Spec& other) const {
  return std::set(locks.begin(), locks.end()) == std::set(other.locks.begin(), other.locks.end()) &&
         mode == other.mode && limit == other.limit && ttl == other.ttl;
}

Choices choices_of(const Output& output) {
  Choices choices;
  for (const Reply& reply : output.replies) {
    if (const auto* granted = std::get_if<Granted>(&reply.outcome))
      choices.grants[reply.waiter] = *granted;
    const auto* not_obtained = std::get_if<NotObtained>(&reply.outcome);
    if (not_obtained && not_obtained->why == NotObtained::Why::kTimeout)
      choices.timed_out.push_back(reply.waiter);
  }
  for (const Event& event : output.events) {
    if (event.ending) choices.ended.push_back(event.token);
  }
  return choices;
}

// --- Acquire -------------------------------------------------------------------------------------

void Model::acquire(WaiterId waiter, const Spec& spec, LeaseId candidate, Now now,
                    const Choices& choices) {
  if (!spec.request.empty() && answer_from_memory(waiter, spec, now, choices)) return;
  queue_.push_back(Wait{waiter, candidate, spec, now.tick, now.tick + spec.wait});
  if (!behind_another(queue_.size() - 1) && fits(spec)) return settle(now, choices);

  if (spec.wait == Millis{0}) {
    queue_.pop_back();
    return reply(waiter, NotObtained{NotObtained::Why::kBusy});
  }
  if (queue_.size() > options_.in_all.waiters) {
    queue_.pop_back();
    return reply(waiter, Refused{Refused::Why::kWaitersFull});
  }
  if (spec.async) reply(waiter, Queued{position(queue_.size() - 1)});
}

// A request id that is held, waiting, or remembered is never a new request.
bool Model::answer_from_memory(WaiterId waiter, const Spec& spec, Now now, const Choices& choices) {
  for (const Lease& lease : leases_) {
    if (lease.closed || lease.spec.request != spec.request) continue;
    if (!lease.spec.same_request_as(spec)) {
      reply(waiter, Refused{Refused::Why::kConflict});
    } else if (lease.breaking) {
      reply(waiter, Lost{Ending::kBroken, lease.token}, lease.changed_in);
    } else {
      reply(waiter,
            Granted{lease.id, lease.token, lease.floor, lease.slot, lease.spec.ttl, lease.waited},
            lease.changed_in);
    }
    return true;
  }
  for (Wait& wait : queue_) {
    if (wait.spec.request != spec.request) continue;
    supersede(wait, waiter, spec, now, choices);
    return true;
  }
  for (auto ended = ended_.rbegin(); ended != ended_.rend(); ++ended) {
    if (ended->spec.request != spec.request || now.tick - ended->at >= options_.request_memory)
      continue;
    if (ended->spec.same_request_as(spec)) {
      reply(waiter, Lost{ended->how, ended->token}, ended->ended_in);
    } else {
      reply(waiter, Refused{Refused::Why::kConflict});
    }
    return true;
  }
  return false;
}

// The newest connection owns the wait, which keeps its place; one that does not want to wait gives
// it up.
void Model::supersede(Wait& wait, WaiterId waiter, const Spec& spec, Now now,
                      const Choices& choices) {
  if (!wait.spec.same_request_as(spec)) return reply(waiter, Refused{Refused::Why::kConflict});
  reply(wait.waiter, NotObtained{NotObtained::Why::kSuperseded});
  const std::size_t place = static_cast<std::size_t>(&wait - queue_.data());
  if (spec.wait == Millis{0}) {
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(place));
    reply(waiter, NotObtained{NotObtained::Why::kBusy});
    return settle(now, choices);
  }
  wait.waiter =
      waiter;  // All else is as it was asked for first: OWNER, DELAY, MAXHOLD and META, too.
  wait.until = now.tick + spec.wait;
  if (spec.async) reply(waiter, Queued{position(place)});
}

// --- The rules of granting -----------------------------------------------------------------------

bool Model::fits(const Spec& spec) const {
  for (const std::string& lock : spec.locks) {
    std::uint32_t holders = 0;
    std::uint32_t least = spec.limit;
    for (const Lease& lease : leases_) {
      if (!lease.spec.names(lock)) continue;
      const bool both_read = spec.mode == Mode::kShared && lease.spec.mode == Mode::kShared;
      const bool one_reads = spec.mode == Mode::kShared || lease.spec.mode == Mode::kShared;
      if (both_read) continue;
      if (one_reads) return false;
      ++holders;
      least = std::min(least, lease.spec.limit);
    }
    if (spec.mode != Mode::kShared && holders + 1 > least) return false;
  }
  return true;
}

bool Model::behind_another(std::size_t place) const {
  return std::any_of(
      queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(place),
      [&](const Wait& earlier) { return earlier.spec.shares_a_lock_with(queue_[place].spec); });
}

std::uint64_t Model::position(std::size_t place) const {
  std::uint64_t furthest = 1;
  for (const std::string& lock : queue_[place].spec.locks) {
    std::uint64_t position = 1;
    for (std::size_t i = 0; i < place; ++i) position += queue_[i].spec.names(lock) ? 1 : 0;
    furthest = std::max(furthest, position);
  }
  return furthest;
}

// Grants until nobody who is first on all its locks fits.
void Model::settle(Now now, const Choices& choices) {
  for (std::size_t place = 0; place < queue_.size();) {
    if (behind_another(place) || !fits(queue_[place].spec)) {
      ++place;
      continue;
    }
    const Wait wait = queue_[place];
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(place));
    grant(wait, now, choices);
    place = 0;
  }
  check_tokens();
}

void Model::grant(const Wait& wait, Now now, const Choices& choices) {
  Lease lease;
  lease.id = wait.candidate;
  lease.spec = wait.spec;
  lease.waited = floor<Millis>(now.tick - wait.since);
  lease.granted = now.wall;
  const auto chosen = choices.grants.find(wait.waiter);
  const bool agreed = chosen != choices.grants.end();
  lease.token =
      agreed ? chosen->second.token : Token{last_token_.value + granted_in_this_step_.size() + 1};
  if (wait.spec.mode == Mode::kLimit)
    judge_slot(lease, agreed ? chosen->second.slot : std::nullopt);

  lease.floor = lease.token;
  if (wait.spec.mode == Mode::kShared) {
    for (const Lease& other : leases_) {
      if (!other.closed && other.spec.names(wait.spec.locks[0]))
        lease.floor = std::min(lease.floor, other.token);
    }
  }
  granted_in_this_step_.emplace_back(lease.token, lease.spec);
  lease.changed_in = open_;
  reply(wait.waiter,
        Granted{lease.id, lease.token, lease.floor, lease.slot, lease.spec.ttl, lease.waited},
        open_);
  tell(EventKind::kGranted, lease, std::nullopt);
  leases_.push_back(lease);
  changed_ = true;
}

// Any slot below the limit that nobody has, live or closed.
void Model::judge_slot(Lease& lease, const std::optional<std::uint32_t>& chosen) {
  std::set<std::uint32_t> taken;
  for (const Lease& other : leases_) {
    if (other.spec.names(lease.spec.locks[0]) && other.slot) taken.insert(*other.slot);
  }
  std::uint32_t lowest = 0;
  while (taken.contains(lowest)) ++lowest;
  lease.slot = chosen.value_or(lowest);
  if (taken.contains(*lease.slot))
    complaints.push_back("slot " + std::to_string(*lease.slot) + " is taken");
  if (*lease.slot >= lease.spec.limit)
    complaints.push_back("slot " + std::to_string(*lease.slot) + " is too great");
}

// Tokens of one step are the next ones, each once; on every lock they follow the order of the
// queue.
void Model::check_tokens() {
  std::set<Token> tokens;
  for (std::size_t i = 0; i < granted_in_this_step_.size(); ++i) {
    const auto& [token, spec] = granted_in_this_step_[i];
    tokens.insert(token);
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [earlier, other] = granted_in_this_step_[j];
      if (other.shares_a_lock_with(spec) && earlier > token)
        complaints.push_back("tokens against the queue's order");
    }
  }
  const std::uint64_t count = granted_in_this_step_.size();
  const bool each_once = tokens.size() == count;
  if (!each_once || (count > 0 && (tokens.begin()->value != last_token_.value + 1 ||
                                   tokens.rbegin()->value != last_token_.value + count))) {
    complaints.push_back("tokens are not the next " + std::to_string(count));
  }
  last_token_.value += count;
  granted_in_this_step_.clear();
  std::sort(leases_.begin(), leases_.end(),
            [](const Lease& a, const Lease& b) { return a.token < b.token; });
}

// --- The life of a lease -------------------------------------------------------------------------

std::optional<std::size_t> Model::live(LeaseId lease) const {
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    if (leases_[i].id == lease && !leases_[i].closed) return i;
  }
  return std::nullopt;
}

void Model::renew(WaiterId waiter, LeaseId id, Now now, const Choices& choices) {
  const auto index = live(id);
  if (!index) {
    const auto ended = in_the_ring(id);
    if (!ended) return reply(waiter, Lost{std::nullopt, Token{}});
    return reply(waiter, Lost{ended->how, ended->token}, ended->ended_in);
  }
  Lease& lease = leases_[*index];
  if (lease.breaking) return reply(waiter, Lost{Ending::kBroken, lease.token}, lease.changed_in);
  if (lease.max_due <= now.tick) {  // Nothing is left to be renewed, so it ends here and now.
    reply(waiter, Lost{Ending::kMaxHold, lease.token}, open_);
    end(*index, Ending::kMaxHold, true, now);
    return settle(now, choices);
  }
  ++lease.renewals;
  if (!lease.started)
    return reply(waiter, Renewed{lease.spec.ttl},
                 lease.changed_in);  // The clock has not even begun to run.
  lease.due = std::min(now.tick + lease.spec.ttl, lease.max_due);
  reply(waiter, Renewed{until(lease.due, now.tick)});
}

void Model::release(WaiterId waiter, LeaseId id, Now now, const Choices& choices) {
  const auto index = live(id);
  if (!index) {
    const auto ended = in_the_ring(id);
    return reply(waiter, Released{false}, ended ? ended->ended_in : BatchId{});
  }
  reply(waiter, Released{true}, open_);
  end(*index, Ending::kReleased, false, now);
  settle(now, choices);
}

void Model::break_lease(WaiterId waiter, const std::string& lock, Token token, bool at_once,
                        Now now, const Choices& choices) {
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    Lease& lease = leases_[i];
    if (lease.closed || lease.token != token || !lease.spec.names(lock)) continue;
    if (at_once) {
      reply(waiter, BreakDone{true}, open_);
      end(i, Ending::kBroken, false, now);
      return settle(now, choices);
    }
    if (!lease.breaking) {
      lease.breaking = true;
      lease.changed_in = open_;
      tell(EventKind::kBreaking, lease, std::nullopt);
      changed_ = true;
    }
    return reply(waiter, BreakDone{true}, lease.changed_in);
  }
  reply(waiter, BreakDone{false});
}

void Model::end(std::size_t index, Ending how, bool may_close, Now now) {
  Lease& lease = leases_[index];
  ended_.push_back(
      Ended{lease.spec, lease.id, lease.token, how, now.tick, lease.granted, now.wall, open_});
  const EventKind kind = how == Ending::kReleased ? EventKind::kReleased
                         : how == Ending::kBroken ? EventKind::kBroken
                                                  : EventKind::kExpired;
  tell(kind, lease, how);
  changed_ = true;
  if (may_close && lease.spec.delay > Millis{0}) {
    lease.closed = true;
    lease.reopens = now.tick + lease.spec.delay;
  } else {
    leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

// --- Waiting -------------------------------------------------------------------------------------

void Model::cancel(WaiterId waiter, Now now, const Choices& choices) {
  std::erase_if(queue_, [&](const Wait& wait) { return wait.waiter == waiter; });
  settle(now, choices);
}

void Model::cancel_request(WaiterId waiter, const std::string& request, Now now,
                           const Choices& choices) {
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    if (queue_[i].spec.request != request) continue;
    reply(queue_[i].waiter, NotObtained{NotObtained::Why::kCancelled});
    reply(waiter, CancelDone{true});
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    return settle(now, choices);
  }
  reply(waiter, CancelDone{false});
}

void Model::raise(WaiterId waiter, Token token) {
  if (token <= last_token_) return reply(waiter, Refused{Refused::Why::kRaiseBack});
  if (token.value > limits::kTokenMax || token.value - last_token_.value > limits::kRaiseMax) {
    return reply(waiter, Refused{Refused::Why::kRaiseTooFar});
  }
  last_token_ = token;
  changed_ = true;
  reply(waiter, Raised{token}, open_);
  Output output;
  Event event;
  event.kind = EventKind::kRaised;
  event.token = token;
  events.push_back(describe(output, event));
}

// --- Time ----------------------------------------------------------------------------------------

void Model::tick(Now now, const Choices& choices) {
  end_what_is_due(now, choices);
  end_waits(now, choices);
}

Ending Model::ending_when_due(const Lease& lease) const {
  if (lease.breaking) return Ending::kBroken;
  return lease.due == lease.max_due ? Ending::kMaxHold : Ending::kExpired;
}

void Model::end_what_is_due(Now now, const Choices& choices) {
  std::vector<Lease> due;
  for (const Lease& lease : leases_) {
    if (!lease.closed && is_over(lease.due, now.tick)) due.push_back(lease);
  }
  std::stable_sort(due.begin(), due.end(), [&](const Lease& a, const Lease& b) {
    const Millis first = ceil<Millis>(a.due.time_since_epoch()),
                 second = ceil<Millis>(b.due.time_since_epoch());
    if (first != second) return first < second;
    return place_in(choices.ended, a.token) < place_in(choices.ended, b.token);
  });
  const std::size_t reopened = std::erase_if(leases_, [&](const Lease& lease) {
    return lease.closed && is_over(lease.reopens, now.tick);
  });
  if (reopened > 0) changed_ = true;
  for (const Lease& lease : due) end(*live(lease.id), ending_when_due(lease), true, now);
  settle(now, choices);
}

// In order of deadline, handing on as each ends: the first waiter to give up makes room
// for the others.
void Model::end_waits(Now now, const Choices& choices) {
  while (true) {
    const Wait* next = nullptr;
    for (const Wait& wait : queue_) {
      if (!is_over(wait.until, now.tick)) continue;
      const auto order = [&](const Wait& w) {
        return std::pair(ceil<Millis>(w.until.time_since_epoch()),
                         place_in(choices.timed_out, w.waiter));
      };
      if (next == nullptr || order(wait) < order(*next)) next = &wait;
    }
    if (next == nullptr) return;
    reply(next->waiter, NotObtained{NotObtained::Why::kTimeout});
    queue_.erase(queue_.begin() + (next - queue_.data()));
    settle(now, choices);
  }
}

Tick Model::next_due() const {
  Tick next = kNever;
  for (const Lease& lease : leases_)
    next = std::min(next, lease.closed ? lease.reopens : lease.due);
  for (const Wait& wait : queue_) next = std::min(next, wait.until);
  return next;
}

// --- Durability ----------------------------------------------------------------------------------

void Model::batch_taken(BatchId batch) {
  taken_[batch] = leases_;
  changed_ = false;
}

void Model::durable(BatchId batch, Now now) {
  durable_through_ = batch;
  durable_ = taken_.at(batch);
  taken_.erase(batch);
  for (Lease& lease : leases_) {
    const auto same = [&](const Lease& other) { return other.id == lease.id; };
    if (lease.started || lease.closed || std::none_of(durable_.begin(), durable_.end(), same))
      continue;
    lease.started = true;
    if (lease.spec.max_hold > Millis{0}) lease.max_due = now.tick + lease.spec.max_hold;
    lease.due = std::min(now.tick + lease.spec.ttl, lease.max_due);
  }
}

void Model::restart(Token high_water, Now now) {
  queue_.clear();
  ended_.clear();
  taken_.clear();
  changed_ = false;
  open_ = durable_through_ = BatchId{};
  last_token_ = high_water;
  leases_ = durable_;
  for (Lease& lease : leases_) {
    lease.started = true;
    lease.renewals = 0;
    lease.changed_in = BatchId{};
    lease.max_due = lease.spec.max_hold > Millis{0} ? now.tick + lease.spec.max_hold : kNever;
    lease.due = std::min(now.tick + lease.spec.ttl, lease.max_due);
    lease.reopens = now.tick + lease.spec.delay;
  }
}

}  // namespace pawl::core::naive
