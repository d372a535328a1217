// P5: what a guarded resource let happen, and what it refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/checker.h"

namespace pawl::sim {
namespace {

using Kind = Effect::Kind;

struct Resource {
  Token newest;  // Of what was advanced to, read by a writer, or written.
  std::set<std::pair<Token, std::uint64_t>> done;
};

class GuardCheck {
 public:
  GuardCheck(const History& history, Faults& faults) : history_(history), faults_(faults) {
    for (const Attempt& a : history.attempts) {
      if (a.token.value != 0) believed_[a.token] = {a.answered, a.believed_until};
    }
    for (const Break& b : history.breaks) believed_.erase(b.token);
  }

  void look_at(const Effect& e) {
    Resource& resource = resources_[e.resource];
    if (e.changed) check_change(resource, e);
    if (e.verdict == Effect::Verdict::kStale) check_refusal(resource, e);
    const std::pair op(e.token, e.op);
    if (e.verdict == Effect::Verdict::kReplayed && !resource.done.contains(op)) {
      fault(e, "was called replayed, but never happened");
    }
    if (e.changed) resource.done.insert(op);
    const bool moves = e.verdict == Effect::Verdict::kAdmitted && e.kind != Kind::kCheck;
    if (moves || e.changed) resource.newest = std::max(resource.newest, e.token);
  }

 private:
  void fault(const Effect& e, std::string_view what) {
    faults_.push_back(fmt::format("P5: \"{}\": op {} of token {} at {:.3f} ms {}", e.resource, e.op,
                                  e.token.value, ms(e.at), what));
  }

  void check_change(const Resource& resource, const Effect& e) {
    if (e.token < resource.newest) {
      fault(e, fmt::format("was applied, after token {} had been there", resource.newest.value));
    }
    if (resource.done.contains({e.token, e.op})) fault(e, "was applied twice");
  }

  void check_refusal(const Resource& resource, const Effect& e) {
    if (e.token >= resource.newest)
      return fault(e, "was refused, though nothing newer had been there");
    // Before its holder has the answer, another reader may advance to this token as its floor, and
    // too late.
    const auto held = believed_.find(e.token);
    if (history_.demand == Demand::kAll && held != believed_.end() && e.at >= held->second.from &&
        e.at < held->second.until) {
      fault(e, "was refused, though its holder still holds");
    }
  }

  const History& history_;
  Faults& faults_;
  struct Belief {
    Moment from{}, until{};
  };
  std::map<Token, Belief> believed_;
  std::map<std::string, Resource> resources_;
};

}  // namespace

void check_guards(const History& history, Faults& faults) {
  GuardCheck check(history, faults);
  for (const Effect& effect : history.effects) check.look_at(effect);
}

}  // namespace pawl::sim
