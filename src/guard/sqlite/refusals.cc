#include "guard/sqlite/refusals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"

namespace pawl::sqlite {
namespace {

constexpr off_t kBytesMax = 1 << 20;  // Nobody has taken them in for long; more would tell no more.

std::string refusals_file(const std::string& path) {
  return path + "-pawl-refusals";
}

void import_lines(Store& store, const std::string& name) {
  std::ifstream file(name);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::int64_t at = 0;
    std::uint64_t token = 0;
    std::string application;
    Refusal refusal;
    if (!(words >> at >> refusal.guard >> refusal.verdict >> token >> refusal.fence >>
          application >> refusal.resource))
      continue;
    if (token != 0) refusal.token = token;
    store.count(refusal.guard, refusal.verdict, 1);
    store.remember(refusal, application, at);
  }
}

}  // namespace

void note_refusal(const std::string& path, const Refusal& refusal) noexcept {
  if (path.empty()) return;
  try {
    const std::string line =
        fmt::format("{} {} {} {} {} {} {}\n", std::time(nullptr), refusal.guard, refusal.verdict,
                    refusal.token.value_or(0), refusal.fence, one_word(application_name()),
                    one_word(refusal.resource));
    const UniqueFd file(
        ::open(refusals_file(path).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    struct stat now {};
    if (!file || ::fstat(file.get(), &now) != 0 || now.st_size > kBytesMax) return;
    [[maybe_unused]] const ssize_t written = ::write(file.get(), line.data(), line.size());
  } catch (...) {  // Out of memory.
  }
}

void import_refusals(const std::string& path) noexcept {
  struct stat now {};
  const std::string name = refusals_file(path);
  if (path.empty() || ::stat(name.c_str(), &now) != 0 || now.st_size == 0) return;
  if (!run_side_transaction(path, [&](Store& store) { import_lines(store, name); })) return;
  // Not unlinked: others may have it open.
  [[maybe_unused]] const int rc = ::truncate(name.c_str(), 0);
}

void forget_refusals(const std::string& path) {
  if (!path.empty()) ::unlink(refusals_file(path).c_str());
}

}  // namespace pawl::sqlite
