// Writes to MariaDB that a newer holder's token fences out. Install the guard first: `pawl guard
// install mariadb`.
//
//   pawl::MariaGuard guard(connection);                    // a MYSQL* you already have
//   auto done = guard.write(lease, "shop.orders", [&](pawl::MariaTransaction& tx) {
//     tx.exec("UPDATE orders SET state = ? WHERE id = ?", {"shipped", "7"});
//   });
//   if (!done) return report(done.error());                // kStaleToken is final
//
// Link Pawl::mariadb. Nothing here is needed by other writers: the check lives in the database, and
// refuses the shell too.
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

struct st_mysql;  // libmariadb's MYSQL

namespace pawl {

namespace guard {  // Pawl's own
struct MariaFailure;
struct MariaOutcome;
}  // namespace guard

// A parameter as text, or NULL.
using MariaValue = std::optional<std::string>;

// What a statement gave, as text.
class PAWL_PUBLIC MariaRows {
 public:
  explicit MariaRows(std::shared_ptr<const guard::MariaOutcome> outcome)
      : outcome_(std::move(outcome)) {}

  // False: the statement failed, and with it the write. write() reports why.
  [[nodiscard]] bool ok() const { return outcome_ != nullptr; }
  [[nodiscard]] std::size_t size() const;
  // Rows changed by INSERT, UPDATE, DELETE or REPLACE, as MariaDB counts them.
  [[nodiscard]] std::size_t affected() const;
  // Nothing for NULL, and for a place that is not there.
  [[nodiscard]] MariaValue at(std::size_t row, std::size_t column) const;

 private:
  std::shared_ptr<const guard::MariaOutcome> outcome_;
};

// The transaction that the token was admitted in. Lives as long as the work that is given it.
class PAWL_PUBLIC MariaTransaction {
 public:
  // A `?` for each parameter. After a statement has failed the rest is not sent; the work may
  // simply run to its end. A statement that commits by itself (CREATE, ALTER, …) ends the write
  // with kInvalid.
  MariaRows exec(const std::string& sql, const std::vector<MariaValue>& parameters = {});
  [[nodiscard]] bool ok() const { return !failure_; }
  // For what exec() cannot do (LOAD DATA LOCAL, binary). Do not end the transaction with it; and
  // when a statement of yours fails, return an error: MariaDB undoes that statement only and goes
  // on.
  [[nodiscard]] st_mysql* connection() const { return connection_; }

 private:
  friend class MariaWriter;
  explicit MariaTransaction(st_mysql* connection) : connection_(connection) {}

  st_mysql* connection_;
  std::shared_ptr<const guard::MariaFailure> failure_;
};

struct MariaWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it, and an unknown commit can be settled. 0: none.
  std::uint64_t operation = 0;
  // How often the work is run again after a deadlock, or when the fence moved behind the
  // transaction's snapshot.
  int retries = 10;
};

// Used by one thread at a time, like the connection, which it does not own and expects outside any
// transaction. The isolation level is the session's; the guard holds at each of them.
class PAWL_PUBLIC MariaGuard final : public Guard {
 public:
  explicit MariaGuard(st_mysql* connection);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] GuardStrength strength() override;
  // MariaDB waits in whole seconds: `wait` is rounded up, and one at least.
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
  //   kBusy          the token is new, and a transaction of a former holder stayed open for five
  //                  seconds. Nothing happened.
  //   kUnknown       the connection broke at the commit and there is no operation number to ask
  //                  with.
  //   kUnavailable   the connection broke before, or a lock was waited for too long. Nothing
  //                  happened.
  //   kInvalid       the guard or the SQL is wrong: the detail has MariaDB's words.
  // `work` may run several times (deadlocks, a commit that turns out not to have happened); it
  // takes a MariaTransaction& and returns nothing or a Result<void>, whose error rolls back and is
  // returned. What it throws rolls back and is thrown on. To settle an unknown commit the
  // connection is made anew, and what was SET in its session is gone then.
  template <class Work>
  Result<Decision> write(const Lease& lease, std::string_view resource, Work&& work,
                         const MariaWriteOptions& options = {}) {
    return write(lease, std::vector<std::string>{std::string(resource)}, std::forward<Work>(work),
                 options);
  }
  // Several resources under one token; taken in a fixed order, whatever the order here.
  template <class Work>
  Result<Decision> write(const Lease& lease, std::vector<std::string> resources, Work&& work,
                         const MariaWriteOptions& options = {}) {
    return write_all(lease, std::move(resources), to_work(std::forward<Work>(work)), options);
  }

 private:
  using AnyWork = std::function<Result<void>(MariaTransaction&)>;
  template <class Work>
  static AnyWork to_work(Work&& work) {
    if constexpr (std::is_void_v<std::invoke_result_t<Work&, MariaTransaction&>>) {
      return [&work](MariaTransaction& tx) -> Result<void> {
        work(tx);
        return {};
      };
    } else {
      return [&work](MariaTransaction& tx) -> Result<void> { return work(tx); };
    }
  }
  Result<Decision> write_all(const Lease& lease, std::vector<std::string> resources,
                             const AnyWork& work, const MariaWriteOptions& options);
  // Asked once: whether what is installed there keeps the contract this was written for.
  [[nodiscard]] Result<void> verify_installation();

  st_mysql* connection_;
  bool known_ = false;  // verify_installation() went well
};

}  // namespace pawl
