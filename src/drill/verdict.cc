#include "drill/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::drill {
namespace {

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

bool in_effect(const Write& write) {
  return write.fate == Fate::kAdmitted || write.fate == Fate::kLetThrough;
}

// From when on someone else had the lock, who believed in this.
std::optional<Moment> handed_on(const Record& record, const Belief& belief) {
  std::optional<Moment> first;
  for (const Ownership& next : record.ownerships) {
    if (next.token > belief.token && (!first || next.from < *first)) first = next.from;
  }
  return first;
}

std::optional<Moment> knew_late(const Record& record) {
  std::optional<Moment> latest;
  for (const Belief& belief : record.beliefs) {
    const auto next = handed_on(record, belief);
    if (!next) continue;
    const Moment late = belief.until.value_or(record.length) - *next;
    if (!latest || late > *latest) latest = late;
  }
  return latest;
}

// Every grant must have a greater token than the one before: whatever happens to pawld.
bool tokens_grow(const Record& record) {
  std::vector<const Ownership*> grants;
  for (const Ownership& each : record.ownerships) grants.push_back(&each);
  std::stable_sort(grants.begin(), grants.end(),
                   [](const auto* a, const auto* b) { return a->from < b->from; });
  return std::adjacent_find(grants.begin(), grants.end(), [](const auto* a, const auto* b) {
           return b->token <= a->token;
         }) == grants.end();
}

}  // namespace

void mark_stale(Record& record) {
  for (Write& write : record.writes) {
    write.stale = std::any_of(
        record.ownerships.begin(), record.ownerships.end(),
        [&](const Ownership& each) { return each.token > write.token && each.from <= write.sent; });
    if (in_effect(write)) write.fate = write.stale ? Fate::kLetThrough : Fate::kAdmitted;
  }
}

Verdict judge(const Record& record) {
  Verdict verdict;
  std::uint64_t wronged = 0;
  for (const Write& write : record.writes) {
    if (write.fate == Fate::kWithheld) continue;
    ++verdict.writes;
    if (write.stale) ++verdict.stale_sent;
    if (write.stale && write.fate == Fate::kRefused) ++verdict.refused;
    if (write.fate == Fate::kLetThrough) ++verdict.let_through;
    if (write.fate == Fate::kUnknown) ++verdict.unknown;
    if (!write.stale && write.fate == Fate::kRefused) ++wronged;
  }
  verdict.knew_late = knew_late(record);
  auto& because = verdict.because;
  if (verdict.stale_sent == 0)
    because.emplace_back("No stale write was sent, so nothing was shown.");
  if (verdict.let_through > 0)
    because.push_back(fmt::format("{} got through.",
                                  counted(verdict.let_through, "stale write", "stale writes")));
  if (verdict.unknown > 0)
    because.push_back(fmt::format("What became of {} is not known.",
                                  counted(verdict.unknown, "write", "writes")));
  if (wronged > 0)
    because.push_back(
        fmt::format("The rightful holder was refused {}.", counted(wronged, "time", "times")));
  if (!tokens_grow(record))
    because.emplace_back("A token was granted that is not greater than the one before.");
  verdict.passed = because.empty();
  if (verdict.passed)
    because.push_back(verdict.stale_sent == 1
                          ? "The stale write was refused."
                          : fmt::format("All {} stale writes were refused.", verdict.stale_sent));
  return verdict;
}

}  // namespace pawl::drill
