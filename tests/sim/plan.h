// What is done to one run, besides its seed: every kind of trouble can be left out, which is how a
// failing run is cut down to what it needs (shrink.cc). The text form is what replays it:
//
//   PAWL_SIM_SEED=17 PAWL_SIM_PLAN=clients=3,storm=4000,without=pause+cut simulation_test
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::sim {

enum class Trouble : std::uint8_t {
  kKill,       // pawld is killed, between operations and in the middle of one
  kPower,      // the power goes, between operations and in the middle of one
  kPause,      // pawld stands still
  kCut,        // the network is cut, and comes back
  kSlow,       // deliveries take long
  kBreaks,     // connections break, half-open or not
  kFreeze,     // clients stand still while they hold
  kDeath,      // clients die while they hold
  kOperator,   // an operator interferes
  kGuardLoss,  // calls to the guard are lost, late, repeated
  kGuardRestart,
  kWildClocks,  // rates beyond ρ, in some runs (hard case 30)
  kBadDisk,     // I/O errors, no space and flipped bits, in some runs
  kSuspend,     // pawld's machine sleeps, and its monotonic clock with it
  kWallClock,   // the wall clock jumps
  kRestore,     // pawld's machine is lost, and its store made anew from a backup, in some runs
};
inline constexpr std::array<std::string_view, 16> kTroubles{
    "kill",    "power",   "pause",     "cut",       "slow",         "breaks",
    "freeze",  "death",   "operator",  "guardloss", "guardrestart", "wildclocks",
    "baddisk", "suspend", "wallclock", "restore"};

struct Plan {
  std::uint64_t seed = 1;
  int clients = 5;
  int plain = 2;      // Clients without libpawl.
  int observers = 2;  // Of elections, and of all events.
  int nodes = 0;      // The pawld that share a store; 0: one, with a journal.
  std::int64_t storm_ms = 20'000;
  std::uint32_t without = 0;  // A bit for each Trouble.
  bool traced = false;

  [[nodiscard]] bool has(Trouble trouble) const {
    return (without >> static_cast<unsigned>(trouble) & 1) == 0;
  }
};

// Without the seed; empty for the usual plan.
[[nodiscard]] std::string to_text(const Plan& plan);
// Nothing when it is no plan.
[[nodiscard]] std::optional<Plan> plan_from_text(std::uint64_t seed, std::string_view text);

}  // namespace pawl::sim
