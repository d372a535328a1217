#include "drill/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "drill/report/text.h"

namespace pawl::drill {
namespace {

const Write* first_stale(const DrillRecord& record) {
  for (const Fate fate : {Fate::kLetThrough, Fate::kRefused, Fate::kWithheld, Fate::kUnknown}) {
    const auto it =
        std::find_if(record.writes.begin(), record.writes.end(),
                     [&](const Write& write) { return write.stale && write.fate == fate; });
    if (it != record.writes.end()) return &*it;
  }
  return nullptr;
}

const Ownership* grant_of(const DrillRecord& record, std::uint64_t token) {
  const auto it =
      std::find_if(record.ownerships.begin(), record.ownerships.end(),
                   [&](const Ownership& ownership) { return ownership.token == token; });
  return it == record.ownerships.end() ? nullptr : &*it;
}

// The grant that made the token stale: the first with a greater one.
const Ownership* successor_of(const DrillRecord& record, const Write& write) {
  const Ownership* next = nullptr;
  for (const Ownership& ownership : record.ownerships) {
    if (ownership.token <= write.token || ownership.from > write.sent) continue;
    if (next == nullptr || ownership.token < next->token) next = &ownership;
  }
  return next;
}

std::string fault_sentence(const Fault& fault, const DrillRecord& record) {
  const std::string lasted = span_text(until_or_end(fault.until, record) - fault.from);
  const std::string note = fault.note.empty() ? "" : " (" + fault.note + ")";
  switch (fault.kind) {
    case FaultKind::kFrozen:
      return fmt::format("{} was frozen{}: it ran no code for {} and could not notice that.",
                         fault.target, note, lasted);
    case FaultKind::kCut:
      return fmt::format("{} was cut off{} for {}.", fault.target, note, lasted);
    case FaultKind::kKilled:
      return fmt::format("{} was killed{}.", fault.target, note);
    case FaultKind::kRestarted:
      return fmt::format("{} was started again{}.", fault.target, note);
    case FaultKind::kClockStepped:
      return fmt::format("The clock of {} was stepped{}.", fault.target, note);
    case FaultKind::kRestored:
      return fmt::format("{} was restored from a backup{}.", fault.target, note);
    case FaultKind::kDelayed:
      break;
  }
  return fmt::format("A write that {} had sent was delayed on its way for {}.", fault.target,
                     lasted);
}

std::string ending_sentence(const Ownership& grant) {
  if (grant.ending == "expired") {
    return fmt::format("{}'s lease was not renewed and expired.", grant.worker);
  }
  if (grant.ending == "released") return fmt::format("{} released the lock.", grant.worker);
  if (grant.ending.empty() || grant.ending == "ended")
    return fmt::format("{}'s lease ended.", grant.worker);
  return fmt::format("{}'s lease ended: {}.", grant.worker, grant.ending);
}

std::string final_sentence(const Write& write, const DrillRecord& record) {
  const std::string head = fmt::format("{} wrote with its old token {}", write.worker, write.token);
  // The first sentence; the others are advice for programs.
  const std::string detail = write.detail.substr(0, write.detail.find(". "));
  const std::string message = detail.empty() ? "" : fmt::format(" (“{}”)", detail);
  switch (write.fate) {
    case Fate::kLetThrough:
      return head +
             (record.mode == "none"
                  ? ", and the write took effect: nothing in the resource compares tokens. "
                  : fmt::format(", and the write took effect: a guard in mode {} refuses nothing. ",
                                record.mode)) +
             "What the holder of the lock had written was overwritten, and nobody got an error.";
    case Fate::kRefused:
      return head + ": the resource refused it" + message + ". Nothing was lost.";
    case Fate::kWithheld:
      return fmt::format(
          "{} checked its lease before writing, found that it was over, and did not write.",
          write.worker);
    case Fate::kAdmitted:
    case Fate::kUnknown:
      break;
  }
  return head + ": no result arrived, and the resource does not show whether it took effect" +
         message + ".";
}

void add(Summary& summary, Moment at, std::string text) {
  summary.steps.push_back({at, std::move(text)});
}

void add_grant(Summary& summary, const Ownership& grant) {
  add(summary, grant.from,
      fmt::format("{} was granted the lock, with the fencing token {}.", grant.worker,
                  grant.token));
}

// One of each kind, as some drills have dozens: the longest, which is the one that ended the lease.
void add_faults(Summary& summary, const DrillRecord& record, const Write& write, Moment since) {
  const auto length = [&](const Fault& fault) {
    return until_or_end(fault.until, record) - fault.from;
  };
  std::map<std::pair<FaultKind, std::string>, const Fault*> longest;
  for (const Fault& fault : record.faults) {
    if (fault.from < since || fault.from > write.sent) continue;
    if (fault.target != write.worker && fault.target != "pawld") continue;
    const Fault*& known = longest[{fault.kind, fault.target}];
    if (known == nullptr || length(fault) > length(*known)) known = &fault;
  }
  for (const auto& [kind, fault] : longest)
    add(summary, fault->from, fault_sentence(*fault, record));
}

// How long the former holder was wrong; empty: it noticed in time.
std::string belief_sentence(const DrillRecord& record, const Write& stale, const Ownership& next) {
  for (const Belief& belief : record.beliefs) {
    if (belief.worker != stale.worker || belief.token != stale.token) continue;
    const Moment late = until_or_end(belief.until, record) - next.from;
    if (late <= Moment{}) continue;
    return fmt::format(" {} did not notice, and believed for another {} that it held the lock.",
                       belief.worker, span_text(late));
  }
  return {};
}

// The end of one lease and the next grant are one step.
void add_successor(Summary& summary, const DrillRecord& record, const Write& stale,
                   const Ownership* former, const Ownership& next) {
  const bool over = former != nullptr && former->until && *former->until <= stale.sent;
  add(summary, next.from,
      fmt::format("{}{} was granted the lock, with a greater token: {}.{}",
                  over ? ending_sentence(*former) + " " : "", next.worker, next.token,
                  belief_sentence(record, stale, next)));
  const auto wrote =
      std::find_if(record.writes.begin(), record.writes.end(), [&](const Write& write) {
        return write.token == next.token && write.fate == Fate::kAdmitted &&
               write.sent < stale.sent;
      });
  if (wrote != record.writes.end())
    add(summary, wrote->sent, fmt::format("{} wrote: admitted.", wrote->worker));
}

std::string outcome_of_others(const DrillRecord& record, const Write& explained) {
  const auto others = [&](Fate fate) {
    return static_cast<std::uint64_t>(
        std::count_if(record.writes.begin(), record.writes.end(), [&](const Write& write) {
          return write.stale && write.fate == fate && &write != &explained;
        }));
  };
  std::vector<std::string> parts;
  if (const auto n = others(Fate::kLetThrough))
    parts.push_back(fmt::format("{} more got through", n));
  if (const auto n = others(Fate::kRefused)) parts.push_back(fmt::format("{} more refused", n));
  if (const auto n = others(Fate::kWithheld)) parts.push_back(fmt::format("{} not sent", n));
  if (const auto n = others(Fate::kUnknown)) parts.push_back(fmt::format("{} without a result", n));
  return parts.empty() ? "" : fmt::format("Of the other stale writes: {}.", fmt::join(parts, ", "));
}

}  // namespace

Summary summarize(const DrillRecord& record) {
  Summary summary;
  const Write* stale = first_stale(record);
  if (stale == nullptr) return summary;
  const Ownership* grant = grant_of(record, stale->token);
  if (grant != nullptr) add_grant(summary, *grant);
  add_faults(summary, record, *stale, grant != nullptr ? grant->from : Moment{});
  if (const Ownership* next = successor_of(record, *stale))
    add_successor(summary, record, *stale, grant, *next);
  add(summary, stale->sent, final_sentence(*stale, record));
  std::stable_sort(
      summary.steps.begin(), summary.steps.end(),
      [](const SummaryStep& left, const SummaryStep& right) { return left.at < right.at; });
  summary.others = outcome_of_others(record, *stale);
  return summary;
}

}  // namespace pawl::drill
