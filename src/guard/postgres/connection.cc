#include "guard/postgres/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "guard/sql/states.h"

namespace pawl {
namespace guard {
namespace {

constexpr int kServerMin = 150'000;

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

PgOutcome outcome_of(PGconn* connection, PGresult* raw) {
  std::shared_ptr<PGresult> result(raw, PQclear);
  const ExecStatusType status = raw == nullptr ? PGRES_FATAL_ERROR : PQresultStatus(raw);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY)
    return {result, nullptr};
  auto failure = std::make_shared<PgFailure>();
  if (raw != nullptr) {
    failure->state = field(raw, PG_DIAG_SQLSTATE);
    failure->message = field(raw, PG_DIAG_MESSAGE_PRIMARY);
    failure->detail = field(raw, PG_DIAG_MESSAGE_DETAIL);
    failure->hint = field(raw, PG_DIAG_MESSAGE_HINT);
  }
  failure->disconnected = PQstatus(connection) != CONNECTION_OK;
  if (failure->message.empty()) failure->message = trimmed(PQerrorMessage(connection));
  return {nullptr, std::move(failure)};
}

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

PgOutcome execute(PGconn* connection, const std::string& sql,
                  const std::vector<PgValue>& parameters) {
  PAWL_ASSERT(connection != nullptr);
  std::vector<const char*> values;
  values.reserve(parameters.size());
  for (const PgValue& value : parameters) values.push_back(value ? value->c_str() : nullptr);
  return outcome_of(connection,
                    PQexecParams(connection, sql.c_str(), static_cast<int>(values.size()), nullptr,
                                 values.data(), nullptr, nullptr, 0));
}

PgOutcome execute_all(PGconn* connection, const std::string& sql) {
  PAWL_ASSERT(connection != nullptr);
  return outcome_of(connection, PQexec(connection, sql.c_str()));
}

std::string literal(PGconn* connection, std::string_view text) {
  const std::unique_ptr<char, decltype(&PQfreemem)> quoted(
      PQescapeLiteral(connection, text.data(), text.size()), PQfreemem);
  // Fails only on text that is not of the connection's encoding; the server says so of an empty
  // name as well.
  return quoted ? quoted.get() : "''";
}

std::string array_of(const std::vector<std::string>& items) {
  std::string out = "{";
  for (const std::string& item : items) {
    out += out.size() == 1 ? "\"" : ",\"";
    for (const char c : item) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

// --- What a failure means ------------------------------------------------------------------------

namespace {

struct Conclusion {
  std::string_view state;  // a whole SQLSTATE, or the two characters of its class
  Code code;
  std::string_view advice;  // appended for people
};

constexpr std::array kConclusions{
    Conclusion{kStateStale, Code::kStaleToken, ""},
    Conclusion{kStateWaiting, Code::kBusy, ""},
    Conclusion{"42501", Code::kDenied,
               "connect as the role that installed the guard, or let it GRANT what is missing"},
    Conclusion{"25006", Code::kInvalid,
               "the transaction is read-only, or this server is a replica"},
    Conclusion{"3F000", Code::kInvalid, "no guard is installed here: pawl guard install postgres"},
    Conclusion{"42883", Code::kInvalid,
               "no guard of this version is installed here: pawl guard install postgres"},
    Conclusion{"55P03", Code::kUnavailable, ""},  // lock_timeout
    Conclusion{"57", Code::kUnavailable, ""},     // cancelled, shut down, starting
    Conclusion{"53", Code::kUnavailable, ""},     // out of memory, disk, connections
    Conclusion{"08", Code::kUnavailable, ""},     // connection
    Conclusion{"40", Code::kUnavailable, ""},     // serialization, deadlock: again, with patience
};

std::string words(const PgFailure& failure, std::string_view advice) {
  constexpr std::string_view kPrefix = "pawl: ";  // For psql; here the source is clear.
  std::string text = failure.message;
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (!failure.state.empty()) text += " (" + failure.state + ")";
  if (!failure.detail.empty()) text += ": " + failure.detail;
  if (!advice.empty()) text += "; " + std::string(advice);
  if (!failure.hint.empty()) text += ". " + failure.hint;
  return text;
}

}  // namespace

bool may_pass_again(const PgFailure& failure) {
  return failure.state == "40001" || failure.state == "40P01";
}

Error to_error(const PgFailure& failure) {
  if (failure.disconnected || failure.state.empty())
    return {Code::kUnavailable, words(failure, "")};
  for (const Conclusion& known : kConclusions) {
    if (!failure.state.starts_with(known.state)) continue;
    // A guard that refuses a role says itself what to do.
    const bool advised = known.code == Code::kDenied && !failure.hint.empty();
    return {known.code, words(failure, advised ? "" : known.advice)};
  }
  return {Code::kInvalid, words(failure, "")};
}

}  // namespace guard

std::size_t PgRows::size() const {
  return result_ ? static_cast<std::size_t>(PQntuples(result_.get())) : 0;
}

std::size_t PgRows::affected() const {
  const char* text = result_ ? PQcmdTuples(result_.get()) : "";
  return *text == '\0' ? 0 : std::stoul(text);
}

PgValue PgRows::at(std::size_t row, std::size_t column) const {
  if (row >= size() || column >= static_cast<std::size_t>(PQnfields(result_.get())))
    return std::nullopt;
  const int r = static_cast<int>(row);
  const int c = static_cast<int>(column);
  if (PQgetisnull(result_.get(), r, c) != 0) return std::nullopt;
  return std::string(PQgetvalue(result_.get(), r, c),
                     static_cast<std::size_t>(PQgetlength(result_.get(), r, c)));
}

}  // namespace pawl
