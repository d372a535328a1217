// Writes to items in DynamoDB that a newer holder's token fences out. Prepare it first:
// `pawl guard install dynamodb`, `pawl guard protect dynamodb orders --key '*'`.
//
//   pawl::DynamoGuard guard({.region = "eu-central-1", .access_key = …, .secret_key = …});
//   pawl::DynamoPut put{"orders", {{"id", pawl::DynamoValue::text("7")}}};
//   auto done = guard.write(lease, "orders:7", put);
//   if (!done) return report(done.error());                  // kStaleToken is final
//
// The check is a condition of the write itself: the same PutItem, UpdateItem or TransactWriteItems
// that the program would send without a guard. docs/reference/dynamodb-format.md says where the
// fence is. A request that is sent around it is not checked: `pawl guard protect dynamodb` prints
// the policy that refuses those.
//
// Link Pawl::dynamodb.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

namespace pawl {

namespace guard {  // Pawl's own
class DynamoFront;
}  // namespace guard

struct DynamoOptions {
  std::string region = "us-east-1";
  std::string endpoint = {};  // http(s)://HOST[:PORT]; empty: Amazon's DynamoDB in that region
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};            // of temporary credentials
  std::string ca_file = {};                  // certificates to trust instead of the system's
  std::string guards_table = "pawl_guards";  // the table of the guards themselves
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{30'000};  // of one request
};

// The value of an attribute, as DynamoDB has it in JSON: {"S":"sent"}, {"N":"7"}.
class PAWL_PUBLIC DynamoValue {
 public:
  [[nodiscard]] static DynamoValue text(std::string_view text);
  [[nodiscard]] static DynamoValue number(std::int64_t number);
  // Up to 38 digits, kept as they are.
  [[nodiscard]] static DynamoValue number(std::string_view digits);
  [[nodiscard]] static DynamoValue boolean(bool value);
  // Any type, such as {"SS":["a","b"]}.
  [[nodiscard]] static DynamoValue json(std::string json);

  [[nodiscard]] const std::string& json() const { return json_; }
  bool operator==(const DynamoValue&) const = default;

 private:
  std::string json_;
};

// Attributes by their names.
using DynamoItem = std::map<std::string, DynamoValue>;

// What stands for names (#name) and values (:value) in expressions. Those that begin with #pawl_
// and :pawl_ are the guard's, and so are attributes that begin with pawl_.
using DynamoNames = std::map<std::string, std::string>;
using DynamoValues = std::map<std::string, DynamoValue>;

// Conditions of yours are as in DynamoDB; empty: none.
struct DynamoPut {
  std::string table;
  DynamoItem item = {};
  std::string condition = {};
  DynamoNames names = {};
  DynamoValues values = {};
};
struct DynamoUpdate {
  std::string table;
  DynamoItem key;
  std::string update;
  std::string condition = {};
  DynamoNames names = {};
  DynamoValues values = {};
};
struct DynamoDelete {
  std::string table;
  DynamoItem key;
  std::string condition = {};
  DynamoNames names = {};
  DynamoValues values = {};
};
using DynamoChange = std::variant<DynamoPut, DynamoUpdate, DynamoDelete>;

struct DynamoWrite {
  Decision decision;
  // False: a condition of yours was not met, and nothing was changed, although the token is good.
  bool met = true;
};

struct DynamoWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it. Numbers grow: a smaller one than the last is stale. 0: none.
  std::uint64_t operation = 0;
};

// Used by one thread at a time. Keeps a connection, and what it has last read of each guard.
class PAWL_PUBLIC DynamoGuard final : public Guard {
 public:
  // Connects to nothing yet.
  explicit DynamoGuard(const DynamoOptions& options);
  ~DynamoGuard() override;
  DynamoGuard(const DynamoGuard&) = delete;
  DynamoGuard& operator=(const DynamoGuard&) = delete;

  [[nodiscard]] std::string name() const override;
  // Reads the policies of the tables that are under guard.
  [[nodiscard]] GuardStrength strength() override;
  // Never waits for a write: one that has not landed is refused from then on.
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Checks the lease's token and makes the change, in one atomic step. The value says that it is in
  // effect (unless DynamoWrite::met is false): admitted now, replayed (done before), or let through
  // by a mode that does not refuse. An answer that is lost is settled by reading back.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the write. Nothing happened.
  //   kUnknown       DynamoDB did not answer, and reading back does not tell: it may have happened.
  //   kUnavailable   it cannot be reached, or throttles. Nothing happened.
  //   kDenied        the credentials lack a right. Nothing happened.
  //   kInvalid       the resource is not under guard, or the change is wrong: the detail says what.
  [[nodiscard]] Result<DynamoWrite> write(const Lease& lease, std::string_view resource,
                                          DynamoChange change, DynamoWriteOptions options = {});
  // The same for a program that has only a token, such as a command under `pawl run`: no lease is
  // checked then.
  [[nodiscard]] Result<DynamoWrite> write(std::uint64_t token, std::string_view resource,
                                          DynamoChange change, DynamoWriteOptions options = {});
  // Several changes, of one resource or more, as one TransactWriteItems: all of them or none. The
  // token must be good for each resource.
  [[nodiscard]] Result<DynamoWrite> write_all(const Lease& lease,
                                              std::vector<std::string> resources,
                                              std::vector<DynamoChange> changes,
                                              DynamoWriteOptions options = {});
  [[nodiscard]] Result<DynamoWrite> write_all(std::uint64_t token,
                                              std::vector<std::string> resources,
                                              std::vector<DynamoChange> changes,
                                              DynamoWriteOptions options = {});

  // The item, without the attributes of the guard. Nothing: there is none, or it was deleted. A
  // reader that builds on it checks its token afterwards.
  [[nodiscard]] Result<std::optional<DynamoItem>> read(std::string_view table,
                                                       const DynamoItem& key);

 private:
  std::unique_ptr<guard::DynamoFront> front_;
};

}  // namespace pawl
