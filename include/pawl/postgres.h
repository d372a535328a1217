// Writes to PostgreSQL that a newer holder's token fences out. Install the guard first: `pawl guard
// install postgres`.
//
//   pawl::PgGuard guard(connection);                       // a PGconn you already have
//   auto done = guard.write(lease, "orders", [&](pawl::PgTransaction& tx) {
//     tx.exec("UPDATE orders SET state = $1 WHERE id = $2", {"shipped", "7"});
//   });
//   if (!done) return report(done.error());                // kStaleToken is final
//
// Link Pawl::postgres. Nothing here is needed by other writers: the check lives in the database,
// and refuses psql too.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

struct pg_conn;    // libpq's PGconn
struct pg_result;  // libpq's PGresult

namespace pawl {

struct PgFailure;  // Pawl's own; write() turns it into an Error.

// A parameter as text, or NULL.
using PgValue = std::optional<std::string>;

// What a statement gave, as text.
class PAWL_PUBLIC PgRows {
 public:
  explicit PgRows(std::shared_ptr<pg_result> result) : result_(std::move(result)) {}

  // False: the statement failed, and with it the transaction. write() reports why.
  [[nodiscard]] bool ok() const { return result_ != nullptr; }
  [[nodiscard]] std::size_t size() const;
  // Rows changed by INSERT, UPDATE, DELETE, MERGE or COPY.
  [[nodiscard]] std::size_t affected() const;
  // Nothing for NULL, and for a place that is not there.
  [[nodiscard]] PgValue at(std::size_t row, std::size_t column) const;

 private:
  std::shared_ptr<pg_result> result_;
};

// The transaction that the token was admitted in. Lives as long as the work that is given it.
class PAWL_PUBLIC PgTransaction {
 public:
  // After a statement has failed the rest is not sent; the work may simply run to its end.
  PgRows exec(const std::string& sql, const std::vector<PgValue>& parameters = {});
  [[nodiscard]] bool ok() const { return !failure_; }
  // For what exec() cannot do (COPY, binary). Do not end the transaction with it.
  [[nodiscard]] pg_conn* connection() const { return connection_; }

 private:
  friend class PgWriter;
  explicit PgTransaction(pg_conn* connection) : connection_(connection) {}

  pg_conn* connection_;
  std::shared_ptr<const PgFailure> failure_;
};

struct PgWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it, and an unknown commit can be settled. 0: none.
  std::uint64_t operation = 0;
  enum class Isolation : std::uint8_t { kReadCommitted, kRepeatableRead, kSerializable };
  Isolation isolation = Isolation::kReadCommitted;
  // How often the work is run again after a serialization failure or a deadlock.
  int retries = 10;
};

// Used by one thread at a time, like the connection, which it does not own and expects outside any
// transaction.
class PAWL_PUBLIC PgGuard final : public Guard {
 public:
  explicit PgGuard(pg_conn* connection);

  // Off by default: advance() ends older transactions that are still open when its wait is over,
  // and their effects are gone. Needs the right to execute pawl.evict().
  void evict_stragglers(bool allowed) { evicts_ = allowed; }

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] GuardStrength strength() override;
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Runs `work` in a transaction in which the lease's token was admitted, and commits. The value
  // says that the work is in effect: admitted now, replayed (done before, `work` did not run), or
  // let through by a mode that does not refuse.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the commit. Nothing happened.
  //   kUnknown       the connection broke at the commit and there is no operation number to ask
  //                  with.
  //   kUnavailable   the connection broke before. Nothing happened.
  //   kInvalid       the guard or the SQL is wrong: the detail has PostgreSQL's words.
  // `work` may run several times (serialization failures, deadlocks, a commit that turns out not to
  // have happened); it takes a PgTransaction& and returns nothing or a Result<void>, whose error
  // rolls back and is returned. What it throws rolls back and is thrown on.
  template <class Work>
  Result<Decision> write(const Lease& lease, std::string_view resource, Work&& work,
                         const PgWriteOptions& options = {}) {
    return write(lease, std::vector<std::string>{std::string(resource)}, std::forward<Work>(work),
                 options);
  }
  // Several resources under one token; taken in a fixed order, whatever the order here.
  template <class Work>
  Result<Decision> write(const Lease& lease, std::vector<std::string> resources, Work&& work,
                         const PgWriteOptions& options = {}) {
    return write_all(lease, std::move(resources), to_work(std::forward<Work>(work)), options);
  }

 private:
  using AnyWork = std::function<Result<void>(PgTransaction&)>;
  template <class Work>
  static AnyWork to_work(Work&& work) {
    if constexpr (std::is_void_v<std::invoke_result_t<Work&, PgTransaction&>>) {
      return [&work](PgTransaction& tx) -> Result<void> {
        work(tx);
        return {};
      };
    } else {
      return [&work](PgTransaction& tx) -> Result<void> { return work(tx); };
    }
  }
  Result<Decision> write_all(const Lease& lease, std::vector<std::string> resources,
                             const AnyWork& work, const PgWriteOptions& options);
  // Asked once: whether what is installed there keeps the contract this was written for.
  [[nodiscard]] Result<void> verify_installation();
  Result<std::uint64_t> advance_once(std::string_view resource, std::uint64_t token,
                                     std::chrono::milliseconds wait);

  pg_conn* connection_;
  bool evicts_ = false;
  bool known_ = false;  // verify_installation() went well
};

}  // namespace pawl
