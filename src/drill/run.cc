#include "drill/run.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using guard::ScratchSpace;

Result<GuardMode> mode_from(std::string_view word) {
  for (const GuardMode mode : {GuardMode::kObserve, GuardMode::kShadow, GuardMode::kEnforce}) {
    if (to_text(mode) == word) return mode;
  }
  return Error{Code::kInvalid, fmt::format("there is no mode \"{}\" for a scratch resource", word)};
}

// In `target`, which then says all that a worker needs.
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

// What is in effect counts, not what the guard has said of it.
void settle(Stage& stage, ScratchSpace& space, const std::string& resource) {
  const auto effects = space.effects(resource);
  if (!effects) throw Impossible{effects.error()};
  std::vector<std::string> values;
  for (const guard::Effect& each : *effects) values.push_back(each.value);
  stage.settle(values);
}

}  // namespace

Ended run(const Drill& drill, Order order) {
  order.setting.drill = drill.name;
  Target& target = order.setting.target;
  std::unique_ptr<ScratchSpace> scratch;  // outlives the workers that write to it
  target.scratch = target.resource.empty();
  if (target.scratch) {
    auto made = make_scratch(target, order.setting.mode);
    if (!made) return {.trouble = made.error()};
    scratch = *std::move(made);
  }
  const std::string resource = target.resource;
  try {
    Stage stage(std::move(order.setting));
    drill.play(stage, order.rounds);
    if (scratch) settle(stage, *scratch, resource);
    return {.record = stage.finish()};
  } catch (const Impossible& impossible) {
    return {.trouble = impossible.error};
  } catch (const Interrupted&) {
    return {.interrupted = true};
  }
}

}  // namespace pawl::drill
