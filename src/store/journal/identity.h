// Which store this is: written once, when the store is created, and never changed.
#pragma once

#include "base/types.h"
#include "store/file.h"

namespace pawl::store::journal {

struct Identity {
  Incarnation incarnation;          // Random; a restored store gets a new one.
  std::uint64_t segment_bytes = 0;  // Of every segment but those made for one oversized batch.
};

// `name` is kIdentityFile, or, while the rest of the store is being made, kCreatingFile or
// kRestoringFile.
Result<void> write_identity(Files& files, const std::string& directory, std::string_view name,
                            const Identity& identity);
Result<Identity> read_identity(Files& files, const std::string& directory);

// What a directory is before it is opened.
enum class Directory {
  kEmpty,  // Nothing is in it, or what a creation that did not finish left behind.
  kStore,  // A store.
  // What a restore that did not finish left behind. Only another restore may use it.
  kUnfinishedRestore,
};
// An error when it is none of these: then it holds what Pawl did not write, a backup, or a store
// that lost its identity.
Result<Directory> classify(Files& files, const std::string& directory);

}  // namespace pawl::store::journal
