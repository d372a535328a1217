#include "guard/s3/names.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(S3Names, ObjectsOfOneKeyAreNotAmongThoseOfAnother) {
  EXPECT_FALSE(data_key("a/b", 1, "n").starts_with(data_prefix("a")));
  EXPECT_EQ(key_of_record(record_key("a/b c%")), "a/b c%");
}

TEST(S3Names, KeyOfAnotherKindIsRefused) {
  for (const char* key : {"", "a:b", ".pawl/installation", "a*", "a\nb"})
    EXPECT_FALSE(check_s3_key(key)) << key;
  EXPECT_TRUE(check_s3_key("reports/nightly 1.csv"));
}

TEST(S3Names, GuardIsForOneObjectAndNamedLikeIt) {
  EXPECT_EQ(*to_s3_key({.table = "a"}), "a");
  EXPECT_EQ(*to_s3_key({.table = "a", .guard = "a"}), "a");
  EXPECT_FALSE(to_s3_key({.table = "a", .guard = "b"}));
  EXPECT_FALSE(to_s3_key({.table = "a", .key = "id"}));
}

TEST(S3Names, OnlyWhatNoWriteCanReferToIsGarbage) {
  const std::vector<std::string> data{data_key("a", 3, "x"), data_key("a", 4, "x"),
                                      data_key("a", 5, "y"), data_key("a", 6, "z"),
                                      data_prefix("a") + "something else"};
  EXPECT_EQ(find_garbage(data, 5, data[1]), (std::vector<std::string>{data[0], data[2]}))
      << "6 is being written, and 4 is referred to";
}

}  // namespace
}  // namespace pawl::guard
