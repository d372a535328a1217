// Which machine this is, so that a data directory that was copied to another one is noticed (hard
// case 43).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "pawl/result.h"
#include "store/journal/journal.h"

namespace pawl::pawld {

// What the file says; nothing where there is none, or nothing in it yet: then nothing is checked.
[[nodiscard]] std::optional<std::string> machine_id(const std::string& path);

// A mark that tells whether this is the same machine and nothing else about it, since machine ids
// are confidential (machine-id(5)) and data directories travel: "<salt>:<SHA-256 of salt and id>",
// both in hex.
[[nodiscard]] std::string mark_of(std::string_view id, Random& random);
[[nodiscard]] bool is_mark_of(std::string_view mark, std::string_view id);

enum class Adopt : bool { kNo, kYes };
enum class Settled { kKnown, kAdopted };
// Compares the mark in a store, before it is loaded, with this machine, and leaves one where there
// is none (a new store, or one from before marks). kInvalid when it was used on another machine and
// is not to be adopted; nothing is changed then.
[[nodiscard]] Result<Settled> settle_machine(store::journal::Journal& journal,
                                             const std::string& id_path, Adopt adopt,
                                             Random& random);

}  // namespace pawl::pawld
