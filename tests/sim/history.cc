#include "sim/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace pawl::sim {
namespace {

using Faults = std::vector<std::string>;

std::string name(const Attempt& a) {
  return fmt::format("token {} of client {}", a.token.value, a.client);
}

double ms(Moment moment) {
  return static_cast<double>(moment.time_since_epoch().count()) / 1e6;
}

std::vector<const Attempt*> granted(const std::vector<Attempt>& history) {
  std::vector<const Attempt*> found;
  for (const Attempt& attempt : history) {
    if (attempt.token.value != 0) found.push_back(&attempt);
  }
  return found;
}

// P1: two request ids never get one token. (One id never gets two: the client would have two attempts for it.)
void check_unique(const std::vector<const Attempt*>& grants, Faults& faults) {
  std::map<Token, const Attempt*> seen;
  for (const Attempt* grant : grants) {
    const auto [it, fresh] = seen.emplace(grant->token, grant);
    if (!fresh)
      faults.push_back(fmt::format("P1: {} and {} have one token", name(*it->second), name(*grant)));
  }
}

// P2 and P6: whoever asked after someone else had been answered gets a greater token, whatever crashed in between.
void check_monotone(const std::vector<const Attempt*>& grants, Faults& faults) {
  struct Point {
    Moment at;
    bool asked;
    const Attempt* grant;
  };
  std::vector<Point> points;
  for (const Attempt* grant : grants) {
    points.push_back({grant->asked, true, grant});
    points.push_back({*grant->answered, false, grant});
  }
  // Equal moments are concurrent, so the question goes first.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tuple(a.at, !a.asked, a.grant->token) < std::tuple(b.at, !b.asked, b.grant->token);
  });
  const Attempt* greatest = nullptr;
  for (const Point& point : points) {
    if (!point.asked) {
      if (greatest == nullptr || greatest->token < point.grant->token) greatest = point.grant;
    } else if (greatest != nullptr && point.grant->token < greatest->token) {
      faults.push_back(fmt::format("P2: {} was asked for at {:.3f} ms, after {} had been answered",
                                   name(*point.grant), ms(point.at), name(*greatest)));
    }
  }
}

bool compatible(const Attempt& a, const Attempt& b) {
  if (a.mode == Mode::kShared || b.mode == Mode::kShared) return a.mode == b.mode;
  return std::min(a.limit, b.limit) > 1;  // How many at once is counted below.
}

// P3 and G7: nobody believes to hold what someone else believes to hold, beyond what the mode allows. Belief ends by the
// holder's own clock, so this is stronger than "pawld never has two": the client must know first.
void check_exclusive(const std::vector<const Attempt*>& grants, Faults& faults) {
  std::map<std::string, std::vector<const Attempt*>> by_lock;
  for (const Attempt* grant : grants) {
    if (grant->believed_until <= *grant->answered) continue;
    for (const std::string& lock : grant->locks) by_lock[lock].push_back(grant);
  }
  for (auto& [lock, holders] : by_lock) {
    std::sort(holders.begin(), holders.end(),
              [](const Attempt* a, const Attempt* b) { return *a->answered < *b->answered; });
    std::vector<const Attempt*> believing;
    for (const Attempt* next : holders) {
      std::erase_if(believing, [&](const Attempt* h) { return h->believed_until <= *next->answered; });
      for (const Attempt* holder : believing) {
        if (!compatible(*holder, *next)) {
          faults.push_back(
              fmt::format("P3: \"{}\": {} begins at {:.3f} ms, {} still believes until {:.3f} ms", lock,
                          name(*next), ms(*next->answered), name(*holder), ms(holder->believed_until)));
        }
      }
      believing.push_back(next);
      std::uint32_t least = UINT32_MAX;
      for (const Attempt* holder : believing) {
        if (holder->mode != Mode::kShared) least = std::min(least, holder->limit);
      }
      if (believing.size() > least) {
        faults.push_back(
            fmt::format("P3: \"{}\": {} believe to hold it, the limit is {}", lock, believing.size(), least));
      }
    }
  }
}

// G2 and G3: a lease that its client may still count on is not lost, whatever crashed.
void check_kept(const std::vector<Attempt>& history, Faults& faults) {
  for (const Attempt& attempt : history) {
    if (attempt.lost_early) {
      faults.push_back(
          fmt::format("G2: pawld called {} lost before its time: {}", name(attempt), *attempt.lost_early));
    }
  }
}

}  // namespace

std::vector<std::string> check(const std::vector<Attempt>& history) {
  Faults faults;
  const auto grants = granted(history);
  check_unique(grants, faults);
  check_monotone(grants, faults);
  check_exclusive(grants, faults);
  check_kept(history, faults);
  return faults;
}

}  // namespace pawl::sim
