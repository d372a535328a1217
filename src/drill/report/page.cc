#include "drill/report/page.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "drill/report/marks.h"
#include "drill/report/page_style.h"
#include "drill/report/summary.h"
#include "drill/report/text.h"
#include "drill/report/timeline.h"

namespace pawl::drill {
namespace {

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string headline(const DrillVerdict& verdict) {
  if (verdict.let_through > 0) {
    return fmt::format("Failed: {} got through", counted(verdict.let_through, "stale write"));
  }
  if (!verdict.passed) return "Failed";
  if (verdict.stale_sent == 0) return "Passed";
  if (verdict.refused != verdict.stale_sent) return "Passed: no stale write got through";
  return verdict.stale_sent == 1
             ? "Passed: the stale write was refused"
             : fmt::format("Passed: all {} stale writes were refused", verdict.stale_sent);
}

// Whether the headline ends with this sentence, apart from its first letter and full stop.
bool repeats(std::string_view headline, const Note& note) {
  if (!note.command.empty()) return false;
  std::string_view reason = note.text;
  if (reason.ends_with('.')) reason.remove_suffix(1);
  if (reason.empty()) return true;
  return headline.ends_with(reason.substr(1));
}

std::string loss_noticed(const DrillVerdict& verdict) {
  if (!verdict.noticed_late) return "–";
  return *verdict.noticed_late > Moment{} ? span_text(*verdict.noticed_late) + " late" : "in time";
}

void figure(std::string& out, std::string_view value, std::string_view words, bool alarm = false) {
  append(out, "<div{}><dt>{}</dt><dd>{}</dd></div>\n", alarm ? " class='alarm'" : "", words, value);
}

void figures(std::string& out, const DrillVerdict& verdict) {
  out += "<dl class='figures'>\n";
  figure(out, std::to_string(verdict.writes), "writes");
  figure(out, std::to_string(verdict.stale_sent), "of them stale: sent after a newer grant");
  figure(out, std::to_string(verdict.refused), "stale and refused");
  figure(out, std::to_string(verdict.let_through), "stale but got through",
         verdict.let_through > 0);
  if (verdict.unknown > 0) figure(out, std::to_string(verdict.unknown), "without a result");
  figure(out, loss_noticed(verdict), "when clients noticed that they had lost the lock");
  out += "</dl>\n";
}

void item(std::string& out, const Note& note) {
  append(out, "<li>{}", escaped(note.text));
  if (!note.command.empty()) append(out, "<br><code>{}</code>", escaped(note.command));
  out += "</li>\n";
}

void verdict(std::string& out, const DrillRecord& record) {
  append(out,
         "<h1>Drill <code>{}</code> of lock <code>{}</code> against {} <code>{}</code>, "
         "{}</h1>\n",
         escaped(record.drill), escaped(record.lock), escaped(record.guard_title),
         escaped(record.resource),
         record.mode == "none" ? "without a guard"
                               : "guard in mode <b>" + escaped(record.mode) + "</b>");
  append(out, "<section class='verdict{}'><p class='word'>{} {}</p>\n",
         record.verdict.passed ? "" : " failed", record.verdict.passed ? "✓" : "✕",
         headline(record.verdict));
  std::string reasons;
  for (const Note& reason : record.verdict.reasons) {
    if (!repeats(headline(record.verdict), reason)) item(reasons, reason);
  }
  for (const Note& note : record.verdict.notes) item(reasons, note);
  if (!reasons.empty()) append(out, "<ul>\n{}</ul>\n", reasons);
  out += "</section>\n";
  figures(out, record.verdict);
}

std::string way_outcome(const DrillRecord& record, const TriedWay& tried) {
  switch (tried.fate) {
    case WayFate::kRefused:
      return "refused";
    case WayFate::kLanded:
      if (tried.way == Way::kNone && record.require_token == false)
        return "landed, because require_token is off";
      return "<strong class='landed'>landed</strong>";
    case WayFate::kNotApplicable:
      return "not tried: " + escaped(tried.detail);
    case WayFate::kUnknown:
      break;
  }
  return "unknown: " + escaped(tried.detail);
}

// What became of the stale write in every way a program may give its token.
void ways(std::string& out, const DrillRecord& record) {
  if (record.ways.empty()) return;
  out +=
      "<h2>The stale write in every way</h2>\n<p class='lead'>A call that asks the guard first "
      "shows whether the guard knows the newest token. The other two show whether the resource "
      "itself "
      "refuses the write. Each was rolled back.</p>\n<table class='ways'><thead><tr><th>the token "
      "was given by</th><th>the write</th></tr></thead><tbody>\n";
  for (const TriedWay& each : record.ways)
    append(out, "<tr><td><code>{}</code></td><td>{}</td></tr>\n", escaped(each.words),
           way_outcome(record, each));
  out += "</tbody></table>\n";
}

void problems(std::string& out, const DrillRecord& record) {
  if (record.problems.empty()) return;
  out += "<h2>What the guard reports</h2>\n<ul>\n";
  for (const GuardProblem& each : record.problems)
    append(out, "<li>{}: {}{}{}<br><code>{}</code></li>\n", each.error ? "error" : "warning",
           escaped(each.object), each.object.empty() ? "" : ": ", escaped(each.problem),
           escaped(each.fix));
  out += "</ul>\n";
}

void summary_and_timeline(std::string& out, const DrillRecord& record) {
  const Summary summary = summarize(record);
  out += "<h2>What happened</h2>\n";
  append(out, "<p class='lead'>{}</p>\n", escaped(record.purpose));
  if (!summary.steps.empty()) {
    out += "<ol class='summary'>\n";
    for (const SummaryStep& step : summary.steps) {
      append(out, "<li>{} <time>{}</time></li>\n", escaped(step.text), span_text(step.at));
    }
    out += "</ol>\n";
  }
  if (!summary.others.empty()) append(out, "<p class='lead'>{}</p>\n", escaped(summary.others));
  append(out, "<div class='scroll' tabindex='0' aria-label='Timeline'>\n{}</div>\n{}",
         timeline(record, summary), legend(record));
  out +=
      "<p class='lead'>Time runs from left to right. It is not to scale: busy moments are wider. "
      "The "
      "times are below the picture. Point at an element to read more.</p>\n"
      "<p class='lead'>A lock with a time limit cannot stop a process that has not noticed that "
      "its "
      "time is over. So every grant carries a number, the fencing token, which is greater than all "
      "before it, and the resource itself refuses a write whose token is smaller than the greatest "
      "it has seen.</p>\n";
}

void log_table(std::string& out, const DrillRecord& record) {
  if (record.log.empty()) return;
  out +=
      "<h2>Log</h2>\n<table><thead><tr><th>time</th><th>source</th><th>event</th></tr></thead>"
      "<tbody>\n";
  for (const LogEntry& entry : record.log) {
    append(out, "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", span_text(entry.at),
           escaped(entry.source), escaped(entry.text));
  }
  out += "</tbody></table>\n";
}

void detail(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) append(out, "<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
}

void details(std::string& out, const DrillRecord& record) {
  out += "<h2>Details</h2>\n<dl class='details'>\n";
  detail(out, "drill", record.drill);
  detail(out, "lock", record.lock);
  detail(out, "resource",
         fmt::format("{}, {} ({})", record.guard_title, record.resource,
                     record.scratch ? "made for the drill and removed after it" : "your own"));
  detail(out, "guard mode", record.mode);
  if (record.require_token) detail(out, "require_token", *record.require_token ? "on" : "off");
  detail(out, "lease TTL", span_text(record.ttl));
  detail(out, "pawld", record.pawld);
  detail(out, "pawl", record.version);
  detail(out, "began", record.began);
  detail(out, "took", span_text(record.length));
  out += "</dl>\n";
}

}  // namespace

std::string report_page(const DrillRecord& record) {
  std::string out;
  append(out,
         "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
         "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
         "'unsafe-inline'; "
         "img-src data:\">\n<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
         "<link rel='icon' href='data:,'>\n<title>{} · drill {} · {}</title>\n<style>{}</style>\n"
         "</head>\n<body>\n<main>\n",
         record.verdict.passed ? "Passed" : "Failed", escaped(record.drill),
         escaped(record.resource), kPageStyle);
  verdict(out, record);
  ways(out, record);
  problems(out, record);
  summary_and_timeline(out, record);
  log_table(out, record);
  details(out, record);
  out += "</main>\n</body>\n</html>\n";
  return out;
}

}  // namespace pawl::drill
