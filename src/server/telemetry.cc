#include "server/telemetry.h"

#include "server/verbs/table.h"

namespace pawl::server {
namespace {

AcquireResult result_of(const core::Outcome& outcome) {
  if (std::holds_alternative<core::Granted>(outcome)) return AcquireResult::kGranted;
  if (std::holds_alternative<core::Lost>(outcome)) return AcquireResult::kLost;
  const auto* missed = std::get_if<core::NotObtained>(&outcome);
  if (missed == nullptr) return AcquireResult::kRefused;
  switch (missed->why) {
    case core::NotObtained::Why::kBusy:
      return AcquireResult::kBusy;
    case core::NotObtained::Why::kTimeout:
      return AcquireResult::kTimeout;
    case core::NotObtained::Why::kCancelled:
      return AcquireResult::kCancelled;
    case core::NotObtained::Why::kSuperseded:
      break;
  }
  return AcquireResult::kSuperseded;
}

}  // namespace

std::string_view to_text(AcquireResult result) {
  static constexpr std::array<std::string_view, kAcquireResults> kNames{
      "granted", "busy", "timeout", "cancelled", "superseded", "lost", "refused"};
  return kNames[static_cast<std::size_t>(result)];
}

Telemetry::Telemetry() : commands(all_verbs().size() + 1) {}

void Telemetry::count(const core::Output& output) {
  Token last{};
  core::EventKind last_kind = core::EventKind::kRaised;
  for (const core::Event& event : output.events) {
    if (event.token == last && event.kind == last_kind) continue;
    last = event.token;
    last_kind = event.kind;
    if (event.kind == core::EventKind::kGranted) ++tokens;
    if (event.kind == core::EventKind::kRaised) ++raises;
    if (!event.ending) continue;
    ++ended[static_cast<std::size_t>(*event.ending) - 1];
    hold.observe(event.held);
  }
}

void Telemetry::count(const core::Outcome& acquired) {
  if (std::holds_alternative<core::Queued>(acquired)) return;  // Its end is counted.
  ++acquires[static_cast<std::size_t>(result_of(acquired))];
}

}  // namespace pawl::server
