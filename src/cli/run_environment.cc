#include "cli/run_environment.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/hex.h"

namespace pawl::cli {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string>>;

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (end > 0) found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string lock_lines(const RunNames& names) {
  std::string text;
  for (const std::string& lock : names.locks) text += (text.empty() ? "" : "\n") + lock;
  for (const std::string_view lock : lines(names.inherited_locks)) (text += "\n").append(lock);
  return text;
}

}  // namespace

std::vector<std::string> command_environment(const std::vector<std::string>& inherited,
                                             const RunNames& names,
                                             const client::GrantedLease& granted) {
  Pairs own = {
      {"PAWL_TOKEN", std::to_string(granted.token.value)},
      {"PAWL_LOCK", lock_lines(names)},
      {"PAWL_LEASE", to_hex(granted.lease)},
      {"PAWL_OWNER", names.owner},
      {"PAWL_ADDR", names.addresses},
      {"PAWL_TTL_MS", std::to_string(granted.ttl.count())},
      {"PAWL_DEADLINE_BOOTTIME_NS", std::to_string(granted.deadline.time_since_epoch().count())},
      {"PAWL_FLOOR", std::to_string(granted.floor.value)},
      {"PAWL_SLOT", granted.slot ? std::to_string(*granted.slot) : ""},
      {"PAWL_HELD", "1"}};
  std::vector<std::string> environment;
  for (const std::string& entry : inherited) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    const bool ours =
        std::any_of(own.begin(), own.end(), [&](const auto& pair) { return pair.first == name; });
    if (!ours) environment.push_back(entry);
  }
  for (const auto& [name, value] : own) {
    if (!value.empty()) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

std::optional<std::string> already_held(const std::vector<std::string>& locks,
                                        const std::string& inherited_locks) {
  const auto held = lines(inherited_locks);
  for (const std::string& lock : locks) {
    if (std::find(held.begin(), held.end(), lock) != held.end()) return lock;
  }
  return std::nullopt;
}

}  // namespace pawl::cli
