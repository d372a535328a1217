// What DynamoGuard, sessions and the administration do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/dynamodb/calls.h"
#include "guard/dynamodb/store.h"
#include "guard/retry_and_settle.h"
#include "pawl/dynamodb.h"

namespace pawl::guard {

class DynamoFront {
 public:
  // The store may be an error, which every call then returns: constructors do not fail.
  DynamoFront(Result<std::unique_ptr<DynamoStore>> store, DynamoOptions options);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] const DynamoOptions& options() const { return options_; }
  [[nodiscard]] Result<void> ready() const;
  // Only where the store could be opened.
  [[nodiscard]] DynamoStore& store() { return *store_; }
  [[nodiscard]] DynamoCalls& calls() { return *calls_; }

  [[nodiscard]] GuardStrength strength();
  [[nodiscard]] Result<DynamoWrite> write(HeldToken held, std::vector<std::string> resources,
                                          const std::vector<DynamoChange>& changes,
                                          DynamoWriteOptions options);
  [[nodiscard]] Result<std::optional<DynamoItem>> read(const std::string& table,
                                                       const DynamoItem& key);

 private:
  const DynamoOptions options_;
  std::optional<Error> error_;
  std::unique_ptr<DynamoStore> store_;
  std::unique_ptr<DynamoCalls> calls_;
};

// kInvalid: a value is not JSON of DynamoDB's.
[[nodiscard]] Result<DynamoOp> to_op(const DynamoChange& change);

}  // namespace pawl::guard
