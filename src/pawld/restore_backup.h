// Creates a new store from a backup (design rule 9). `pawld restore` calls it on real files, the
// simulator on simulated ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "store/file.h"

namespace pawl::pawld {

struct RestoreOptions {
  // The directory of the backup.
  std::string from;
  // A token that was issued after the backup was made; new tokens are greater.
  std::uint64_t above = 0;
  // The longest TTL that the configuration file allows.
  Millis wait_at_least{0};
  // Grant at once after the start.
  bool skip_wait = false;
};

struct Restored {
  Incarnation incarnation;
  // Every new token is greater.
  Token last_token;
  // How long nothing is granted after a start.
  Millis wait{0};
  // Leases of the backup that are void now.
  std::uint64_t void_leases = 0;
};

// What a new store has: nothing but the counter, in a new era, and the wait.
struct RestorePlan {
  Restored restored;
  std::uint64_t segment_bytes = 0;  // Of the store that was backed up.
  std::uint64_t sequence = 0;       // Of the batch before the first one.
  std::vector<std::pair<std::string, std::string>> records;
};
// Reads and checks the whole backup. kInvalid: not a valid backup.
[[nodiscard]] Result<RestorePlan> plan_restore(store::Files& files, Random& random,
                                               const RestoreOptions& options);

// Creates a store in `directory`, which is missing or empty. The whole backup is read and checked
// before anything is written. kInvalid: not a valid backup, or the directory is not empty. kBusy: a
// process uses the directory.
[[nodiscard]] Result<Restored> restore_backup(store::Files& files, Random& random,
                                              const RestoreOptions& options,
                                              const std::string& directory);

}  // namespace pawl::pawld
