#include "sim/checker_search.h"

#include <algorithm>
#include <functional>
#include <map>

#include "sim/checker.h"

namespace pawl::sim {
namespace {

// The service, as simple as possible.
struct Service {
  struct Lease {
    bool alive = false;
    Moment can_end{};
    std::vector<std::string> locks;
  };
  Token last;
  std::map<Token, Lease> leases;
  std::map<std::string, Token> held;

  void end(Token token) {
    Lease& lease = leases.at(token);
    lease.alive = false;
    for (const std::string& lock : lease.locks) held.erase(lock);
  }
  // It runs out no later than `at`, if its clock allows it by then.
  bool run_out(Token token, Moment& at) {
    const Lease& lease = leases.at(token);
    if (!lease.alive) return true;
    at = std::max(at, lease.can_end);
    end(token);
    return true;
  }
};

// One call: the moments it lies between, and what it does at `at` (which it may move later). False:
// not in this state.
struct Call {
  Moment invoked, returned;
  std::function<bool(Service&, Moment& at)> act;
};

std::vector<Call> calls_of(const History& history) {
  std::vector<Call> calls;
  for (const Attempt& a : history.attempts) {
    if (a.token.value == 0) continue;
    calls.push_back(
        {a.asked, a.answered, [&a](Service& s, Moment& at) {
           if (a.token <= s.last) return false;
           for (const std::string& lock : a.locks) {
             if (s.held.contains(lock) && !s.run_out(s.held[lock], at)) return false;
           }
           s.last = a.token;
           s.leases[a.token] = {true, a.asked + surely_passed(a.ttl + a.waited), a.locks};
           for (const std::string& lock : a.locks) s.held[lock] = a.token;
           return true;
         }});
  }
  for (const Renewal& r : history.renewals) {
    calls.push_back({r.sent, r.returned, [&r](Service& s, Moment& at) {
                       if (!s.leases.contains(r.token)) return false;
                       if (!r.ok) return s.run_out(r.token, at);
                       Service::Lease& lease = s.leases[r.token];
                       lease.can_end = std::max(lease.can_end, r.sent + surely_passed(r.answered));
                       return lease.alive;
                     }});
  }
  for (const Release& r : history.releases) {
    calls.push_back({r.invoked, r.returned, [&r](Service& s, Moment&) {
                       if (!s.leases.contains(r.token)) return false;
                       const bool alive = s.leases[r.token].alive;
                       if (alive) s.end(r.token);
                       return alive || !r.was_live;  // 0 is also the reply to a repeated release.
                     }});
  }
  for (const Sighting& g : history.sightings) {
    calls.push_back({g.invoked, g.returned, [&g](Service& s, Moment&) {
                       return s.held.contains(g.lock) && s.held[g.lock] == g.token;
                     }});
  }
  return calls;
}

class Search {
 public:
  explicit Search(const History& history)
      : calls_(calls_of(history)), done_(calls_.size(), false) {}

  bool from(const Service& service, Moment now) {
    if (finished()) return true;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (done_[i]) continue;
      Service next = service;
      Moment at = std::max(now, calls_[i].invoked);
      if (!calls_[i].act(next, at) || at > calls_[i].returned) continue;
      done_[i] = true;
      if (from(next, at)) return true;
      done_[i] = false;
    }
    return false;
  }

 private:
  // Calls without an answer need not have happened.
  [[nodiscard]] bool finished() const {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!done_[i] && calls_[i].returned != kOpen) return false;
    }
    return true;
  }

  const std::vector<Call> calls_;
  std::vector<bool> done_;
};

}  // namespace

bool can_have_happened(const History& history) {
  return Search(history).from({}, Moment{});
}

}  // namespace pawl::sim
