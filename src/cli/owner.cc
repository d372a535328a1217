#include "cli/owner.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>

#include "base/limits.h"

namespace pawl::cli {
namespace {

std::string user() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr && entry->pw_name != nullptr ? entry->pw_name : std::to_string(geteuid());
}

std::string host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

std::string default_owner(int holder) {
  const std::string pid = fmt::format(":{}", holder);
  std::string label = user() + "@" + host();
  label.resize(std::min(label.size(), limits::kOwnerMax - pid.size()));
  return label + pid;
}

}  // namespace pawl::cli
