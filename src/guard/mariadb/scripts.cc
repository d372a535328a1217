#include "guard/mariadb/scripts.h"

#include <algorithm>

#include "guard/mariadb/install.h"
#include "guard/mariadb/uninstall.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kDelimiter = "DELIMITER ";
constexpr std::string_view kSpace = " \t\n";

// Without a comment that runs to the end of the line. Our files have none inside quotes.
std::string_view code_of(std::string_view line) {
  line = line.substr(0, line.starts_with("--") ? 0 : line.find(" -- "));
  const std::size_t last = line.find_last_not_of(kSpace);
  return last == line.npos ? "" : line.substr(0, last + 1);
}

}  // namespace

std::string_view maria_install_file() {
  return kMariaInstallFile;
}

std::string_view maria_uninstall_file() {
  return kMariaUninstallFile;
}

std::vector<std::string> statements_of(std::string_view file) {
  std::vector<std::string> statements;
  std::string delimiter = ";";
  std::string statement;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view code = code_of(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (code.starts_with(kDelimiter)) {
      delimiter = code.substr(kDelimiter.size());
    } else if (code.ends_with(delimiter)) {
      statement += code.substr(0, code.size() - delimiter.size());
      statements.push_back(std::move(statement));
      statement.clear();
    } else if (!code.empty()) {
      statement += code;
      statement += '\n';
    }
  }
  return statements;
}

}  // namespace pawl::guard
