#include "drill/demo_row.h"

#include <utility>

#include "guard/kinds.h"

namespace pawl::drill {

DemoRow::DemoRow(std::string kind, std::string where, std::unique_ptr<guard::ScratchSpace> space)
    : kind_(std::move(kind)), where_(std::move(where)), space_(std::move(space)) {}

Result<std::unique_ptr<DemoRow>> DemoRow::make(const std::string& kind, const std::string& where) {
  const auto known = guard::need_kind(kind);
  if (!known) return known.error();
  auto space = (*known)->open_scratch(where, (*known)->scratch_form);
  if (!space) return space.error();
  return std::unique_ptr<DemoRow>(new DemoRow(kind, where, *std::move(space)));
}

Target DemoRow::target() const {
  return {
      .kind = kind_, .where = where_, .resource = resource_, .scratch = true, .guarded = guarded_};
}

Result<DemoRow::Content> DemoRow::read() {
  const auto effects = space_->effects(resource_);
  if (!effects) return effects.error();
  if (effects->empty()) return Content{0, initial_};
  return Content{effects->back().token, effects->back().value};
}

Result<void> DemoRow::reset(const std::string& value) {
  auto bare = space_->bare();
  if (!bare) return bare.error();
  resource_ = *std::move(bare);
  initial_ = value;
  guarded_ = false;
  return {};
}

Result<void> DemoRow::protect() {
  const bool can_require = space_->abilities().has(guard::Ability::kRequireToken);
  auto fresh = space_->fresh({.mode = GuardMode::kEnforce, .require_token = can_require}, 1);
  if (!fresh) return fresh.error();
  resource_ = fresh->front();
  guarded_ = true;
  return {};
}

}  // namespace pawl::drill
