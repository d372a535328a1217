#include "guard/postgres/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "guard/postgres/failures.h"
#include "guard/words.h"

namespace pawl {
namespace {

using guard::execute_all;
using Isolation = PgWriteOptions::Isolation;

constexpr std::chrono::milliseconds kPauseMax{100};
constexpr std::chrono::milliseconds kReconnectPause{50};

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

// Fixed order: two writers that name the same resources cannot wait for each other.
std::vector<std::string> in_order(std::vector<std::string> resources) {
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  return resources;
}

// Two that failed on each other should not meet again at once.
void pause_before(int attempt) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto most = std::min<std::int64_t>(kPauseMax.count(), std::int64_t{1} << std::min(attempt, 10));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random)));
}

}  // namespace

namespace guard {

Result<Decision> decision_of(const PgRows& rows, std::uint64_t token) {
  const auto verdict = parse_verdict(rows.at(0, 0).value_or(""));
  const auto mode = parse_mode(rows.at(0, 2).value_or(""));
  if (!verdict || !mode)
    return Error{Code::kInvalid, "the installed guard answered what this libpawl does not know"};
  Decision decision{.verdict = *verdict, .token = token, .mode = *mode};
  decision.max = parse_token(rows.at(0, 1).value_or("")).value_or(0);
  // would_refuse is what enforce would do; these two modes refuse nothing.
  const bool refuses =
      *mode != GuardMode::kObserve && *mode != GuardMode::kShadow && rows.at(0, 3).value_or("t") == "t";
  decision.let_through = *verdict > Verdict::kReplayed && !refuses;
  return decision;
}

}  // namespace guard

PgWriter::PgWriter(PGconn* connection, const Lease& lease, std::vector<std::string> resources,
                   const Work& work, const PgWriteOptions& options)
    : connection_(connection),
      lease_(lease),
      resources_(in_order(std::move(resources))),
      work_(work),
      options_(options) {}

Result<Decision> PgWriter::run() {
  for (int tries = 0;; ++tries) {
    Attempt end = attempt();
    if (auto* decision = std::get_if<Decision>(&end)) return *decision;
    if (auto* error = std::get_if<Error>(&end)) return std::move(*error);
    if (auto* unknown = std::get_if<Unknown>(&end)) {
      if (auto lost = reconnect(unknown->error)) return *std::move(lost);
      unsettled_ = true;
    } else {
      if (tries >= options_.retries) return std::get<Again>(end).error;
      pause_before(tries);
    }
  }
}

PgWriter::Attempt PgWriter::attempt() {
  if (auto held = lease_.check(); !held) return held.error();
  auto begun = begin();
  if (auto* end = std::get_if<Attempt>(&begun)) return std::move(*end);
  const Decision decision = std::get<Decision>(begun);
  if (decision.verdict == Verdict::kReplayed) {
    roll_back();
    if (!unsettled_) return decision;
    return Decision{.verdict = Verdict::kAdmitted, .token = decision.token, .max = decision.token};
  }
  if (auto end = work()) return *std::move(end);
  return commit(decision);
}

// BEGIN and the check in one message: a guarded transaction has no more round trips than a plain one.
std::string PgWriter::begin_sql() const {
  std::string sql = fmt::format("BEGIN ISOLATION LEVEL {};", to_sql(options_.isolation));
  if (resources_.size() > 1) {
    sql += fmt::format("SELECT pawl.use({}::text[], {});",
                       guard::literal(connection_, guard::array_of(resources_)), lease_.token());
  }
  if (resources_.size() == 1 || options_.operation != 0) {
    sql += fmt::format("SELECT pawl.use({}::text, {}{})", guard::literal(connection_, resources_.front()),
                       lease_.token(),
                       options_.operation == 0 ? "" : fmt::format(", {}::bigint", options_.operation));
  }
  return sql;
}

std::variant<Decision, PgWriter::Attempt> PgWriter::begin() {
  const auto begun = execute_all(connection_, begin_sql());
  if (!begun) return failed(*begun.failure);
  const auto verdict = guard::parse_verdict(PgRows(begun.result).at(0, 0).value_or(""));
  if (verdict == Verdict::kAdmitted || verdict == Verdict::kReplayed) {
    return Decision{.verdict = *verdict, .token = lease_.token(), .max = lease_.token()};
  }
  // Let through by its mode; the guard has the figures.
  const auto asked = guard::execute(
      connection_, "SELECT verdict, max, mode, would_refuse FROM pawl.check($1::text, $2::bigint)",
      {resources_.front(), std::to_string(lease_.token())});
  if (!asked) return failed(*asked.failure);
  auto decision = guard::decision_of(PgRows(asked.result), lease_.token());
  if (!decision) {
    roll_back();
    return Attempt(decision.error());
  }
  decision->let_through = true;
  return *decision;
}

std::optional<PgWriter::Attempt> PgWriter::work() {
  PgTransaction transaction(connection_);
  Result<void> worked;
  try {
    worked = work_(transaction);
  } catch (...) {
    roll_back();
    throw;
  }
  if (transaction.failure_) return failed(*transaction.failure_);
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  std::optional<Error> wrong;
  if (!worked) {
    wrong = worked.error();
  } else if (status == PQTRANS_INERROR) {
    wrong = Error{Code::kInvalid, "a statement that did not go through exec() failed"};
  } else if (status != PQTRANS_INTRANS) {
    wrong = Error{Code::kInvalid,
                  "the work ended the transaction itself, or broke the connection; whether it is in effect "
                  "Pawl cannot say"};
  } else if (auto held = lease_.check(); !held) {
    wrong = held.error();  // The guard would protect all the same; this spares everybody a late write.
  }
  if (!wrong) return std::nullopt;
  roll_back();
  return *std::move(wrong);
}

PgWriter::Attempt PgWriter::commit(Decision decision) {
  const auto done = execute_all(connection_, "COMMIT");
  if (!done) {
    if (!done.failure->disconnected) return failed(*done.failure);
    return Unknown{{Code::kUnknown, "the connection broke at the commit: " + done.failure->message}};
  }
  if (std::string_view(PQcmdStatus(done.result.get())) != "COMMIT") {
    return Error{Code::kInvalid, "PostgreSQL rolled the transaction back at the commit"};
  }
  return decision;
}

PgWriter::Attempt PgWriter::failed(const PgFailure& failure) {
  roll_back();
  if (guard::may_pass_again(failure)) return Again{guard::to_error(failure)};
  // Before a commit nothing has happened; while an earlier one is unsettled, that still is.
  if (failure.disconnected && unsettled_) return Unknown{{Code::kUnknown, failure.message}};
  return refused(failure);
}

Error PgWriter::refused(const PgFailure& failure) const {
  Error error = guard::to_error(failure);
  if (error.code != Code::kStaleToken) return error;
  // The lease was alive a moment ago; whether the authority has gone back in time only it can tell.
  const Error stale = lease_.stale(guard::number_in_detail(failure, "max"));
  if (stale.code == Code::kIssuerBehind) return stale;
  return error;
}

void PgWriter::roll_back() {
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
    static_cast<void>(
        execute_all(connection_, "ROLLBACK"));  // If it fails the connection is gone, and so is the work.
  }
}

std::optional<Error> PgWriter::reconnect(const Error& unknown) {
  if (options_.operation == 0) {
    return Error{
        unknown.code,
        unknown.detail + ". Whether it is in effect Pawl cannot say; with an operation number it could"};
  }
  while (PQstatus(connection_) != CONNECTION_OK) {
    if (auto held = lease_.check(); !held)
      return Error{unknown.code, unknown.detail + "; " + held.error().detail};
    PQreset(connection_);
    if (PQstatus(connection_) != CONNECTION_OK) std::this_thread::sleep_for(kReconnectPause);
  }
  return std::nullopt;
}

}  // namespace pawl
