#include "guard/etcd/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace pawl::guard {
namespace {

struct EtcdVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const EtcdVersion&) const = default;
};

EtcdVersion parse_version(const std::string& text) {
  EtcdVersion version;
  static_cast<void>(
      std::sscanf(text.c_str(), "%d.%d.%d", &version.major, &version.minor, &version.patch));
  return version;
}

std::string weakness_of_version(const std::string& text) {
  const EtcdVersion version = parse_version(text);
  if (version < EtcdVersion{3, 4, 0})
    return fmt::format("etcd {} is older than 3.4, with which the guard is tested: upgrade it",
                       text);
  if (version >= EtcdVersion{3, 5, 0} && version < EtcdVersion{3, 5, 3})
    return fmt::format(
        "etcd {} may lose acknowledged writes when a member is killed: upgrade it to 3.5.3 or "
        "newer",
        text);
  return {};
}

// Without the same clause twice.
void add_once(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
    list.push_back(std::move(text));
}

// Whether etcd asks who comes. Nothing in `open`: not known, and `unknown` says why.
std::optional<bool> is_open(EtcdConnection& connection, std::string& unknown) {
  const auto asked = connection.ask("/etcdserverpb.Auth/Authenticate",
                                    etcd::encode(etcd::AuthenticateRequest{"pawl-check", "-"}));
  if (!asked) {
    unknown = asked.error().detail;
    return std::nullopt;
  }
  return asked->status.is(etcd::GrpcCode::kFailedPrecondition);
}

// Of a key or a prefix, as etcdctl takes it in sh.
std::string keys_as_words(std::string_view pattern) {
  const bool is_prefix = pattern.ends_with('*');
  return fmt::format("{}'{}'", is_prefix ? "--prefix=true " : "",
                     is_prefix ? pattern.substr(0, pattern.size() - 1) : pattern);
}

}  // namespace

std::vector<std::string> find_etcd_weaknesses(const std::vector<etcd::EndpointView>& endpoints) {
  std::vector<std::string> found;
  for (const etcd::EndpointView& view : endpoints) {
    if (!view.status) continue;
    add_once(found, weakness_of_version(view.status->version));
    for (const std::string& error : view.status->errors) {
      if (error.find("CORRUPT") != error.npos)
        add_once(found,
                 fmt::format("the members of etcd differ (alarm {}): restore the one that is wrong",
                             error));
    }
  }
  return found;
}

std::vector<std::string> find_etcd_alarms(const std::vector<etcd::EndpointView>& endpoints) {
  std::vector<std::string> found;
  for (const etcd::EndpointView& view : endpoints) {
    if (!view.status) continue;
    for (const std::string& error : view.status->errors) {
      if (error.find("NOSPACE") != error.npos)
        add_once(found, "etcd is full (alarm NOSPACE) and takes no writes");
    }
  }
  return found;
}

bool may_write(const etcd::Permission& permission, const EtcdKeys& keys) {
  if (!permission.may_write) return false;
  const std::string everything(1, '\0');
  const auto ends_after = [&](const std::string& first, const std::string& end,
                              const std::string& key) {
    if (end.empty()) return key == first;
    return end == everything || key < end;
  };
  // [key, end) and [first, end) have a key in common.
  if (permission.key <= keys.first)
    return ends_after(permission.key, permission.range_end, keys.first);
  return ends_after(keys.first, keys.end, permission.key);
}

EtcdAccess find_etcd_access(EtcdConnection& connection, std::string_view guard,
                            const std::vector<std::string>& patterns) {
  EtcdAccess access;
  const auto open = is_open(connection, access.unknown);
  if (!open) return access;
  access.open = *open;
  if (access.open) return access;
  const auto listed = connection.ask("/etcdserverpb.Auth/RoleList", "");
  if (!listed || !listed->status.is(etcd::GrpcCode::kOk)) {
    access.unknown = "this user may not ask for the roles of etcd: check as root";
    return access;
  }
  const auto roles = etcd::decode_role_list(listed->message);
  if (!roles) {
    access.unknown = roles.error().detail;
    return access;
  }
  const EtcdKeys policy{etcd_policy_key(guard)};
  std::vector<EtcdKeys> around{{etcd_prefix_of(guard), etcd::end_of_prefix(etcd_prefix_of(guard))}};
  for (const std::string& pattern : patterns) around.push_back(keys_of_pattern(pattern));
  for (const std::string& role : roles->roles) {
    if (role == "root") continue;
    const auto answer =
        connection.ask("/etcdserverpb.Auth/RoleGet", etcd::encode(etcd::RoleGetRequest{role}));
    const auto known = answer && answer->status.is(etcd::GrpcCode::kOk)
                           ? etcd::decode_role_get(answer->message)
                           : Error{Code::kDenied, "the role " + role + " cannot be read"};
    if (!known) {
      access.unknown = known.error().detail;
      return access;
    }
    const bool is_writer = role.starts_with(kEtcdWriterPrefix);
    for (const etcd::Permission& permission : known->permissions) {
      const bool reaches =
          is_writer ? may_write(permission, policy)
                    : std::any_of(around.begin(), around.end(), [&](const EtcdKeys& keys) {
                        return may_write(permission, keys);
                      });
      if (reaches) add_once(access.roles, role);
    }
  }
  return access;
}

std::string describe(const EtcdAccess& access) {
  if (access.open)
    return "etcd has no users, so that everybody who reaches it may write around the guard";
  if (!access.unknown.empty())
    return fmt::format("whether others may write around it is not known: {}", access.unknown);
  if (access.roles.empty()) return {};
  return fmt::format("the role {} may write around it", fmt::join(access.roles, ", "));
}

std::string etcd_access_commands(std::string_view guard, const std::vector<std::string>& patterns) {
  const std::string role = fmt::format("{}{}", kEtcdWriterPrefix, guard);
  const std::string own = etcd_prefix_of(guard);
  const auto grant = [&](std::string_view what, std::string_view pattern) {
    return fmt::format("  etcdctl role grant-permission {} {} {}\n", role, what,
                       keys_as_words(pattern));
  };
  std::string keys;
  for (const std::string& pattern : patterns) keys += grant("readwrite", pattern);
  return fmt::format(
      "etcd lets others write these keys around the guard. Commands that keep them out; give all "
      "other programs users with roles that do not reach these keys:\n"
      "  etcdctl role add {0}\n"
      "{1}{2}{3}{4}{5}"
      "  etcdctl user add {0}\n"
      "  etcdctl user grant-role {0} {0}\n"
      "  etcdctl user add root\n"
      "  etcdctl user grant-role root root\n"
      "  etcdctl auth enable",
      role, keys, grant("read", kEtcdMark), grant("read", own + "policy"),
      grant("readwrite", own + "fence*"), grant("readwrite", own + "count/*"));
}

GuardStrength to_etcd_strength(const std::vector<std::string>& weaknesses) {
  if (weaknesses.empty()) return {Strength::kFenced, {}};
  return {Strength::kBestEffort, fmt::format("{}", fmt::join(weaknesses, "; "))};
}

}  // namespace pawl::guard
