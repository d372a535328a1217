#include "guard/postgres/connection.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::guard {
namespace {

constexpr int kServerMin = 150'000;

}  // namespace

Result<std::shared_ptr<PGconn>> connect(const std::string& dsn) {
  // expand_dbname: a dsn may stand in place of the name of a database. The application name is for
  // pg_stat_activity.
  const char* const keys[] = {"dbname", "fallback_application_name", nullptr};
  const char* const values[] = {dsn.c_str(), "pawl", nullptr};
  std::shared_ptr<PGconn> connection(PQconnectdbParams(keys, values, 1), PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    std::string why = PQerrorMessage(connection.get());
    while (!why.empty() && why.back() == '\n') why.pop_back();
    std::replace_if(
        why.begin(), why.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');  // One line.
    return Error{Code::kUnavailable, why};
  }
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  if (PQserverVersion(connection.get()) < kServerMin) {
    return Error{Code::kInvalid,
                 fmt::format("PostgreSQL 15 or newer is needed; this is {}",
                             PQparameterStatus(connection.get(), "server_version"))};
  }
  return connection;
}

}  // namespace pawl::guard
