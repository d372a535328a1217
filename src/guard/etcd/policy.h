// What a guard keeps in etcd as text: its policy and its fences. Pure.
//
// All keys of the guard NAME begin with pawl-guard/NAME/ :
//
//   policy         lines `name=value`, in the order of EtcdPolicy; `keys` once for each pattern
//   fence          of a guard with one fence; it is there from the beginning
//   fence/KEY      of the resource NAME:KEY; absent: none yet
//   count/VERDICT  empty; etcd counts how often it was put (the key's version)
//   audit/N        the last changes of the policy
//
// pawl-guards/NAME lists the guards, and pawl-guard-version says what keeps them.
//
// A fence is text of fixed width, so that etcd, which compares bytes, compares numbers (rule 5):
//
//   0000000000000000                       none yet
//   0000000000000034                       advanced to 34
//   0000000000000034 0000000000000000      written under 34
//   0000000000000034 0000000000000008      written under 34; 8 was the last operation
//
// A later line is greater than an earlier one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

inline constexpr std::uint64_t kEtcdTokenMax = (std::uint64_t{1} << 53) - 1;
inline constexpr std::uint64_t kEtcdStepMin = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kEtcdStepDefault = std::uint64_t{1} << 44;

// How a token equal to the fence is treated, as in guard/scratch.h.
enum class EtcdEqual : std::uint8_t { kAccept, kOnce, kRefuse };
[[nodiscard]] std::string_view to_text(EtcdEqual equal);
[[nodiscard]] std::optional<EtcdEqual> parse_etcd_equal(std::string_view text);

// What one fence covers.
enum class EtcdScope : std::uint8_t {
  kStatic,  // all keys of the patterns
  kRow,     // each key
  kBy,      // each part of keys up to a separator
};
[[nodiscard]] std::string_view to_text(EtcdScope scope);

struct EtcdPolicy {
  std::string version = {};
  std::string contract = {};
  GuardMode mode = GuardMode::kObserve;
  std::uint64_t percent = 100;
  bool require_token = false;
  EtcdEqual equal = EtcdEqual::kAccept;
  std::uint64_t max_step = kEtcdStepDefault;
  std::uint64_t floor = 0;
  EtcdScope scope = EtcdScope::kStatic;
  std::string by = {};               // the separator
  std::uint64_t change = 0;          // grows with each change, so that no two texts are alike
  std::uint64_t since = 0;           // when the mode was set; seconds since 1970
  std::uint64_t missing_before = 0;  // the counters at that time
  std::uint64_t would_refuse_before = 0;
  std::vector<std::string> keys = {};  // patterns: a key, or the beginning of keys and a `*`

  bool operator==(const EtcdPolicy&) const = default;
};
[[nodiscard]] std::string to_text(const EtcdPolicy& policy);
// Nothing: this is no policy. Unknown lines are skipped.
[[nodiscard]] std::optional<EtcdPolicy> parse_etcd_policy(std::string_view text);

struct EtcdFence {
  std::uint64_t token = 0;                      // 0: none yet
  std::optional<std::uint64_t> operation = {};  // nothing: only advanced to. 0: without a number

  bool operator==(const EtcdFence&) const = default;
};
[[nodiscard]] std::string to_text(const EtcdFence& fence);
// Nothing: this is no fence.
[[nodiscard]] std::optional<EtcdFence> parse_etcd_fence(std::string_view text);
// The text that is smaller than every fence of this token, and greater than those below.
[[nodiscard]] std::string first_fence_of(std::uint64_t token);
// The text that is greater than every fence of this token, and smaller than those above.
[[nodiscard]] std::string end_of_fences_of(std::uint64_t token);

}  // namespace pawl::guard
