// A guarded write to MariaDB: pawl.begin() or START TRANSACTION and pawl.use(), the work,
// pawl.finish().
#pragma once

#include <functional>

#include "guard/mariadb/connection.h"
#include "guard/transaction_writer.h"
#include "pawl/mariadb.h"

namespace pawl {

class MariaWriter final : public guard::TransactionWriter {
 public:
  using Work = std::function<Result<void>(MariaTransaction&)>;

  MariaWriter(MYSQL* connection, guard::WriteOrder order, const Work& work);

 protected:
  std::variant<Decision, Failure, Error> begin() override;
  Step work() override;
  Step commit() override;
  void roll_back() override;
  bool connect_again() override;

 private:
  static Failure to_failure(const guard::MariaFailure& failure);
  // Gives the verdict, or the failure, of the last step.
  guard::MariaOutcome begin_and_use();
  guard::MariaOutcome begin_and_use_all();

  MYSQL* const connection_;
  const Work& work_;
};

namespace guard {
// What pawl.check() answers.
[[nodiscard]] Result<Decision> check(MYSQL* connection, const std::string& resource,
                                     std::uint64_t token);
}  // namespace guard

}  // namespace pawl
