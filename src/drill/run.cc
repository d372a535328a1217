#include "drill/run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "drill/scenario.h"
#include "drill/scratch.h"
#include "guard/kinds.h"
#include "guard_contract/resource_name.h"

namespace pawl::drill {
namespace {

using guard::ScratchSpace;

Result<GuardMode> mode_from(std::string_view word) {
  for (const GuardMode mode : {GuardMode::kObserve, GuardMode::kShadow, GuardMode::kEnforce}) {
    if (to_text(mode) == word) return mode;
  }
  return Error{
      Code::kInvalid,
      fmt::format(
          "--mode: expected enforce, shadow, observe or none for a scratch resource; got \"{}\"",
          word)};
}

// Makes it, and completes the configuration with what a worker needs to know. It is as strict as
// its kind can be.
Result<std::unique_ptr<ScratchSpace>> make_scratch(DrillConfig& config) {
  Target& target = config.target;
  const std::string_view mode = config.mode;
  const auto kind = guard::need_kind(target.kind);
  if (!kind) return kind.error();
  auto space = (*kind)->open_scratch(target.where, (*kind)->scratch_form);
  if (!space) return space;
  if (mode == kUnguarded) {
    const auto bare = (*space)->bare();
    if (!bare) return bare.error();
    target.resource = *bare;
    target.guarded = false;
    return space;
  }
  const auto wanted = mode_from(mode);
  if (!wanted) return wanted.error();
  guard::Policy policy{.mode = *wanted};
  if ((*space)->abilities().has(guard::Ability::kRequireToken))
    config.require_token = policy.require_token = true;
  const auto made = (*space)->fresh(policy, 1);
  if (!made) return made.error();
  target.resource = made->front();
  return space;
}

// Those of the guard itself, and those of everything there.
Result<std::vector<GuardProblem>> read_problems(const Target& target) {
  const auto kind = guard::need_kind(target.kind);
  if (!kind) return kind.error();
  const auto opened = (*kind)->open_administration(target.where);
  if (!opened) return opened.error();
  const auto found = (*opened)->problems();
  if (!found) return found.error();
  const std::string guard = guard::split_resource(target.resource).guard;
  std::vector<GuardProblem> list;
  for (const guard::Problem& each : *found) {
    if (each.guard != guard && !each.guard.empty()) continue;
    list.push_back(
        {each.severity == "error", each.guard.empty(), each.object, each.problem, each.fix});
  }
  return list;
}

// What is in the resource counts, not what the guard has answered.
void reconcile(Scenario& scenario, ScratchSpace& space, const std::string& resource) {
  const auto effects = space.effects(resource);
  if (!effects) throw DrillAborted{effects.error()};
  std::vector<std::string> values;
  for (const guard::Effect& each : *effects) values.push_back(each.value);
  scenario.reconcile(values);
}

}  // namespace

DrillResult run_drill(const Drill& drill, DrillConfig config) {
  Target& target = config.target;
  const auto kind = guard::need_kind(target.kind);
  if (!kind) return {.error = kind.error()};
  // In this order: the workers end before what they write to is removed.
  std::optional<ScratchDatabase> database;
  std::unique_ptr<ScratchSpace> scratch;
  target.scratch = target.resource.empty();
  if (target.scratch && (*kind)->create != nullptr && target.where.empty()) {
    auto made = ScratchDatabase::make(**kind);
    if (!made) return {.error = made.error()};
    database.emplace(*std::move(made));
    target.where = database->path();
  }
  if (target.scratch) {
    auto made = make_scratch(config);
    if (!made) return {.error = made.error()};
    scratch = *std::move(made);
  }
  const Target drilled = target;
  const std::uint64_t rounds = config.rounds;
  try {
    Scenario scenario(drill.name, std::move(config));
    if (drill.pawld == PawldUse::kThrowaway || scenario.config().pawld.empty())
      scenario.use_throwaway_pawld();
    drill.steps(scenario, rounds);
    if (scratch) reconcile(scenario, *scratch, drilled.resource);
    if (drilled.guarded) scenario.add_problems(read_problems(drilled));
    DrillRecord record = scenario.finish();
    record.purpose = drill.purpose;
    return {.record = std::move(record)};
  } catch (const DrillAborted& aborted) {
    return {.error = aborted.error};
  } catch (const DrillInterrupted&) {
    return {.interrupted = true};
  }
}

}  // namespace pawl::drill
