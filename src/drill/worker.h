// The process behind an Actor: `pawl drill-worker`. It holds a lock with libpawl and writes to the
// target, as any program of a user's would, and does what it is told on its stdin; on its stdout it
// tells what it got and what it believes.
//
// One JSON object a line, both ways. Moments (`at`, `sent`, `answered`) are readings of
// CLOCK_BOOTTIME in nanoseconds.
//
//   {"do":"prepare","name":"A","addresses":…,"user":…,"secret":…,"tls":{…},"target":{…}}   {"is":"ready"} | {"is":"failed","detail"}
//   {"do":"acquire","lock":"l","ttl_ms":2000,"wait_ms":60000}     {"is":"granted","token"} | {"is":"not_granted","code","detail"}
//   {"do":"release"}                                              {"is":"released"}
//   {"do":"advance","token":34,"wait_ms":5000}                    {"is":"advanced","answer","detail"}
//   {"do":"write","id":7,"token":34,"value":"v","asks":false}     {"is":"written","id","sent","answered","answer","let_through","detail"}
//       asks: it asks its lease first, and does not write when that is over: {"is":"withheld","id","sent","detail"}.
//       Otherwise it is the write of a program that had asked before, and was held up in between.
//   by itself, whenever the lease changes                         {"is":"lease","token","state":"held|at_risk|uncertain|lost","reason"}
//
// It ends when its stdin does.
#pragma once

#include <string_view>

namespace pawl::drill {

// How the owner of every lease of a worker begins; its name follows.
inline constexpr std::string_view kWorkerOwner = "pawl drill: ";

// The exit code.
int work(int in, int out);

}  // namespace pawl::drill
