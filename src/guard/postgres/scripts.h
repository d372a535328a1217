// guards/postgres/pawl.sql, with the parts it includes as one script, and uninstall.sql, embedded in
// the program that installs them.
#pragma once

#include <string>
#include <string_view>

namespace pawl::guard {

// Whole files, for psql: they begin and commit their own transaction.
[[nodiscard]] std::string_view postgres_install_file();
[[nodiscard]] std::string_view postgres_uninstall_file();
// What stands between the lines `BEGIN;` and `COMMIT;`, to be run in a transaction that the caller
// may take back.
[[nodiscard]] std::string transaction_body(std::string_view file);

}  // namespace pawl::guard
