#include "guard/sqlite/emergency.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

std::optional<Switched> parse(const std::string& line) {
  Switched switched;
  std::istringstream words(line);
  if (!(words >> switched.emergency.installation >> switched.emergency.guard >>
        switched.emergency.generation >> switched.at_ms >> switched.login >> switched.application))
    return std::nullopt;
  std::getline(words >> std::ws, switched.reason);
  return switched;
}

std::vector<Switched> all_switched(const std::string& path) {
  std::vector<Switched> all;
  if (path.empty()) return all;
  std::ifstream file(switch_of(path));
  for (std::string line; std::getline(file, line);) {
    if (auto switched = parse(line)) all.push_back(*std::move(switched));
  }
  return all;
}

// On one line, whatever is in it.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

bool is_known(Store& store, const Switched& switched) {
  Statement& asked = store
                         .kept(
                             "SELECT 1 FROM {s}.pawl_audit a JOIN {s}.pawl_guard g ON g.name = "
                             "a.guard WHERE g.id = ?1 AND "
                             "a.what = 'emergency' AND a.at = strftime('%Y-%m-%d %H:%M:%f', ?2 / "
                             "1000.0, 'unixepoch')")
                         .bind(switched.emergency.guard, switched.at_ms);
  const bool known = asked.step();
  asked.reset();
  return known;
}

std::vector<Switched> unknown_to(Store& store) {
  std::vector<Switched> all = all_switched(store.path());
  std::erase_if(all, [&](const Switched& switched) {
    return switched.emergency.installation != store.installation() || is_known(store, switched);
  });
  return all;
}

}  // namespace

std::optional<Switched> find_switched(const std::string& path, const Emergency& emergency) {
  for (Switched& switched : all_switched(path)) {
    if (switched.emergency == emergency) return std::move(switched);
  }
  return std::nullopt;
}

void turn_on(const std::string& path, const std::vector<Emergency>& emergencies,
             const std::string& reason) {
  if (path.empty())
    fail(Word::kInvalid, "a database in memory has no emergency switch: set the mode instead");
  std::string lines;
  for (const Emergency& each : emergencies)
    lines += fmt::format("{} {} {} {} {} {} {}\n", each.installation, each.guard, each.generation,
                         now_ms(), one_word(login_name()), one_word(application_name()),
                         one_line(reason));
  const std::string name = switch_of(path);
  // Every user that may write to the database must be able to read it, whichever user sets it.
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  // One write with O_APPEND: two at once do not tear each other's lines. Locked, because turn_off()
  // writes the file anew.
  if (file.get() < 0 || ::flock(file.get(), LOCK_EX) != 0 ||
      ::write(file.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()) ||
      ::fsync(file.get()) != 0)
    fail(Word::kInvalid, fmt::format("cannot write {}: {}", name, std::strerror(errno)));
}

void turn_off(const std::string& path, std::int64_t installation, std::int64_t guard) {
  if (path.empty()) return;
  const UniqueFd file(::open(switch_of(path).c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || ::flock(file.get(), LOCK_EX) != 0) return;  // There is none, or not ours.
  std::string kept;
  std::ifstream lines(switch_of(path));
  for (std::string line; std::getline(lines, line);) {
    const auto switched = parse(line);
    if (switched && switched->emergency.installation == installation &&
        switched->emergency.guard == guard)
      continue;
    kept += line + "\n";
  }
  // In place: the lines that stay come first, so that no reader misses one of another guard.
  if (::pwrite(file.get(), kept.data(), kept.size(), 0) == static_cast<ssize_t>(kept.size()))
      [[maybe_unused]]
    const int rc = ::ftruncate(file.get(), static_cast<off_t>(kept.size()));
}

void audit_emergencies(Store& store) {
  for (const Switched& switched : unknown_to(store)) {
    store
        .kept(
            "INSERT INTO {s}.pawl_audit (at, login, application, guard, what, reason) SELECT "
            "strftime('%Y-%m-%d %H:%M:%f', ?2 / 1000.0, 'unixepoch'), ?3, ?4, g.name, 'emergency', "
            "nullif(?5, "
            "'') FROM {s}.pawl_guard g WHERE g.id = ?1")
        .bind(switched.emergency.guard, switched.at_ms, switched.login, switched.application,
              switched.reason)
        .run();
  }
}

void audit_late_emergencies(Store& store) noexcept {
  try {
    if (!unknown_to(store).empty())
      static_cast<void>(run_side_transaction(store.path(), audit_emergencies));
  } catch (...) {  // It is for people, and for later.
  }
}

void forget_emergencies(const std::string& path) {
  if (!path.empty()) ::unlink(switch_of(path).c_str());
}

}  // namespace pawl::sqlite
