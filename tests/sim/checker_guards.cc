// P5: what a guarded resource let happen, and what it refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/checker.h"

namespace pawl::sim {
namespace {

using Kind = Effect::Kind;
using Verdict = Effect::Verdict;

struct Resource {
  Token newest;  // Of what was advanced to, read by a writer, or written.
  std::set<std::pair<Token, std::uint64_t>> done;
};

class GuardCheck {
 public:
  GuardCheck(const History& history, Faults& faults) : history_(history), faults_(faults) {
    for (const Attempt& a : history.attempts) {
      if (a.token.value != 0) believed_[a.token] = a.believed_until;
    }
    for (const Break& b : history.breaks) believed_.erase(b.token);
  }

  void look_at(const Effect& e) {
    Resource& resource = resources_[e.resource];
    if (e.changed) check_change(resource, e);
    if (e.verdict == Verdict::kStale) check_refusal(resource, e);
    const std::pair op(e.token, e.op);
    if (e.verdict == Verdict::kReplayed && !resource.done.contains(op)) {
      fault(e, "was called replayed, but never happened");
    }
    if (e.changed) resource.done.insert(op);
    const bool moves = e.verdict == Verdict::kAdmitted && e.kind != Kind::kCheck;
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
    if (e.token >= resource.newest) return fault(e, "was refused, though nothing newer had been there");
    const auto until = believed_.find(e.token);
    if (history_.demand == Demand::kAll && until != believed_.end() && e.at < until->second) {
      fault(e, "was refused, though its holder still holds");
    }
  }

  const History& history_;
  Faults& faults_;
  std::map<Token, Moment> believed_;
  std::map<std::string, Resource> resources_;
};

}  // namespace

void check_guards(const History& history, Faults& faults) {
  GuardCheck check(history, faults);
  for (const Effect& effect : history.effects) check.look_at(effect);
}

}  // namespace pawl::sim
