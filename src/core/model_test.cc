// The core against the naive model: random inputs in every mode, in virtual time, with durability
// that lags and restarts that lose what was not durable. Hard cases 4-7, 9, 10, 12, 18, 23, 24, 28.
//
// PAWL_MODEL_SEED=n runs that seed alone; PAWL_MODEL_SEEDS=n runs that many.
#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/testlib/model_duel.h"

namespace pawl::core {
namespace {

// What is asked, how often.
constexpr std::pair<Op, int> kMix[] = {
    {Op::kAcquire, 30}, {Op::kRetry, 10}, {Op::kRenew, 10},        {Op::kRelease, 12},
    {Op::kCancel, 3},   {Op::kBreak, 4},  {Op::kCancelRequest, 2}, {Op::kRaise, 1},
    {Op::kPass, 4},     {Op::kTick, 14},  {Op::kCommit, 12},       {Op::kDurable, 12},
    {Op::kRestart, 1},
};

Op op_for(std::uint32_t number) {
  int total = 0;
  for (const auto& [op, weight] : kMix) total += weight;
  int left = static_cast<int>(number % static_cast<std::uint32_t>(total));
  for (const auto& [op, weight] : kMix) {
    if (left < weight) return op;
    left -= weight;
  }
  return Op::kTick;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void run_seed(std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  const auto number = [&] { return static_cast<std::uint32_t>(random()); };
  Duel duel(seed % 3 == 0 ? Duel::Grain::kNanosecond : Duel::Grain::kMillisecond);
  for (int i = 0; i < steps; ++i) {
    ASSERT_TRUE(duel.step(Command{op_for(number()), number(), number(), number()}))
        << "PAWL_MODEL_SEED=" << seed << " step " << i << "\n"
        << duel.report();
  }
}

TEST(CoreModel, TheCoreAgreesWithTheNaiveModelOnLongRandomRuns) {
  constexpr int kSteps = 600;
  const std::uint64_t only = from_environment("PAWL_MODEL_SEED", 0);
  if (only != 0) return run_seed(only, kSteps);
  const std::uint64_t seeds = from_environment("PAWL_MODEL_SEEDS", 150);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFatalFailure(); ++seed) run_seed(seed, kSteps);
}

}  // namespace

void showValue(const Command& command, std::ostream& out) {
  out << "{op " << static_cast<int>(command.op) << ", " << command.a << ", " << command.b << ", "
      << command.c << "}";
}

}  // namespace pawl::core

template <>
struct rc::Arbitrary<pawl::core::Command> {
  static Gen<pawl::core::Command> arbitrary() {
    using pawl::core::Command;
    // Small numbers do: they choose among few things. And they are short to read when a failure is
    // shrunk to them.
    const auto number = gen::inRange<std::uint32_t>(0, 4096);
    return gen::build<Command>(
        gen::set(&Command::op, gen::map(gen::inRange<std::uint32_t>(0, 4096), pawl::core::op_for)),
        gen::set(&Command::a, number), gen::set(&Command::b, number),
        gen::set(&Command::c, number));
  }
};

namespace pawl::core {
namespace {

// Short runs, which rapidcheck shrinks to the few steps that matter.
TEST(CoreModel, TheCoreAgreesWithTheNaiveModelOnShortSequences) {
  const bool holds = rc::check("core and model agree", [] {
    const auto commands = *rc::gen::resize(400, rc::gen::arbitrary<std::vector<Command>>());
    Duel duel(Duel::Grain::kMillisecond);
    for (const Command& command : commands) {
      if (!duel.step(command)) RC_FAIL(duel.report());
    }
  });
  EXPECT_TRUE(holds) << "see above";
}

}  // namespace
}  // namespace pawl::core
