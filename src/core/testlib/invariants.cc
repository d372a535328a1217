#include "core/testlib/invariants.h"

#include <algorithm>

#include "core/testlib/describe.h"

namespace pawl::core {

// What public reads do not show: whole queues, who stands in them, and closed places.
class Probe {
 public:
  static void fill(const Core& core, Snapshot& snapshot) {
    snapshot.restoring = core.restore_wait_.active();
    const Slab<Lock>& locks = core.holders_.locks.items;
    for (Index i = 0; i < locks.end(); ++i) {
      const Lock& lock = locks[i];
      if (lock.in_use())
        fill(core, lock, snapshot.at, snapshot.locks[std::string(lock.name.view())],
             snapshot.waiters);
    }
  }

 private:
  static void fill(const Core& core, const Lock& lock, Now now, Snapshot::OfLock& out,
                   std::map<WaiterId, WaiterState>& waiters) {
    for (Index i = lock.first_holder; i != kNone; i = core.holders_.leases.items[i].holder_after) {
      const Lease& lease = core.holders_.leases.items[i];
      Holding holding{lease.token, lease.mode, lease.limit, std::nullopt, lease.live()};
      if (lease.mode == Mode::kLimit) holding.slot = lease.slot;
      holding.breaking = lease.phase == Phase::kBreaking;
      holding.expires_in =
          lease.ends == kNever ? lease.ttl() : std::chrono::floor<Millis>(lease.ends - now.tick);
      out.holdings.push_back(holding);
    }
    for (Index at = lock.first_waiter; at != kNone; at = core.waiters_.places[at].after) {
      const Waiter& waiter = core.waiters_.items[core.waiters_.places[at].waiter];
      out.queue.push_back(waiter.id);
      WaiterState& wait = waiters[waiter.id];
      wait.mode = waiter.terms.mode;
      wait.limit = waiter.terms.limit;
      wait.arrived = waiter.arrived;
      wait.locks.emplace_back(lock.name.view());
    }
  }
};

namespace {

using Broken = std::vector<std::string>;

std::string name(Token token) {
  return "token " + std::to_string(token.value);
}
std::string name(WaiterId waiter) {
  return "waiter " + std::to_string(waiter.value);
}

// --- One moment ----------------------------------------------------------------------------------

// G3: readers with readers, LIMIT within every limit, else alone. Closed places count.
bool compatible(const std::vector<Holding>& holdings) {
  const auto shared = std::count_if(holdings.begin(), holdings.end(),
                                    [](const Holding& h) { return h.mode == Mode::kShared; });
  if (shared > 0) return shared == static_cast<std::ptrdiff_t>(holdings.size());
  return std::all_of(holdings.begin(), holdings.end(),
                     [&](const Holding& h) { return holdings.size() <= h.limit; });
}

void check_holders(const std::string& lock, const Snapshot::OfLock& of, Broken& broken) {
  if (!compatible(of.holdings)) broken.push_back("holders of " + lock + " exclude each other (G3)");
  std::set<std::uint32_t> slots;
  Token previous;
  for (const Holding& holding : of.holdings) {
    if (holding.token <= previous)
      broken.push_back("holders of " + lock + " are not in order of grant");
    previous = holding.token;
    if (!holding.slot) continue;
    if (*holding.slot >= holding.limit)
      broken.push_back(name(holding.token) + " has a slot beyond its limit on " + lock);
    if (!slots.insert(*holding.slot).second)
      broken.push_back("two holders of " + lock + " share a slot");
  }
}

void check_view(const std::string& lock, const Snapshot::OfLock& of, Broken& broken) {
  std::vector<Token> live;
  for (const Holding& holding : of.holdings) {
    if (holding.live) live.push_back(holding.token);
  }
  const LockView& view = of.view;
  const LockState state = !live.empty()         ? LockState::kHeld
                          : of.holdings.empty() ? LockState::kFree
                                                : LockState::kClosed;
  if (view.state != state)
    broken.push_back("the state of " + lock + " is not what its holders say");
  if (view.holder_count != live.size())
    broken.push_back("the holders of " + lock + " are miscounted");
  if (view.waiters != of.queue.size())
    broken.push_back("the waiters of " + lock + " are miscounted");
  if (view.token.value_or(Token{}) != (live.empty() ? Token{} : live.back())) {
    broken.push_back("the token of " + lock + " is not its greatest live one");
  }
  if (of.holdings.empty() && of.queue.empty())
    broken.push_back(lock + " is kept though nobody needs it");
}

void check_queue(const std::string& lock, const Snapshot& state, const Snapshot::OfLock& of,
                 Broken& broken) {
  Tick previous = Tick::min();
  for (const WaiterId waiter : of.queue) {
    const Tick arrived = state.waiters.at(waiter).arrived;
    if (arrived < previous)
      broken.push_back("the queue of " + lock + " is not in order of arrival (G6)");
    previous = arrived;
  }
}

void check_totals(const Snapshot& state, Broken& broken) {
  std::set<Token> live;
  for (const auto& [lock, of] : state.locks) {
    for (const Holding& holding : of.holdings) {
      if (holding.live) live.insert(holding.token);
      if (holding.token > state.totals.last_token)
        broken.push_back(name(holding.token) + " is beyond the last token");
    }
  }
  const Token oldest = live.empty() ? Token{} : *live.begin();
  const bool agree = state.totals.leases == live.size() &&
                     state.totals.locks == state.locks.size() &&
                     state.totals.waiters == state.waiters.size() &&
                     state.totals.oldest_live_token.value_or(Token{}) == oldest;
  if (!agree) broken.push_back("totals do not add up: " + describe(state.totals));
}

bool has_its_turn(const Snapshot& state, WaiterId waiter, const WaiterState& wait) {
  return std::all_of(wait.locks.begin(), wait.locks.end(), [&](const std::string& lock) {
    const Snapshot::OfLock& of = state.locks.at(lock);
    std::vector<Holding> with_it = of.holdings;
    with_it.push_back(Holding{Token{}, wait.mode, wait.limit, std::nullopt});
    return of.queue.front() == waiter && compatible(with_it);
  });
}

// Hard case 18: a waiter that is first in all its queues and fits at all its locks should have been
// granted.
void check_nobody_is_forgotten(const Snapshot& state, Broken& broken) {
  if (state.restoring) return;
  for (const auto& [waiter, wait] : state.waiters) {
    if (has_its_turn(state, waiter, wait)) {
      broken.push_back(name(waiter) + " could be granted and is not: a lock stands idle");
    }
  }
}

// --- Two moments ---------------------------------------------------------------------------------

struct Change {
  Snapshot::OfLock before, after;  // Empty where the lock did not exist.
};

std::map<std::string, Change> changes(const Snapshot& before, const Snapshot& after) {
  std::map<std::string, Change> all;
  for (const auto& [lock, of] : before.locks) all[lock].before = of;
  for (const auto& [lock, of] : after.locks) all[lock].after = of;
  return all;
}

// G1, and every grant is answered.
void check_tokens(const Snapshot& before, const Snapshot& after, const Output& output,
                  Broken& broken) {
  if (after.totals.last_token < before.totals.last_token)
    broken.push_back("the last token went back (G1)");
  std::map<std::string, Token> newest;
  std::set<Token> granted;
  for (const Event& event : output.events) {
    if (event.kind != EventKind::kGranted) continue;
    granted.insert(event.token);
    if (event.token <= before.totals.last_token)
      broken.push_back(name(event.token) + " is not greater than all before (G1)");
    if (event.token > after.totals.last_token)
      broken.push_back(name(event.token) + " is beyond the last token");
    Token& previous = newest[std::string(output.lock(event))];
    if (event.token <= previous)
      broken.push_back("tokens on one lock do not follow the order of grants");
    previous = event.token;
  }
  for (const auto& [lock, of] : after.locks) {
    for (const Holding& holding : of.holdings) {
      if (holding.token > before.totals.last_token && !granted.contains(holding.token)) {
        broken.push_back(name(holding.token) + " holds " + lock + " and was never granted");
      }
    }
  }
}

const Holding* find(const Snapshot::OfLock& of, Token token) {
  const auto found = std::find_if(of.holdings.begin(), of.holdings.end(),
                                  [&](const Holding& h) { return h.token == token; });
  return found == of.holdings.end() ? nullptr : &*found;
}

bool has_ended(const Output& output, const std::string& lock, Token token) {
  return std::any_of(output.events.begin(), output.events.end(), [&](const Event& event) {
    return event.ending && event.token == token && output.lock(event) == lock;
  });
}

// Who held goes on holding, unless an event says how it ended; nothing comes back.
void check_endings(const std::string& lock, const Change& change, const Output& output,
                   Broken& broken) {
  for (const Holding& was : change.before.holdings) {
    const Holding* is = find(change.after, was.token);
    const bool lives = is != nullptr && is->live;
    if (was.live && !lives && !has_ended(output, lock, was.token)) {
      broken.push_back(name(was.token) + " vanished from " + lock + " without an event");
    }
    if (lives && has_ended(output, lock, was.token))
      broken.push_back(name(was.token) + " ended and still holds " + lock);
    if (!was.live && lives)
      broken.push_back(name(was.token) + " was over and holds " + lock + " again");
    if (was.breaking && lives && !is->breaking)
      broken.push_back(name(was.token) + " is no longer breaking");
  }
  for (const Holding& is : change.after.holdings) {
    const Holding* was = find(change.before, is.token);
    if (!is.live && (was == nullptr || was->live) && !has_ended(output, lock, is.token)) {
      broken.push_back(lock + " closed without an event");
    }
  }
}

// G3: an expiry comes only after all the time that was left before the step.
void check_not_early(const Snapshot& before, const Snapshot& after, const Output& output,
                     Broken& broken) {
  for (const Event& event : output.events) {
    const auto lock = before.locks.find(std::string(output.lock(event)));
    if (event.kind != EventKind::kExpired || lock == before.locks.end()) continue;
    const Holding* was = find(lock->second, event.token);
    if (was != nullptr && after.at.tick - before.at.tick < was->expires_in) {
      broken.push_back(name(event.token) + " expired early (G3)");
    }
  }
}

std::vector<WaiterId> survivors(const std::vector<WaiterId>& queue,
                                const std::vector<WaiterId>& others) {
  std::vector<WaiterId> left;
  for (const WaiterId waiter : queue) {
    if (std::find(others.begin(), others.end(), waiter) != others.end()) left.push_back(waiter);
  }
  return left;
}

// A retry renames a waiter in place (NotObtained superseded to the old one); everyone else keeps
// name and order.
void check_order(const std::string& lock, const Change& change, Broken& broken) {
  const std::vector<WaiterId>& was = change.before.queue;
  const std::vector<WaiterId>& is = change.after.queue;
  if (survivors(was, is) != survivors(is, was))
    broken.push_back("waiters of " + lock + " changed places (G6)");
}

bool was_renamed(const Reply& reply) {
  const auto* ended = std::get_if<NotObtained>(&reply.outcome);
  return ended != nullptr && ended->why == NotObtained::Why::kSuperseded;
}

// Nobody is granted a lock past someone who waited there before and still does.
void check_overtaking(const Snapshot& before, const Snapshot& after, const Output& output,
                      Broken& broken) {
  // One whose wait was taken over in this very step stood there before under another name.
  const bool renamed = std::any_of(output.replies.begin(), output.replies.end(), was_renamed);
  for (const Reply& reply : output.replies) {
    const auto* granted = std::get_if<Granted>(&reply.outcome);
    if (granted == nullptr || granted->token <= before.totals.last_token) continue;
    for (const auto& [lock, of] : after.locks) {
      const auto earlier = before.locks.find(lock);
      if (find(of, granted->token) == nullptr || earlier == before.locks.end()) continue;
      const std::vector<WaiterId>& queue = earlier->second.queue;
      const auto place =
          std::find(queue.begin(), queue.end(), reply.waiter);  // The end, if it only just came.
      if (place == queue.end() && renamed) continue;
      const std::vector<WaiterId> passed = survivors({queue.begin(), place}, of.queue);
      if (!passed.empty()) {
        broken.push_back(name(reply.waiter) + " overtook " + name(passed.front()) + " at " + lock +
                         " (G6)");
      }
    }
  }
}

// Rule 15: the floor is the smallest token that was live when it was granted, so nothing smaller
// lives after.
void check_floors(const Snapshot& before, const Snapshot& after, const Output& output,
                  Broken& broken) {
  for (const Reply& reply : output.replies) {
    const auto* granted = std::get_if<Granted>(&reply.outcome);
    if (granted == nullptr || granted->token <= before.totals.last_token) continue;
    if (granted->floor > granted->token)
      broken.push_back(name(granted->token) + " has a floor above itself");
    for (const auto& [lock, of] : after.locks) {
      if (find(of, granted->token) == nullptr) continue;
      for (const Holding& other : of.holdings) {
        if (other.mode == Mode::kShared && other.live && other.token < granted->floor) {
          broken.push_back(name(other.token) + " lives below the floor of " + name(granted->token));
        }
      }
    }
  }
}

}  // namespace

Snapshot snapshot(const Core& core, Now now) {
  Snapshot snapshot;
  snapshot.at = now;
  snapshot.totals = core.totals();
  Probe::fill(core, snapshot);
  for (auto& [lock, of] : snapshot.locks)
    of.view = core.inspect(lock, now, {.count = SIZE_MAX, .after = {}});
  return snapshot;
}

std::vector<std::string> check_state(const Snapshot& state) {
  Broken broken;
  for (const auto& [lock, of] : state.locks) {
    check_holders(lock, of, broken);
    check_view(lock, of, broken);
    check_queue(lock, state, of, broken);
  }
  check_totals(state, broken);
  check_nobody_is_forgotten(state, broken);
  return broken;
}

std::vector<std::string> check_step(const Snapshot& before, const Snapshot& after,
                                    const Output& output) {
  Broken broken = check_state(after);
  check_tokens(before, after, output, broken);
  for (const auto& [lock, change] : changes(before, after)) {
    check_endings(lock, change, output, broken);
    check_order(lock, change, broken);
  }
  check_not_early(before, after, output, broken);
  check_overtaking(before, after, output, broken);
  check_floors(before, after, output, broken);
  return broken;
}

std::vector<std::string> check_unchanged(const Snapshot& before, const Snapshot& after) {
  const auto tokens = [](const Snapshot::OfLock& of) {
    std::vector<std::pair<Token, int>> all;
    for (const Holding& h : of.holdings)
      all.emplace_back(h.token, (h.live ? 1 : 0) + (h.breaking ? 2 : 0));
    return all;
  };
  Broken broken;
  if (before.totals.last_token != after.totals.last_token)
    broken.push_back("a refusal used up a token");
  for (const auto& [lock, change] : changes(before, after)) {
    if (tokens(change.before) != tokens(change.after))
      broken.push_back("a refusal changed the holders of " + lock);
    if (change.before.queue != change.after.queue)
      broken.push_back("a refusal changed the queue of " + lock);
  }
  return broken;
}

std::vector<std::string> PendingReplies::settle(const std::vector<Reply>& replies,
                                                const Snapshot& after) {
  Broken broken;
  for (const Reply& reply : replies) {
    const bool final = !std::holds_alternative<Queued>(reply.outcome);
    if (!open_.contains(reply.waiter)) broken.push_back("nobody expects this: " + describe(reply));
    if (final) open_.erase(reply.waiter);
  }
  for (const WaiterId waiter : open_) {
    if (!after.waiters.contains(waiter))
      broken.push_back(name(waiter) + " was not answered and does not wait");
  }
  for (const auto& [waiter, wait] : after.waiters) {
    if (!open_.contains(waiter))
      broken.push_back(name(waiter) + " waits though nobody expects an answer");
  }
  return broken;
}

}  // namespace pawl::core
