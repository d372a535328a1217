#include "drill/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// A resource is GUARD or GUARD:KEY.
std::string_view guard_of(std::string_view resource) {
  return resource.substr(0, resource.find(':'));
}

// "pawl guard policy postgres orders --dsn DSN --require-token on".
std::string guard_command(const DrillRecord& record, std::string_view verb,
                          std::string_view arguments) {
  return fmt::format("pawl guard {} {} {}{}{} {}", verb, record.guard, guard_of(record.resource),
                     record.guard_options.empty() ? "" : " ", record.guard_options, arguments);
}

// A guard that refuses nothing, or not everywhere, is not one, whatever this drill has seen.
bool refuses_everywhere(const DrillRecord& record) {
  return record.mode == "enforce";
}
bool guarded(const DrillRecord& record) {
  return !record.mode.empty() && record.mode != "none";
}

bool tried_with(const DrillRecord& record, Way way, WayFate fate) {
  return std::any_of(record.ways.begin(), record.ways.end(),
                     [&](const TriedWay& each) { return each.way == way && each.fate == fate; });
}

// By its policy the guard must refuse a stale write that is sent in this way.
bool must_refuse(const DrillRecord& record, Way way) {
  return way != Way::kNone || record.require_token == true;
}

bool has_errors(const DrillRecord& record) {
  return std::any_of(record.problems.begin(), record.problems.end(),
                     [](const GuardProblem& each) { return each.error; });
}

bool changes_no_row(const DrillRecord& record) {
  return std::any_of(record.writes.begin(), record.writes.end(), [](const Write& write) {
    return write.fate == Fate::kAdmitted && write.rows == std::uint64_t{0};
  });
}

void judge_ways(const DrillRecord& record, std::vector<Note>& reasons) {
  bool landed = false;
  for (const TriedWay& each : record.ways) {
    if (each.fate == WayFate::kUnknown)
      reasons.push_back(
          {fmt::format("A stale write with {} was neither refused nor did it land: {}", each.words,
                       each.detail)});
    if (each.fate != WayFate::kLanded || !must_refuse(record, each.way)) continue;
    landed = true;
    if (refuses_everywhere(record))
      reasons.push_back(
          {fmt::format("A stale write with {} landed{}.", each.words,
                       each.way == Way::kNone ? ", although require_token is on" : "")});
  }
  // Nothing that the guard knows of explains it.
  if (!landed || !refuses_everywhere(record) || has_errors(record) || record.scratch ||
      record.tables.empty())
    return;
  reasons.push_back({fmt::format(
      "The statement of --write does not reach the guard {}: it changes another table. Give one "
      "that changes {}.",
      guard_of(record.resource), fmt::join(record.tables, " or "))});
}

std::string text_of(const GuardProblem& problem) {
  return fmt::format("{}{}{}. To mend it:", problem.object, problem.object.empty() ? "" : ": ",
                     problem.problem);
}

// What lets writes past the guard, whether or not this drill has met it.
void judge_guard(const DrillRecord& record, std::vector<Note>& reasons) {
  if (!guarded(record)) return;
  if (!refuses_everywhere(record)) {
    const std::string text = fmt::format(
        "The guard is in mode {}, which refuses {}.", record.mode,
        record.mode == "canary" ? "stale writes to a part of the resources only" : "nothing");
    reasons.push_back(record.scratch ? Note{text}
                                     : Note{text + " To refuse all stale writes:",
                                            guard_command(record, "mode", "enforce")});
  }
  for (const GuardProblem& each : record.problems) {
    if (each.error && !(each.whole && record.scratch)) reasons.push_back({text_of(each), each.fix});
  }
  if (!record.scratch && !record.statement.empty() && record.tables.empty())
    reasons.push_back(
        {fmt::format("No table is under the guard {}, so nothing judges a write that does not ask. "
                     "Leave out --write, or put the table under guard:",
                     guard_of(record.resource)),
         fmt::format("pawl guard protect {} TABLE --guard {}{}{}", record.guard,
                     guard_of(record.resource), record.guard_options.empty() ? "" : " ",
                     record.guard_options)});
  if (changes_no_row(record))
    reasons.push_back(
        {"The statement of --write changes no row, so there is nothing to refuse. Give one that "
         "changes a row."});
}

// What is weak, or was not tried.
std::vector<Note> notes_on(const DrillRecord& record) {
  std::vector<Note> notes;
  if ((record.mode == "enforce" || record.mode == "canary") && record.require_token == false)
    notes.push_back(
        {"Writes without a token are still admitted, because require_token is off. To refuse them:",
         guard_command(record, "policy", "--require-token on")});
  if (!record.scratch && tried_with(record, Way::kCarried, WayFate::kNotApplicable) &&
      record.statement.empty() && !record.tables.empty())
    notes.push_back(
        {"The write itself was not sent, so nothing shows that the table refuses it. To send it, "
         "in "
         "transactions that are rolled back:",
         fmt::format("pawl drill {} --guard {}:{}{}{} --write 'UPDATE …'", record.drill,
                     record.guard, record.resource, record.guard_options.empty() ? "" : " ",
                     record.guard_options)});
  for (const GuardProblem& each : record.problems) {
    if (!each.error || (each.whole && record.scratch)) notes.push_back({text_of(each), each.fix});
  }
  if (!record.problems_unread.empty())
    notes.push_back({fmt::format("What the guard reports about itself could not be read ({}). To "
                                 "look at it:",
                                 record.problems_unread),
                     fmt::format("pawl guard check {}{}{}", record.guard,
                                 record.guard_options.empty() ? "" : " ", record.guard_options)});
  return notes;
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
    reasons.push_back({"No stale write was sent, so the guard was not tested."});
  if (verdict.let_through > 0)
    reasons.push_back(
        {fmt::format("{} got through.", counted(verdict.let_through, "stale write"))});
  if (verdict.unknown > 0)
    reasons.push_back(
        {fmt::format("The result of {} is unknown.", counted(verdict.unknown, "write"))});
  if (holder_refused > 0)
    reasons.push_back(
        {fmt::format("The holder of the lock was refused {}.", counted(holder_refused, "time"))});
  if (!tokens_grow(record))
    reasons.push_back({"A token was granted that is not greater than the one before it."});
  judge_ways(record, reasons);
  judge_guard(record, reasons);
  verdict.passed = reasons.empty();
  if (verdict.passed)
    reasons.push_back({verdict.stale_sent == 1
                           ? "The stale write was refused."
                           : fmt::format("All {} stale writes were refused.", verdict.stale_sent)});
  verdict.notes = notes_on(record);
  return verdict;
}

}  // namespace pawl::drill
