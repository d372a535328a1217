// Starts the threads of the library, which live in someone else's process.
//
//   if (auto started = start_detached([driver] { driver->run(); }); !started) return started.error();
//
// They handle no signals: a program that reads SIGTERM from a signalfd blocks it in its own threads
// only, and a thread of the library would be killed by it, and the process with it. Signals that
// report a fault of the thread itself (SIGSEGV and the like) stay open.
#pragma once

#include <functional>

#include "pawl/result.h"

namespace pawl::client {

// kUnavailable: the process may not have another thread (a limit of its user or control group).
[[nodiscard]] Result<void> start_detached(std::function<void()> work);

}  // namespace pawl::client
