// What makes a guard in this etcd weaker than it looks, as its members and its users tell it.
//
// In etcd nothing runs but what clients send, so whoever may write a key may write it around the
// guard. What users and roles can do is to keep all others from these keys: writers have a role of
// their own, and it may read the policy, but not change it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etcd/client.h"
#include "guard/etcd/connection.h"
#include "guard/etcd/names.h"
#include "pawl/guard.h"

namespace pawl::guard {

// The roles of writers begin with this: pawl-orders.
inline constexpr std::string_view kEtcdWriterPrefix = "pawl-";

// Why acknowledged fences may be lost. Each is a clause that says what to do. Pure.
[[nodiscard]] std::vector<std::string> find_etcd_weaknesses(
    const std::vector<etcd::EndpointView>& endpoints);
// Alarms that do not weaken a guard, but stop its writers. Pure.
[[nodiscard]] std::vector<std::string> find_etcd_alarms(
    const std::vector<etcd::EndpointView>& endpoints);

struct EtcdAccess {
  bool open = false;  // etcd has no users: everybody may
  // That may write around the guard, or its policy; but for `root`, which may change the rules.
  std::vector<std::string> roles = {};
  std::string unknown = {};  // why it could not be found out
};
[[nodiscard]] EtcdAccess find_etcd_access(EtcdConnection& connection, std::string_view guard,
                                          const std::vector<std::string>& patterns);
// Whether a permission to write reaches any of these keys. Pure.
[[nodiscard]] bool may_write(const etcd::Permission& permission, const EtcdKeys& keys);
// A sentence; empty: nobody can.
[[nodiscard]] std::string describe(const EtcdAccess& access);
// The commands that keep the others out, for an administrator to adapt. Pure.
[[nodiscard]] std::string etcd_access_commands(std::string_view guard,
                                               const std::vector<std::string>& patterns);

[[nodiscard]] GuardStrength to_etcd_strength(const std::vector<std::string>& weaknesses);

}  // namespace pawl::guard
