// Valid commands, in any order: what a script makes a client say.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "tests/fuzz/peer.h"
#include "tests/fuzz/script.h"

namespace pawl::fuzz {

// What clients have learnt so far, so that later commands can be about it.
struct Known {
  std::vector<LeaseId> leases;
  std::vector<Token> tokens;
  std::vector<std::string> events;  // ids
};

struct Spoken {
  std::vector<std::string> args;
  Sent sent;
};
[[nodiscard]] Spoken speak(Script& script, const Known& known);

}  // namespace pawl::fuzz
