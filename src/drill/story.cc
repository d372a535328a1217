#include "drill/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "drill/page_words.h"

namespace pawl::drill {
namespace {

const Write* first_stale(const Record& record) {
  for (const Fate fate : {Fate::kLetThrough, Fate::kRefused, Fate::kWithheld, Fate::kUnknown}) {
    const auto it =
        std::find_if(record.writes.begin(), record.writes.end(),
                     [&](const Write& write) { return write.stale && write.fate == fate; });
    if (it != record.writes.end()) return &*it;
  }
  return nullptr;
}

const Ownership* grant_of(const Record& record, std::uint64_t token) {
  const auto it =
      std::find_if(record.ownerships.begin(), record.ownerships.end(),
                   [&](const Ownership& ownership) { return ownership.token == token; });
  return it == record.ownerships.end() ? nullptr : &*it;
}

// The grant that made the token stale: the first with a greater one.
const Ownership* successor_of(const Record& record, const Write& write) {
  const Ownership* next = nullptr;
  for (const Ownership& ownership : record.ownerships) {
    if (ownership.token <= write.token || ownership.from > write.sent) continue;
    if (next == nullptr || ownership.token < next->token) next = &ownership;
  }
  return next;
}

std::string fault_sentence(const Fault& fault, const Record& record) {
  const std::string lasted = span_text(until_or_end(fault.until, record) - fault.from);
  const std::string note = fault.note.empty() ? "" : " (" + fault.note + ")";
  switch (fault.kind) {
    case FaultKind::kFrozen:
      return fmt::format("{} was frozen{}: for {} it ran no code at all, and could not know it.",
                         fault.whom, note, lasted);
    case FaultKind::kCut:
      return fmt::format("{} was cut off{} for {}.", fault.whom, note, lasted);
    case FaultKind::kKilled:
      return fmt::format("{} was killed{}.", fault.whom, note);
    case FaultKind::kRestarted:
      return fmt::format("{} was started again{}.", fault.whom, note);
    case FaultKind::kClockStepped:
      return fmt::format("The clock of {} was stepped{}.", fault.whom, note);
    case FaultKind::kRestored:
      return fmt::format("{} was restored from a backup{}.", fault.whom, note);
    case FaultKind::kDelayed:
      break;
  }
  return fmt::format("A write that {} had sent was held up on its way, for {}.", fault.whom,
                     lasted);
}

std::string ending_sentence(const Ownership& grant) {
  if (grant.ending == "expired") {
    return fmt::format("Nobody renewed {}'s lease: it ran out.", grant.actor);
  }
  if (grant.ending == "released") return fmt::format("{} gave the lock back.", grant.actor);
  if (grant.ending.empty() || grant.ending == "ended")
    return fmt::format("{}'s lease ended.", grant.actor);
  return fmt::format("{}'s lease ended: {}.", grant.actor, grant.ending);
}

std::string final_sentence(const Write& write, const Record& record) {
  const std::string head = fmt::format("{} wrote with its old token {}", write.actor, write.token);
  // Its first sentence; the rest is advice to programs.
  const std::string detail = write.detail.substr(0, write.detail.find(". "));
  const std::string said = detail.empty() ? "" : fmt::format(" (“{}”)", detail);
  switch (write.fate) {
    case Fate::kLetThrough:
      return head +
             (record.mode == "none"
                  ? ", and it took effect: nothing in the resource compares tokens. "
                  : fmt::format(", and it took effect: a guard in {} refuses nothing. ",
                                record.mode)) +
             "What the rightful holder had done was overwritten, and nobody was told.";
    case Fate::kRefused:
      return head + ": the resource refused it" + said + ". Nothing was lost.";
    case Fate::kWithheld:
      return fmt::format(
          "{} asked its lease before it wrote, learnt that it was over, and did not write.",
          write.actor);
    case Fate::kAdmitted:
    case Fate::kUnknown:
      break;
  }
  return head + ": no answer came, and the resource does not tell whether it took effect" + said +
         ".";
}

void add(Story& story, Moment at, std::string text) {
  story.steps.push_back({at, std::move(text)});
}

void tell_grant(Story& story, const Ownership& grant) {
  add(story, grant.from,
      fmt::format("{} was granted the lock, with the fencing token {}.", grant.actor, grant.token));
}

void tell_faults(Story& story, const Record& record, const Write& write, Moment since) {
  std::set<std::pair<FaultKind, std::string>>
      told;  // one of each kind: a flapping drill has dozens
  for (const Fault& fault : record.faults) {
    if (fault.from < since || fault.from > write.sent) continue;
    if (fault.whom != write.actor && fault.whom != "pawld") continue;
    if (!told.emplace(fault.kind, fault.whom).second) continue;
    add(story, fault.from, fault_sentence(fault, record));
  }
}

// For how long it went on believing; empty: it knew in time.
std::string belief_sentence(const Record& record, const Write& stale, const Ownership& next) {
  for (const Belief& belief : record.beliefs) {
    if (belief.actor != stale.actor || belief.token != stale.token) continue;
    const Moment late = until_or_end(belief.until, record) - next.from;
    if (late <= Moment{}) continue;
    return fmt::format(" {} did not know: it went on believing that the lock was its own, for {}.",
                       belief.actor, span_text(late));
  }
  return {};
}

// The end of one and the beginning of the other are one step: the lock passes on.
void tell_successor(Story& story, const Record& record, const Write& stale, const Ownership* former,
                    const Ownership& next) {
  const bool over = former != nullptr && former->until && *former->until <= stale.sent;
  add(story, next.from,
      fmt::format("{}{} was granted the lock, with a greater token: {}.{}",
                  over ? ending_sentence(*former) + " " : "", next.actor, next.token,
                  belief_sentence(record, stale, next)));
  const auto wrote =
      std::find_if(record.writes.begin(), record.writes.end(), [&](const Write& write) {
        return write.token == next.token && write.fate == Fate::kAdmitted &&
               write.sent < stale.sent;
      });
  if (wrote != record.writes.end())
    add(story, wrote->sent, fmt::format("{} wrote: admitted.", wrote->actor));
}

std::string rest_of(const Record& record, const Write& told) {
  const auto others = [&](Fate fate) {
    return static_cast<std::uint64_t>(std::count_if(
        record.writes.begin(), record.writes.end(),
        [&](const Write& write) { return write.stale && write.fate == fate && &write != &told; }));
  };
  std::vector<std::string> parts;
  if (const auto n = others(Fate::kLetThrough))
    parts.push_back(fmt::format("{} more got through", n));
  if (const auto n = others(Fate::kRefused)) parts.push_back(fmt::format("{} more refused", n));
  if (const auto n = others(Fate::kWithheld)) parts.push_back(fmt::format("{} not sent", n));
  if (const auto n = others(Fate::kUnknown))
    parts.push_back(fmt::format("{} without an answer", n));
  return parts.empty() ? "" : fmt::format("Of the other stale writes: {}.", fmt::join(parts, ", "));
}

}  // namespace

Story story_of(const Record& record) {
  Story story;
  const Write* stale = first_stale(record);
  if (stale == nullptr) return story;
  const Ownership* grant = grant_of(record, stale->token);
  if (grant != nullptr) tell_grant(story, *grant);
  tell_faults(story, record, *stale, grant != nullptr ? grant->from : Moment{});
  if (const Ownership* next = successor_of(record, *stale))
    tell_successor(story, record, *stale, grant, *next);
  add(story, stale->sent, final_sentence(*stale, record));
  std::stable_sort(story.steps.begin(), story.steps.end(),
                   [](const Step& left, const Step& right) { return left.at < right.at; });
  story.rest = rest_of(record, *stale);
  return story;
}

}  // namespace pawl::drill
