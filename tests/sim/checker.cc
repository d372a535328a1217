#include "sim/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace pawl::sim {

std::string name(const Attempt& a) {
  return fmt::format("token {} of client {}", a.token.value, a.client);
}

double ms(Moment moment) {
  return static_cast<double>(moment.time_since_epoch().count()) / 1e6;
}

Moment voided_at(const History& history, Token token) {
  Moment first = kOpen;
  for (const Restore& restore : history.restores) {
    if (token <= restore.last_token) first = std::min(first, restore.lost);
  }
  return first;
}

Moment Life::end(Demand demand) const {
  // A delay keeps the lock closed after the lease ran out, not after it was given up. A restored
  // pawld, which knows of none, waits for the longest.
  Moment by_clock{};
  if (demand == Demand::kAll && attempt != nullptr)
    by_clock = clock_end + surely_passed(attempt->delay);
  return std::max(std::min(by_clock, given_up), last_proof);
}

namespace {

class Lives {
 public:
  explicit Lives(const History& history) : history_(history) {
    for (const Attempt& a : history.attempts) {
      if (a.token.value == 0) continue;
      Life& life = of(a.token);
      if (life.attempt == nullptr) life.attempt = &a;  // A second one is P1's business.
      life.first_seen = std::min(life.first_seen, a.answered);
      life.clock_end = std::max(life.clock_end, a.asked + surely_passed(a.waited + a.ttl));
    }
    for (const Break& b : history.breaks) add(b);
    for (const Renewal& r : history.renewals) add(r);
    for (const Release& r : history.releases) add(r);
    for (const Sighting& s : history.sightings) {
      if (s.returned == kOpen) continue;
      alive(of(s.token), s.invoked, s.returned, fmt::format("INSPECT of \"{}\"", s.lock));
    }
    for (const Leading& l : history.leaders) {
      if (l.token.value != 0) of(l.token).first_seen = std::min(of(l.token).first_seen, l.at);
    }
  }

  std::vector<Life> take() {
    std::vector<Life> all;
    for (auto& [token, life] : lives_) {
      life.voided = voided_at(history_, token);
      all.push_back(std::move(life));
    }
    return all;
  }

 private:
  Life& of(Token token) {
    Life& life = lives_[token];
    life.token = token;
    return life;
  }

  static void alive(Life& life, Moment invoked, Moment returned, std::string what) {
    life.first_seen = std::min(life.first_seen, returned);
    if (invoked <= life.last_proof) return;
    life.last_proof = invoked;
    life.proof = std::move(what);
  }

  static void ended(Life& life, Moment returned) {
    life.first_seen = std::min(life.first_seen, returned);
    life.over = std::min(life.over, returned);
  }

  void add(const Renewal& r) {
    if (r.returned == kOpen) return;
    Life& life = of(r.token);
    if (!r.ok && life.touched_by_break <= r.returned) {
      // A lease that is being broken is refused renewals, and still runs until its time is over.
      return void(life.breaking = std::min(life.breaking, r.returned));
    }
    if (!r.ok) return ended(life, r.returned);
    alive(life, r.sent, r.returned, "a renewal");
    life.clock_end = std::max(life.clock_end, r.sent + surely_passed(r.answered));
  }

  void add(const Release& r) {
    Life& life = of(r.token);
    life.given_up = std::min(life.given_up, r.invoked);
    if (r.returned == kOpen) return;
    if (r.was_live) {
      alive(life, r.invoked, r.returned, "a release");
      life.released_sent = r.invoked;
      life.released = r.returned;
    }
    ended(life, r.returned);
  }

  void add(const Break& b) {
    Life& life = of(b.token);
    life.touched_by_break = std::min(life.touched_by_break, b.invoked);
    if (b.now) life.given_up = std::min(life.given_up, b.invoked);
    if (b.returned == kOpen || !b.was_live) return;
    alive(life, b.invoked, b.returned, "a BREAK");
    life.breaking = std::min(life.breaking, b.returned);
    if (b.now) ended(life, b.returned);
  }

  const History& history_;
  std::map<Token, Life> lives_;
};

}  // namespace

std::vector<Life> lives(const History& history) {
  return Lives(history).take();
}

// P6: whatever crashed, pawld starts above every token that any client had received.
void check_starts(const History& history, Faults& faults) {
  for (const Start& start : history.starts) {
    for (const Attempt& a : history.attempts) {
      if (a.token.value != 0 && a.answered <= start.at && a.token > start.last_token) {
        faults.push_back(
            fmt::format("P6: pawld starts at {:.3f} ms with token {}, but {} was handed out",
                        ms(start.at), start.last_token.value, name(a)));
      }
    }
  }
}

std::vector<std::string> check(const History& history) {
  Faults faults;
  check_requests(history, faults);
  check_order(history, faults);
  check_belief(history, faults);
  check_queues(history, faults);
  check_guards(history, faults);
  check_starts(history, faults);
  check_raises(history, faults);
  check_tenures(history, faults);
  check_leaders(history, faults);
  return faults;
}

}  // namespace pawl::sim
