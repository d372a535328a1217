#include <fmt/format.h>

#include "guard/postgres/connection.h"
#include "guard/postgres/writer.h"
#include "guard_contract/parse.h"

namespace pawl {
namespace {

using guard::execute;

constexpr std::chrono::seconds kAfterEviction{5};  // Ending a transaction takes a moment.

std::uint64_t number_at(const PgRows& rows, std::size_t column) {
  const PgValue text = rows.at(0, column);
  return text ? guard::parse_token(*text).value_or(0) : 0;
}

}  // namespace

PgGuard::PgGuard(pg_conn* connection) : connection_(connection) {}

std::string PgGuard::name() const {
  const char* host = PQhost(connection_);
  return fmt::format("postgres {}:{}/{}", host == nullptr ? "" : host, PQport(connection_),
                     PQdb(connection_));
}

GuardStrength PgGuard::strength() {
  return {Strength::kFenced, {}};
}

Result<void> PgGuard::verify_installation() {
  if (known_) return {};
  const auto asked = execute(connection_, "SELECT pawl.contract(), pawl.version()", {});
  if (!asked) return guard::to_error(*asked.failure);
  const PgRows answer(asked.result);
  if (const auto same = guard::check_contract_version(answer.at(0, 0).value_or(""),
                                                      answer.at(0, 1).value_or("?"));
      !same)
    return same.error();
  known_ = true;
  return {};
}

Result<std::uint64_t> PgGuard::advance(std::string_view resource, std::uint64_t token,
                                       std::chrono::milliseconds wait) {
  if (const auto known = verify_installation(); !known) return known.error();
  auto advanced = advance_once(resource, token, wait);
  if (advanced || !evicts_ || advanced.error().code != Code::kBusy) return advanced;
  const auto evicted = execute(connection_, "SELECT pawl.evict($1::text, $2::bigint)",
                               {std::string(resource), std::to_string(token)});
  if (!evicted) return guard::to_error(*evicted.failure);
  return advance_once(resource, token, kAfterEviction);
}

Result<std::uint64_t> PgGuard::advance_once(std::string_view resource, std::uint64_t token,
                                            std::chrono::milliseconds wait) {
  // Autocommit: the one statement is the whole transaction, and its answer comes after the commit.
  const auto done =
      execute(connection_, "SELECT pawl.advance($1::text, $2::bigint, $3::interval)",
              {std::string(resource), std::to_string(token), fmt::format("{} ms", wait.count())});
  if (done) return number_at(PgRows(done.result), 0);
  // The answer is lost, not the statement: it may be committing.
  if (done.failure->disconnected) return Error{Code::kUnknown, done.failure->message};
  return guard::to_error(*done.failure);
}

Result<Decision> PgGuard::check(std::string_view resource, std::uint64_t token) {
  if (const auto known = verify_installation(); !known) return known.error();
  const auto asked = execute(
      connection_, "SELECT verdict, max, mode, would_refuse FROM pawl.check($1::text, $2::bigint)",
      {std::string(resource), std::to_string(token)});
  if (!asked) return guard::to_error(*asked.failure);
  return guard::decision_of(PgRows(asked.result), token);
}

PgRows PgTransaction::exec(const std::string& sql, const std::vector<PgValue>& parameters) {
  if (failure_) return PgRows(nullptr);
  auto done = execute(connection_, sql, parameters);
  failure_ = std::move(done.failure);
  return PgRows(std::move(done.result));
}

Result<Decision> PgGuard::write_all(const Lease& lease, std::vector<std::string> resources,
                                    const AnyWork& work, const PgWriteOptions& options) {
  if (resources.empty()) return Error{Code::kInvalid, "which resource? Name at least one"};
  if (PQtransactionStatus(connection_) != PQTRANS_IDLE) {
    return Error{Code::kInvalid,
                 "the connection is in a transaction already, or broken; write() begins its own"};
  }
  if (const auto known = verify_installation(); !known) return known.error();
  return PgWriter(connection_,
                  {.held = guard::held_by(lease),
                   .resources = std::move(resources),
                   .operation = options.operation,
                   .limits = {.retries = options.retries}},
                  work, options.isolation)
      .run();
}

}  // namespace pawl
