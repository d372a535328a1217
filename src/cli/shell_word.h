// Commands that pawl prints for people to paste.
#pragma once

#include <string>
#include <string_view>

namespace pawl::cli {

// `word` as a shell reads it as one word: unchanged, or in single quotes.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace pawl::cli
