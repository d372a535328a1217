// The fast checker against the exhaustive one, on small random histories: about half of them can
// have happened.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sim/checker.h"
#include "sim/checker_search.h"

namespace pawl::sim {
namespace {

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  // Mostly what a lock service could do, with moments that are sometimes too early.
  History write() {
    Moment now = at(1);
    const std::uint64_t grants = 2 + random_.below(3);
    for (std::uint64_t token = 1; token <= grants; ++token) {
      Attempt a;
      a.client = static_cast<int>(token);
      a.request = fmt::format("request-{}", token);
      a.token = Token{token};
      a.locks = {random_.below(3) == 0 ? "b" : "a"};
      if (random_.below(6) == 0) a.locks = {"a", "b"};
      a.ttl = Millis(10 + random_.below(20));
      a.asked = now - Nanos(Millis(random_.below(6)));
      a.answered = std::max(a.asked, now + Nanos(Millis(random_.below(8))));
      history_.attempts.push_back(a);
      now = live(a, now);
    }
    if (random_.below(8) == 0) std::swap(history_.attempts[0].token, history_.attempts[1].token);
    return history_;
  }

 private:
  static Moment at(std::uint64_t ms) { return Moment(Millis(100 + ms)); }
  Moment soon(Moment now, std::uint64_t most) {
    return now + Nanos(Millis(random_.below(most + 1)));
  }

  Moment live(const Attempt& a, Moment now) {
    if (random_.below(2) == 0) {
      Renewal r;
      r.token = a.token;
      r.sent = soon(now, 12);
      r.returned = soon(r.sent, 5);
      r.ok = random_.below(3) != 0;
      r.answered = a.ttl;
      history_.renewals.push_back(r);
      now = std::max(now, r.sent);
    }
    if (random_.below(3) == 0) {
      const Moment sent = soon(now, 10);
      history_.sightings.push_back({a.locks.front(), a.token, sent, soon(sent, 6)});
    }
    if (random_.below(2) == 0) {
      Release r;
      r.token = a.token;
      r.invoked = soon(now, 10);
      r.returned = random_.below(4) == 0 ? kOpen : soon(r.invoked, 5);
      r.was_live = r.returned != kOpen && random_.below(3) != 0;
      history_.releases.push_back(r);
      return soon(r.invoked, 4);
    }
    return soon(now, 45);
  }

  SeededRandom random_;
  History history_;
};

// The history as text, to find out which of the two is wrong.
std::string show(const History& h) {
  std::string text;
  for (const Attempt& a : h.attempts) {
    text += fmt::format("\n  token {} on {}: asked {:.2f}, answered {:.2f}, TTL {}", a.token.value,
                        fmt::join(a.locks, "+"), ms(a.asked), ms(a.answered), a.ttl.count());
  }
  for (const Renewal& r : h.renewals) {
    text += fmt::format("\n  renew {} {:.2f}–{:.2f} {}", r.token.value, ms(r.sent), ms(r.returned),
                        r.ok);
  }
  for (const Release& r : h.releases) {
    text += fmt::format("\n  release {} {:.2f}–{:.2f} {}", r.token.value, ms(r.invoked),
                        r.returned == kOpen ? -1 : ms(r.returned), r.was_live);
  }
  for (const Sighting& g : h.sightings) {
    text += fmt::format("\n  see {} on {} {:.2f}–{:.2f}", g.token.value, g.lock, ms(g.invoked),
                        ms(g.returned));
  }
  return text;
}

TEST(Checker, AgreesWithAnExhaustiveSearch) {
  int possible = 0;
  constexpr int kHistories = 4'000;
  for (int seed = 1; seed <= kHistories; ++seed) {
    const History history = Writer(static_cast<std::uint64_t>(seed)).write();
    Faults faults;
    check_order(history, faults);
    const bool can = can_have_happened(history);
    possible += can ? 1 : 0;
    ASSERT_EQ(faults.empty(), can)
        << "history " << seed << (faults.empty() ? "" : ": " + faults.front()) << show(history);
  }
  std::printf("%d histories, %d of them possible\n", kHistories, possible);
  EXPECT_GT(possible, kHistories / 10);
  EXPECT_LT(possible, kHistories * 9 / 10);
}

}  // namespace
}  // namespace pawl::sim
