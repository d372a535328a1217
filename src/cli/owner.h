// Who asks, as a label for people: user@host:pid. Proves nothing.
#pragma once

#include <string>

namespace pawl::cli {

// With the pid of who will hold the lease: `pawl acquire` itself is gone at once, so it names its
// parent, the shell or script that called it; `pawl run` stays, and names itself. Cut to what OWNER
// takes.
[[nodiscard]] std::string default_owner(int pid);

}  // namespace pawl::cli
