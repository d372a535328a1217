// The SQL below guards/mariadb/, its parts as one file, carried along by the program that installs
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl::guard {

// Whole files, for the mariadb client.
[[nodiscard]] std::string_view maria_install_file();
[[nodiscard]] std::string_view maria_uninstall_file();
// The statements of such a file, as that client would send them: DELIMITER is its own word, which
// no server knows. For our files: a statement ends at a delimiter that ends a line, or stands
// before a comment on it.
[[nodiscard]] std::vector<std::string> statements_of(std::string_view file);

}  // namespace pawl::guard
