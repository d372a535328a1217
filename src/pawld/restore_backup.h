// A new store from a backup (design rule 9): what `pawld restore` does, on any files. The simulator
// does the same.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "base/types.h"
#include "store/file.h"

namespace pawl::pawld {

struct RestoreOptions {
  std::string from;
  std::uint64_t above = 0;  // a token that was issued, and that the backup may not know of
  Millis wait_at_least{0};  // the longest TTL that a configuration file names
  bool skip_wait = false;
};

struct Restored {
  Incarnation incarnation;
  Token last_token;  // every new one is greater
  Millis wait{0};    // how long nothing is granted after a start
  std::uint64_t void_leases = 0;
};

// Makes a store in `directory`, which is missing or empty. The backup is read and understood before
// anything is written. kInvalid: no valid backup, or the directory is not free; kBusy: a process
// uses it.
[[nodiscard]] Result<Restored> make_from_backup(store::Files& files, Random& random,
                                                const RestoreOptions& asked,
                                                const std::string& directory);

}  // namespace pawl::pawld
