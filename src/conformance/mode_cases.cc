// The rollout: observe, shadow, canary, enforce, and back in an emergency.
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <set>

#include "conformance/cases.h"
#include "conformance/race.h"

namespace pawl::conformance {
namespace {

constexpr std::uint64_t kStepMin = std::uint64_t{1} << 41;

void change(Trial& trial, const std::string& resource, const Policy& policy) {
  need(trial.subject().set_policy(resource, policy), "set_policy");
}

void observe(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kObserve, .max_step = kStepMin});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_unjudged(write(resource, 33));
  if (trial.has(Ability::kMaxStep)) trial.expect_unjudged(write(resource, 34 + kStepMin + 1));
  trial.expect(Answer::kAdmitted, write(resource, 34));
}

void shadow(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kShadow, .max_step = kStepMin});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_let_through(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 35));
  if (trial.has(Ability::kMaxStep))
    trial.expect_let_through(Answer::kAhead, write(resource, 35 + kStepMin + 1));
  trial.expect(Answer::kAdmitted, write(resource, 35));
}

// Even `require_token` refuses nothing in shadow.
void shadow_missing(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kShadow, .require_token = true});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_unjudged(write_without_token(resource));
}

void ladder(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kObserve});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_unjudged(write(resource, 33));
  change(trial, resource, {.mode = GuardMode::kShadow});
  trial.expect_let_through(Answer::kStale, write(resource, 33));
  trial.expect_fence(resource, 34);
  change(trial, resource, {.mode = GuardMode::kEnforce});
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  change(trial, resource, {.mode = GuardMode::kShadow});
  trial.expect_let_through(Answer::kStale, write(resource, 33));
  change(trial, resource, {.mode = GuardMode::kEnforce});
  trial.expect(Answer::kStale, write(resource, 33));
}

void advance_in_shadow(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kShadow});
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect_let_through(Answer::kStale, write(resource, 33));
  change(trial, resource, {.mode = GuardMode::kEnforce});
  trial.expect(Answer::kStale, write(resource, 33));
}

void emergency(Trial& trial) {
  const std::string resource = trial.fresh({.require_token = trial.has(Ability::kRequireToken)});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kStale, write(resource, 33));
  need(trial.subject().emergency(resource), "emergency");
  trial.expect_let_through(Answer::kStale, write(resource, 33));
  if (trial.has(Ability::kTokenless)) trial.expect_unjudged(write_without_token(resource));
  change(trial, resource, {});
  trial.expect(Answer::kStale, write(resource, 33));
}

// A stuck transaction is what an emergency is often about: the switch must not wait behind it.
void emergency_behind_a_writer(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const auto stuck = trial.open();
  const Outcome opened =
      begin_write(*stuck, Isolation::kDefault, write(resource, 34), trial.next_value());
  if (!opened.passed()) fail("the holder could not write: " + opened.detail);
  need(trial.subject().emergency(resource), "emergency");
  if (const Outcome committed = stuck->commit(); !committed.passed())
    fail("the holder's open write did not survive the emergency: " + committed.detail);
  trial.expect_let_through(Answer::kStale, write(resource, 33));
}

void require_later(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_unjudged(write_without_token(resource));
  change(trial, resource, {.require_token = true});
  trial.expect(Answer::kMissing, write_without_token(resource));
  change(trial, resource, {.require_token = false});
  trial.expect_unjudged(write_without_token(resource));
}

// Those of them that refuse token 33 after 34.
std::set<std::string> refusing(Trial& trial, const std::vector<std::string>& resources) {
  std::set<std::string> chosen;
  for (const std::string& resource : resources) {
    const Outcome outcome = trial.attempt(write(resource, 33));
    if (outcome.answer != Answer::kStale)
      fail(fmt::format("token 33 after 34 was answered \"{}\": {}", to_text(outcome.answer),
                       outcome.detail));
    if (!outcome.let_through) chosen.insert(resource);
  }
  return chosen;
}

constexpr std::size_t kCanaries = 24;

std::vector<std::string> canaries(Trial& trial, int percent) {
  auto resources = trial.fresh({.mode = GuardMode::kCanary, .percent = percent}, kCanaries);
  for (const std::string& resource : resources) {
    if (const Outcome outcome = trial.attempt(write(resource, 34));
        outcome.answer != Answer::kAdmitted)
      fail("the holder was not admitted in canary: " + outcome.detail);
  }
  return resources;
}

void canary_stable(Trial& trial) {
  const auto resources = canaries(trial, 50);
  const auto chosen = refusing(trial, resources);
  // All alike: once in eight million runs of a fair choice.
  if (chosen.empty() || chosen.size() == kCanaries)
    fail(fmt::format("canary 50 % refuses for {} of {} resources", chosen.size(), kCanaries));
  for (int i = 0; i < 2; ++i) {
    if (refusing(trial, resources) != chosen) fail("canary chose other resources the next time");
  }
  for (const std::string& resource : resources) trial.expect_fence(resource, 34);
}

void canary_grows(Trial& trial) {
  const auto resources = canaries(trial, 30);
  auto chosen = refusing(trial, resources);
  for (const int percent : {60, 100}) {
    for (const std::string& resource : resources)
      change(trial, resource, {.mode = GuardMode::kCanary, .percent = percent});
    const auto more = refusing(trial, resources);
    for (const std::string& resource : chosen) {
      if (!more.contains(resource))
        fail(fmt::format("canary {} % let go of {}", percent, resource));
    }
    chosen = more;
  }
  if (chosen.size() != kCanaries)
    fail(fmt::format("canary 100 % refuses for {} of {} resources", chosen.size(), kCanaries));
}

void counted(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = kStepMin});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const Counts before = trial.counts(resource);
  for (int i = 0; i < 3; ++i) trial.expect(Answer::kStale, write(resource, 33));
  if (trial.has(Ability::kMaxStep)) trial.expect(Answer::kAhead, write(resource, 35 + kStepMin));
  const Counts after = trial.counts(resource);
  if (after.stale != before.stale + 3)
    fail(fmt::format("three stale writes were counted as {}", after.stale - before.stale));
  if (trial.has(Ability::kMaxStep) && after.ahead != before.ahead + 1)
    fail(fmt::format("one write ahead was counted as {}", after.ahead - before.ahead));
  if (after.would_refuse != before.would_refuse)
    fail("what was refused was counted as let through");
}

void counted_in_shadow(Trial& trial) {
  const std::string resource = trial.fresh({.mode = GuardMode::kShadow});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const Counts before = trial.counts(resource);
  for (int i = 0; i < 2; ++i) trial.expect_let_through(Answer::kStale, write(resource, 33));
  const Counts after = trial.counts(resource);
  if (after.would_refuse != before.would_refuse + 2)
    fail(fmt::format("two stale writes in shadow were counted as {} that would be refused",
                     after.would_refuse - before.would_refuse));
}

// kBusy says only that other writers were faster: SQLite's write lock has no queue, and on a busy
// machine a change can wait longer than it is willing to. Nothing has changed then.
Result<void> change_under_load(Trial& trial, const std::string& resource, const Policy& policy) {
  constexpr int kAttempts = 10;
  Result<void> changed = trial.subject().set_policy(resource, policy);
  for (int i = 1; i < kAttempts && !changed && changed.error().code == Code::kBusy; ++i)
    changed = trial.subject().set_policy(resource, policy);
  return changed;
}

struct Try {
  std::uint64_t began = 0;
  std::uint64_t answered = 0;
  std::uint64_t token = 0;
  Outcome outcome;
};

// A stale write whose whole life lies between "enforce" being answered and "shadow" being asked for
// must be refused; and the holder must be admitted whatever the mode.
void under_load(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  Stamps stamps;
  std::mutex mutex;
  std::vector<Try> tries;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> enforced;  // from, to
  std::atomic<bool> over{false};
  constexpr std::size_t kWriters = 4;
  together(trial, kWriters + 1, [&](Session& session, std::size_t index) {
    if (index == kWriters) {
      std::uint64_t from = stamps.next();
      for (std::uint64_t i = 0; i < trial.rounds(); ++i) {
        enforced.emplace_back(from, stamps.next());
        const auto loosened = change_under_load(trial, resource, {.mode = GuardMode::kShadow});
        const auto tightened = change_under_load(trial, resource, {.mode = GuardMode::kEnforce});
        from = stamps.next();
        if (!loosened || !tightened) over = true;
        need(loosened, "set_policy");
        need(tightened, "set_policy");
      }
      enforced.emplace_back(from, ~std::uint64_t{0});
      over = true;
      return;
    }
    while (!over) {
      Try mine{stamps.next(), 0, index % 2 == 0 ? 34U : 33U, {}};
      mine.outcome = write_once(trial, session, Isolation::kDefault, write(resource, mine.token),
                                trial.next_value());
      mine.answered = stamps.next();
      const std::lock_guard lock(mutex);
      tries.push_back(std::move(mine));
    }
  });
  std::size_t passed = 0;
  for (const Try& each : tries) {
    passed += each.outcome.passed() ? 1 : 0;
    if (each.outcome.answer == Answer::kAgain) continue;
    if (each.token == 34 && each.outcome.answer != Answer::kAdmitted)
      fail(fmt::format("while modes changed the holder was answered \"{}\": {}",
                       to_text(each.outcome.answer), each.outcome.detail));
    if (each.token == 33 && each.outcome.answer != Answer::kStale)
      fail(fmt::format("while modes changed a stale token was answered \"{}\": {}",
                       to_text(each.outcome.answer), each.outcome.detail));
    for (const auto& [from, to] : enforced) {
      if (each.token == 33 && each.outcome.passed() && each.began > from && each.answered < to)
        fail("a stale write took effect although enforce had been answered before it began");
    }
  }
  if (trial.effects(resource).size() != passed)
    fail("answers and effects differ while modes changed");
  trial.expect_fence(resource, 34);
  trial.expect(Answer::kStale, write(resource, 33));
}

// Each of them would show in the next write.
void rehearsed(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  need(trial.subject().rehearse_policy(resource, {.mode = GuardMode::kShadow}), "rehearse_policy");
  trial.expect(Answer::kStale, write(resource, 33));
  if (trial.has(Ability::kCompact)) {
    need(trial.subject().rehearse_compact(resource, 5000), "rehearse_compact");
    trial.expect_fence(resource, 34);
    trial.expect(Answer::kAdmitted, write(resource, 34));
  }
  if (!trial.has(Ability::kEmergency)) return;
  need(trial.subject().emergency(resource), "emergency");
  need(trial.subject().rehearse_policy(resource, {}), "rehearse_policy");
  trial.expect_let_through(Answer::kStale, write(resource, 33));
}

constexpr std::array kModeCases{
    Case{"observe",
         "observe refuses nothing, and a stale token moves nothing",
         observe,
         {Ability::kModes}},
    Case{
        "shadow",
        "shadow tells the verdict, lets everything through, and what it would refuse moves nothing",
        shadow,
        {Ability::kModes}},
    Case{"shadow-missing",
         "shadow refuses no write without a token",
         shadow_missing,
         {Ability::kModes, Ability::kTokenless, Ability::kRequireToken}},
    Case{"ladder",
         "a change of mode takes effect at once, in both directions, and keeps the fence",
         ladder,
         {Ability::kModes}},
    Case{"advance-in-shadow",
         "an advance counts in every mode",
         advance_in_shadow,
         {Ability::kModes}},
    Case{"emergency",
         "the emergency switch goes back to shadow at once",
         emergency,
         {Ability::kModes, Ability::kEmergency}},
    Case{"emergency-behind-a-writer",
         "the emergency switch does not wait for an open write",
         emergency_behind_a_writer,
         {Ability::kModes, Ability::kEmergency, Ability::kTransactions}},
    Case{"rehearsed",
         "a change that is rehearsed changes neither mode nor policy nor fence",
         rehearsed,
         {Ability::kModes, Ability::kRehearsal}},
    Case{"require-later",
         "require_token can be turned on and off",
         require_later,
         {Ability::kTokenless, Ability::kRequireToken}},
    Case{"canary-stable",
         "canary refuses for the same resources every time",
         canary_stable,
         {Ability::kModes, Ability::kCanary}},
    Case{"canary-grows",
         "a greater per cent keeps the resources it had chosen, and 100 % are all",
         canary_grows,
         {Ability::kModes, Ability::kCanary}},
    Case{"counted",
         "each refusal is counted by its name, although its transaction is gone",
         counted,
         {Ability::kCounts}},
    Case{"counted-in-shadow",
         "what shadow lets through is counted as would_refuse",
         counted_in_shadow,
         {Ability::kModes, Ability::kCounts}},
    Case{"modes-under-load",
         "modes change under load: no holder is refused, no stale write passes once enforce "
         "is answered",
         under_load,
         {Ability::kModes, Ability::kConcurrency}},
};

}  // namespace

std::span<const Case> mode_cases() {
  return kModeCases;
}

}  // namespace pawl::conformance
