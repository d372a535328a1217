#include "pawl/guard.h"

#include <array>

namespace pawl {
namespace {

constexpr std::array<std::string_view, 5> kVerdicts{"admitted", "replayed", "stale", "missing",
                                                    "ahead"};
constexpr std::array<std::string_view, 4> kModes{"observe", "shadow", "canary", "enforce"};
constexpr std::array<std::string_view, 2> kStrengths{"fenced", "best effort"};

}  // namespace

Guard::~Guard() = default;

GuardStrength Guard::strength() {
  return {Strength::kBestEffort, "this guard does not say how strong it is"};
}

std::string_view to_text(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

std::string_view to_text(GuardMode mode) {
  return kModes.at(static_cast<std::size_t>(mode));
}

std::string_view to_text(Strength strength) {
  return kStrengths.at(static_cast<std::size_t>(strength));
}

}  // namespace pawl
