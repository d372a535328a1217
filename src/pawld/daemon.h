// Serving: store, engine and loop put together, from an unopened directory to a clean stop.
#pragma once

#include "pawld/options.h"

namespace pawl::pawld {

// Returns the exit code. SIGTERM, SIGINT and SIGHUP are blocked by the caller, before any thread
// exists.
int serve(const Options& options);

// Creates an empty store in options.config.data; one that is there stays as it is. Returns the exit
// code.
int init(const Options& options);

// Prints the store in options.config.data to stdout. Returns the exit code.
int dump(const Options& options);

}  // namespace pawl::pawld
