#include "guard/redis/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kBare = "_bare_";

std::string_view without_star(std::string_view pattern) {
  return pattern.ends_with('*') ? pattern.substr(0, pattern.size() - 1) : pattern;
}

Error invalid(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

}  // namespace

Result<RedisForm> parse_redis_form(std::string_view text) {
  for (std::size_t i = 0; i < kRedisForms.size(); ++i) {
    if (kRedisForms[i] == text) return static_cast<RedisForm>(i);
  }
  return invalid(fmt::format("unknown form \"{}\" of a guard in Redis", text));
}

std::string guard_name_of(std::string_view pattern) {
  std::string name(without_star(pattern));
  name.resize(name.find_last_not_of(":/.-_") + 1);
  if (name.size() > 2 && name.front() == '{' && name.back() == '}')
    name = name.substr(1, name.size() - 2);
  return name.find_first_of(":{}") == name.npos ? name : "";
}

std::string_view hash_tag(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == key.npos) return {};
  const std::size_t close = key.find('}', open);
  return close == key.npos ? std::string_view{} : key.substr(open + 1, close - open - 1);
}

bool overlap(std::string_view one, std::string_view other) {
  const bool one_open = one.ends_with('*');
  const bool other_open = other.ends_with('*');
  const std::string_view a = without_star(one);
  const std::string_view b = without_star(other);
  if (a == b) return true;
  return (one_open && b.starts_with(a)) || (other_open && a.starts_with(b));
}

Result<RedisProtection> to_redis_protection(const Protection& wanted, bool cluster) {
  RedisProtection made{wanted.guard, "static", ""};
  if (made.guard.empty()) made.guard = guard_name_of(wanted.table);
  if (made.guard.empty())
    return invalid(fmt::format("no guard can be named after {}: give --guard NAME", wanted.table));
  if (const auto name = parse_resource(made.guard); !name) return name.error();
  if (made.guard.find_first_of(":{}*") != made.guard.npos)
    return invalid("the name of a guard in Redis is a hash tag: without : { } and *");
  if (!wanted.key.empty() && wanted.key != "*")
    return invalid("in Redis --key takes '*' only: what the * of the pattern stands for");
  if (!wanted.key.empty()) made.kind = "row";
  if (!wanted.by.empty()) {
    made.kind = "by";
    made.by = wanted.by;
  }
  if (cluster && hash_tag(wanted.table) != made.guard)
    return invalid(fmt::format(
        "in a Redis Cluster all keys of a guard are in one slot: they need its hash tag, {{{}}}",
        made.guard));
  return made;
}

std::string scratch_key(RedisForm form, std::string_view resource) {
  const ResourceName name = split_resource(resource);
  const std::string end = name.key.value_or("log") + (form == RedisForm::kBy ? ":log" : "");
  return fmt::format("{{{}}}:{}", name.guard, end);
}

std::string scratch_bare(std::string_view prefix, std::uint64_t number) {
  return fmt::format("{}{}{}", prefix, kBare, number);
}

bool is_scratch_bare(std::string_view resource) {
  return resource.find(kBare) != resource.npos;
}

}  // namespace pawl::guard
