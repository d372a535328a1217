#include "pawl/guard.h"

#include <array>

namespace pawl {
namespace {

constexpr std::array<std::string_view, 5> kVerdicts{"admitted", "replayed", "stale", "missing",
                                                    "ahead"};
constexpr std::array<std::string_view, 4> kModes{"observe", "shadow", "canary", "enforce"};

}  // namespace

Guard::~Guard() = default;

std::string_view to_text(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

std::string_view to_text(GuardMode mode) {
  return kModes.at(static_cast<std::size_t>(mode));
}

}  // namespace pawl
