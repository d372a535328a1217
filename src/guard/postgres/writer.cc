#include "guard/postgres/writer.h"

#include <fmt/format.h>

#include <utility>

#include "guard/postgres/connection.h"
#include "guard/sql/states.h"
#include "guard_contract/parse.h"

namespace pawl {
namespace {

using guard::execute_all;
using Isolation = PgWriteOptions::Isolation;

const char* to_sql(Isolation isolation) {
  switch (isolation) {
    case Isolation::kReadCommitted:
      return "READ COMMITTED";
    case Isolation::kRepeatableRead:
      return "REPEATABLE READ";
    case Isolation::kSerializable:
      return "SERIALIZABLE";
  }
  return "SERIALIZABLE";
}

}  // namespace

namespace guard {

Result<Decision> decision_of(const PgRows& rows, std::uint64_t token) {
  const auto text = [&](std::size_t column) { return rows.at(0, column).value_or(""); };
  const std::string verdict = text(0);
  const std::string max = text(1);
  const std::string mode = text(2);
  return to_decision({verdict, max, mode, text(3) != "f"}, token);
}

}  // namespace guard

PgWriter::PgWriter(PGconn* connection, guard::WriteOrder order, const Work& work,
                   Isolation isolation)
    : TransactionWriter(std::move(order)),
      connection_(connection),
      work_(work),
      isolation_(isolation) {}

PgWriter::Failure PgWriter::to_failure(const PgFailure& failure) {
  return {guard::to_error(failure), guard::may_pass_again(failure), failure.disconnected,
          guard::parse_field(failure.detail, "max")};
}

// BEGIN and the check in one message: a guarded transaction has no more round trips than a plain
// one.
std::string PgWriter::begin_sql() const {
  std::string sql = fmt::format("BEGIN ISOLATION LEVEL {};", to_sql(isolation_));
  if (resources().size() > 1) {
    sql += fmt::format("SELECT pawl.use({}::text[], {});",
                       guard::literal(connection_, guard::array_of(resources())), token());
  }
  if (resources().size() == 1 || operation() != 0) {
    sql += fmt::format("SELECT pawl.use({}::text, {}{})",
                       guard::literal(connection_, resources().front()), token(),
                       operation() == 0 ? "" : fmt::format(", {}::bigint", operation()));
  }
  return sql;
}

std::variant<Decision, PgWriter::Failure, Error> PgWriter::begin() {
  const std::uint64_t token = PgWriter::token();
  const auto begun = execute_all(connection_, begin_sql());
  if (!begun) return to_failure(*begun.failure);
  const auto verdict = guard::parse_verdict(PgRows(begun.result).at(0, 0).value_or(""));
  if (verdict == Verdict::kAdmitted || verdict == Verdict::kReplayed)
    return Decision{.verdict = *verdict, .token = token, .max = token};
  // Let through by its mode; the guard has the figures.
  const auto asked = guard::execute(
      connection_, "SELECT verdict, max, mode, would_refuse FROM pawl.check($1::text, $2::bigint)",
      {resources().front(), std::to_string(token)});
  if (!asked) return to_failure(*asked.failure);
  auto decision = guard::decision_of(PgRows(asked.result), token);
  if (!decision) return decision.error();
  decision->let_through = true;
  return *decision;
}

PgWriter::Step PgWriter::work() {
  PgTransaction transaction(connection_);
  const Result<void> worked = work_(transaction);
  if (transaction.failure_) return to_failure(*transaction.failure_);
  if (!worked) return worked.error();
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (status == PQTRANS_INERROR)
    return Error{Code::kInvalid, "a statement that did not go through exec() failed"};
  if (status != PQTRANS_INTRANS)
    return Error{
        Code::kInvalid,
        "the work ended the transaction itself, or broke the connection; whether it is in effect "
        "Pawl cannot say"};
  return {};
}

PgWriter::Step PgWriter::commit() {
  const auto done = execute_all(connection_, "COMMIT");
  if (!done) return to_failure(*done.failure);
  if (std::string_view(PQcmdStatus(done.result.get())) != "COMMIT")
    return Error{Code::kInvalid, "PostgreSQL rolled the transaction back at the commit"};
  return {};
}

void PgWriter::roll_back() {
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR)
    static_cast<void>(execute_all(connection_, "ROLLBACK"));
}

bool PgWriter::connect_again() {
  PQreset(connection_);
  return PQstatus(connection_) == CONNECTION_OK;
}

}  // namespace pawl
