// The log of a scratch resource in etcd: where a line of it is kept. Pure.
//
//   static    GUARD/log/UNIQUE = "34 v1"
//   by        GUARD/k1/UNIQUE = "34 v1"
//   row       GUARD/k1 = "34 v1\n35 v2\n": one key is one resource there
//   bare      as static, under no guard
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etcd/messages.h"
#include "guard/etcd/policy.h"
#include "guard/scratch.h"

namespace pawl::guard {

[[nodiscard]] std::string etcd_scratch_bare(std::string_view prefix, std::uint64_t number);
[[nodiscard]] bool is_etcd_scratch_bare(std::string_view resource);
// The pattern of a scratch guard.
[[nodiscard]] std::string etcd_scratch_pattern(std::string_view guard);

// The key that has the whole log, or with which those of all lines begin.
[[nodiscard]] std::string etcd_log_key(EtcdScope scope, std::string_view resource);
[[nodiscard]] bool is_one_key(EtcdScope scope, std::string_view resource);
[[nodiscard]] std::string etcd_log_line(std::uint64_t token, std::string_view value);
// What was found at the key, or below it, in the order in which it took effect.
[[nodiscard]] std::vector<Effect> etcd_log_effects(std::vector<etcd::KeyValue> found);

}  // namespace pawl::guard
