// Making a store from what someone kept: offline, and only where no store is.
#pragma once

#include <string>

#include "store/file.h"
#include "store/journal/identity.h"
#include "store/journal/recovery.h"

namespace pawl::store::journal {

// A sequence that no batch of the former life of a store can have reached: the next multiple of
// 2^40. Event ids are made of sequences, and must not go back either.
[[nodiscard]] std::uint64_t sequence_after(std::uint64_t sequence);

// Creates a store in `directory`, which is missing, empty, or what an unfinished restore left. All
// or nothing: until the last step nobody takes the directory for a store, nor for an empty one.
// kInvalid: there is a store already, or something else; kBusy: a process uses it.
Result<void> make_store(Files& files, const std::string& directory, const Identity& identity,
                        Beginning beginning);

}  // namespace pawl::store::journal
