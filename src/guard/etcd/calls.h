// Guarded writes, advances and checks as transactions of etcd.
//
// A write that is admitted is one transaction without a read before it: it compares the policy with
// the text that this client has seen last, and the fence with the range in which the token is
// admitted. If a comparison fails, the same transaction returns policies and fences; they are
// judged here, and either the write is refused, or it is tried again with exactly those texts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etcd/messages.h"
#include "guard/etcd/policy.h"
#include "guard/etcd/rules.h"
#include "pawl/etcd.h"
#include "pawl/guard.h"

namespace pawl::guard {

struct EtcdTransacted {
  etcd::TxnResponse answer;
  bool resent = false;  // An earlier send of the same bytes may have been the one that was applied.
};
enum class EtcdSending : std::uint8_t {
  kUntilDecided,  // the same bytes again while the outcome is unknown
  kOnce,          // what would do harm if it took effect twice
};
// Errors: kUnavailable (nothing happened), kUnknown, kDenied, kInvalid.
using EtcdTransact =
    std::function<Result<EtcdTransacted>(const etcd::TxnRequest& request, EtcdSending sending)>;

struct EtcdOrder {
  std::vector<std::string> resources = {};
  std::optional<std::string> token = {};  // as text; nothing: a write without one
  std::uint64_t operation = 0;            // 0: none
  std::vector<EtcdChange> changes = {};
  std::vector<EtcdCondition> conditions = {};
};

struct EtcdAnswer {
  enum class End : std::uint8_t {
    kAdmitted,  // The first five are Verdict's.
    kReplayed,
    kStale,
    kMissing,
    kAhead,
    kMalformed,  // no token
    kUnguarded,  // The resource, or a key of the changes, is not under guard, or its guard is lost.
    kUnmet,      // A condition of the caller's was not met.
  };
  End end = End::kUnguarded;
  std::uint64_t max = 0;
  std::optional<GuardMode> mode = {};
  bool let_through = false;
  std::string text = {};  // for people; of a refusal
};
// Of an end that is one.
[[nodiscard]] Verdict verdict_of(EtcdAnswer::End end);

// Used by one thread at a time.
class EtcdCalls {
 public:
  explicit EtcdCalls(EtcdTransact transact) : transact_(std::move(transact)) {}

  [[nodiscard]] Result<EtcdAnswer> write(const EtcdOrder& order);
  // kAdmitted: `max` is the fence before. Refuses in every mode.
  [[nodiscard]] Result<EtcdAnswer> advance(const std::string& resource, std::uint64_t token);
  // What a write would get. Changes nothing.
  [[nodiscard]] Result<EtcdAnswer> check(const std::string& resource, std::uint64_t token);
  // The fence; nothing: none yet.
  [[nodiscard]] Result<std::optional<std::uint64_t>> fence(const std::string& resource);

 private:
  // What etcd has of one resource.
  struct View {
    std::string policy_text = {};
    std::optional<EtcdPolicy> policy = {};  // nothing: no guard
    std::string fence_text = {};            // empty: absent
    EtcdFence fence = {};

    bool operator==(const View&) const = default;
  };
  using Views = std::vector<View>;
  struct Known {
    std::string text;
    EtcdPolicy policy;
  };
  struct Plan {
    etcd::TxnRequest request = {};
    EtcdAnswer answer;                                               // once it is applied
    std::vector<std::pair<std::string, std::uint64_t>> tokens = {};  // of the fences then
  };

  [[nodiscard]] Result<Views> read(const std::vector<std::string>& resources);
  [[nodiscard]] Result<Views> to_views(const std::vector<std::string>& resources,
                                       const etcd::TxnResponse& answer);
  void remember(std::string_view guard, const View& view);
  void remember_token(const std::string& resource, std::uint64_t token);
  // What is wrong before any fence is looked at.
  [[nodiscard]] std::optional<EtcdAnswer> find_fault(const EtcdOrder& order, const Views& views);
  [[nodiscard]] std::optional<Plan> plan_without_reading(const EtcdOrder& order);
  [[nodiscard]] std::variant<Plan, EtcdAnswer> plan_from(const EtcdOrder& order,
                                                         const Views& views);
  void count(std::string_view guard, std::string_view what);

  const EtcdTransact transact_;
  std::map<std::string, Known, std::less<>> policies_;
  std::map<std::string, std::uint64_t, std::less<>> tokens_;  // of fences, as last seen
};

}  // namespace pawl::guard
