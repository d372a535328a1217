// Guarded writes, advances and checks as requests to DynamoDB.
//
// A write that is admitted is one request without a read before it. Its condition is the widest
// under which the token is admitted by the policy that this client has seen last. If it fails,
// DynamoDB tells the item as it is; policy and fence are judged here, and either the write is
// refused, or it is tried again on the condition that they are still what was judged.
//
// A guard with one fence has it beside its policy, so that one condition is on both. A fence for
// each item is in the item; what is admitted by an old policy is admitted by every later one,
// because the parts of a policy that could change that are fixed there (set_policy() refuses them).
// What a mode lets through is a transaction that also checks that the policy is still this one.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "guard/dynamodb/expressions.h"
#include "guard/dynamodb/policy.h"
#include "guard/dynamodb/rules.h"
#include "guard/dynamodb/store.h"
#include "pawl/guard.h"

namespace pawl::guard {

struct DynamoOrder {
  std::vector<std::string> resources = {};
  std::optional<std::string> token = {};  // as text; nothing: a write without one
  std::uint64_t operation = 0;            // 0: none
  std::vector<DynamoOp> ops = {};
  std::string nonce = {};  // tells this write from all others, also when it is sent again
  // An earlier attempt may have landed. It is then sent again only as it was: if its condition does
  // not hold any more, and the last write is another's, the outcome stays unknown.
  bool unsettled = false;
};

struct DynamoVerdict {
  enum class End : std::uint8_t {
    kAdmitted,  // The first five are Verdict's.
    kReplayed,
    kStale,
    kMissing,
    kAhead,
    kMalformed,  // no token
    kUnguarded,  // The resource, or an item of the changes, is not under guard.
    kUnmet,      // A condition of the caller's was not met.
  };
  End end = End::kUnguarded;
  std::uint64_t max = 0;
  std::optional<GuardMode> mode = {};
  bool let_through = false;
  std::string text = {};  // for people; of a refusal
};
// Of an end that is one.
[[nodiscard]] Verdict verdict_of(DynamoVerdict::End end);

// A guard as it is in the table of guards.
struct DynamoRecord {
  DynamoPolicy policy = {};
  std::uint64_t change = 0;
  DynamoFence fence = {};  // of a guard with one fence
};

// Used by one thread at a time.
class DynamoCalls {
 public:
  DynamoCalls(DynamoStore& store, std::string guards_table)
      : store_(store), guards_table_(std::move(guards_table)) {}

  [[nodiscard]] Result<DynamoVerdict> write(const DynamoOrder& order);
  // kAdmitted: `max` is the fence before. Refuses in every mode.
  [[nodiscard]] Result<DynamoVerdict> advance(const std::string& resource, std::uint64_t token);
  // What a write would get. Changes nothing.
  [[nodiscard]] Result<DynamoVerdict> check(const std::string& resource, std::uint64_t token);
  // The fence; nothing: none yet.
  [[nodiscard]] Result<std::optional<std::uint64_t>> fence(const std::string& resource);
  // What has become of a write that ended in kUnknown.
  enum class Landing : std::uint8_t {
    kApplied,
    // Its condition still holds, so that it has not landed, and of it and a copy one can at most.
    kMayRepeat,
    kCannotTell,
  };
  [[nodiscard]] Result<Landing> find_landing(const DynamoOrder& order);

  // As it is now. Nothing: there is none.
  [[nodiscard]] Result<std::optional<DynamoRecord>> read_guard(std::string_view guard);
  // Nothing: it is not there, or was deleted.
  [[nodiscard]] Result<std::optional<boost::json::object>> read_item(
      const std::string& table, const boost::json::object& key);

  [[nodiscard]] std::string new_nonce();

 private:
  // What DynamoDB has of one resource.
  struct View {
    std::optional<DynamoRecord> record = {};  // nothing: no guard
    DynamoFence fence = {};
    bool absent = false;  // there is no such item
  };
  using Views = std::vector<View>;
  struct Plan {
    std::vector<DynamoOp> ops = {};
    // The place of each resource's fence in `ops`, and what it is compared with.
    std::vector<std::size_t> places = {};
    std::vector<DynamoTest> tests = {};
    std::vector<DynamoFence> fences = {};  // afterwards
    std::vector<std::uint64_t> changes = {};
    DynamoVerdict answer = {};  // once it is applied
    std::vector<std::pair<std::string, std::string>> counts = {};
  };
  // Why a plan was not applied.
  struct Failed {
    std::vector<std::optional<boost::json::object>> items;  // by place, where they were told
  };

  [[nodiscard]] Result<View> read_view(const std::string& resource);
  [[nodiscard]] Result<Views> read_views(const std::vector<std::string>& resources);
  [[nodiscard]] Result<Views> views_after(const DynamoOrder& order, const Plan& plan,
                                          const Failed& failed);
  [[nodiscard]] Result<DynamoFence> fence_in(const std::string& resource,
                                             const boost::json::object& item);
  [[nodiscard]] std::optional<DynamoVerdict> find_fault(const DynamoOrder& order,
                                                        const Views& views);
  [[nodiscard]] std::optional<Plan> plan_without_reading(const DynamoOrder& order);
  [[nodiscard]] std::variant<Plan, DynamoVerdict> plan_from(const DynamoOrder& order,
                                                            const Views& views);
  // Adds one resource to a plan.
  void add_to_plan(Plan& plan, const DynamoOrder& order, const std::string& resource,
                   const DynamoRecord& record, const DynamoTest& test, const DynamoFence& store,
                   bool check_policy);
  [[nodiscard]] Result<std::variant<bool, Failed>> send(const Plan& plan);
  [[nodiscard]] Result<std::variant<std::uint64_t, Failed>> send_advance(
      const std::string& resource, const View& view, const DynamoAdmission& admission);
  void remember(const std::string& resource, const DynamoFence& fence);
  void count(std::string_view guard, std::string_view what);

  DynamoStore& store_;
  const std::string guards_table_;
  SystemRandom random_;
  std::map<std::string, DynamoRecord, std::less<>> records_;  // as last seen
  std::map<std::string, DynamoFence, std::less<>> fences_;
  std::vector<DynamoTest> sent_;  // the tests of the last plan
};

// kInvalid: DynamoDB has a damaged policy there.
[[nodiscard]] Result<DynamoRecord> read_record(std::string_view guard,
                                               const boost::json::object& item);

}  // namespace pawl::guard
