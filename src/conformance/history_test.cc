#include "conformance/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::conformance {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Deed write(std::uint64_t token, const char* value, std::uint64_t began, std::uint64_t answered,
           Answer answer = Answer::kDone) {
  return {Deed::Kind::kWrite, token, value, began, answered, answer, answer == Answer::kDone};
}

Deed advance(std::uint64_t token, std::uint64_t began, std::uint64_t answered) {
  return {Deed::Kind::kAdvance, token, {}, began, answered, Answer::kDone, true};
}

TEST(History, ARaceInWhichEachFindsItsOrderIsClean) {
  EXPECT_THAT(
      violations({write(5, "a", 1, 4), write(6, "b", 2, 3), write(5, "c", 5, 6, Answer::kStale)},
                 {{5, "a"}, {6, "b"}}),
      IsEmpty());
}

TEST(History, AnEffectWithALowerTokenAfterAGreaterOneIsFound) {
  const auto said = violations({write(6, "b", 1, 4), write(5, "a", 2, 3)}, {{6, "b"}, {5, "a"}});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("a took effect with token 5 after one with token 6"));
}

TEST(History, AnEffectBegunAfterAGreaterAdvanceWasAnsweredIsFoundWhateverTheLogSays) {
  const auto said = violations({advance(6, 1, 2), write(5, "a", 3, 4)}, {{5, "a"}});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("begun after token 6 had been answered"));
}

TEST(History, AWriteThatOverlapsAnAdvanceMayFallOnEitherSide) {
  EXPECT_THAT(violations({advance(6, 1, 4), write(5, "a", 2, 3)}, {{5, "a"}}), IsEmpty());
}

TEST(History, ARefusedWriteThatTookEffectIsFound) {
  EXPECT_EQ(violations({write(5, "a", 1, 2, Answer::kStale)}, {{5, "a"}}).size(), 1U);
}

TEST(History, AnAcknowledgedWriteThatIsNotThereIsFound) {
  EXPECT_EQ(violations({write(5, "a", 1, 2)}, {}).size(), 1U);
}

TEST(History, AWriteThatTookEffectTwiceIsFoundAlsoWhenItsOutcomeWasUnknown) {
  EXPECT_EQ(violations({write(5, "a", 1, 2)}, {{5, "a"}, {5, "a"}}).size(), 1U);
  EXPECT_EQ(violations({write(5, "a", 1, 2, Answer::kUnknown)}, {{5, "a"}, {5, "a"}}).size(), 1U);
  EXPECT_THAT(violations({write(5, "a", 1, 2, Answer::kUnknown)}, {{5, "a"}}), IsEmpty());
}

TEST(History, AnEffectUnderAnotherTokenAndOneThatNobodyWroteAreFound) {
  EXPECT_EQ(violations({write(5, "a", 1, 2)}, {{6, "a"}}).size(), 1U);
  EXPECT_EQ(violations({}, {{6, "a"}}).size(), 1U);
}

}  // namespace
}  // namespace pawl::conformance
