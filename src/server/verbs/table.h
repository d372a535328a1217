// The one table of verbs (verb.h), in the order in which lists show them.
//
//   const Verb* verb = find_verb(args[0]);       // any case; nullptr: unknown
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "server/verbs/verb.h"

namespace pawl::server {

[[nodiscard]] std::span<const Verb* const> all_verbs();
// Ignores case; allocates nothing.
[[nodiscard]] const Verb* find_verb(std::string_view name);
// Its position in all_verbs(); all_verbs().size() when there is none.
[[nodiscard]] std::size_t verb_index(std::string_view name);

// What an unknown command is answered; quotes no more than a little of what was sent.
[[nodiscard]] wire::WireError unknown_command(std::span<const std::string_view> args);
// What is wrong with the arguments, without serving the command; `args` begins with the name.
[[nodiscard]] std::optional<wire::WireError> check_arguments(const Verb& verb,
                                                             std::span<const std::string_view> args,
                                                             const ParseContext& context);

// docs/reference/protocol.md, whole.
[[nodiscard]] std::string protocol_page();

}  // namespace pawl::server
