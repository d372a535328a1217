#include "guard/mariadb/connection.h"

#include <errmsg.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "base/assert.h"
#include "guard/sql/states.h"

namespace pawl::guard {
namespace {

constexpr unsigned long kServerMin = 101'100;
constexpr unsigned kConnectSeconds = 10;

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

constexpr unsigned kWrongArguments = 1210;
constexpr unsigned kSignalled = 1644;
constexpr unsigned kKilled = 1927;  // KILL: the server says so, and hangs up.

MariaFailure failure_of(unsigned number, const char* state, const char* message) {
  return {number, state, message,
          number == CR_SERVER_GONE_ERROR || number == CR_SERVER_LOST || number == kKilled};
}

MariaFailure failure_of(MYSQL* connection) {
  return failure_of(mysql_errno(connection), mysql_sqlstate(connection), mysql_error(connection));
}

MariaFailure failure_of(MYSQL_STMT* statement) {
  return failure_of(mysql_stmt_errno(statement), mysql_stmt_sqlstate(statement),
                    mysql_stmt_error(statement));
}

using ResultSet = std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)>;
using Statement = std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)>;

void read_columns(MYSQL_RES* result, MariaOutcome& outcome) {
  const MYSQL_FIELD* fields = mysql_fetch_fields(result);
  for (unsigned i = 0; i < mysql_num_fields(result); ++i)
    outcome.columns.emplace_back(fields[i].name);
}

void read(MYSQL_RES* result, MariaOutcome& outcome) {
  read_columns(result, outcome);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    auto& values = outcome.rows.emplace_back();
    for (std::size_t i = 0; i < outcome.columns.size(); ++i)
      values.push_back(row[i] == nullptr ? MariaValue{}
                                         : MariaValue(std::string(row[i], lengths[i])));
  }
}

// All results of a query. `more`: 0 when there is one, -1 when there is none any more, else it has
// failed.
MariaOutcome read_all(MYSQL* connection, int more) {
  MariaOutcome outcome;
  for (bool first = true; more == 0; first = false) {
    const ResultSet result(mysql_store_result(connection), mysql_free_result);
    if (result == nullptr && mysql_errno(connection) != 0) break;
    if (first) outcome.affected = mysql_affected_rows(connection);
    if (result != nullptr && outcome.columns.empty()) read(result.get(), outcome);
    more = mysql_next_result(connection);
  }
  if (more >= 0) outcome.failure = failure_of(connection);
  return outcome;
}

// Buffers that a prepared statement's values are written to and read from.
class Buffers {
 public:
  explicit Buffers(const std::vector<MariaValue>& values) : Buffers(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      texts_[i] = values[i].value_or("");
      lengths_[i] = texts_[i].size();
      nulls_[i] = static_cast<my_bool>(!values[i]);
      bind(i);
    }
  }
  // As wide as the widest value of each column.
  explicit Buffers(MYSQL_RES* result) : Buffers(std::size_t{mysql_num_fields(result)}) {
    const MYSQL_FIELD* fields = mysql_fetch_fields(result);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      texts_[i].resize(fields[i].max_length);
      bind(i);
    }
  }

  [[nodiscard]] MYSQL_BIND* raw() { return binds_.data(); }
  [[nodiscard]] std::vector<MariaValue> values() const {
    std::vector<MariaValue> values;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      values.push_back(nulls_[i] ? MariaValue{} : MariaValue(texts_[i].substr(0, lengths_[i])));
    return values;
  }

 private:
  explicit Buffers(std::size_t count)
      : texts_(count), lengths_(count), nulls_(count), binds_(count) {}

  void bind(std::size_t i) {
    binds_[i].buffer_type = MYSQL_TYPE_STRING;
    binds_[i].buffer = texts_[i].data();
    binds_[i].buffer_length = texts_[i].size();
    binds_[i].length = &lengths_[i];
    binds_[i].is_null = &nulls_[i];
  }

  std::vector<std::string> texts_;
  std::vector<unsigned long> lengths_;
  std::vector<my_bool> nulls_;
  std::vector<MYSQL_BIND> binds_;
};

// The first result; false: it failed.
bool read(MYSQL_STMT* statement, MariaOutcome& outcome) {
  const my_bool measure = 1;
  mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &measure);
  if (mysql_stmt_store_result(statement) != 0) return false;
  outcome.affected = mysql_stmt_affected_rows(statement);
  const ResultSet columns(mysql_stmt_result_metadata(statement), mysql_free_result);
  if (columns == nullptr) return true;
  read_columns(columns.get(), outcome);
  Buffers buffers(columns.get());
  if (mysql_stmt_bind_result(statement, buffers.raw()) != 0) return false;
  int fetched = 0;
  while ((fetched = mysql_stmt_fetch(statement)) == 0) outcome.rows.push_back(buffers.values());
  return fetched == MYSQL_NO_DATA;
}

}  // namespace

Result<std::shared_ptr<MYSQL>> connect(const MariaDsn& dsn) {
  const std::shared_ptr<MYSQL> connection(mysql_init(nullptr), mysql_close);
  if (connection == nullptr) return Error{Code::kUnavailable, "out of memory"};
  mysql_optionsv(connection.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_optionsv(connection.get(), MYSQL_OPT_CONNECT_TIMEOUT, &kConnectSeconds);
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

MariaValue MariaOutcome::at(std::size_t row, std::string_view column) const {
  if (row >= rows.size()) return std::nullopt;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] == column) return rows[row][i];
  return std::nullopt;
}

namespace {

MariaOutcome run(MYSQL* connection, std::string_view sql) {
  PAWL_ASSERT(connection != nullptr);
  // Not sent is -1 as well, which of the next call only means that there is no other result.
  return read_all(connection, mysql_real_query(connection, sql.data(), sql.size()) == 0 ? 0 : 1);
}

// A refusal that comes after the row was written ends its statement like an interruption, and
// leaves the verdict in variables (pawl._refuse in guards/mariadb).
MariaOutcome with_verdict(MYSQL* connection, MariaOutcome outcome) {
  constexpr unsigned kInterrupted = 1317;
  if (outcome || outcome.failure->number != kInterrupted) return outcome;
  const MariaOutcome left = run(connection,
                                "SELECT @pawl_refusal_state AS state, @pawl_refusal AS words, "
                                "@pawl_refusal := NULL");
  if (const MariaValue words = left.at(0, "words"); words)
    outcome.failure =
        failure_of(kSignalled, left.at(0, "state").value_or("").c_str(), words->c_str());
  return outcome;
}

}  // namespace

MariaOutcome execute(MYSQL* connection, const std::string& sql) {
  return with_verdict(connection, run(connection, sql));
}

std::optional<MariaFailure> send(MYSQL* connection, const std::string& sql) {
  if (mysql_send_query(connection, sql.data(), sql.size()) == 0) return std::nullopt;
  return failure_of(connection);
}

MariaOutcome receive(MYSQL* connection) {
  return read_all(connection, mysql_read_query_result(connection) ? 1 : 0);
}

MariaOutcome execute(MYSQL* connection, const std::string& sql,
                     const std::vector<MariaValue>& parameters) {
  if (parameters.empty()) return execute(connection, sql);
  MariaOutcome outcome;
  const Statement statement(mysql_stmt_init(connection), mysql_stmt_close);
  if (statement == nullptr || mysql_stmt_prepare(statement.get(), sql.data(), sql.size()) != 0) {
    outcome.failure = statement == nullptr ? failure_of(connection) : failure_of(statement.get());
    return outcome;
  }
  if (const auto wanted = mysql_stmt_param_count(statement.get()); wanted != parameters.size()) {
    outcome.failure = failure_of(kWrongArguments, "07001",
                                 ("the statement has " + std::to_string(wanted) +
                                  " parameters, and was given " + std::to_string(parameters.size()))
                                     .c_str());
    return outcome;
  }
  Buffers buffers(parameters);
  bool good = mysql_stmt_bind_param(statement.get(), buffers.raw()) == 0 &&
              mysql_stmt_execute(statement.get()) == 0 && read(statement.get(), outcome);
  int more = 0;
  while (good && (more = mysql_stmt_next_result(statement.get())) == 0)
    mysql_stmt_free_result(statement.get());
  if (!good || more > 0) outcome.failure = failure_of(statement.get());
  return with_verdict(connection, std::move(outcome));
}

MariaOutcome call(MYSQL* connection, std::string_view procedure,
                  const std::vector<MariaValue>& values) {
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

std::string json_array(MYSQL* connection, const std::vector<std::string>& items) {
  std::string array;
  for (const std::string& item : items)
    array += (array.empty() ? "" : ", ") + literal(connection, item);
  return "JSON_ARRAY(" + array + ")";
}

bool in_transaction(MYSQL* connection) {
  unsigned status = 0;
  mariadb_get_infov(connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
  return (status & SERVER_STATUS_IN_TRANS) != 0;
}

// --- What a failure means ------------------------------------------------------------------------

namespace {

struct Conclusion {
  unsigned number;         // MariaDB's; 0: look at the state
  std::string_view state;  // a whole SQLSTATE, or how it begins
  Code code;
  std::string_view advice;  // appended for people
};

constexpr std::array kConclusions{
    Conclusion{0, kStateStale, Code::kStaleToken, ""},
    Conclusion{0, kStateWaiting, Code::kBusy, ""},
    Conclusion{1205, "", Code::kUnavailable,
               "another transaction holds the row; try again"},  // lock wait timeout
    Conclusion{0, "40", Code::kUnavailable, "try again"},        // deadlock, old snapshot
    Conclusion{1020, "", Code::kUnavailable, "try again"},       // innodb_snapshot_isolation
    Conclusion{1044, "", Code::kDenied, ""},                     // database
    Conclusion{1142, "", Code::kDenied, ""},                     // table
    Conclusion{1227, "", Code::kDenied, ""},                     // server-wide
    Conclusion{1370, "", Code::kDenied,                          // routine
               "an administrator lets an account use tokens with CALL pawl.add_writer('app@%')"},
    Conclusion{1290, "", Code::kInvalid, "this server is read-only: ask the primary"},
    Conclusion{1305, "", Code::kInvalid,
               "no guard of this version is installed here: pawl guard install mariadb"},
    Conclusion{1040, "", Code::kUnavailable, ""},  // too many connections
    Conclusion{1053, "", Code::kUnavailable, ""},  // shutting down
    Conclusion{1317, "", Code::kUnavailable, ""},  // interrupted
    Conclusion{1969, "", Code::kUnavailable, ""},  // max_statement_time
};

std::string words(const MariaFailure& failure, std::string_view advice) {
  constexpr std::string_view kPrefix =
      "pawl: ";  // For the mariadb client; here the source is clear.
  std::string text = failure.message;
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (!failure.state.empty()) text += " (" + failure.state + ")";
  if (!advice.empty()) text += "; " + std::string(advice);
  return text;
}

}  // namespace

bool may_pass_again(const MariaFailure& failure) {
  return failure.state == "40001" || failure.number == 1020;
}

Error to_error(const MariaFailure& failure) {
  if (failure.disconnected || failure.number >= 2000)
    return {Code::kUnavailable, words(failure, "")};
  for (const Conclusion& known : kConclusions) {
    const bool same =
        known.number != 0 ? failure.number == known.number : failure.state.starts_with(known.state);
    if (same) return {known.code, words(failure, known.advice)};
  }
  return {Code::kInvalid, words(failure, "")};
}

}  // namespace pawl::guard
