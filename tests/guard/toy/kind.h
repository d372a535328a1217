// The toy guard as a kind, for a `pawl` that only tests link.
#pragma once

#include "guard/kind.h"

namespace pawl::guard {

extern const Kind kToyKind;

}  // namespace pawl::guard
