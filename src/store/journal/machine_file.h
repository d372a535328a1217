// The machine that a store was used on last. A data directory that was copied to another one, and
// goes on there while the original goes on here, issues tokens twice (hard case 43); whoever opens
// it can ask.
#pragma once

#include <optional>
#include <string>

#include "store/file.h"

namespace pawl::store::journal {

// What write_machine() was told; nothing in a store that never was.
Result<std::optional<std::string>> read_machine(Files& files, const std::string& directory);
// `machine` is any text that tells machines apart, and reveals nothing: it goes wherever the
// directory goes.
Result<void> write_machine(Files& files, const std::string& directory, const std::string& machine);

}  // namespace pawl::store::journal
