#include "guard/sqlite/emergency.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"
#include "guard/sqlite/fault.h"

namespace pawl::sqlite {
namespace {

std::string switch_of(const std::string& path) {
  return path + "-pawl-emergency";
}

}  // namespace

bool is_on(const std::string& path, const Emergency& emergency) {
  if (path.empty()) return false;
  std::ifstream file(switch_of(path));
  std::string line;
  while (std::getline(file, line)) {
    Emergency told;
    std::istringstream words(line);
    if (words >> told.installation >> told.guard >> told.generation && told == emergency) return true;
  }
  return false;
}

void turn_on(const std::string& path, const std::vector<Emergency>& emergencies) {
  if (path.empty())
    fail(Word::kInvalid, "a database in memory has no emergency switch: set the mode instead");
  std::string lines;
  for (const Emergency& each : emergencies)
    lines += fmt::format("{} {} {}\n", each.installation, each.guard, each.generation);
  const std::string name = switch_of(path);
  // Who may write to the database must be able to read it, whoever throws the switch.
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  // One write with O_APPEND: two at once do not tear each other's lines.
  if (file.get() < 0 ||
      ::write(file.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()) ||
      ::fsync(file.get()) != 0)
    fail(Word::kInvalid, fmt::format("cannot write {}: {}", name, std::strerror(errno)));
}

void forget_emergencies(const std::string& path) {
  if (!path.empty()) ::unlink(switch_of(path).c_str());
}

}  // namespace pawl::sqlite
