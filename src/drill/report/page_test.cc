// The content of the report page. tests/e2e/drill_page_test.py checks it in a browser.
#include "drill/report/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "drill/report/marks.h"
#include "drill/report/summary.h"
#include "drill/report/text.h"
#include "drill/report/time_scale.h"
#include "drill/testlib/page_samples.h"

namespace pawl::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(DrillPage, PassedDrillSaysThatTheStaleWriteWasRefused) {
  const std::string page = report_page(passed_pause());
  EXPECT_THAT(page, HasSubstr("✓ Passed: the stale write was refused"));
  EXPECT_THAT(page, Not(HasSubstr("class='verdict failed'")));
  EXPECT_THAT(page, Not(HasSubstr("class='through'")));
}

TEST(DrillPage, FailedDrillSaysHowManyWritesGotThrough) {
  const std::string page = report_page(shadowed_pause());
  EXPECT_THAT(page, HasSubstr("✕ Failed: 1 stale write got through"));
  EXPECT_THAT(page, HasSubstr("class='verdict failed'"));
  EXPECT_THAT(page, HasSubstr("class='alarm'"));
  EXPECT_THAT(page, HasSubstr(">34 got through</text>"));
}

TEST(DrillPage, DrillWithoutAStaleWriteIsNotShownAsPassed) {
  const std::string page = report_page(idle());
  EXPECT_THAT(page, HasSubstr("✕ Failed<"));
  EXPECT_THAT(page, HasSubstr("so the guard was not tested"));
}

TEST(DrillPage, UnknownResultIsNotCountedAsRefused) {
  EXPECT_THAT(report_page(issuer_restart()), Not(HasSubstr("stale writes were refused")));
}

TEST(DrillPage, ShowsThatWritesWithoutATokenAreAdmittedAndHowToRefuseThem) {
  EXPECT_THAT(report_page(tokenless()),
              HasSubstr("pawl guard policy postgres orders --require-token on"));
  EXPECT_THAT(report_page(passed_pause()), Not(HasSubstr("--require-token")));
}

TEST(DrillPage, ShowsEveryWayInWhichTheStaleWriteWasSent) {
  const std::string page = report_page(bypassed());
  EXPECT_THAT(page, HasSubstr("<td><code>pawl.use()</code></td><td>refused</td>"));
  EXPECT_THAT(page, HasSubstr("<td><code>SET LOCAL pawl.token.orders</code></td>"
                              "<td><strong class='landed'>landed</strong></td>"));
  EXPECT_THAT(page, HasSubstr("<td><code>no token</code></td>"
                              "<td>landed, because require_token is off</td>"));
  EXPECT_THAT(page, HasSubstr("error: orders: the trigger pawl_guard is disabled"
                              "<br><code>SELECT pawl.repair()</code>"));
  EXPECT_THAT(page, HasSubstr("class='verdict failed'"));
}

TEST(DrillPage, StepsNameTheCutThatEndedTheLease) {
  DrillRecord record = passed_pause();
  const Write& stale = *std::find_if(record.writes.begin(), record.writes.end(),
                                     [](const Write& write) { return write.stale; });
  const Ownership& grant =
      *std::find_if(record.ownerships.begin(), record.ownerships.end(),
                    [&](const Ownership& ownership) { return ownership.token == stale.token; });
  const Moment begin = grant.from;
  record.faults = {
      {FaultKind::kCut, stale.worker, begin + milliseconds(1), begin + milliseconds(169)},
      {FaultKind::kCut, stale.worker, begin + milliseconds(200), stale.sent}};
  std::string steps;
  for (const SummaryStep& step : summarize(record).steps) steps += step.text + "\n";
  EXPECT_EQ(occurrences(steps, "was cut off"), 1U);
  EXPECT_THAT(steps, Not(HasSubstr("168 ms")));
}

TEST(DrillPage, LoadsNothingAndExecutesNothing) {
  for (const Sample& sample : samples()) {
    const std::string page = report_page(sample.record);
    EXPECT_THAT(page, HasSubstr("default-src 'none'")) << sample.name;
    for (const char* way :
         {"<script", "<img", "<iframe", " src=", "@import", "http://", "https://", "//cdn"}) {
      // The hostile sample contains it, but only as text.
      if (sample.name == "hostile" && std::string_view(way) == " src=") continue;
      EXPECT_THAT(page, Not(HasSubstr(way))) << sample.name;
    }
  }
}

TEST(DrillPage, EscapesEveryTextOfTheRecord) {
  const std::string page = report_page(hostile()), harmless = report_page(passed_pause());
  for (const char* tag : {"<script", "<img", "</style>", "</title></style>"}) {
    EXPECT_EQ(occurrences(page, tag), occurrences(harmless, tag)) << tag;
  }
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
}

TEST(DrillPage, EscapesQuotesForAttributes) {
  EXPECT_EQ(escaped("a'b\"c<d>&\n"), "a&#39;b&quot;c&lt;d&gt;&amp; ");
}

TEST(DrillPage, TimelineShowsEveryTokenOfAShortDrill) {
  const std::string page = report_page(flapping(40));
  for (int token = 1041; token < 1081; ++token) {
    EXPECT_THAT(page, HasSubstr(fmt::format(">{}</text>", token)));
  }
}

TEST(DrillPage, NumberOfTimelineRowsIsLimited) {
  EXPECT_EQ(occurrences(report_page(passed_pause()), "<svg class='timeline'"), 1U);
  EXPECT_EQ(occurrences(report_page(flapping(40)), "<svg class='timeline'"), 3U);
  EXPECT_EQ(occurrences(report_page(flapping(400)), "<svg class='timeline'"), kRowsMax);
}

TEST(DrillPage, EmptyRecordHasAPage) {
  EXPECT_THAT(report_page({}), HasSubstr("</html>"));
}

std::vector<TimeScale> rows_of(std::vector<Moment> events, double wanted) {
  return time_rows(std::move(events), seconds(10), {100, 1000, wanted});
}

TEST(TimeScale, BusyTimeIsWiderAndXNeverDecreases) {
  const TimeScale scale =
      rows_of({seconds(1), seconds(9), seconds(9) + milliseconds(2), seconds(9) + milliseconds(4)},
              1)
          .front();
  const double idle = scale.x(seconds(9)) - scale.x(seconds(1));
  const double busy = scale.x(seconds(9) + milliseconds(4)) - scale.x(seconds(9));
  EXPECT_GT(busy, 60) << "2 ms apart, and still distinguishable";
  EXPECT_GT(idle, busy) << "longer is still wider";
  double before = -1;
  for (Moment at{}; at < seconds(11); at += milliseconds(1)) {
    ASSERT_GE(scale.x(at), before);
    before = scale.x(at);
  }
  EXPECT_EQ(scale.x(Moment{}), 100);
  EXPECT_EQ(scale.x(seconds(11)), 1000);
}

TEST(TimeScale, TicksShowTimesAndDoNotOverlap) {
  const TimeScale scale =
      rows_of({seconds(1), seconds(1) + milliseconds(1), seconds(4), seconds(7)}, 1).front();
  const std::vector<Tick> ticks = scale.ticks(64);
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(ticks.front().label, "1.000 s");
  EXPECT_EQ(ticks.front().x, scale.x(seconds(1)));
  for (std::size_t i = 1; i < ticks.size(); ++i) EXPECT_GE(ticks[i].x - ticks[i - 1].x, 64);
}

TEST(TimeScale, RowsAreContiguous) {
  const std::vector<TimeScale> rows = rows_of({seconds(2), seconds(5), seconds(6)}, 2500);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].from(), Moment{});
  EXPECT_EQ(rows[0].to(), rows[1].from());
  EXPECT_EQ(rows[1].to(), rows[2].from());
  EXPECT_GT(rows[2].to(), seconds(10)) << "the last event is visible";
}

TEST(TimeScale, NoEventsIsOneRow) {
  EXPECT_EQ(time_rows({}, Moment{}, {100, 1000, 0}).size(), 1U);
}

TEST(Clusters, CloseWritesAreOneMarkWithACount) {
  const TimeScale scale({{Moment{}, 0}, {seconds(10), 1000}});
  const Write first{"A", 1, false, milliseconds(1000), {}, Fate::kAdmitted, "", ""};
  Write close = first, other = first, far = first;
  close.sent += milliseconds(50);
  other.sent += milliseconds(60), other.fate = Fate::kRefused;
  far.sent += milliseconds(3000);
  const std::vector<Write> writes{far, first, close, other};
  const std::vector<Cluster> made = clusters(writes, scale);
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[0].count, 2U);
  EXPECT_EQ(made[1].first->fate, Fate::kRefused)
      << "a refused write is never part of a cluster of admitted ones";
  EXPECT_EQ(made[2].count, 1U);
}

TEST(ReportText, SpansHaveAboutThreeDigits) {
  EXPECT_EQ(span_text(std::chrono::microseconds(4210)), "4.2\u00a0ms");
  EXPECT_EQ(span_text(milliseconds(310)), "310\u00a0ms");
  EXPECT_EQ(span_text(milliseconds(2134)), "2.13\u00a0s");
  EXPECT_EQ(span_text(milliseconds(64'480)), "64.5\u00a0s");
  EXPECT_EQ(span_text(milliseconds(-2950)), "-2.95\u00a0s");
}

std::string steps_of(const Summary& summary) {
  std::string words;
  for (const SummaryStep& step : summary.steps) words += step.text + "\n";
  return words;
}

TEST(Summary, PauseListsItsStepsInOrder) {
  const Summary summary = summarize(passed_pause());
  const std::string words = steps_of(summary);
  std::size_t at = 0;
  for (const char* part :
       {"A was granted the lock, with the fencing token 34", "A was frozen",
        "was not renewed and expired", "B was granted the lock, with a greater token: 35",
        "A did not notice", "B wrote: admitted",
        "A wrote with its old token 34: the resource refused it"}) {
    const std::size_t found = words.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\nin\n" << words;
    at = found;
  }
  EXPECT_TRUE(summary.others.empty());
}

TEST(Summary, WriteThatGotThroughSaysWhy) {
  EXPECT_THAT(steps_of(summarize(shadowed_pause())),
              HasSubstr("a guard in mode shadow refuses nothing"));
  EXPECT_THAT(steps_of(summarize(unguarded_pause())),
              HasSubstr("nothing in the resource compares tokens"));
  EXPECT_THAT(steps_of(summarize(unguarded_pause())), HasSubstr("overwritten"));
}

TEST(Summary, PrefersAWriteThatGotThrough) {
  DrillRecord record = flapping(10);
  Write& last = record.writes.back();
  last.stale = true;
  last.fate = Fate::kLetThrough;
  const Summary summary = summarize(record);
  EXPECT_THAT(summary.steps.back().text, HasSubstr("the write took effect"));
  EXPECT_THAT(summary.others, HasSubstr("more refused"));
}

TEST(Summary, StepsAreInOrderOfTime) {
  for (const Sample& sample : samples()) {
    const Summary summary = summarize(sample.record);
    for (std::size_t i = 1; i < summary.steps.size(); ++i) {
      EXPECT_GE(summary.steps[i].at, summary.steps[i - 1].at) << sample.name;
    }
  }
}

TEST(Summary, EmptyWithoutAStaleWrite) {
  EXPECT_TRUE(summarize(idle()).steps.empty());
  EXPECT_TRUE(summarize({}).steps.empty());
}

}  // namespace
}  // namespace pawl::drill
