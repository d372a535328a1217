#include "cli/drill_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/duration.h"
#include "base/text.h"

namespace pawl::cli {
namespace {

using drill::counted;
using drill::DrillRecord;
using drill::DrillVerdict;
using drill::Fate;
using drill::FaultKind;
using drill::Moment;

constexpr std::array kFates{"admitted", "refused", "let_through", "withheld", "unknown"};
constexpr std::array kFaults{"frozen",        "cut",      "killed", "restarted",
                             "clock_stepped", "restored", "delayed"};

constexpr std::string_view kBelowVerdict = "        ";

double seconds(Moment span) {
  return std::chrono::duration<double>(span).count();
}

std::int64_t millis(Moment span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

// When clients noticed that they had lost the lock.
std::string lateness(const DrillRecord& record) {
  if (!record.verdict.noticed_late) return "";
  const Moment late = *record.verdict.noticed_late;
  const std::string span =
      to_text(std::chrono::duration_cast<Millis>(late < Moment{} ? -late : late));
  if (late <= Moment{})
    return fmt::format(
        "Every client noticed its loss at least {} before another client was granted the lock.",
        span);
  const bool frozen = std::ranges::any_of(
      record.faults, [](const drill::Fault& fault) { return fault.kind == FaultKind::kFrozen; });
  return fmt::format(
      "A client believed that it held the lock until {} after another was granted it{}.", span,
      frozen ? ": it was frozen" : "");
}

std::string target_of(const DrillRecord& record) {
  const std::string resource = record.scratch ? "a scratch resource" : printable(record.resource);
  if (record.mode == "none") return fmt::format("{}, {} without a guard", record.guard, resource);
  return fmt::format("{}, {} under guard in mode {}", record.guard, resource, record.mode);
}

std::string in_one_line(const drill::Note& note) {
  return note.command.empty() ? note.text : note.text + " " + note.command;
}

std::string outcome_of(Console& console, const DrillRecord& record, const drill::TriedWay& tried) {
  switch (tried.fate) {
    case drill::WayFate::kRefused:
      return console.paint(Paint::kGood, "refused");
    case drill::WayFate::kLanded:
      if (tried.way == drill::Way::kNone && record.require_token == false)
        return "lands, because require_token is off";
      return console.paint(Paint::kBad, "LANDS");
    case drill::WayFate::kNotApplicable:
      return console.paint(Paint::kDim, "not tried: " + printable(tried.detail));
    case drill::WayFate::kUnknown:
      break;
  }
  return console.paint(Paint::kBad, "unknown: " + printable(tried.detail));
}

void moment(Json& json, std::string_view key, const std::optional<Moment>& at) {
  json.key(key);
  if (at) {
    json.number(millis(*at));
  } else {
    json.null();
  }
}

void write_spans(Json& json, const DrillRecord& record) {
  json.key("ownerships").array();
  for (const drill::Ownership& each : record.ownerships) {
    json.object()
        .key("actor")
        .string(each.worker)
        .key("token")
        .number(static_cast<std::int64_t>(each.token));
    moment(json, "from_ms", each.from);
    moment(json, "until_ms", each.until);
    json.key("ending").string(each.ending).end();
  }
  json.end().key("beliefs").array();
  for (const drill::Belief& each : record.beliefs) {
    json.object()
        .key("actor")
        .string(each.worker)
        .key("token")
        .number(static_cast<std::int64_t>(each.token));
    moment(json, "from_ms", each.from);
    moment(json, "until_ms", each.until);
    json.end();
  }
  json.end().key("faults").array();
  for (const drill::Fault& each : record.faults) {
    json.object()
        .key("kind")
        .string(kFaults.at(static_cast<std::size_t>(each.kind)))
        .key("whom")
        .string(each.target);
    moment(json, "from_ms", each.from);
    moment(json, "until_ms", each.until);
    json.key("note").string(each.note).end();
  }
  json.end();
}

void write_writes(Json& json, const DrillRecord& record) {
  json.key("writes").array();
  for (const drill::Write& each : record.writes) {
    json.object()
        .key("actor")
        .string(each.worker)
        .key("token")
        .number(static_cast<std::int64_t>(each.token));
    json.key("stale").boolean(each.stale);
    moment(json, "sent_ms", each.sent);
    moment(json, "answered_ms", each.answered);
    json.key("fate").string(kFates.at(static_cast<std::size_t>(each.fate)));
    json.key("value").string(each.value).key("detail").string(each.detail).key("rows");
    each.rows ? json.number(static_cast<std::int64_t>(*each.rows)) : json.null();
    json.end();
  }
  json.end();
}

void write(Json& json, const DrillVerdict& verdict) {
  const auto count = [&](const char* key, std::uint64_t value) {
    json.key(key).number(static_cast<std::int64_t>(value));
  };
  json.object().key("passed").boolean(verdict.passed);
  count("writes", verdict.writes);
  count("stale_sent", verdict.stale_sent);
  count("refused", verdict.refused);
  count("let_through", verdict.let_through);
  count("unknown", verdict.unknown);
  moment(json, "knew_late_ms", verdict.noticed_late);
  json.key("because").array();
  for (const drill::Note& each : verdict.reasons) json.string(in_one_line(each));
  json.end().key("notes").array();
  for (const drill::Note& each : verdict.notes) json.string(in_one_line(each));
  json.end().end();
}

void write_guard(Json& json, const DrillRecord& record) {
  json.key("require_token");
  record.require_token ? json.boolean(*record.require_token) : json.null();
  json.key("tables").array();
  for (const std::string& each : record.tables) json.string(each);
  json.end().key("ways").array();
  for (const drill::TriedWay& each : record.ways) {
    json.object().key("way").string(to_text(each.way)).key("with").string(each.words);
    json.key("fate").string(to_text(each.fate)).key("detail").string(each.detail).end();
  }
  json.end().key("problems");
  if (!record.problems_unread.empty()) {
    json.null();
    return;
  }
  json.array();
  for (const drill::GuardProblem& each : record.problems) {
    json.object().key("severity").string(each.error ? "error" : "warning");
    json.key("object").string(each.object).key("problem").string(each.problem);
    json.key("fix").string(each.fix).end();
  }
  json.end();
}

// One line for each way, and whether that is right.
std::string to_lines(Console& console, const DrillRecord& record) {
  std::size_t width = 0;
  for (const drill::TriedWay& each : record.ways) width = std::max(width, each.words.size());
  std::string text;
  for (const drill::TriedWay& each : record.ways) {
    text += fmt::format("{}  {:<{}}  {}\n", kBelowVerdict, printable(each.words), width,
                        outcome_of(console, record, each));
  }
  if (text.empty()) return text;
  return fmt::format("{}The stale write again, in every way, each rolled back:\n{}", kBelowVerdict,
                     text);
}

}  // namespace

std::string to_line(Console& console, const drill::LogEntry& entry) {
  return fmt::format(
      "{}  {}  {}\n", console.paint(Paint::kDim, fmt::format("{:7.3f} s", seconds(entry.at))),
      console.paint(Paint::kStrong, fmt::format("{:<5}", entry.source)), printable(entry.text));
}

std::string to_verdict(Console& console, const DrillRecord& record) {
  const DrillVerdict& verdict = record.verdict;
  const std::string word =
      verdict.passed ? console.paint(Paint::kGood, "PASSED") : console.paint(Paint::kBad, "FAILED");
  std::string text = fmt::format("{}  {}: ", word, record.drill);
  bool first = true;
  for (const drill::Note& each : verdict.reasons) {
    const std::string sentence = printable(each.text);
    text += fmt::format("{}{}\n", std::exchange(first, false) ? "" : kBelowVerdict,
                        verdict.passed ? sentence : console.paint(Paint::kBad, sentence));
    if (!each.command.empty())
      text += fmt::format("{}  {}\n", kBelowVerdict, printable(each.command));
  }
  text += fmt::format(
      "{}{}, {} stale: {} refused, {} let through{}. {}\n", kBelowVerdict,
      counted(verdict.writes, "write"), verdict.stale_sent, verdict.refused, verdict.let_through,
      verdict.unknown == 0 ? "" : fmt::format(", {} unknown", verdict.unknown), target_of(record));
  if (const std::string late = lateness(record); !late.empty())
    text += fmt::format("{}{}\n", kBelowVerdict, late);
  text += to_lines(console, record);
  for (const drill::Note& note : verdict.notes)
    text += fmt::format("{0}{1}\n{0}  {2}\n", kBelowVerdict,
                        console.paint(Paint::kWarn, printable(note.text)), printable(note.command));
  return text;
}

void write(Json& json, const DrillRecord& record) {
  json.object().key("drill").string(record.drill).key("lock").string(record.lock);
  json.key("guard").string(record.guard).key("resource").string(record.resource);
  json.key("mode").string(record.mode).key("scratch").boolean(record.scratch);
  write_guard(json, record);
  json.key("pawld").string(record.pawld).key("version").string(record.version);
  json.key("began").string(record.began);
  moment(json, "length_ms", record.length);
  json.key("ttl_ms").number(record.ttl.count());
  json.key("verdict");
  write(json, record.verdict);
  write_writes(json, record);
  write_spans(json, record);
  json.key("lines").array();
  for (const drill::LogEntry& each : record.log) {
    json.object();
    moment(json, "at_ms", each.at);
    json.key("who").string(each.source).key("text").string(each.text).end();
  }
  json.end().end();
}

}  // namespace pawl::cli
