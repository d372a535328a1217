// The environment of CMD, and what a nested `pawl run` reads from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/calls.h"

namespace pawl::cli {

struct RunNames {
  std::vector<std::string> locks;
  std::string owner;
  std::string addresses;
  std::string inherited_locks;  // PAWL_LOCK of our own environment: one per line
};

// `inherited` (NAME=VALUE each) with PAWL_* set behind it, so that the innermost run's token is the
// one that is seen.
[[nodiscard]] std::vector<std::string> command_environment(
    const std::vector<std::string>& inherited, const RunNames& names,
    const client::GrantedLease& granted);

// The first of `locks` that an outer run already holds (hard case 16).
[[nodiscard]] std::optional<std::string> already_held(const std::vector<std::string>& locks,
                                                      const std::string& inherited_locks);

}  // namespace pawl::cli
