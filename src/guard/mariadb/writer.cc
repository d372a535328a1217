#include "guard/mariadb/writer.h"

#include <fmt/format.h>

#include <utility>

#include "guard/mariadb/advance.h"
#include "guard/mariadb/connection.h"
#include "guard/sql/states.h"
#include "guard_contract/parse.h"

namespace pawl {
namespace {

using guard::MariaFailure;
using guard::MariaOutcome;

constexpr std::chrono::seconds kAdvanceWait{5};  // As pawl.begin() waits.

}  // namespace

namespace guard {

Result<Decision> check(MYSQL* connection, const std::string& resource, std::uint64_t token) {
  const auto asked = call(connection, "check", {resource, std::to_string(token)});
  if (!asked) return to_error(*asked.failure);
  const auto text = [&](const char* column) { return asked.at(0, column).value_or(""); };
  const std::string verdict = text("verdict");
  if (verdict == "unknown")
    return Error{Code::kInvalid, fmt::format("unknown resource '{}'", resource)};
  if (verdict == "malformed") return Error{Code::kInvalid, fmt::format("{} is not a token", token)};
  const std::string max = text("max");
  const std::string mode = text("mode");
  return to_decision({verdict, max, mode, text("would_refuse") != "0"}, token);
}

}  // namespace guard

MariaWriter::MariaWriter(MYSQL* connection, guard::WriteOrder order, const Work& work)
    : TransactionWriter(std::move(order)), connection_(connection), work_(work) {}

MariaWriter::Failure MariaWriter::to_failure(const MariaFailure& failure) {
  return {guard::to_error(failure), guard::may_pass_again(failure), failure.disconnected,
          guard::parse_field(failure.message, "max")};
}

std::variant<Decision, MariaWriter::Failure, Error> MariaWriter::begin() {
  const std::string& resource = resources().front();
  const std::uint64_t token = MariaWriter::token();
  // The common case travels as one message.
  const bool simple = resources().size() == 1 && operation() == 0;
  const MariaOutcome begun =
      simple ? guard::call(connection_, "begin", {resource, std::to_string(token)})
             : begin_and_use();
  if (!begun) return to_failure(*begun.failure);
  const auto verdict = guard::parse_verdict(begun.at(0, "verdict").value_or(""));
  if (!verdict)
    return Error{Code::kInvalid, "the installed guard answered what this libpawl does not know"};
  Decision decision{.verdict = *verdict, .token = token, .max = token};
  if (*verdict <= Verdict::kReplayed) return decision;
  // Let through by its mode; the guard has the figures. (Not inside SERIALIZABLE, where asking
  // would lock.)
  if (auto asked = guard::check(connection_, resource, token)) decision = *asked;
  decision.verdict = *verdict;
  decision.let_through = true;
  return decision;
}

MariaOutcome MariaWriter::begin_and_use() {
  MariaOutcome used = begin_and_use_all();
  if (used || used.failure->state != guard::kStateIsolation) return used;
  // A new token in a REPEATABLE READ transaction: it has to be advanced to before, as pawl.begin()
  // does.
  roll_back();
  for (const std::string& resource : resources()) {
    const auto seconds = std::to_string(kAdvanceWait.count());
    MariaOutcome advanced =
        guard::call(connection_, "advance", {resource, std::to_string(token()), seconds});
    if (!advanced) return advanced;
  }
  return begin_and_use_all();
}

MariaOutcome MariaWriter::begin_and_use_all() {
  const std::string token = std::to_string(MariaWriter::token());
  MariaOutcome last = guard::execute(connection_, "START TRANSACTION");
  if (last && resources().size() > 1)
    last = guard::execute(connection_,
                          fmt::format("CALL pawl.use_all({}, '{}')",
                                      guard::json_array(connection_, resources()), token));
  if (last && operation() != 0)
    last = guard::call(connection_, "use_op",
                       {resources().front(), token, std::to_string(operation())});
  return last;
}

MariaWriter::Step MariaWriter::work() {
  MariaTransaction transaction(connection_);
  const Result<void> worked = work_(transaction);
  if (transaction.failure_) return to_failure(*transaction.failure_);
  if (!worked) return worked.error();
  if (guard::in_transaction(connection_)) return {};
  return Error{Code::kInvalid,
               "the work ended the transaction itself, or broke the connection; whether it is in "
               "effect Pawl "
               "cannot say"};
}

// Forgets the token as well, for the connection may go back to a pool.
MariaWriter::Step MariaWriter::commit() {
  const auto done = guard::call(connection_, "finish", {});
  if (!done) return to_failure(*done.failure);
  return {};
}

void MariaWriter::roll_back() {
  static_cast<void>(guard::call(connection_, "abandon", {}));
}

bool MariaWriter::connect_again() {
  // libmariadb connects again only where that is allowed, which must not be while a transaction is
  // under way.
  const auto allow = [&](my_bool allowed) {
    mysql_optionsv(connection_, MYSQL_OPT_RECONNECT, &allowed);
  };
  allow(1);
  // Refused once while it still believes to be in the lost transaction.
  const bool connected = mariadb_reconnect(connection_) == 0 || mariadb_reconnect(connection_) == 0;
  allow(0);
  return connected;
}

}  // namespace pawl
