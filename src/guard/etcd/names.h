// Names in a guarded etcd: the keys of guards, patterns of what is under guard, and which resource
// a key belongs to. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/administration.h"
#include "guard/etcd/policy.h"
#include "pawl/etcd.h"
#include "pawl/result.h"

namespace pawl::guard {

// "0.1.0 1": the version and the contract of what keeps the guards.
inline constexpr std::string_view kEtcdMark = "pawl-guard-version";
inline constexpr std::string_view kEtcdIndex = "pawl-guards/";
inline constexpr std::string_view kEtcdOwn = "pawl-guard/";

[[nodiscard]] std::string etcd_prefix_of(std::string_view guard);  // pawl-guard/orders/
[[nodiscard]] std::string etcd_policy_key(std::string_view guard);
[[nodiscard]] std::string etcd_fence_key(std::string_view resource);
[[nodiscard]] std::string etcd_count_key(std::string_view guard, std::string_view what);
[[nodiscard]] std::string_view guard_of(std::string_view resource);

// `orders` of `orders/*`, `/orders/*` and `orders`. Empty: none can be made of it.
[[nodiscard]] std::string etcd_guard_name_of(std::string_view pattern);
// Whether a key can be of both patterns.
[[nodiscard]] bool etcd_patterns_overlap(std::string_view one, std::string_view other);
// The keys of a pattern as etcd takes them: [first, end); an empty end: `first` alone.
struct EtcdKeys {
  std::string first;
  std::string end = {};
};
[[nodiscard]] EtcdKeys keys_of_pattern(std::string_view pattern);

// How a guard is to be made.
struct EtcdProtection {
  std::string guard;
  EtcdScope scope = EtcdScope::kStatic;
  std::string by = {};
};
// kInvalid says what is wrong.
[[nodiscard]] Result<EtcdProtection> to_etcd_protection(const Protection& wanted);

// The resource of this guard that a change touches.
struct EtcdOwner {
  enum class Kind : std::uint8_t {
    kOwn,      // the resource `name`
    kNone,     // none of this guard
    kSeveral,  // a prefix that several resources begin with
  };
  Kind kind = Kind::kNone;
  std::string name = {};
};
[[nodiscard]] EtcdOwner owner_of(std::string_view guard, const EtcdPolicy& policy,
                                 const EtcdChange& change);
[[nodiscard]] const std::string& key_of(const EtcdChange& change);

}  // namespace pawl::guard
