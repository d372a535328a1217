// Old and new holders at the same time: check and write are one atomic step, or these find out.
#include <fmt/format.h>

#include <array>

#include "conformance/cases.h"
#include "conformance/race.h"

namespace pawl::conformance {
namespace {

using namespace std::chrono_literals;

void race_default(Trial& trial) {
  race_for_one_resource(trial, {});
}

void race_read_committed(Trial& trial) {
  race_for_one_resource(trial, {.isolation = Isolation::kReadCommitted});
}

void race_repeatable_read(Trial& trial) {
  race_for_one_resource(trial, {.isolation = Isolation::kRepeatableRead});
}

void race_serializable(Trial& trial) {
  race_for_one_resource(trial, {.isolation = Isolation::kSerializable});
}

// The textbook's gap: checked, then overtaken, then written.
void advance_against_open_write(Trial& trial, Isolation isolation) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 33));
  const auto old_holder = trial.open();
  const auto new_holder = trial.open();
  const std::string value = trial.next_value();
  const Outcome opened = begin_write(*old_holder, isolation, write(resource, 33), value);
  if (!opened.passed()) fail("the holder of 33 could not write: " + opened.detail);
  const Advanced first = new_holder->advance(resource, 34, 200ms);
  const Outcome committed = old_holder->commit();
  if (!committed.passed()) static_cast<void>(old_holder->rollback());
  const bool in_effect = trial.effects(resource).back().value == value;
  if (in_effect != committed.passed())
    fail("the commit's answer does not say whether the write is in effect");
  if (first.outcome.answer == Answer::kDone && committed.passed())
    fail(fmt::format(
        "at isolation {}: the advance to 34 was answered while a write with 33 was open, and that "
        "write was committed afterwards",
        to_text(isolation)));
  if (first.outcome.answer != Answer::kDone && first.outcome.answer != Answer::kBusy)
    fail(fmt::format("the advance to 34 was answered \"{}\": {}", to_text(first.outcome.answer),
                     first.outcome.detail));
  trial.expect_advance(Answer::kDone, resource, 34);
  trial.expect(Answer::kStale, write(resource, 33));
}

void open_write(Trial& trial) {
  for (const Isolation isolation : isolation_levels(trial))
    advance_against_open_write(trial, isolation);
}

// A snapshot from before the advance must not hide it.
void old_snapshot(Trial& trial) {
  for (const Isolation isolation : isolation_levels(trial)) {
    const std::string resource = trial.fresh();
    trial.expect(Answer::kAdmitted, write(resource, 33));
    const auto old_holder = trial.open();
    if (!old_holder->begin(isolation).passed()) fail("begin");
    // Reading fixes the snapshot where the level has one.
    static_cast<void>(old_holder->check(resource, 33));
    trial.expect_advance(Answer::kDone, resource, 34);
    Outcome outcome = old_holder->admit(write(resource, 33));
    if (outcome.passed()) outcome = old_holder->apply(resource, trial.next_value());
    if (outcome.passed()) outcome = old_holder->commit();
    static_cast<void>(old_holder->rollback());
    if (outcome.passed())
      fail(fmt::format(
          "at isolation {}: a transaction from before the advance wrote with the old token",
          to_text(isolation)));
    if (trial.effects(resource).size() != 1) fail("a write that was refused took effect");
  }
}

// Many connections of one holder are the normal case, not a race.
void one_holder(Trial& trial) {
  constexpr std::size_t kWriters = 6;
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  std::atomic<std::uint64_t> written{0};
  together(trial, kWriters, [&](Session& session, std::size_t) {
    for (std::uint64_t i = 0; i < trial.rounds(); ++i) {
      const Outcome outcome =
          write_once(trial, session, Isolation::kDefault, write(resource, 34), trial.next_value());
      if (outcome.passed()) {
        ++written;
      } else if (outcome.answer != Answer::kAgain) {
        fail(fmt::format("a write of the only holder was answered \"{}\": {}",
                         to_text(outcome.answer), outcome.detail));
      }
    }
  });
  if (written == 0) fail("no write of the only holder passed");
  if (trial.effects(resource).size() != written)
    fail(fmt::format("{} writes were answered as done, {} took effect", written.load(),
                     trial.effects(resource).size()));
}

void first_users(Trial& trial) {
  for (std::uint64_t round = 0; round < 5; ++round) {
    const std::string resource = trial.fresh();
    std::atomic<std::uint64_t> admitted{0};
    together(trial, 4, [&](Session& session, std::size_t) {
      Outcome outcome{Answer::kAgain, false, {}};
      for (int i = 0; i < 50 && outcome.answer == Answer::kAgain; ++i)
        outcome = write_once(trial, session, Isolation::kDefault, write(resource, 34),
                             trial.next_value());
      if (outcome.answer != Answer::kAdmitted)
        fail(fmt::format("one of four first users of a token was answered \"{}\": {}",
                         to_text(outcome.answer), outcome.detail));
      ++admitted;
    });
    trial.expect_fence(resource, 34);
    if (trial.effects(resource).size() != admitted) fail("not every first write took effect");
  }
}

void one_operation(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_advance(Answer::kDone, resource, 34);
  constexpr std::uint64_t kOperations = 10;
  together(trial, 4, [&](Session& session, std::size_t) {
    for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
      Outcome outcome{Answer::kAgain, false, {}};
      for (int i = 0; i < 50 && outcome.answer == Answer::kAgain; ++i)
        outcome = write_once(trial, session, Isolation::kDefault, write(resource, 34, operation),
                             fmt::format("operation {}", operation));
      const bool late = outcome.answer == Answer::kStale && trial.has(Ability::kOperationLast);
      if (!outcome.passed() && outcome.answer != Answer::kReplayed && !late)
        fail(fmt::format("operation {} was answered \"{}\": {}", operation, to_text(outcome.answer),
                         outcome.detail));
    }
  });
  if (const auto effects = trial.effects(resource); effects.size() != kOperations)
    fail(fmt::format("{} operations, each sent by four at once, took effect {} times", kOperations,
                     effects.size()));
}

// Two resources, named in opposite orders: a guard that locks in the order of the names waits for
// ever.
void opposite_orders(Trial& trial) {
  const auto resources = trial.fresh({}, 2);
  std::atomic<std::uint64_t> token{10};
  together(trial, 4, [&](Session& session, std::size_t index) {
    auto mine = resources;
    if (index % 2 == 1) std::swap(mine[0], mine[1]);
    for (std::uint64_t i = 0; i < trial.rounds(); ++i) {
      const Outcome outcome =
          write_once(trial, session, Isolation::kDefault, write(mine, ++token), trial.next_value());
      if (outcome.answer == Answer::kBroken) fail("with two resources at once: " + outcome.detail);
    }
  });
  const auto first = trial.effects(resources[0]);
  if (first != trial.effects(resources[1]))
    fail("two resources written together have different logs");
  if (first.empty()) fail("none of the writes was admitted");
}

constexpr std::array kRaceCases{
    Case{"race",
         "no racer's effect comes after an effect or an advance with a greater token",
         race_default,
         {Ability::kConcurrency}},
    Case{"race-read-committed",
         "the same at READ COMMITTED",
         race_read_committed,
         {Ability::kConcurrency, Ability::kTransactions, Ability::kReadCommitted}},
    Case{"race-repeatable-read",
         "the same at REPEATABLE READ",
         race_repeatable_read,
         {Ability::kConcurrency, Ability::kTransactions, Ability::kRepeatableRead}},
    Case{"race-serializable",
         "the same at SERIALIZABLE",
         race_serializable,
         {Ability::kConcurrency, Ability::kTransactions, Ability::kSerializable}},
    Case{"open-write",
         "an advance is answered only when no older write can still be committed",
         open_write,
         {Ability::kTransactions, Ability::kConcurrency}},
    Case{"old-snapshot",
         "a transaction from before the advance cannot write with the old token",
         old_snapshot,
         {Ability::kTransactions, Ability::kConcurrency}},
    Case{"one-holder",
         "many writers of one holder never refuse each other",
         one_holder,
         {Ability::kConcurrency}},
    Case{"first-users",
         "several first users of one token are all admitted",
         first_users,
         {Ability::kConcurrency}},
    Case{"one-operation-many-senders",
         "an operation that many send at once takes effect once",
         one_operation,
         {Ability::kConcurrency},
         {Ability::kOperationSet, Ability::kOperationLast}},
    Case{"opposite-orders",
         "several resources named in opposite orders neither hang nor drift apart",
         opposite_orders,
         {Ability::kConcurrency, Ability::kSeveral}},
};

}  // namespace

std::span<const Case> race_cases() {
  return kRaceCases;
}

}  // namespace pawl::conformance
