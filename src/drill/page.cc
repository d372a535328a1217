#include "drill/page.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "drill/page_style.h"
#include "drill/page_words.h"
#include "drill/story.h"
#include "drill/timeline.h"

namespace pawl::drill {
namespace {

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// What each drill does to the lock, for someone who reads of it for the first time.
std::string_view purpose(std::string_view drill) {
  struct Purpose {
    std::string_view drill, words;
  };
  static constexpr Purpose kPurposes[] = {
      {"pause",
       "A process that holds the lock is frozen for longer than its lease lasts, as by a long "
       "garbage "
       "collection or a paused virtual machine. Then it goes on as if nothing had happened."},
      {"partition",
       "A process that holds the lock is cut off from pawld, but still reaches the resource: it "
       "cannot renew "
       "its lease, and the lock passes on."},
      {"delayed-write",
       "A write is on its way while its sender loses the lock, and arrives after the next "
       "holder's."},
      {"flapping",
       "A holder is cut off and comes back again and again, and the lock changes hands every "
       "time."},
      {"kill", "Processes are killed without warning while the lock is held."},
      {"clock-step", "The clock is stepped while the lock is held: no decision may depend on it."},
      {"issuer-restart",
       "pawld is killed and started again while the lock is held: no token may come twice."},
      {"restore-from-backup",
       "pawld is restored from a backup that is older than the newest grants: tokens must not go "
       "back."},
  };
  for (const Purpose& purpose : kPurposes) {
    if (purpose.drill == drill) return purpose.words;
  }
  return "";
}

std::string headline(const Verdict& verdict) {
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

// Whether the headline has said it already, the first letter and the full stop aside.
bool repeats(std::string_view headline, std::string_view reason) {
  if (reason.ends_with('.')) reason.remove_suffix(1);
  if (reason.empty()) return true;
  return headline.ends_with(reason.substr(1));
}

std::string knew(const Verdict& verdict) {
  if (!verdict.knew_late) return "–";
  return *verdict.knew_late > Moment{} ? span_text(*verdict.knew_late) + " late" : "in time";
}

void figure(std::string& out, std::string_view value, std::string_view words, bool alarm = false) {
  append(out, "<div{}><dt>{}</dt><dd>{}</dd></div>\n", alarm ? " class='alarm'" : "", words, value);
}

void figures(std::string& out, const Verdict& verdict) {
  out += "<dl class='figures'>\n";
  figure(out, std::to_string(verdict.writes), "writes in all");
  figure(out, std::to_string(verdict.stale_sent), "of them stale: sent after a newer grant");
  figure(out, std::to_string(verdict.refused), "stale, and refused");
  figure(out, std::to_string(verdict.let_through), "stale, and got through",
         verdict.let_through > 0);
  if (verdict.unknown > 0) figure(out, std::to_string(verdict.unknown), "without an answer");
  figure(out, knew(verdict), "when the client knew that the lock was lost");
  out += "</dl>\n";
}

void verdict(std::string& out, const Record& record) {
  append(out,
         "<h1>Drill <code>{}</code> on the lock <code>{}</code>, against {}: <code>{}</code>, "
         "{}</h1>\n",
         escaped(record.drill), escaped(record.lock), escaped(record.guard_title),
         escaped(record.resource),
         record.mode == "none" ? "without a guard"
                               : "guard in mode <b>" + escaped(record.mode) + "</b>");
  append(out, "<section class='verdict{}'><p class='word'>{} {}</p>\n",
         record.verdict.passed ? "" : " failed", record.verdict.passed ? "✓" : "✕",
         headline(record.verdict));
  std::string reasons;
  for (const std::string& reason : record.verdict.because) {
    if (!repeats(headline(record.verdict), reason))
      append(reasons, "<li>{}</li>\n", escaped(reason));
  }
  if (!reasons.empty()) append(out, "<ul>\n{}</ul>\n", reasons);
  out += "</section>\n";
  figures(out, record.verdict);
}

void what_happened(std::string& out, const Record& record) {
  const Story story = story_of(record);
  out += "<h2>What happened</h2>\n";
  append(out, "<p class='lead'>{}</p>\n", purpose(record.drill));
  if (!story.steps.empty()) {
    out += "<ol class='story'>\n";
    for (const Step& step : story.steps) {
      append(out, "<li>{} <time>{}</time></li>\n", escaped(step.text), span_text(step.at));
    }
    out += "</ol>\n";
  }
  if (!story.rest.empty()) append(out, "<p class='lead'>{}</p>\n", escaped(story.rest));
  append(out, "<div class='scroll' tabindex='0' aria-label='The picture'>\n{}</div>\n{}",
         timeline(record, story), legend(record));
  out +=
      "<p class='lead'>Time runs from left to right, stretched where much happens and shortened "
      "where "
      "nothing does: the figures under the picture say when. Point at anything in it to read "
      "more.</p>\n"
      "<p class='lead'>A lock with a time limit cannot stop a process that does not know that its "
      "time is "
      "up. "
      "So every grant carries a number, the fencing token, greater than all before it, and the "
      "resource "
      "itself "
      "refuses a write whose token is smaller than the greatest it has seen.</p>\n";
}

void lines(std::string& out, const Record& record) {
  if (record.lines.empty()) return;
  out +=
      "<h2>Line by "
      "line</h2>\n<table><thead><tr><th>after</th><th>who</th><th>what</th></tr></thead><tbody>\n";
  for (const Line& line : record.lines) {
    append(out, "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", span_text(line.at),
           escaped(line.who), escaped(line.text));
  }
  out += "</tbody></table>\n";
}

void detail(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) append(out, "<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
}

void details(std::string& out, const Record& record) {
  out += "<h2>Details</h2>\n<dl class='details'>\n";
  detail(out, "drill", record.drill);
  detail(out, "lock", record.lock);
  detail(out, "resource",
         fmt::format("{}, {} ({})", record.guard_title, record.resource,
                     record.scratch ? "made for the drill, and removed after it" : "the real one"));
  detail(out, "guard", record.mode == "none" ? "none" : record.mode);
  detail(out, "TTL of the leases", span_text(record.ttl));
  detail(out, "pawld", record.pawld);
  detail(out, "pawl", record.version);
  detail(out, "began", record.began);
  detail(out, "took", span_text(record.length));
  out += "</dl>\n";
}

}  // namespace

std::string html(const Record& record) {
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
  what_happened(out, record);
  lines(out, record);
  details(out, record);
  out += "</main>\n</body>\n</html>\n";
  return out;
}

}  // namespace pawl::drill
