// The checker's conscience: decides by brute force whether a small history can have happened. Every
// order of its calls is tried against a sequential lock service in which a lease may run out at any
// time after its clock allows it. Slow, and written without a thought for the fast checker, which
// must agree with it.
//
// Exclusive locks; acquires, renewals, releases and sightings. At most about ten calls.
#pragma once

#include "sim/history.h"

namespace pawl::sim {

[[nodiscard]] bool can_have_happened(const History& history);

}  // namespace pawl::sim
