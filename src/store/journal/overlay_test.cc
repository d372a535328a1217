#include "store/journal/overlay.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"

namespace pawl::store::journal {
namespace {

TEST(Overlay, KeepsTheLastOperationOnEachKey) {
  Overlay overlay;
  std::map<std::string, std::pair<bool, std::string>> model;
  SeededRandom random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(random.below(3000));
    const bool put = random.below(3) != 0;
    const std::string value = put ? std::to_string(i) : "";
    overlay.apply(Operation{put, key, value});
    model[key] = {put, value};
  }
  EXPECT_EQ(overlay.changes().size(), model.size());
  for (const auto& [key, expected] : model) {
    const Operation* found = overlay.find(key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->put, expected.first);
    EXPECT_EQ(found->value, expected.second);
  }
  EXPECT_EQ(overlay.find("never"), nullptr);

  overlay.sort();
  auto expected = model.begin();
  for (const Operation& change : overlay.changes()) EXPECT_EQ(change.key, (expected++)->first);
}

TEST(Overlay, BytesThatAreNotABatchAreRefused) {
  Overlay overlay;
  EXPECT_FALSE(overlay.apply_batch("nonsense"));
}

}  // namespace
}  // namespace pawl::store::journal
