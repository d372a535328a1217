// P1 and P8: tokens and request ids. G6 and P7: queues.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/limits.h"
#include "sim/checker.h"

namespace pawl::sim {
namespace {

bool restarted_between(const History& history, Moment from, Moment to) {
  return std::any_of(history.starts.begin(), history.starts.end(),
                     [&](const Start& s) { return s.at > from && s.at <= to; });
}

// While a lease surely lives, and while its end is surely remembered, there is one right answer.
void check_replay(const History& history, const Replay& r, const Life& life, Faults& faults) {
  const Attempt& a = *life.attempt;
  const bool live =
      r.invoked >= a.answered && r.returned < std::min(life.given_up, life.clock_end) &&
      r.returned < std::min(life.touched_by_break, life.voided) && history.demand == Demand::kAll;
  const bool remembered = life.released != kOpen && r.invoked >= life.released &&
                          r.returned < life.released_sent + surely_passed(limits::kRequestMemory) &&
                          !restarted_between(history, life.released_sent, r.returned);
  if (!live && !remembered) return;
  const auto due = r.altered ? Replay::Answer::kConflict
                   : live    ? Replay::Answer::kGranted
                             : Replay::Answer::kLost;
  if (r.answer == due) return;
  faults.push_back(fmt::format(
      "P8: the request of {} was asked again at {:.3f} ms while {}, and the answer was {}", name(a),
      ms(r.invoked), live ? "it lived" : "its end was remembered",
      r.answer == Replay::Answer::kGranted    ? "a grant"
      : r.answer == Replay::Answer::kNothing  ? "nothing"
      : r.answer == Replay::Answer::kConflict ? "a conflict"
                                              : "LOST"));
}

void check_order_of_arrival(const std::string& lock, const std::vector<const Attempt*>& attempts,
                            Faults& faults) {
  struct Point {
    Moment at;
    bool asks;
    const Attempt* attempt;
  };
  std::vector<Point> points;
  for (const Attempt* a : attempts) {
    points.push_back({a->asked, true, a});
    if (a->queued != kOpen) points.push_back({a->queued, false, a});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tuple(a.at, !a.asks, a.attempt->token) <
           std::tuple(b.at, !b.asks, b.attempt->token);
  });
  const Attempt* last = nullptr;  // The greatest token among earlier waiters.
  for (const Point& point : points) {
    if (!point.asks) {
      if (last == nullptr || last->token < point.attempt->token) last = point.attempt;
    } else if (last != nullptr && point.attempt->token < last->token) {
      faults.push_back(fmt::format("G6: \"{}\": {} was in line when {} asked, and was overtaken",
                                   lock, name(*last), name(*point.attempt)));
    }
  }
}

void check_service(const History& history,
                   const std::map<std::string, std::vector<Moment>>& granted, Faults& faults) {
  if (history.calm == kOpen) return;
  Moment granting = history.calm;  // And no longer restoring.
  for (const Start& start : history.starts) {
    if (start.restoring > Millis(0)) granting = std::max(granting, start.at + start.restoring);
  }
  for (const Attempt& a : history.attempts) {
    const Moment from = std::max(a.asked, granting);
    const Moment to = std::min(a.ended, a.answered);
    const Moment due = from + std::max<Nanos>(a.ttl * 2, std::chrono::seconds(10));
    if (to <= due) continue;
    const bool served = std::any_of(a.locks.begin(), a.locks.end(), [&](const std::string& lock) {
      const auto found = granted.find(lock);
      if (found == granted.end()) return false;
      const auto next = std::lower_bound(found->second.begin(), found->second.end(), from);
      return next != found->second.end() && *next <= due;
    });
    if (!served) {
      faults.push_back(fmt::format(
          "P7: all is healed at {:.3f} ms, client {} waits since {:.3f} ms, and nobody is "
          "granted what it waits for",
          ms(history.calm), a.client, ms(a.asked)));
    }
  }
}

}  // namespace

void check_requests(const History& history, Faults& faults) {
  std::map<Token, const Attempt*> owner;
  std::map<std::string, Token> token_of;
  for (const Attempt& a : history.attempts) {
    if (a.token.value == 0) continue;
    const auto [at, fresh] = owner.emplace(a.token, &a);
    if (!fresh)
      faults.push_back(fmt::format("P1: {} and {} have one token", name(*at->second), name(a)));
    if (a.request.empty()) continue;
    const auto [known, first] = token_of.emplace(a.request, a.token);
    if (!first && known->second != a.token) {
      faults.push_back(
          fmt::format("P1: one request has tokens {} and {}", known->second.value, a.token.value));
    }
  }
  if (history.demand == Demand::kTokensOnly) return;
  std::map<std::string, Life> by_request;
  for (Life& life : lives(history)) {
    if (life.attempt != nullptr && !life.attempt->request.empty())
      by_request.emplace(life.attempt->request, std::move(life));
  }
  for (const Replay& r : history.replays) {
    const auto life = by_request.find(r.request);
    if (r.returned == kOpen || life == by_request.end()) continue;
    check_replay(history, r, life->second, faults);
  }
}

void check_queues(const History& history, Faults& faults) {
  if (history.demand == Demand::kTokensOnly) return;
  std::map<std::string, std::vector<const Attempt*>> by_lock;
  std::map<std::string, std::vector<Moment>> granted;
  std::map<std::string, const Attempt*> by_request;
  for (const Attempt& a : history.attempts) {
    by_request[a.request] = &a;
    if (a.token.value == 0) continue;
    for (const std::string& lock : a.locks) {
      by_lock[lock].push_back(&a);
      granted[lock].push_back(a.answered);
    }
  }
  for (const auto& [lock, attempts] : by_lock) check_order_of_arrival(lock, attempts, faults);
  for (auto& [lock, moments] : granted) std::sort(moments.begin(), moments.end());
  check_service(history, granted, faults);
  for (const Withdrawal& w : history.withdrawals) {
    const auto found = by_request.find(w.request);
    if (found == by_request.end() || w.returned == kOpen) continue;
    const Attempt& a = *found->second;
    if (a.token.value != 0 && a.queued != kOpen && a.queued < w.invoked) {
      faults.push_back(fmt::format(
          "G6: the wait of client {} was cancelled at {:.3f} ms, and then granted as {}", a.client,
          ms(w.returned), a.token.value));
    }
  }
}

}  // namespace pawl::sim
