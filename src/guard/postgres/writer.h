// One guarded write: BEGIN and the check in one message, the work, COMMIT; again while PostgreSQL says that it may pass
// the next time. What each end means is in pawl/postgres.h.
//
//   begin ──▶ admitted ──▶ work ──▶ commit ──▶ done
//     │          ▲                    │ connection lost: did it happen?
//     ▼          └── with an operation number: reconnect and ask with it ◀┘
//   stale, … : over
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "guard/postgres/statement.h"
#include "pawl/postgres.h"

namespace pawl {

class PgWriter {
 public:
  using Work = std::function<Result<void>(PgTransaction&)>;

  PgWriter(PGconn* connection, const Lease& lease, std::vector<std::string> resources, const Work& work,
           const PgWriteOptions& options);

  Result<Decision> run();

 private:
  struct Again {  // The same once more; the error is what to say when there is no patience left.
    Error error;
  };
  struct Unknown {  // The commit was sent and not answered.
    Error error;
  };
  using Attempt = std::variant<Decision, Again, Unknown, Error>;

  Attempt attempt();
  // The verdict the token was admitted or let through with; the transaction is open then.
  std::variant<Decision, Attempt> begin();
  // Nothing when the work is done and may be committed.
  std::optional<Attempt> work();
  Attempt commit(Decision decision);
  [[nodiscard]] Attempt failed(const PgFailure& failure);
  [[nodiscard]] Error refused(const PgFailure& failure) const;
  [[nodiscard]] std::string begin_sql() const;
  void roll_back();
  // Connects again, until the lease is over. The error when it cannot be.
  std::optional<Error> reconnect(const Error& unknown);

  PGconn* const connection_;
  const Lease& lease_;
  const std::vector<std::string> resources_;
  const Work& work_;
  const PgWriteOptions& options_;
  bool unsettled_ = false;  // A commit of ours is unknown; `replayed` then means that it happened.
};

namespace guard {
// A row (verdict, max, mode, would_refuse) of pawl.check().
[[nodiscard]] Result<Decision> decision_of(const PgRows& rows, std::uint64_t token);
}  // namespace guard

}  // namespace pawl
