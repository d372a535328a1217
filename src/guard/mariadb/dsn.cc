#include "guard/mariadb/dsn.h"

#include <algorithm>
#include <charconv>

namespace pawl::guard {
namespace {

Result<void> set(MariaDsn& dsn, std::string_view key, std::string_view value) {
  if (key == "port") {
    const auto read = std::from_chars(value.data(), value.data() + value.size(), dsn.port);
    if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || dsn.port == 0)
      return Error{Code::kInvalid, "port is a number from 1 to 65535"};
    return {};
  }
  struct Known {
    std::string_view key;
    std::string MariaDsn::*field;
  };
  static constexpr Known kKnown[] = {{"host", &MariaDsn::host},
                                     {"socket", &MariaDsn::socket},
                                     {"user", &MariaDsn::user},
                                     {"database", &MariaDsn::database},
                                     {"defaults_file", &MariaDsn::defaults_file}};
  for (const Known& known : kKnown) {
    if (key == known.key) {
      dsn.*known.field = value;
      return {};
    }
  }
  if (key == "password")
    return Error{Code::kInvalid,
                 "a password belongs into ~/.my.cnf or a defaults_file, not into the DSN"};
  return Error{
      Code::kInvalid,
      "a DSN for MariaDB has host, port, socket, user, database and defaults_file, such as "
      "host=127.0.0.1 user=app database=shop"};
}

}  // namespace

Result<MariaDsn> parse_maria_dsn(std::string_view text) {
  MariaDsn dsn;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view value = equals == pair.npos ? "" : pair.substr(equals + 1);
    if (const auto done = set(dsn, pair.substr(0, equals), value); !done) return done.error();
  }
  return dsn;
}

}  // namespace pawl::guard
