#include <fmt/format.h>

#include "guard/mariadb/advance.h"
#include "guard/mariadb/connection.h"
#include "guard/mariadb/writer.h"
#include "guard_contract/parse.h"
#include "pawl/mariadb.h"

namespace pawl {
namespace {

// The connections that may block an advance, for people; empty when none is seen.
std::string names_of_blockers(MYSQL* connection, const std::string& resource) {
  const auto found = guard::blockers(connection, resource);
  std::string names;
  if (!found) return names;
  for (const std::string& each : *found) names += (names.empty() ? "" : ", ") + each;
  return names;
}

bool reconnects_by_itself(MYSQL* connection) {
  my_bool allowed = 0;
  mysql_get_optionv(connection, MYSQL_OPT_RECONNECT, &allowed);
  return allowed != 0;
}

}  // namespace

std::size_t MariaRows::size() const {
  return outcome_ == nullptr ? 0 : outcome_->rows.size();
}

std::size_t MariaRows::affected() const {
  return outcome_ == nullptr ? 0 : outcome_->affected;
}

MariaValue MariaRows::at(std::size_t row, std::size_t column) const {
  if (row >= size() || column >= outcome_->columns.size()) return std::nullopt;
  return outcome_->rows[row][column];
}

MariaRows MariaTransaction::exec(const std::string& sql,
                                 const std::vector<MariaValue>& parameters) {
  if (failure_) return MariaRows(nullptr);
  auto done = std::make_shared<guard::MariaOutcome>(guard::execute(connection_, sql, parameters));
  if (*done) return MariaRows(std::move(done));
  failure_ = std::make_shared<const guard::MariaFailure>(*std::move(done->failure));
  return MariaRows(nullptr);
}

MariaGuard::MariaGuard(st_mysql* connection) : connection_(connection) {}

std::string MariaGuard::name() const {
  const char* where = mysql_get_host_info(connection_);
  return fmt::format("mariadb {}", where == nullptr ? "" : where);
}

GuardStrength MariaGuard::strength() {
  return {Strength::kFenced, {}};
}

Result<void> MariaGuard::verify_installation() {
  if (known_) return {};
  const auto asked =
      guard::execute(connection_, "SELECT pawl.contract() AS contract, pawl.version() AS version");
  if (!asked) return guard::to_error(*asked.failure);
  if (const auto same = guard::check_contract_version(asked.at(0, "contract").value_or(""),
                                                      asked.at(0, "version").value_or("?"));
      !same)
    return same.error();
  known_ = true;
  return {};
}

Result<std::uint64_t> MariaGuard::advance(std::string_view resource, std::uint64_t token,
                                          std::chrono::milliseconds wait) {
  if (const auto known = verify_installation(); !known) return known.error();
  const std::string named(resource);
  auto advanced = guard::advance(connection_, named, token, wait);
  if (advanced || advanced.error().code != Code::kBusy) return advanced;
  const std::string names = names_of_blockers(connection_, named);
  if (names.empty()) return advanced;
  return Error{Code::kBusy, advanced.error().detail + ": " + names};
}

Result<Decision> MariaGuard::check(std::string_view resource, std::uint64_t token) {
  if (const auto known = verify_installation(); !known) return known.error();
  return guard::check(connection_, std::string(resource), token);
}

Result<Decision> MariaGuard::write_all(const Lease& lease, std::vector<std::string> resources,
                                       const AnyWork& work, const MariaWriteOptions& options) {
  if (resources.empty()) return Error{Code::kInvalid, "which resource? Name at least one"};
  if (guard::in_transaction(connection_))
    return Error{Code::kInvalid,
                 "the connection is in a transaction already; write() begins its own"};
  // What is sent after it has silently connected again would be outside the transaction, and in
  // effect at once.
  if (reconnects_by_itself(connection_))
    return Error{Code::kInvalid,
                 "MYSQL_OPT_RECONNECT is on for this connection; a guarded write needs it off"};
  if (const auto known = verify_installation(); !known) return known.error();
  return MariaWriter(connection_,
                     {.held = guard::held_by(lease),
                      .resources = std::move(resources),
                      .operation = options.operation,
                      .limits = {.retries = options.retries}},
                     work)
      .run();
}

}  // namespace pawl
