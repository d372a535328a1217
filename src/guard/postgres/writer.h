// A guarded write to PostgreSQL: BEGIN and the check in one message, the work, COMMIT.
#pragma once

#include <functional>
#include <string>

#include "guard/postgres/connection.h"
#include "guard/transaction_writer.h"
#include "pawl/postgres.h"

namespace pawl {

class PgWriter final : public guard::TransactionWriter {
 public:
  using Work = std::function<Result<void>(PgTransaction&)>;

  PgWriter(PGconn* connection, guard::WriteOrder order, const Work& work,
           PgWriteOptions::Isolation isolation);

 protected:
  std::variant<Decision, Failure, Error> begin() override;
  Step work() override;
  Step commit() override;
  void roll_back() override;
  bool connect_again() override;

 private:
  static Failure to_failure(const PgFailure& failure);
  [[nodiscard]] std::string begin_sql() const;

  PGconn* const connection_;
  const Work& work_;
  const PgWriteOptions::Isolation isolation_;
};

namespace guard {
// A row (verdict, max, mode, would_refuse) of pawl.check().
[[nodiscard]] Result<Decision> decision_of(const PgRows& rows, std::uint64_t token);
}  // namespace guard

}  // namespace pawl
