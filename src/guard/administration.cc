#include "guard/administration.h"

#include <array>

namespace pawl::guard {
namespace {

constexpr std::array<std::string_view, kTaskCount> kTasks{
    "print what it installs",
    "rehearse a change (--dry-run)",
    "put things under guard by command",
    "tell which writers come without a token",
    "change its mode",
    "change its policy",
    "be switched off in an emergency",
    "name the writes that an advance would wait for",
    "end the transactions of former holders",
    "be compacted",
    "write and read contents by command",
    "leave anything behind that could be collected",
};

}  // namespace

Error Administration::unable(Task task) const {
  return {Code::kInvalid, std::string(title()) + ": a guard here cannot " +
                              std::string(kTasks.at(static_cast<std::size_t>(task)))};
}

Result<std::string_view> Administration::script() const {
  return unable(Task::kScript);
}
Result<std::string> Administration::protect(const Protection&, Rehearse) {
  return unable(Task::kProtect);
}
Result<std::string> Administration::access_advice(const std::string&) {
  return std::string();
}
Result<void> Administration::unprotect(const std::string&, Rehearse) {
  return unable(Task::kProtect);
}
Result<void> Administration::drop(const std::string&, Rehearse) {
  return unable(Task::kProtect);
}
Result<std::vector<Sighting>> Administration::sightings(const std::string&) {
  return unable(Task::kSightings);
}
Result<void> Administration::set_mode(const ModeChange&, Rehearse) {
  return unable(Task::kModes);
}
Result<void> Administration::set_policy(const PolicyChange&, Rehearse) {
  return unable(Task::kPolicies);
}
Result<void> Administration::emergency(const std::string&, const std::string&) {
  return unable(Task::kEmergency);
}
Result<std::vector<std::string>> Administration::blockers(const std::string&) {
  return unable(Task::kBlockers);
}
Result<void> Administration::compact(const std::string&, std::uint64_t, Rehearse) {
  return unable(Task::kCompact);
}
Result<Decision> Administration::put(const std::string&, std::uint64_t, std::uint64_t,
                                     const std::string&) {
  return unable(Task::kContent);
}
Result<std::optional<std::string>> Administration::get(const std::string&) {
  return unable(Task::kContent);
}
Result<std::vector<std::string>> Administration::collect(const std::string&, Rehearse) {
  return unable(Task::kCollect);
}

void weaken_by_problems(Status& status, const Result<std::vector<Problem>>& problems) {
  if (!problems) {
    status.strength = {Strength::kBestEffort,
                       "its problems cannot be read: " + problems.error().detail};
    return;
  }
  for (const Problem& problem : *problems) {
    if (problem.severity != "error") continue;
    if (!problem.guard.empty() && problem.guard != status.guard) continue;
    status.strength = {Strength::kBestEffort, problem.object.empty()
                                                  ? problem.problem
                                                  : problem.object + ": " + problem.problem};
    return;
  }
}

}  // namespace pawl::guard
