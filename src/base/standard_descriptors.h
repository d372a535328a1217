// Makes sure that descriptors 0 to 2 are open.
//
// With one of them closed (`pawl acquire x >&-`), the next socket or file would get its number, and
// what is meant for a person would be written into it: into the connection to pawld, or the journal.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace pawl {

// Call it first in main(). What reads from a closed stdin sees its end; what is written to a closed
// stdout fails with EBADF, as it would without this; what is written to a closed stderr is dropped.
inline void open_standard_descriptors() {
  const auto open_if_closed = [](int wanted, int flags) {
    if (fcntl(wanted, F_GETFD) != -1) return;
    // The lowest free number, so it is `wanted`: the lower ones are open by now.
    static_cast<void>(open("/dev/null", flags));
  };
  open_if_closed(STDIN_FILENO, O_RDONLY);
  open_if_closed(STDOUT_FILENO, O_RDONLY);
  open_if_closed(STDERR_FILENO, O_WRONLY);
}

}  // namespace pawl
