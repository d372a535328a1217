// The drills: what is done to workers, to the network and to pawld, and which stale writes are sent
// then. One row per drill; `pawl drill --help`, the output and the report page all read it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pawl::drill {

class Scenario;

enum class PawldUse : std::uint8_t {
  kAny,        // Works with the user's pawld and does nothing to it.
  kThrowaway,  // Kills, restarts or restores pawld, so it needs its own.
};

struct Drill {
  std::string_view name;
  // What happens, in one line: for the list in --help and the first line of the output.
  std::string_view summary;
  // Why that happens in practice, in sentences: for the report page.
  std::string_view purpose;
  PawldUse pawld = PawldUse::kAny;
  // Carries it out `rounds` times in a scenario without workers. Throws what Scenario throws.
  void (*steps)(Scenario& scenario, std::uint64_t rounds) = nullptr;
};

[[nodiscard]] std::span<const Drill> all_drills();

}  // namespace pawl::drill
