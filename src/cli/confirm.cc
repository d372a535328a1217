#include "cli/confirm.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>

namespace pawl::cli {

Result<bool> confirm(Console& console, std::string_view warning, std::string_view question) {
  if (!console.interactive()) {
    std::string line(warning);
    std::replace(line.begin(), line.end(), '\n', ' ');  // An error is one line.
    return Error{Code::kInvalid,
                 fmt::format("without a terminal to ask on this needs --yes: {}", line)};
  }
  console.note(warning);
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace pawl::cli
