// Who asks, as a label for people: user@host:pid. Proves nothing.
#pragma once

#include <string>

namespace pawl::cli {

// The pid is the parent's: `pawl acquire` itself is gone at once, the shell or script that called it holds the lease.
// Cut to what OWNER takes.
[[nodiscard]] std::string default_owner();

}  // namespace pawl::cli
