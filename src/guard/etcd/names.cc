#include "guard/etcd/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "etcd/messages.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

std::string_view beginning_of(std::string_view pattern) {
  return pattern.ends_with('*') ? pattern.substr(0, pattern.size() - 1) : pattern;
}

bool is_pattern(std::string_view text) {
  const std::string_view beginning = beginning_of(text);
  return !beginning.empty() && std::none_of(beginning.begin(), beginning.end(), [](char c) {
    return c == '*' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

Error wrong_protection(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

// Of a key that begins with the pattern, and is `rest` behind it.
EtcdOwner owner_behind(std::string_view guard, const EtcdPolicy& policy, std::string_view rest,
                       bool is_prefix) {
  using Kind = EtcdOwner::Kind;
  if (policy.scope == EtcdScope::kStatic) return {Kind::kOwn, std::string(guard)};
  const std::size_t end = policy.scope == EtcdScope::kBy ? rest.find(policy.by) : rest.npos;
  // All keys that begin with `cart/7/` are of one resource, those that begin with `cart/7` of many.
  if (is_prefix && end == rest.npos) return {Kind::kSeveral};
  return {Kind::kOwn, fmt::format("{}:{}", guard, rest.substr(0, end))};
}

}  // namespace

std::string etcd_prefix_of(std::string_view guard) {
  return fmt::format("{}{}/", kEtcdOwn, guard);
}

std::string etcd_policy_key(std::string_view guard) {
  return etcd_prefix_of(guard) + "policy";
}

std::string etcd_fence_key(std::string_view resource) {
  const ResourceName name = split_resource(resource);
  return etcd_prefix_of(name.guard) + "fence" + (name.key ? "/" + *name.key : "");
}

std::string etcd_count_key(std::string_view guard, std::string_view what) {
  return fmt::format("{}count/{}", etcd_prefix_of(guard), what);
}

std::string_view guard_of(std::string_view resource) {
  return resource.substr(0, resource.find(':'));
}

std::string etcd_guard_name_of(std::string_view pattern) {
  std::string name(beginning_of(pattern));
  name.resize(name.find_last_not_of(":/.-_") + 1);
  name.erase(0, name.find_first_not_of('/'));
  return name.find_first_of(":/") == name.npos ? name : "";
}

bool etcd_patterns_overlap(std::string_view one, std::string_view other) {
  const std::string_view a = beginning_of(one);
  const std::string_view b = beginning_of(other);
  if (a == b) return true;
  return (one.ends_with('*') && b.starts_with(a)) || (other.ends_with('*') && a.starts_with(b));
}

EtcdKeys keys_of_pattern(std::string_view pattern) {
  EtcdKeys keys{std::string(beginning_of(pattern))};
  if (pattern.ends_with('*')) keys.end = etcd::end_of_prefix(keys.first);
  return keys;
}

Result<EtcdProtection> to_etcd_protection(const Protection& wanted) {
  if (!is_pattern(wanted.table))
    return wrong_protection(
        "under guard stands a key, or the beginning of keys and a `*`: orders/*");
  for (const std::string_view own : {kEtcdOwn, kEtcdIndex, kEtcdMark}) {
    if (etcd_patterns_overlap(wanted.table, std::string(own) + "*"))
      return wrong_protection(fmt::format("{} has the guards themselves", own));
  }
  EtcdProtection made{wanted.guard};
  if (made.guard.empty()) made.guard = etcd_guard_name_of(wanted.table);
  if (made.guard.empty())
    return wrong_protection(
        fmt::format("no guard can be named after {}: give --guard NAME", wanted.table));
  if (const auto name = parse_resource(made.guard); !name) return name.error();
  if (made.guard.find_first_of(":/") != made.guard.npos)
    return wrong_protection("the name of a guard in etcd is a part of keys: without : and /");
  if (!wanted.key.empty() && wanted.key != "*")
    return wrong_protection("in etcd --key takes '*' only: what the * of the pattern stands for");
  if (!wanted.key.empty()) made.scope = EtcdScope::kRow;
  if (!wanted.by.empty()) {
    made.scope = EtcdScope::kBy;
    made.by = wanted.by;
  }
  if (made.by.find('\n') != made.by.npos) return wrong_protection("a separator is on one line");
  if (made.scope != EtcdScope::kStatic && !wanted.table.ends_with('*'))
    return wrong_protection("a fence for each key needs the beginning of keys and a `*`: orders/*");
  return made;
}

EtcdOwner owner_of(std::string_view guard, const EtcdPolicy& policy, const EtcdChange& change) {
  const std::string& key = key_of(change);
  const auto* removal = std::get_if<EtcdDelete>(&change);
  const bool is_prefix = removal != nullptr && removal->prefix;
  for (const std::string& pattern : policy.keys) {
    const std::string_view beginning = beginning_of(pattern);
    if (pattern.ends_with('*') && key.starts_with(beginning))
      return owner_behind(guard, policy, std::string_view(key).substr(beginning.size()), is_prefix);
    if (key == pattern && !is_prefix) return {EtcdOwner::Kind::kOwn, std::string(guard)};
  }
  return {};
}

const std::string& key_of(const EtcdChange& change) {
  return std::visit([](const auto& each) -> const std::string& { return each.key; }, change);
}

}  // namespace pawl::guard
