// The lease as renew and release take it: from argv, from stdin ("-"), or from PAWL_LEASE.
//
// It is a secret: whoever knows it can end the lease, and every user of the machine can read argv.
// Hence the other two.
#pragma once

#include <string>

#include "base/types.h"
#include "pawl/result.h"

namespace pawl::cli {

inline constexpr const char* kLeaseHelp =
    "as `pawl acquire` printed it; `-` reads it from stdin; left out, PAWL_LEASE has it. "
    "(A lease is a secret, and others on this machine can read command lines.)";

// kInvalid says what was expected.
[[nodiscard]] Result<LeaseId> lease_from(const std::string& argument);

}  // namespace pawl::cli
