// What an operator and the terms of a grant add to the order: RAISE, MAXHOLD, elections.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/checker.h"

namespace pawl::sim {
namespace {

// What is surely not over yet after `span` on a clock within ρ of the world's.
constexpr Nanos at_most_passed(Nanos span) {
  return span / 100 * 101;
}

// Turns, loops and short writes between two readings of pawld's clock.
constexpr Nanos kSlack = Millis(150);

Nanos paused_between(const History& history, Moment from, Moment to) {
  Nanos sum{0};
  for (const Pause& pause : history.pauses) {
    const Nanos shared = std::min(pause.to, to) - std::max(pause.from, from);
    if (shared > Nanos(0)) sum += shared;
  }
  return sum;
}

// From when pawld counts: when the grant was durable, or when it last began to serve.
Moment counted_from(const History& history, const Attempt& a, Moment until) {
  Moment from = a.answered;
  for (const Start& start : history.starts) {
    if (start.at <= until) from = std::max(from, start.at);
  }
  return from;
}

}  // namespace

// RAISE is a grant without a holder: what is asked for after its answer is above it, and no crash
// takes it back.
void check_raises(const History& history, Faults& faults) {
  std::vector<const Raise*> raises;
  for (const Raise& raise : history.raises) {
    if (raise.returned != kOpen) raises.push_back(&raise);
  }
  std::sort(raises.begin(), raises.end(),
            [](const Raise* a, const Raise* b) { return a->returned < b->returned; });
  std::vector<Token> greatest;  // Up to each of them.
  for (const Raise* raise : raises)
    greatest.push_back(greatest.empty() ? raise->token : std::max(greatest.back(), raise->token));
  const auto raised_before = [&](Moment moment) {
    const auto next =
        std::upper_bound(raises.begin(), raises.end(), moment,
                         [](Moment m, const Raise* raise) { return m <= raise->returned; });
    return next == raises.begin() ? Token{}
                                  : greatest[static_cast<std::size_t>(next - raises.begin()) - 1];
  };
  for (const Attempt& a : history.attempts) {
    const Token raised = raised_before(a.asked);
    if (a.token.value == 0 || a.token > raised) continue;
    faults.push_back(
        fmt::format("P2: RAISE to {} was answered before {} was asked for", raised.value, name(a)));
  }
  for (const Start& start : history.starts) {
    const Token raised = raised_before(start.at);
    if (raised <= start.last_token) continue;
    faults.push_back(
        fmt::format("P6: pawld starts at {:.3f} ms with token {}, but RAISE to {} was answered",
                    ms(start.at), start.last_token.value, raised.value));
  }
}

void check_tenures(const History& history, Faults& faults) {
  if (history.demand != Demand::kAll) return;
  std::map<Token, const Attempt*> capped;
  for (const Attempt& a : history.attempts) {
    if (a.token.value != 0 && a.max_hold > Millis(0)) capped.emplace(a.token, &a);
  }
  for (const Renewal& r : history.renewals) {
    const auto found = capped.find(r.token);
    if (found == capped.end() || !r.ok || r.returned == kOpen) continue;
    const Attempt& a = *found->second;
    const Moment promised = r.sent + surely_passed(r.answered);
    const Moment limit = counted_from(history, a, r.returned) + at_most_passed(a.max_hold) +
                         paused_between(history, a.asked, r.returned) + kSlack;
    if (promised <= limit) continue;
    faults.push_back(
        fmt::format("MH: {} was renewed until {:.3f} ms, its MAXHOLD of {} ms ends by {:.3f} ms",
                    name(a), ms(promised), a.max_hold.count(), ms(limit)));
  }
}

void check_leaders(const History& history, Faults& faults) {
  if (history.demand == Demand::kTokensOnly)
    return;  // With the last batch gone, the leader before it leads again.
  std::map<Token, const Attempt*> granted;
  for (const Attempt& a : history.attempts) {
    if (a.token.value != 0) granted.emplace(a.token, &a);
  }
  // A request with another client's request id may be the one that is granted, under another owner.
  std::set<std::string> asked_by_others;
  for (const Replay& replay : history.replays) asked_by_others.insert(replay.request);
  std::map<std::pair<int, std::string>, Token> newest;
  for (const Leading& l : history.leaders) {
    if (l.token.value == 0) continue;
    Token& before = newest[{l.observer, l.lock}];
    if (l.token <= before) {
      faults.push_back(fmt::format("EL: observer {} of \"{}\" received that {} leads, after {}",
                                   l.observer, l.lock, l.token.value, before.value));
    }
    before = std::max(before, l.token);
    const auto found = granted.find(l.token);
    if (found == granted.end()) continue;
    const Attempt& a = *found->second;
    const bool its_lock = std::find(a.locks.begin(), a.locks.end(), l.lock) != a.locks.end();
    const bool itself = a.owner == l.owner && l.value.value_or(a.value) == a.value;
    if (!its_lock || (!itself && !asked_by_others.contains(a.request))) {
      faults.push_back(fmt::format("EL: {} of \"{}\" was sent as {} with \"{}\"", name(a), l.lock,
                                   l.owner, l.value.value_or("")));
    }
  }
}

}  // namespace pawl::sim
