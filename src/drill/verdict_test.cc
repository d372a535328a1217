#include "drill/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::drill {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

Write write(const char* actor, std::uint64_t token, Moment sent, Fate fate) {
  return {.actor = actor,
          .token = token,
          .sent = sent,
          .answered = sent + 1ms,
          .fate = fate,
          .value = "v"};
}

// A is granted 33 and frozen; B is granted 34 at 3 s; A wakes and writes at 4 s.
Record pause_record(Fate stale) {
  Record record;
  record.ownerships = {{"A", 33, 0s, 3s, "expired"}, {"B", 34, 3s, 5s, "released"}};
  record.beliefs = {{"A", 33, 0s, 4s}, {"B", 34, 3s, 5s}};
  record.writes = {write("A", 33, 1s, Fate::kAdmitted), write("B", 34, 3500ms, Fate::kAdmitted),
                   write("A", 33, 4s, stale)};
  record.length = 5s;
  mark_stale(record);
  return record;
}

TEST(Verdict, AStaleWriteThatWasRefusedPasses) {
  const Verdict verdict = judge(pause_record(Fate::kRefused));
  EXPECT_TRUE(verdict.passed);
  EXPECT_EQ(verdict.writes, 3);
  EXPECT_EQ(verdict.stale_sent, 1);
  EXPECT_EQ(verdict.refused, 1);
  EXPECT_EQ(verdict.let_through, 0);
  EXPECT_THAT(verdict.because, ElementsAre("The stale write was refused."));
}

TEST(Verdict, AStaleWriteThatIsInEffectIsLetThroughWhateverTheGuardCalledIt) {
  const Record record = pause_record(Fate::kAdmitted);
  EXPECT_EQ(record.writes[2].fate, Fate::kLetThrough);
  EXPECT_EQ(record.writes[0].fate, Fate::kAdmitted);
  const Verdict verdict = judge(record);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.let_through, 1);
  EXPECT_THAT(verdict.because, ElementsAre("1 stale write got through."));
}

TEST(Verdict, ADrillInWhichNothingStaleWasSentDoesNotPass) {
  Record record = pause_record(Fate::kRefused);
  record.writes.pop_back();
  EXPECT_FALSE(judge(record).passed);
  EXPECT_THAT(judge(record).because, ElementsAre(HasSubstr("nothing was shown")));
  EXPECT_FALSE(judge(Record{}).passed);
}

TEST(Verdict, AWriteThatWasWithheldWasNotSent) {
  const Verdict verdict = judge(pause_record(Fate::kWithheld));
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.writes, 2);
  EXPECT_EQ(verdict.stale_sent, 0);
}

TEST(Verdict, AWriteOfUnknownFateDoesNotPass) {
  const Verdict verdict = judge(pause_record(Fate::kUnknown));
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.unknown, 1);
}

TEST(Verdict, AGuardThatRefusesTheHolderDoesNotPass) {
  Record record = pause_record(Fate::kRefused);
  record.writes[1].fate = Fate::kRefused;
  EXPECT_FALSE(judge(record).passed);
  EXPECT_EQ(judge(record).refused, 1) << "only what was stale counts as rightly refused";
  EXPECT_THAT(judge(record).because, ElementsAre("The rightful holder was refused 1 time."));
}

TEST(Verdict, ATokenThatWentBackDoesNotPass) {
  Record record = pause_record(Fate::kRefused);
  record.ownerships.push_back({"C", 34, 4500ms, 5s, "released"});
  EXPECT_FALSE(judge(record).passed);
}

TEST(Verdict, AWriteIsStaleFromTheMomentOfTheNextGrantOn) {
  Record record = pause_record(Fate::kRefused);
  record.writes = {write("A", 33, 3s - 1ns, Fate::kAdmitted), write("A", 33, 3s, Fate::kRefused)};
  mark_stale(record);
  EXPECT_FALSE(record.writes[0].stale);
  EXPECT_TRUE(record.writes[1].stale);
}

TEST(Verdict, HowLateTheClientKnewCountsFromTheNextGrant) {
  EXPECT_EQ(judge(pause_record(Fate::kRefused)).knew_late, 1s);
  Record record = pause_record(Fate::kRefused);
  record.beliefs[0].until = 2900ms;
  EXPECT_EQ(judge(record).knew_late, -100ms);
  record.beliefs[0].until.reset();  // It never knew.
  EXPECT_EQ(judge(record).knew_late, 2s);
  record.beliefs.clear();
  EXPECT_FALSE(judge(record).knew_late);
}

}  // namespace
}  // namespace pawl::drill
