// One guarded write, whatever database it goes to: the check, the work and the commit in one
// transaction, again while the database says that it may pass the next time. What each end means is
// in pawl/postgres.h and pawl/mariadb.h.
//
//   begin ──▶ admitted ──▶ work ──▶ commit ──▶ done
//     │          ▲                    │ connection lost: did it happen?
//     ▼          └── with an operation number: connect again and ask with it ◀┘
//   stale, … : over
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"

namespace pawl::guard {

struct WriteOrder {
  const Lease& lease;
  std::vector<std::string> resources;  // at least one
  std::uint64_t operation = 0;         // 0: none
  int retries = 0;
};

class Writer {
 public:
  explicit Writer(WriteOrder order);
  virtual ~Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Result<Decision> run();

 protected:
  // How a statement failed. Before the commit nothing has happened then.
  struct Failure {
    Error error;
    bool may_pass_again = false;  // a serialization failure or a deadlock
    bool disconnected = false;
    std::uint64_t max = 0;  // of a stale token: the fence that the guard told
  };
  using Step = std::variant<std::monostate, Failure, Error>;

  // Begins a transaction and has the token admitted in it: admitted, replayed, or let through.
  virtual std::variant<Decision, Failure, Error> begin() = 0;
  // Runs the user's work, and makes sure that the transaction is still open. What the work throws
  // comes out of it.
  virtual Step work() = 0;
  virtual Step commit() = 0;
  // Whatever there is to roll back. When it cannot, the connection is gone, and so is the work.
  virtual void roll_back() = 0;
  // One try; whether it went well.
  virtual bool connect_again() = 0;

  [[nodiscard]] const WriteOrder& order() const { return order_; }

 private:
  struct Again {  // The same once more; the error is what to say when there is no patience left.
    Error error;
  };
  struct Unknown {  // The commit was sent and not answered.
    Error error;
  };
  using Attempt = std::variant<Decision, Again, Unknown, Error>;

  Attempt attempt();
  Step work_or_roll_back();
  Attempt committed(const Decision& decision);
  Attempt failed(const Failure& failure);
  // Until the lease is over. The error when it cannot be.
  std::optional<Error> settle(const Error& unknown);

  const WriteOrder order_;
  bool unsettled_ = false;  // A commit of ours is unknown; `replayed` then means that it happened.
};

}  // namespace pawl::guard
