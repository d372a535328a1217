#include "drill/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::drill {
namespace {

bool in_effect(const Write& write) {
  return write.fate == Fate::kAdmitted || write.fate == Fate::kLetThrough;
}

// When the lock was first granted to a later holder.
std::optional<Moment> next_grant(const DrillRecord& record, const Belief& belief) {
  std::optional<Moment> first;
  for (const Ownership& next : record.ownerships) {
    if (next.token > belief.token && (!first || next.from < *first)) first = next.from;
  }
  return first;
}

std::optional<Moment> noticed_late(const DrillRecord& record) {
  std::optional<Moment> latest;
  for (const Belief& belief : record.beliefs) {
    const auto next = next_grant(record, belief);
    if (!next) continue;
    const Moment late = belief.until.value_or(record.length) - *next;
    if (!latest || late > *latest) latest = late;
  }
  return latest;
}

// Every grant has a greater token than the one before, whatever happens to pawld.
bool tokens_grow(const DrillRecord& record) {
  return std::all_of(record.ownerships.begin(), record.ownerships.end(),
                     [](const Ownership& each) { return each.token > each.token_before; });
}

// The drill's writers all use tokens, so only the policy shows it.
bool admits_tokenless_writes(const DrillRecord& record) {
  return (record.mode == "enforce" || record.mode == "canary") && record.require_token == false;
}

// A resource is GUARD or GUARD:KEY.
std::string_view guard_of(std::string_view resource) {
  return resource.substr(0, resource.find(':'));
}

}  // namespace

void mark_stale(DrillRecord& record) {
  for (Write& write : record.writes) {
    write.stale = std::any_of(
        record.ownerships.begin(), record.ownerships.end(),
        [&](const Ownership& each) { return each.token > write.token && each.from <= write.sent; });
    if (in_effect(write)) write.fate = write.stale ? Fate::kLetThrough : Fate::kAdmitted;
  }
}

DrillVerdict judge(const DrillRecord& record) {
  DrillVerdict verdict;
  std::uint64_t holder_refused = 0;
  for (const Write& write : record.writes) {
    if (write.fate == Fate::kWithheld) continue;
    ++verdict.writes;
    if (write.stale) ++verdict.stale_sent;
    if (write.stale && write.fate == Fate::kRefused) ++verdict.refused;
    if (write.fate == Fate::kLetThrough) ++verdict.let_through;
    if (write.fate == Fate::kUnknown) ++verdict.unknown;
    if (!write.stale && write.fate == Fate::kRefused) ++holder_refused;
  }
  verdict.noticed_late = noticed_late(record);
  auto& reasons = verdict.reasons;
  if (verdict.stale_sent == 0)
    reasons.emplace_back("No stale write was sent, so the guard was not tested.");
  if (verdict.let_through > 0)
    reasons.push_back(fmt::format("{} got through.", counted(verdict.let_through, "stale write")));
  if (verdict.unknown > 0)
    reasons.push_back(
        fmt::format("The result of {} is unknown.", counted(verdict.unknown, "write")));
  if (holder_refused > 0)
    reasons.push_back(
        fmt::format("The holder of the lock was refused {}.", counted(holder_refused, "time")));
  if (!tokens_grow(record))
    reasons.emplace_back("A token was granted that is not greater than the one before it.");
  verdict.passed = reasons.empty();
  if (verdict.passed)
    reasons.push_back(verdict.stale_sent == 1
                          ? "The stale write was refused."
                          : fmt::format("All {} stale writes were refused.", verdict.stale_sent));
  if (admits_tokenless_writes(record)) {
    verdict.notes.push_back(
        {"Writes without a token are still admitted, because require_token is off. To refuse them:",
         fmt::format("pawl guard policy {} {}{}{} --require-token on", record.guard,
                     guard_of(record.resource), record.guard_options.empty() ? "" : " ",
                     record.guard_options)});
  }
  return verdict;
}

}  // namespace pawl::drill
