#include "guard/mariadb/statement.h"

#include <errmsg.h>

namespace pawl::guard {
namespace {

MariaFailure failure_of(MYSQL* connection) {
  MariaFailure failure{mysql_errno(connection), mysql_sqlstate(connection), mysql_error(connection), false};
  failure.disconnected = failure.number == CR_SERVER_GONE_ERROR || failure.number == CR_SERVER_LOST;
  return failure;
}

void read(MYSQL_RES* result, MariaOutcome& outcome) {
  const unsigned columns = mysql_num_fields(result);
  const MYSQL_FIELD* fields = mysql_fetch_fields(result);
  for (unsigned i = 0; i < columns; ++i) outcome.columns.emplace_back(fields[i].name);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    auto& values = outcome.rows.emplace_back();
    for (unsigned i = 0; i < columns; ++i)
      values.push_back(row[i] == nullptr ? MariaValue{} : MariaValue(std::string(row[i], lengths[i])));
  }
}

}  // namespace

MariaValue MariaOutcome::at(std::size_t row, std::string_view column) const {
  if (row >= rows.size()) return std::nullopt;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] == column) return rows[row][i];
  return std::nullopt;
}

MariaOutcome execute(MYSQL* connection, const std::string& sql) {
  MariaOutcome outcome;
  // Not sent is -1 as well, which of the next call only means that there is no other result.
  int more = mysql_real_query(connection, sql.data(), sql.size()) == 0 ? 0 : 1;
  while (more == 0) {
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(mysql_store_result(connection),
                                                                          mysql_free_result);
    if (result == nullptr && mysql_errno(connection) != 0) break;
    if (result != nullptr && outcome.columns.empty()) read(result.get(), outcome);
    more = mysql_next_result(connection);  // -1: that was the last one
  }
  if (more >= 0) outcome.failure = failure_of(connection);
  return outcome;
}

MariaOutcome call(MYSQL* connection, std::string_view procedure, const std::vector<MariaValue>& values) {
  std::string sql = "CALL pawl." + std::string(procedure) + "(";
  for (std::size_t i = 0; i < values.size(); ++i)
    sql += (i == 0 ? "" : ", ") + literal(connection, values[i]);
  return execute(connection, sql + ")");
}

std::string literal(MYSQL* connection, const MariaValue& value) {
  if (!value) return "NULL";
  std::string quoted(2 * value->size() + 1, '\0');
  quoted.resize(mysql_real_escape_string(connection, quoted.data(), value->data(), value->size()));
  return "'" + quoted + "'";
}

}  // namespace pawl::guard
