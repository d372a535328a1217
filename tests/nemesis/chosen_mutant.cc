// Linked into the real programs of the build with planted bugs (base/mutants.h): PAWL_MUTANT in the
// environment chooses one, before main() begins.
#include <cstdio>
#include <cstdlib>

#include "base/mutants.h"

namespace pawl {
namespace {

Mutant by_environment() {
  const char* wanted = std::getenv("PAWL_MUTANT");
  if (wanted == nullptr) return Mutant::none;
  for (const MutantEntry& entry : kMutants) {
    if (entry.name == wanted) return entry.mutant;
  }
  std::fprintf(stderr, "PAWL_MUTANT: there is no planted bug \"%s\"\n", wanted);
  std::exit(64);
}

[[maybe_unused]] const bool chosen = (chosen_mutant = by_environment(), true);

}  // namespace
}  // namespace pawl
