// Asks pawld and the guard for the facts that drill_fence.h judges: before a drill begins, and
// before each advance.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cli/console.h"
#include "cli/drill_fence.h"
#include "guard/administration.h"

namespace pawl::cli {

class FenceWatch {
 public:
  FenceWatch(Console& console, std::unique_ptr<guard::Administration> guard, std::string resource,
             std::string lock);

  // Call it before the drill begins.
  Result<FenceFinding> examine();
  // The fence at that time; nothing: no token has been used yet.
  [[nodiscard]] std::optional<std::uint64_t> fence() const { return facts_.fence; }
  // The user was told what is unknown, and wants to continue.
  void accept() { accepted_ = true; }

  // An error: a worker must not advance the fence to `token`, which it has just been granted. A
  // lease that is granted later has a greater token, which the advance cannot shut out; one that
  // was granted before is live by now, and is found here.
  std::optional<Error> before_advance(std::uint64_t token);

 private:
  Result<void> read_live();
  Result<void> read_past();
  // Looks for the token of the first fence in the histories of locks that are held by others.
  Result<void> find_other_lock();

  Console& console_;
  const std::unique_ptr<guard::Administration> guard_;
  FenceFacts facts_;  // `fence`: as it was before the drill
  FenceUse use_ = FenceUse::kUnproven;
  bool accepted_ = false;
  std::set<std::uint64_t> harmless_;  // fences that need no further look
  std::set<std::string> examined_;    // locks whose history does not have the token
};

}  // namespace pawl::cli
