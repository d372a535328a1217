#include "drill/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
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
  EXPECT_THAT(verdict.reasons, ElementsAre("The stale write was refused."));
}

TEST(DrillVerdict, StaleWriteInEffectIsLetThrough) {
  const DrillRecord record = pause_record(Fate::kAdmitted);
  EXPECT_EQ(record.writes[2].fate, Fate::kLetThrough);
  EXPECT_EQ(record.writes[0].fate, Fate::kAdmitted);
  const DrillVerdict verdict = judge(record);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.let_through, 1);
  EXPECT_THAT(verdict.reasons, ElementsAre("1 stale write got through."));
}

TEST(DrillVerdict, NoStaleWriteFails) {
  DrillRecord record = pause_record(Fate::kRefused);
  record.writes.pop_back();
  EXPECT_FALSE(judge(record).passed);
  EXPECT_THAT(judge(record).reasons, ElementsAre(HasSubstr("the guard was not tested")));
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
  EXPECT_THAT(judge(record).reasons, ElementsAre("The holder of the lock was refused 1 time."));
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
  EXPECT_THAT(judge(record).notes, IsEmpty()) << "a scratch resource";
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

}  // namespace
}  // namespace pawl::drill
