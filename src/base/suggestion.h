// "Did you mean …?" for a mistyped word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl {

// The word that `typed` was most likely meant to be: at most two letters were left out, added,
// changed or swapped with the next, and more are right than wrong. nullopt: none is near.
[[nodiscard]] std::optional<std::string> closest_word(std::string_view typed,
                                                      const std::vector<std::string>& words);

}  // namespace pawl
