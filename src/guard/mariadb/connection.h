// A connection to MariaDB: how `pawl` opens one, and one statement on it, with what it returned or
// how it failed. The only place that reads libmariadb's results.
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/mariadb/dsn.h"
#include "pawl/mariadb.h"

namespace pawl::guard {

using pawl::MariaValue;

// What the DSN leaves out comes from the group [client] of the option files. Servers before MariaDB
// 10.11 are kInvalid.
[[nodiscard]] Result<std::shared_ptr<MYSQL>> connect(const MariaDsn& dsn);

struct MariaFailure {
  unsigned number = 0;  // MariaDB's, or the client's from 2000 on
  std::string state;    // SQLSTATE
  std::string message;
  bool disconnected = false;
};

struct MariaOutcome {
  std::vector<std::string> columns;
  std::vector<std::vector<MariaValue>> rows;
  std::uint64_t affected = 0;
  std::optional<MariaFailure> failure;

  explicit operator bool() const { return !failure; }
  // Nothing for NULL, and for a column that is not there.
  [[nodiscard]] MariaValue at(std::size_t row, std::string_view column) const;
};

// A procedure may give several results; the rows are the first one's, and a failure of any of them
// counts.
[[nodiscard]] MariaOutcome execute(MYSQL* connection, const std::string& sql);
// The same in two steps, for a caller with something to do meanwhile: when receive() would not
// wait, the socket is readable. A failure of send() means that there is nothing to receive.
[[nodiscard]] std::optional<MariaFailure> send(MYSQL* connection, const std::string& sql);
[[nodiscard]] MariaOutcome receive(MYSQL* connection);
// A `?` for each parameter, which the server puts in.
[[nodiscard]] MariaOutcome execute(MYSQL* connection, const std::string& sql,
                                   const std::vector<MariaValue>& parameters);
// What a caller may conclude from a failure: the SQLSTATEs are the guard's (PW…) and those of the
// database. Pure.
//
// A deadlock, or a snapshot older than the fence: the same transaction may pass when it is run
// again. Never a verdict.
[[nodiscard]] bool may_pass_again(const MariaFailure& failure);
// For a statement before the commit: whatever the code, nothing has taken effect. A deadlock or a
// lock wait that timed out is kUnavailable and never a verdict.
[[nodiscard]] Error to_error(const MariaFailure& failure);
// CALL pawl.<procedure>(values).
[[nodiscard]] MariaOutcome call(MYSQL* connection, std::string_view procedure,
                                const std::vector<MariaValue>& values);
// Quoted, or NULL.
[[nodiscard]] std::string literal(MYSQL* connection, const MariaValue& value);
// JSON_ARRAY(…), an expression: the server does the quoting.
[[nodiscard]] std::string json_array(MYSQL* connection, const std::vector<std::string>& items);
[[nodiscard]] bool in_transaction(MYSQL* connection);

}  // namespace pawl::guard
