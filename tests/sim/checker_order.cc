// P2, P3 and P4: the replay in order of token (checker.h); and G7, what the holders themselves
// believe.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/checker.h"

namespace pawl::sim {
namespace {

struct Holder {
  const Life* life;
  Moment end;
};

bool same_slot(const Attempt& a, const Attempt& b) {
  return a.mode == Mode::kLimit && b.mode == Mode::kLimit && a.slot && a.slot == b.slot;
}

// Whether `next` may join `others` (all on one lock).
bool may_join(const Attempt& next, const std::vector<const Attempt*>& others) {
  std::uint32_t least = next.mode == Mode::kShared ? UINT32_MAX : next.limit;
  for (const Attempt* other : others) {
    if ((other->mode == Mode::kShared) != (next.mode == Mode::kShared) || same_slot(*other, next))
      return false;
    if (other->mode != Mode::kShared) least = std::min(least, other->limit);
  }
  return others.size() + 1 <= least;
}

class Sweep {
 public:
  Sweep(const History& history, Faults& faults) : history_(history), faults_(faults) {}

  void run() {
    std::map<Token, const Attempt*> granted;
    for (const Life& life : lives_) {
      granted[life.token] = life.attempt;
      if (history_.demand != Demand::kTokensOnly) no_resurrection(life);
      if (history_.demand == Demand::kAll) not_robbed(life);
      place(life);
    }
    for (const Sighting& s : history_.sightings) {
      const Attempt* a = s.returned == kOpen ? nullptr : granted[s.token];
      if (a != nullptr && std::find(a->locks.begin(), a->locks.end(), s.lock) == a->locks.end()) {
        fault("P1",
              fmt::format("{} was seen on \"{}\", which it was not granted", name(*a), s.lock));
      }
    }
  }

 private:
  void fault(const char* property, std::string text) {
    faults_.push_back(fmt::format("{}: {}", property, text));
  }

  // P4: alive after a client had received that it is over.
  void no_resurrection(const Life& life) {
    if (life.last_proof > life.over) {
      fault("P4",
            fmt::format("token {} was over at {:.3f} ms, and {} sent at {:.3f} ms found it alive",
                        life.token.value, ms(life.over), life.proof, ms(life.last_proof)));
    }
    if (life.last_proof > life.voided) {
      fault("P4", fmt::format(
                      "token {} was void from {:.3f} ms on, by a restore, and {} sent at {:.3f} ms "
                      "found it alive",
                      life.token.value, ms(life.voided), life.proof, ms(life.last_proof)));
    }
    for (const Renewal& r : renewals_of(life.token)) {
      if (r.ok && r.sent > life.breaking) {
        fault("P4",
              fmt::format("token {} was renewed, sent at {:.3f} ms, after its BREAK was answered",
                          life.token.value, ms(r.sent)));
      }
    }
  }

  // G2 and G3: LOST before the lease can have run out, though it was not released.
  void not_robbed(const Life& life) {
    if (life.attempt == nullptr) return;
    for (const Renewal& r : renewals_of(life.token)) {
      const bool excused = life.given_up <= r.returned || life.touched_by_break <= r.returned ||
                           life.voided <= r.returned;
      if (!r.ok && r.returned != kOpen && r.returned < life.clock_end && !excused) {
        fault("G2", fmt::format("{} was called lost at {:.3f} ms, it had until {:.3f} ms",
                                name(*life.attempt), ms(r.returned), ms(life.clock_end)));
      }
    }
  }

  void place(const Life& life) {
    Moment earliest = floor_;
    std::string why = floor_why_;
    const Moment asked = life.attempt == nullptr ? Moment{} : life.attempt->asked;
    if (asked > earliest) {
      earliest = asked;
      why = fmt::format("P2: token {} was asked for at {:.3f} ms", life.token.value, ms(asked));
    }
    if (life.attempt != nullptr && history_.demand != Demand::kTokensOnly) {
      for (const std::string& lock : life.attempt->locks)
        make_room(lock, *life.attempt, earliest, why);
    }
    if (life.first_seen < earliest) {
      faults_.push_back(fmt::format("{}, and yet token {} was seen at {:.3f} ms", why,
                                    life.token.value, ms(life.first_seen)));
      earliest = life.first_seen;  // One fault is enough.
      why.clear();
    }
    floor_ = std::max(floor_, earliest);
    floor_why_ = why;
    if (life.attempt == nullptr) return;
    for (const std::string& lock : life.attempt->locks) {
      holders_[lock].push_back({&life, life.end(history_.demand)});
    }
  }

  // Moves `earliest` to where enough of the lock's holders can have ended.
  void make_room(const std::string& lock, const Attempt& next, Moment& earliest, std::string& why) {
    std::vector<Holder>& holders = holders_[lock];
    std::erase_if(holders, [&](const Holder& h) { return h.end <= floor_; });
    std::sort(holders.begin(), holders.end(),
              [](const Holder& a, const Holder& b) { return a.end < b.end; });
    std::vector<const Attempt*> others;
    for (const Holder& h : holders) others.push_back(h.life->attempt);
    std::size_t gone = 0;
    while (!may_join(next, {others.begin() + static_cast<std::ptrdiff_t>(gone), others.end()}))
      ++gone;
    if (gone == 0 || holders[gone - 1].end <= earliest) return;
    const Holder& last = holders[gone - 1];
    earliest = last.end;
    why = last.end == last.life->last_proof
              ? fmt::format("P4: \"{}\": {} found {} alive, sent at {:.3f} ms", lock,
                            last.life->proof, name(*last.life->attempt), ms(last.end))
              : fmt::format("P3: \"{}\": {} could not have run out before {:.3f} ms", lock,
                            name(*last.life->attempt), ms(last.end));
  }

  [[nodiscard]] const std::vector<Renewal>& renewals_of(Token token) const {
    static const std::vector<Renewal> none;
    const auto found = renewals_.find(token);
    return found == renewals_.end() ? none : found->second;
  }

  static std::map<Token, std::vector<Renewal>> by_token(const std::vector<Renewal>& renewals) {
    std::map<Token, std::vector<Renewal>> sorted;
    for (const Renewal& r : renewals) sorted[r.token].push_back(r);
    return sorted;
  }

  const History& history_;
  Faults& faults_;
  const std::vector<Life> lives_ = lives(history_);
  const std::map<Token, std::vector<Renewal>> renewals_ = by_token(history_.renewals);
  std::map<std::string, std::vector<Holder>> holders_;
  Moment floor_{};
  std::string floor_why_;
};

void check_lock_belief(const std::string& lock, std::vector<const Attempt*>& holders,
                       Faults& faults) {
  std::sort(holders.begin(), holders.end(),
            [](const Attempt* a, const Attempt* b) { return a->answered < b->answered; });
  std::vector<const Attempt*> believing;
  for (const Attempt* next : holders) {
    std::erase_if(believing, [&](const Attempt* h) { return h->believed_until <= next->answered; });
    if (!may_join(*next, believing)) {
      const Attempt& holder = *believing.back();
      faults.push_back(
          fmt::format("G7: \"{}\": {} begins at {:.3f} ms, {} still believes until {:.3f} ms", lock,
                      name(*next), ms(next->answered), name(holder), ms(holder.believed_until)));
    }
    believing.push_back(next);
  }
}

}  // namespace

void check_order(const History& history, Faults& faults) {
  Sweep(history, faults).run();
}

// G7: belief ends by the holder's own clock, so this is stronger than "pawld never has two": the
// client must know first.
void check_belief(const History& history, Faults& faults) {
  if (history.demand != Demand::kAll) return;
  std::map<Token, Moment> broken;
  for (const Break& b : history.breaks) {
    const auto [at, fresh] = broken.emplace(b.token, b.invoked);
    if (!fresh) at->second = std::min(at->second, b.invoked);
  }
  std::map<std::string, std::vector<const Attempt*>> by_lock;
  for (const Attempt& a : history.attempts) {
    if (a.token.value == 0) continue;
    const bool robbed = !broken.contains(a.token) && a.believed_until < voided_at(history, a.token);
    if (a.lost_early && robbed) {
      faults.push_back(
          fmt::format("G2: pawld called {} lost before its time: {}", name(a), *a.lost_early));
    }
    if (a.believed_until <= a.answered || broken.contains(a.token))
      continue;  // After BREAK only guards protect.
    for (const std::string& lock : a.locks) by_lock[lock].push_back(&a);
  }
  for (auto& [lock, holders] : by_lock) check_lock_belief(lock, holders, faults);
}

}  // namespace pawl::sim
