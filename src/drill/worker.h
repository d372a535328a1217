// The process behind a WorkerProcess: `pawl drill-worker`. It holds a lock with libpawl and writes
// to the target, as a user's program would. It takes commands on stdin and reports on stdout.
//
// One JSON object per line, in both directions. Times (`at`, `sent`, `answered`) are readings of
// CLOCK_BOOTTIME in nanoseconds.
//
//   {"do":"prepare","name":"A","addresses":…,"user":…,"secret":…,"tls":{…},"target":{…}}
//           {"is":"ready"} | {"is":"failed","detail"}
//   {"do":"acquire","lock":"l","ttl_ms":2000,"wait_ms":60000}
//           {"is":"granted","token"} | {"is":"not_granted","code","detail"}
//   {"do":"release"}
//           {"is":"released"}
//   {"do":"advance","token":34,"wait_ms":5000}
//           {"is":"advanced","answer","detail"}
//   {"do":"write","id":7,"token":34,"value":"v","check_lease":false}
//           {"is":"written","id","sent","answered","answer","let_through","detail"}
//       With check_lease it checks its lease first, and does not write when that is over:
//           {"is":"withheld","id","sent","detail"}
//   {"do":"try_ways","token":34}
//           {"is":"tried","ways":[{"way":"call|carried|none","words","fate","detail"}]} |
//           {"is":"failed","detail"}
//   Unasked, when the lease changes:
//           {"is":"lease","token","state":"held|at_risk|uncertain|lost","reason"}
//
// It ends when its stdin does.
#pragma once

#include <string_view>

namespace pawl::drill {

// The owner of a worker's lease is this, followed by its name.
inline constexpr std::string_view kWorkerOwner = "pawl drill: ";

// Returns the exit code.
int run_worker(int in, int out);

}  // namespace pawl::drill
