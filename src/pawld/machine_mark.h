// Detects a data directory that was copied to another machine (hard case 43): the store carries a
// mark of the machine that used it last.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "pawl/result.h"
#include "store/journal/journal.h"

namespace pawl::pawld {

// The machine id in the file `path` (machine-id(5)). Nothing if there is no such file or no id in
// it yet; then the mark is not checked.
[[nodiscard]] std::optional<std::string> machine_id(const std::string& path);

// A mark tells whether this is the same machine and nothing else about it, because machine ids are
// confidential and data directories are copied. "<salt>:<SHA-256 of salt and id>", both in hex.
[[nodiscard]] std::string make_mark(std::string_view id, Random& random);
[[nodiscard]] bool mark_matches(std::string_view mark, std::string_view id);

enum class Adopt : bool { kNo, kYes };
enum class MachineCheck { kSameMachine, kAdopted };
// Compares the mark of a store that is not loaded yet with this machine, and writes a mark if there
// is none (a new store, or one from before marks). kDenied if the store was used on another machine
// and is not to be adopted; nothing is changed then.
[[nodiscard]] Result<MachineCheck> check_machine(store::journal::Journal& journal,
                                                 const std::string& id_path, Adopt adopt,
                                                 Random& random);

}  // namespace pawl::pawld
