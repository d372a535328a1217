// The drills: what is done to workers, to the network and to pawld, and which stale writes are sent
// then.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pawl::drill {

class Stage;

enum class Whose : std::uint8_t {
  kUsers,      // the user's pawld; nothing is done to it
  kThrowaway,  // one of the drill's own, which is killed, restarted or restored
};

struct Drill {
  std::string_view name;
  std::string_view about;  // what happens, for people
  Whose pawld = Whose::kUsers;
  // Plays it on a stage where nothing has happened yet, so many times over. Throws what the stage
  // throws.
  void (*play)(Stage& stage, std::uint64_t rounds) = nullptr;
};

[[nodiscard]] std::span<const Drill> all_drills();
// nullptr: there is none of this name.
[[nodiscard]] const Drill* find_drill(std::string_view name);

}  // namespace pawl::drill
