// The same closed loops as driver.h, from as many threads as there are loops: what an ordinary
// program with a pool of workers does. Either each has a blocking connection of its own, or all
// share one pawl::Client.
#pragma once

#include "bench/driver.h"

namespace pawl::bench {

// By::kThreads or By::kClient; Peer::kPawl and Workload::kCycle only. Throws as drive() does.
Measured drive_threads(const Plan& plan);

}  // namespace pawl::bench
