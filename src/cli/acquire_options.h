// What `pawl acquire`, `pawl run` and `pawl elect` have in common: which locks, how, and for how
// long to wait.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lease_terms.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "client/calls.h"

namespace pawl::cli {

struct AcquireOptions {
  static constexpr std::uint64_t kExclusive = ~std::uint64_t{0};  // --limit was not given
  static constexpr Millis kPatient{-1};                           // neither -n nor -w

  std::string lock;
  std::vector<std::string> more;
  LeaseTerms terms;  // Its mode and limit are set by to_call().
  Millis wait = kPatient;
  bool no_wait = false;
  bool shared = false;
  std::uint64_t limit = kExclusive;
  std::string owner;
  std::vector<std::string> meta;
  std::uint64_t not_acquired = kExitNotAcquired;

  void declare(Verb& verb);
  // Those that make sense for one exclusive lock, whatever it is called.
  void declare_lease(Verb& verb);
  // How long to wait; nothing = until it is obtained.
  [[nodiscard]] std::optional<Millis> patience() const;
};

// kInvalid says which option is wrong. The wait is left to the caller.
[[nodiscard]] Result<client::AcquireCall> to_call(const AcquireOptions& options,
                                                  const std::string& default_owner);

// A label for people: user@host:pid, cut to the limit of OWNER. `pid` is of the process that holds
// the lease: `pawl run` itself, but for `pawl acquire`, which exits at once, its parent.
[[nodiscard]] std::string default_owner(int pid);

}  // namespace pawl::cli
