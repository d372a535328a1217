#include "drill/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Write write(const char* worker, std::uint64_t token, Moment sent, Fate fate) {
  return {.worker = worker,
          .token = token,
          .sent = sent,
          .answered = sent + 1ms,
          .fate = fate,
          .value = "v"};
}

std::vector<std::string> texts(const std::vector<Note>& notes) {
  std::vector<std::string> list;
  for (const Note& each : notes) list.push_back(each.text);
  return list;
}

// A is granted 33 and frozen; B is granted 34 at 3 s; A wakes and writes at 4 s.
DrillRecord pause_record(Fate stale) {
  DrillRecord record;
  record.ownerships = {{"A", 33, 0s, 3s, "expired"}, {"B", 34, 3s, 5s, "released"}};
  record.beliefs = {{"A", 33, 0s, 4s}, {"B", 34, 3s, 5s}};
  record.writes = {write("A", 33, 1s, Fate::kAdmitted), write("B", 34, 3500ms, Fate::kAdmitted),
                   write("A", 33, 4s, stale)};
  record.length = 5s;
  mark_stale(record);
  return record;
}

TEST(DrillVerdict, RefusedStaleWritePasses) {
  const DrillVerdict verdict = judge(pause_record(Fate::kRefused));
  EXPECT_TRUE(verdict.passed);
  EXPECT_EQ(verdict.writes, 3);
  EXPECT_EQ(verdict.stale_sent, 1);
  EXPECT_EQ(verdict.refused, 1);
  EXPECT_EQ(verdict.let_through, 0);
  EXPECT_THAT(texts(verdict.reasons), ElementsAre("The stale write was refused."));
}

TEST(DrillVerdict, StaleWriteInEffectIsLetThrough) {
  const DrillRecord record = pause_record(Fate::kAdmitted);
  EXPECT_EQ(record.writes[2].fate, Fate::kLetThrough);
  EXPECT_EQ(record.writes[0].fate, Fate::kAdmitted);
  const DrillVerdict verdict = judge(record);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.let_through, 1);
  EXPECT_THAT(texts(verdict.reasons), ElementsAre("1 stale write got through."));
}

TEST(DrillVerdict, NoStaleWriteFails) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.writes.pop_back();
  EXPECT_FALSE(judge(record).passed);
  EXPECT_THAT(texts(judge(record).reasons), ElementsAre(HasSubstr("the guard was not tested")));
  EXPECT_FALSE(judge(DrillRecord{}).passed);
}

TEST(DrillVerdict, WithheldWriteDoesNotCount) {
  const DrillVerdict verdict = judge(pause_record(Fate::kWithheld));
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.writes, 2);
  EXPECT_EQ(verdict.stale_sent, 0);
}

TEST(DrillVerdict, UnknownResultFails) {
  const DrillVerdict verdict = judge(pause_record(Fate::kUnknown));
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.unknown, 1);
}

TEST(DrillVerdict, RefusedHolderFails) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.writes[1].fate = Fate::kRefused;
  EXPECT_FALSE(judge(record).passed);
  EXPECT_EQ(judge(record).refused, 1) << "only what was stale counts as rightly refused";
  EXPECT_THAT(texts(judge(record).reasons),
              ElementsAre("The holder of the lock was refused 1 time."));
}

TEST(DrillVerdict, DecreasingTokenFails) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.ownerships.push_back({"C", 34, 4500ms, 5s, "released", 34});
  EXPECT_FALSE(judge(record).passed);
}

TEST(DrillVerdict, GrantThatIsLearnedOfLateIsNotADecreasingToken) {
  DrillRecord record = pause_record(Fate::kRefused);
  // B knew of 34 before the drill read the event that someone else had been granted 33.
  record.ownerships = {{"someone else", 33, 3200ms, 3300ms, "released", 0},
                       {"B", 34, 3s, 5s, "released", 32}};
  mark_stale(record);
  EXPECT_TRUE(judge(record).passed);
}

TEST(DrillVerdict, WriteIsStaleFromTheNextGrantOn) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.writes = {write("A", 33, 3s - 1ns, Fate::kAdmitted), write("A", 33, 3s, Fate::kRefused)};
  mark_stale(record);
  EXPECT_FALSE(record.writes[0].stale);
  EXPECT_TRUE(record.writes[1].stale);
}

TEST(DrillVerdict, NoticedLateCountsFromTheNextGrant) {
  EXPECT_EQ(judge(pause_record(Fate::kRefused)).noticed_late, 1s);
  DrillRecord record = pause_record(Fate::kRefused);
  record.beliefs[0].until = 2900ms;
  EXPECT_EQ(judge(record).noticed_late, -100ms);
  record.beliefs[0].until.reset();  // It never noticed.
  EXPECT_EQ(judge(record).noticed_late, 2s);
  record.beliefs.clear();
  EXPECT_FALSE(judge(record).noticed_late);
}

TEST(Verdict, EnforcingGuardWithoutRequireTokenIsNotedWithTheCommandThatClosesIt) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.guard = "postgres";
  record.resource = "orders:7";
  record.mode = "enforce";
  EXPECT_THAT(judge(record).notes, IsEmpty()) << "a kind without this policy";
  record.require_token = false;
  EXPECT_TRUE(judge(record).passed);
  ASSERT_EQ(judge(record).notes.size(), 1U);
  EXPECT_EQ(judge(record).notes[0].command, "pawl guard policy postgres orders --require-token on");
  record.guard_options = "--dsn DSN";
  EXPECT_EQ(judge(record).notes[0].command,
            "pawl guard policy postgres orders --dsn DSN --require-token on");
  record.require_token = true;
  EXPECT_THAT(judge(record).notes, IsEmpty());
  record.require_token = false;
  record.mode = "shadow";
  EXPECT_THAT(judge(record).notes, IsEmpty()) << "it refuses nothing at all";
}

// A guard of the user's, whose table refuses the statement in every way.
DrillRecord own_record() {
  DrillRecord record = pause_record(Fate::kRefused);
  record.drill = "pause";
  record.guard = "postgres";
  record.resource = "orders";
  record.guard_options = "--dsn DSN";
  record.mode = "enforce";
  record.require_token = true;
  record.scratch = false;
  record.statement = "UPDATE orders SET n = n + 1";
  record.tables = {"orders"};
  record.writes[0].rows = record.writes[1].rows = 1;
  record.ways = {{Way::kCall, "pawl.use()", WayFate::kRefused},
                 {Way::kCarried, "SET LOCAL pawl.token.orders", WayFate::kRefused},
                 {Way::kNone, "no token", WayFate::kRefused}};
  return record;
}

TEST(DrillVerdict, WriteThatIsRefusedInEveryWayPasses) {
  const DrillVerdict verdict = judge(own_record());
  EXPECT_TRUE(verdict.passed) << texts(verdict.reasons).front();
  EXPECT_THAT(verdict.notes, IsEmpty());
}

TEST(DrillVerdict, WriteThatTheTableDoesNotRefuseFailsAlthoughTheCallWasRefused) {
  DrillRecord record = own_record();
  record.ways[1].fate = WayFate::kLanded;
  record.problems = {
      {true, false, "orders", "the trigger pawl_guard is disabled", "SELECT pawl.repair()"}};
  const DrillVerdict verdict = judge(record);
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(texts(verdict.reasons),
              ElementsAre("A stale write with SET LOCAL pawl.token.orders landed.",
                          "orders: the trigger pawl_guard is disabled. To mend it:"));
  EXPECT_EQ(verdict.reasons[1].command, "SELECT pawl.repair()");
}

TEST(DrillVerdict, ErrorThatTheGuardReportsFailsAlsoWhereEveryWriteWasRefused) {
  DrillRecord record = own_record();
  record.problems = {{true, false, "orders_2024", "partition without the trigger", "repair"}};
  EXPECT_FALSE(judge(record).passed);
  record.problems[0].error = false;
  EXPECT_TRUE(judge(record).passed);
  EXPECT_THAT(texts(judge(record).notes), ElementsAre(HasSubstr("orders_2024: partition without")));
}

TEST(DrillVerdict, WriteWithoutATokenFailsOnlyWhereThePolicyRequiresOne) {
  DrillRecord record = own_record();
  record.ways[2].fate = WayFate::kLanded;
  EXPECT_THAT(texts(judge(record).reasons),
              Contains("A stale write with no token landed, although require_token is on."));
  record.require_token = false;
  EXPECT_TRUE(judge(record).passed);
  EXPECT_THAT(texts(judge(record).notes), ElementsAre(HasSubstr("require_token is off")));
}

TEST(DrillVerdict, WriteToAnotherTableIsNamedWhereTheGuardIsHealthy) {
  DrillRecord record = own_record();
  record.ways[1].fate = WayFate::kLanded;
  EXPECT_FALSE(judge(record).passed);
  EXPECT_THAT(texts(judge(record).reasons),
              Contains(HasSubstr("does not reach the guard orders: it changes another table")));
}

TEST(DrillVerdict, WriteThatChangesNoRowFails) {
  DrillRecord record = own_record();
  record.writes[0].rows = record.writes[1].rows = 0;
  EXPECT_THAT(texts(judge(record).reasons), ElementsAre(HasSubstr("changes no row")));
}

TEST(DrillVerdict, GuardThatDoesNotEnforceFailsWithTheCommandThatChangesIt) {
  DrillRecord record = own_record();
  for (const char* mode : {"observe", "shadow", "canary"}) {
    record.mode = mode;
    ASSERT_FALSE(judge(record).passed) << mode;
    EXPECT_EQ(judge(record).reasons[0].command,
              "pawl guard mode postgres orders --dsn DSN enforce");
  }
}

TEST(DrillVerdict, GuardWithoutATableFailsAStatement) {
  DrillRecord record = own_record();
  record.tables.clear();
  EXPECT_THAT(texts(judge(record).reasons), ElementsAre(HasSubstr("No table is under the guard")));
}

TEST(DrillVerdict, WriteThatWasNotSentIsNoted) {
  DrillRecord record = own_record();
  record.statement.clear();
  record.ways[1].fate = record.ways[2].fate = WayFate::kNotApplicable;
  EXPECT_TRUE(judge(record).passed);
  ASSERT_EQ(judge(record).notes.size(), 1U);
  EXPECT_EQ(judge(record).notes[0].command,
            "pawl drill pause --guard postgres:orders --dsn DSN --write 'UPDATE …'");
}

TEST(DrillVerdict, ProblemsThatCannotBeReadAreNoted) {
  DrillRecord record = own_record();
  record.problems_unread = "permission denied";
  EXPECT_THAT(texts(judge(record).notes), ElementsAre(HasSubstr("permission denied")));
}

}  // namespace
}  // namespace pawl::drill
