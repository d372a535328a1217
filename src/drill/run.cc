#include "drill/run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "drill/scenario.h"
#include "drill/scratch.h"
#include "guard/kinds.h"

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

// Makes it, and completes `target` with what a worker needs to know.
Result<std::unique_ptr<ScratchSpace>> make_scratch(Target& target, std::string_view mode) {
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
  const auto made = (*space)->fresh({.mode = *wanted}, 1);
  if (!made) return made.error();
  target.resource = made->front();
  return space;
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
    auto made = make_scratch(target, config.mode);
    if (!made) return {.error = made.error()};
    scratch = *std::move(made);
  }
  const std::string resource = target.resource;
  const std::uint64_t rounds = config.rounds;
  try {
    Scenario scenario(drill.name, std::move(config));
    if (drill.pawld == PawldUse::kThrowaway || scenario.config().pawld.empty())
      scenario.use_throwaway_pawld();
    drill.steps(scenario, rounds);
    if (scratch) reconcile(scenario, *scratch, resource);
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
