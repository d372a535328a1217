// A guarded write in a database: the check, the work and the commit in one transaction. What each
// end means is in pawl/postgres.h, pawl/mariadb.h and pawl/sqlite.h.
//
// An unknown commit is settled with the operation number: connect again and repeat it, which the
// guard answers with `replayed` if it is in effect.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "guard/retry_and_settle.h"

namespace pawl::guard {

struct WriteOrder {
  HeldToken held;
  std::vector<std::string> resources;  // at least one
  std::uint64_t operation = 0;         // 0: none
  RetryLimits limits = {};
};

class TransactionWriter : public RetryAndSettle {
 public:
  explicit TransactionWriter(WriteOrder order);

 protected:
  // How a statement failed. Before the commit nothing has happened then.
  struct Failure {
    Error error;
    bool may_pass_again = false;  // a serialization failure, a deadlock, a busy file
    bool disconnected = false;
    std::uint64_t max = 0;  // of a stale token: the fence in the refusal
  };
  using Step = std::variant<std::monostate, Failure, Error>;

  // Begins a transaction and has the token admitted in it: admitted, replayed, or let through.
  virtual std::variant<Decision, Failure, Error> begin() = 0;
  // Runs the user's work, and makes sure that the transaction is still open. What the work throws
  // comes out of it.
  virtual Step work() = 0;
  virtual Step commit() = 0;
  // Rolls back what is open. When it cannot, the connection is gone, and so is the work.
  virtual void roll_back() = 0;
  // One try; whether it succeeded.
  virtual bool connect_again() = 0;

  // Sorted, without duplicates.
  [[nodiscard]] const std::vector<std::string>& resources() const { return resources_; }
  [[nodiscard]] std::uint64_t operation() const { return operation_; }

 private:
  Attempt attempt() final;
  Settled settle() final;
  [[nodiscard]] std::string_view cannot_tell() const final;

  Step work_or_roll_back();
  Attempt commit_decision(const Decision& decision);
  Attempt failed(const Failure& failure);

  const std::vector<std::string> resources_;
  const std::uint64_t operation_;
};

}  // namespace pawl::guard
