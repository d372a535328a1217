#include "drill/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drill/page_samples.h"

namespace pawl::drill {
namespace {

using testing::HasSubstr;

std::string told(const Story& story) {
  std::string words;
  for (const Step& step : story.steps) words += step.text + "\n";
  return words;
}

TEST(Story, OfAPauseTellsGrantFreezeExpirySuccessorAndRefusalInOrder) {
  const Story story = story_of(passed_pause());
  const std::string words = told(story);
  std::size_t at = 0;
  for (const char* part :
       {"A was granted the lock, with the fencing token 34", "A was frozen", "it ran out",
        "B was granted the lock, with a greater token: 35", "A did not know", "B wrote: admitted",
        "A wrote with its old token 34: the resource refused it"}) {
    const std::size_t found = words.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\nin\n" << words;
    at = found;
  }
  EXPECT_TRUE(story.rest.empty());
}

TEST(Story, OfAWriteThatGotThroughSaysWhatWasLostAndWhy) {
  EXPECT_THAT(told(story_of(shadowed_pause())), HasSubstr("a guard in shadow refuses nothing"));
  EXPECT_THAT(told(story_of(unguarded_pause())),
              HasSubstr("nothing in the resource compares tokens"));
  EXPECT_THAT(told(story_of(unguarded_pause())), HasSubstr("overwritten"));
}

TEST(Story, OneThatGotThroughIsToldBeforeAnyThatWasRefused) {
  Record record = flapping(10);
  Write& last = record.writes.back();
  last.stale = true;
  last.fate = Fate::kLetThrough;
  const Story story = story_of(record);
  EXPECT_THAT(story.steps.back().text, HasSubstr("and it took effect"));
  EXPECT_THAT(story.rest, HasSubstr("more refused"));
}

TEST(Story, IsInOrderOfTime) {
  for (const Sample& sample : samples()) {
    const Story story = story_of(sample.record);
    for (std::size_t i = 1; i < story.steps.size(); ++i) {
      EXPECT_GE(story.steps[i].at, story.steps[i - 1].at) << sample.name;
    }
  }
}

TEST(Story, WithoutAStaleWriteThereIsNothingToTell) {
  EXPECT_TRUE(story_of(idle()).steps.empty());
  EXPECT_TRUE(story_of({}).steps.empty());
}

}  // namespace
}  // namespace pawl::drill
