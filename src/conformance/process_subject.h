// A guard in any language, behind a process that answers the kit's questions on stdin and stdout.
// The protocol is in docs/reference/conformance.md; tests/conformance/reference_guard.py is a whole
// example.
#pragma once

#include <memory>
#include <string>

#include "conformance/subject.h"

namespace pawl::conformance {

inline constexpr int kProcessProtocol = 1;

// Starts `command` with /bin/sh and asks for its name and abilities.
[[nodiscard]] Result<std::unique_ptr<Subject>> start_process_subject(const std::string& command);

}  // namespace pawl::conformance
