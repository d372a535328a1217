// Where a MariaDB is, as users spell it: `host=127.0.0.1 port=3306 user=app database=shop`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::guard {

struct MariaDsn {
  std::string host = {};
  std::uint16_t port = 0;
  std::string socket = {};
  std::string user = {};
  std::string database = {};
  std::string defaults_file = {};  // an option file for passwords and TLS, instead of ~/.my.cnf
};

// key=value pairs with spaces between; what is left out comes from the option files. A password is
// refused: it would show in the list of processes. An error names the key and never repeats a
// value.
[[nodiscard]] Result<MariaDsn> parse_maria_dsn(std::string_view text);

}  // namespace pawl::guard
