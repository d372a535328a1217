#include "guard/mariadb/connection.h"

#include <fmt/format.h>

namespace pawl::guard {
namespace {

constexpr unsigned long kServerMin = 101'100;
constexpr unsigned kPatience = 10;  // seconds to connect

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

}  // namespace

Result<std::shared_ptr<MYSQL>> connect(const MariaDsn& dsn) {
  const std::shared_ptr<MYSQL> connection(mysql_init(nullptr), mysql_close);
  if (connection == nullptr) return Error{Code::kUnavailable, "out of memory"};
  mysql_optionsv(connection.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_optionsv(connection.get(), MYSQL_OPT_CONNECT_TIMEOUT, &kPatience);
  if (!dsn.defaults_file.empty())
    mysql_optionsv(connection.get(), MYSQL_READ_DEFAULT_FILE, dsn.defaults_file.c_str());
  mysql_optionsv(connection.get(), MYSQL_READ_DEFAULT_GROUP, "client");
  if (mysql_real_connect(connection.get(), or_null(dsn.host), or_null(dsn.user), nullptr,
                         or_null(dsn.database), dsn.port, or_null(dsn.socket),
                         CLIENT_MULTI_RESULTS) == nullptr) {
    return Error{Code::kUnavailable,
                 fmt::format("MariaDB was not reached: {}.", mysql_error(connection.get()))};
  }
  if (mysql_get_server_version(connection.get()) < kServerMin) {
    return Error{Code::kInvalid, fmt::format("MariaDB 10.11 or newer is needed; this is {}",
                                             mysql_get_server_info(connection.get()))};
  }
  return connection;
}

}  // namespace pawl::guard
