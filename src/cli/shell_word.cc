#include "cli/shell_word.h"

namespace pawl::cli {

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string out = "'";
  for (const char c : word) c == '\'' ? out.append("'\\''") : out.append(1, c);
  return out + "'";
}

}  // namespace pawl::cli
