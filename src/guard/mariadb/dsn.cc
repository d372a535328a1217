#include "guard/mariadb/dsn.h"

#include "guard/dsn_pairs.h"

namespace pawl::guard {
namespace {

constexpr DsnText<MariaDsn> kTexts[] = {{"host", &MariaDsn::host},
                                        {"socket", &MariaDsn::socket},
                                        {"user", &MariaDsn::user},
                                        {"database", &MariaDsn::database},
                                        {"defaults_file", &MariaDsn::defaults_file}};

Result<void> set(MariaDsn& dsn, std::string_view key, std::string_view value) {
  if (set_dsn_text(dsn, kTexts, key, value)) return {};
  if (key == "port") {
    const auto port = parse_dsn_port(value);
    if (!port) return port.error();
    dsn.port = *port;
    return {};
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
  const auto done = read_dsn_pairs(
      text, [&](std::string_view key, std::string_view value) { return set(dsn, key, value); });
  if (!done) return done.error();
  return dsn;
}

}  // namespace pawl::guard
