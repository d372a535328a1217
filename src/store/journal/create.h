// What a directory is before it is opened, and the creation of a store in it: an empty one, or one
// restored from a backup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/file.h"
#include "store/journal/format.h"
#include "store/journal/small_files.h"

namespace pawl::store::journal {

enum class DirectoryKind {
  kEmpty,  // Empty, or left by a creation that did not finish.
  kStore,
  kUnfinishedRestore,  // Left by a restore that did not finish; only another restore may use it.
};
// An error if it is none of these: the directory holds files that Pawl did not write, a backup, or
// a store whose store.meta is lost.
Result<DirectoryKind> classify(Files& files, const std::string& directory);

// What a store holds when it is created.
struct InitialState {
  std::uint64_t sequence = 0;    // Of the batch before the first one.
  std::uint64_t high_water = 0;  // New numbers are greater than this.
  // Sorted by key, each key once.
  std::vector<std::pair<std::string, std::string>> records;
  // kCreatingFile or kRestoringFile: the name of store.meta until the store is complete.
  std::string_view marker = kCreatingFile;
};

// Creates a store in a directory that is locked and that classify() does not call a store. After a
// crash before its last step the directory still has the marker, so classify() does not call it a
// store.
Result<Identity> create_store(Files& files, const std::string& directory, const Identity& identity,
                              const InitialState& initial = {});

// Creates a restored store in `directory`, which is missing, empty, or left by an unfinished
// restore. All or nothing: until the last step the directory counts neither as a store nor as
// empty. kInvalid: the directory holds a store or something else. kBusy: a process uses it.
Result<void> create_restored_store(Files& files, const std::string& directory,
                                   const Identity& identity, InitialState initial);

// The sequence that a restored store starts with: the next multiple of 2^40, which no batch of the
// original store can have reached after the backup. Event ids are made of sequences and must not go
// back either.
[[nodiscard]] std::uint64_t sequence_after(std::uint64_t sequence);

}  // namespace pawl::store::journal
