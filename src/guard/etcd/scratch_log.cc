#include "guard/etcd/scratch_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kBareWord = "_bare_";

}  // namespace

std::string etcd_scratch_bare(std::string_view prefix, std::uint64_t number) {
  return fmt::format("{}{}{}", prefix, kBareWord, number);
}

bool is_etcd_scratch_bare(std::string_view resource) {
  return resource.find(kBareWord) != resource.npos;
}

std::string etcd_scratch_pattern(std::string_view guard) {
  return fmt::format("{}/*", guard);
}

std::string etcd_log_key(EtcdScope scope, std::string_view resource) {
  const ResourceName name = split_resource(resource);
  const std::string key = fmt::format("{}/{}", name.guard, name.key.value_or("log"));
  return is_one_key(scope, resource) ? key : key + "/";
}

bool is_one_key(EtcdScope scope, std::string_view resource) {
  return scope == EtcdScope::kRow && !is_etcd_scratch_bare(resource);
}

std::string etcd_log_line(std::uint64_t token, std::string_view value) {
  return fmt::format("{} {}\n", token, value);
}

std::vector<Effect> etcd_log_effects(std::vector<etcd::KeyValue> found) {
  std::sort(found.begin(), found.end(), [](const etcd::KeyValue& a, const etcd::KeyValue& b) {
    return std::tie(a.mod_revision, a.key) < std::tie(b.mod_revision, b.key);
  });
  std::vector<Effect> effects;
  for (const etcd::KeyValue& each : found) {
    std::string_view lines = each.value;
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      const std::string_view line = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 1, lines.size()));
      const std::size_t space = std::min(line.find(' '), line.size());
      effects.push_back({parse_token(line.substr(0, space)).value_or(0),
                         std::string(line.substr(std::min(space + 1, line.size())))});
    }
  }
  return effects;
}

}  // namespace pawl::guard
