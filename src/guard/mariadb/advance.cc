#include "guard/mariadb/advance.h"

#include <fmt/format.h>
#include <poll.h>

#include "guard/mariadb/connection.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::chrono::seconds kAfterEviction{5};  // Ending a transaction takes a moment.
constexpr std::chrono::milliseconds kLookEvery{50};
constexpr unsigned kNoSuchThread = 1094;
constexpr unsigned kNotYours = 1095;

std::string advance_sql(MYSQL* connection, const std::string& resource, std::uint64_t token,
                        std::chrono::milliseconds wait) {
  return fmt::format("CALL pawl.advance({}, '{}', {})", literal(connection, resource), token,
                     std::chrono::ceil<std::chrono::seconds>(wait).count());
}

Result<std::uint64_t> fence_before(const MariaOutcome& advanced) {
  if (advanced) return parse_token(advanced.at(0, "before").value_or("")).value_or(0);
  // The answer is lost, not the statement: it may be committing.
  if (advanced.failure->disconnected)
    return Error{Code::kUnknown, "the connection broke; the fence may have been raised"};
  return to_error(*advanced.failure);
}

bool answered(MYSQL* connection) {
  pollfd item{static_cast<int>(mysql_get_socket(connection)), POLLIN, 0};
  return poll(&item, 1, static_cast<int>(kLookEvery.count())) != 0;
}

// The fence, also one that an open transaction is about to raise.
Result<std::uint64_t> newest_fence(MYSQL* connection, const std::string& resource) {
  auto asked = execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
  if (asked)
    asked = execute(connection,
                    fmt::format("SELECT pawl.fence({}) AS fence", literal(connection, resource)));
  if (!asked) return to_error(*asked.failure);
  return parse_token(asked.at(0, "fence").value_or("")).value_or(0);
}

// Kills the connections that `waiting` waits for at this moment: exactly those hold its lock.
Result<void> kill_blockers(MYSQL* killer, unsigned long waiting) {
  const auto found = execute(
      killer,
      fmt::format(
          "SELECT DISTINCT b.trx_mysql_thread_id AS id FROM information_schema.innodb_lock_waits w "
          "JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id "
          "JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id "
          "WHERE r.trx_mysql_thread_id = {} AND b.trx_mysql_thread_id <> 0",
          waiting));
  if (!found) return to_error(*found.failure);
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const auto killed = execute(killer, "KILL CONNECTION " + found.at(i, "id").value_or("0"));
    if (killed || killed.failure->number == kNoSuchThread) continue;
    if (killed.failure->number == kNotYours)
      return Error{Code::kDenied,
                   "ending the transactions of others needs the right CONNECTION ADMIN"};
    return to_error(*killed.failure);
  }
  return {};
}

}  // namespace

Result<std::uint64_t> advance(MYSQL* connection, const std::string& resource, std::uint64_t token,
                              std::chrono::milliseconds wait) {
  return fence_before(execute(connection, advance_sql(connection, resource, token, wait)));
}

Result<std::uint64_t> advance_and_evict(MYSQL* connection, MYSQL* killer,
                                        const std::string& resource, std::uint64_t token,
                                        std::chrono::milliseconds wait) {
  auto advanced = advance(connection, resource, token, wait);
  if (advanced || advanced.error().code != Code::kBusy) return advanced;
  const auto newest = newest_fence(killer, resource);
  if (!newest) return newest.error();
  if (*newest >= token) return advanced;
  if (const auto unsent =
          send(connection, advance_sql(connection, resource, token, kAfterEviction)))
    return to_error(*unsent);
  Result<void> killed;
  while (!answered(connection)) {
    if (killed) killed = kill_blockers(killer, mysql_thread_id(connection));
  }
  advanced = fence_before(receive(connection));
  if (!advanced && !killed) return killed.error();
  return advanced;
}

Result<std::vector<std::string>> blockers(MYSQL* connection, const std::string& resource) {
  const auto found = call(connection, "blockers", {resource});
  if (!found) return to_error(*found.failure);
  std::vector<std::string> list;
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const auto text = [&](const char* column) { return found.at(i, column).value_or(""); };
    list.push_back(fmt::format("connection {} {}@{} since {} {}", text("pid"), text("login"),
                               text("host"), text("since"), text("query")));
  }
  return list;
}

}  // namespace pawl::guard
