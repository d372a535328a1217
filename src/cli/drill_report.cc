#include "cli/drill_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/duration.h"
#include "base/text.h"

namespace pawl::cli {
namespace {

using drill::Fate;
using drill::FaultKind;
using drill::Moment;
using drill::Record;
using drill::Verdict;

constexpr std::array kFates{"admitted", "refused", "let_through", "withheld", "unknown"};
constexpr std::array kFaults{"frozen",        "cut",      "killed", "restarted",
                             "clock_stepped", "restored", "delayed"};

double seconds(Moment span) {
  return std::chrono::duration<double>(span).count();
}

std::int64_t millis(Moment span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

std::string times(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Who knew how late, as a sentence.
std::string lateness(const Record& record) {
  if (!record.verdict.knew_late) return "";
  const Moment late = *record.verdict.knew_late;
  const std::string span =
      to_text(std::chrono::duration_cast<Millis>(late < Moment{} ? -late : late));
  if (late <= Moment{})
    return fmt::format(
        "Every client knew that it had lost the lock, {} or more before another had it.", span);
  const bool frozen = std::ranges::any_of(
      record.faults, [](const drill::Fault& fault) { return fault.kind == FaultKind::kFrozen; });
  return fmt::format("A client still believed that it held the lock {} after another did{}.", span,
                     frozen ? ": it was frozen, and could not know" : "");
}

std::string what(const Record& record) {
  const std::string resource = record.scratch ? "a scratch resource" : printable(record.resource);
  if (record.mode == "none") return fmt::format("{}, {} without a guard", record.guard, resource);
  return fmt::format("{}, {} under guard in mode {}", record.guard, resource, record.mode);
}

void moment(Json& json, std::string_view key, const std::optional<Moment>& at) {
  json.key(key);
  if (at) {
    json.number(millis(*at));
  } else {
    json.null();
  }
}

void write_spans(Json& json, const Record& record) {
  json.key("ownerships").array();
  for (const drill::Ownership& each : record.ownerships) {
    json.object()
        .key("actor")
        .string(each.actor)
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
        .string(each.actor)
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
        .string(each.whom);
    moment(json, "from_ms", each.from);
    moment(json, "until_ms", each.until);
    json.key("note").string(each.note).end();
  }
  json.end();
}

void write_writes(Json& json, const Record& record) {
  json.key("writes").array();
  for (const drill::Write& each : record.writes) {
    json.object()
        .key("actor")
        .string(each.actor)
        .key("token")
        .number(static_cast<std::int64_t>(each.token));
    json.key("stale").boolean(each.stale);
    moment(json, "sent_ms", each.sent);
    moment(json, "answered_ms", each.answered);
    json.key("fate").string(kFates.at(static_cast<std::size_t>(each.fate)));
    json.key("value").string(each.value).key("detail").string(each.detail).end();
  }
  json.end();
}

void write(Json& json, const Verdict& verdict) {
  const auto count = [&](const char* key, std::uint64_t value) {
    json.key(key).number(static_cast<std::int64_t>(value));
  };
  json.object().key("passed").boolean(verdict.passed);
  count("writes", verdict.writes);
  count("stale_sent", verdict.stale_sent);
  count("refused", verdict.refused);
  count("let_through", verdict.let_through);
  count("unknown", verdict.unknown);
  moment(json, "knew_late_ms", verdict.knew_late);
  json.key("because").array();
  for (const std::string& each : verdict.because) json.string(each);
  json.end().end();
}

}  // namespace

std::string to_line(Console& console, const drill::Line& line) {
  return fmt::format(
      "{}  {}  {}\n", console.paint(Paint::kDim, fmt::format("{:7.3f} s", seconds(line.at))),
      console.paint(Paint::kStrong, fmt::format("{:<5}", line.who)), printable(line.text));
}

std::string to_verdict(Console& console, const Record& record) {
  const Verdict& verdict = record.verdict;
  const std::string word =
      verdict.passed ? console.paint(Paint::kGood, "PASSED") : console.paint(Paint::kBad, "FAILED");
  std::string because;
  for (const std::string& each : verdict.because)
    because += " " + (verdict.passed ? each : console.paint(Paint::kBad, each));
  std::string text = fmt::format("{}  {}:{}\n", word, record.drill, because);
  text += fmt::format(
      "        {}, {} stale: {} refused, {} let through{}. {}\n", times(verdict.writes, "write"),
      verdict.stale_sent, verdict.refused, verdict.let_through,
      verdict.unknown == 0 ? "" : fmt::format(", {} unknown", verdict.unknown), what(record));
  if (const std::string late = lateness(record); !late.empty())
    text += fmt::format("        {}\n", late);
  return text;
}

void write(Json& json, const Record& record) {
  json.object().key("drill").string(record.drill).key("lock").string(record.lock);
  json.key("guard").string(record.guard).key("resource").string(record.resource);
  json.key("mode").string(record.mode).key("scratch").boolean(record.scratch);
  json.key("pawld").string(record.pawld).key("version").string(record.version);
  json.key("began").string(record.began);
  moment(json, "length_ms", record.length);
  json.key("ttl_ms").number(record.ttl.count());
  json.key("verdict");
  write(json, record.verdict);
  write_writes(json, record);
  write_spans(json, record);
  json.key("lines").array();
  for (const drill::Line& each : record.lines) {
    json.object();
    moment(json, "at_ms", each.at);
    json.key("who").string(each.who).key("text").string(each.text).end();
  }
  json.end().end();
}

}  // namespace pawl::cli
