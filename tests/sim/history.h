// What clients saw, in true time, and the properties it is checked against (P1–P8 of the hard cases; the ones a run of
// today's parts can break).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/world.h"

namespace pawl::sim {

// One acquire, from its first send to what the client made of it.
struct Attempt {
  int client = 0;
  std::string request;
  std::vector<std::string> locks;
  Mode mode = Mode::kExclusive;
  std::uint32_t limit = 1;
  Moment asked;                    // No later than the first send.
  std::optional<Moment> answered;  // When the client was handed the lease.
  Token token;                     // 0 unless granted.
  // The client acts as holder from `answered` until here: its own deadline, moved by renewals, or the moment it began to
  // release (or died).
  Moment believed_until{};
  // Set when pawld said "lost" while the client's own deadline had not passed.
  std::optional<std::string> lost_early;
};

// Every violated property, as sentences; empty when the history is fine.
[[nodiscard]] std::vector<std::string> check(const std::vector<Attempt>& history);

}  // namespace pawl::sim
