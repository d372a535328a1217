#include "auth/users_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl::auth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kSalt(32, '5');
const std::string kDigest(64, 'a');
const std::string kSecret = "sha256:" + kSalt + ":" + kDigest;

std::string problem_in(const std::string& text) {
  const auto users = parse_users(text, "users");
  return users ? "" : users.error().detail;
}

TEST(Secret, OnlyTheSecretItselfMatchesItsDigest) {
  SeededRandom random(1);
  const std::string secret = new_secret(random);
  EXPECT_EQ(secret.size(), 64U);
  const Digest kept = digest_of(secret, random);
  EXPECT_TRUE(matches(kept, secret));
  EXPECT_FALSE(matches(kept, secret.substr(1)));
  EXPECT_FALSE(matches(kept, secret + "0"));
  EXPECT_FALSE(matches(kept, ""));
  EXPECT_NE(digest_of(secret, random), kept) << "the same secret twice has two salts";
}

// What docs/reference/auth.md says: printf '%s%s' SALT SECRET | sha256sum.
TEST(Secret, TheDigestIsSha256OfSaltAndSecret) {
  const Digest kept{"00000000000000000000000000000000",
                    "af1f0da87873662f687d436bbf2c38eb309ce126fefc1ff4dea6b59b179e846b"};
  EXPECT_TRUE(matches(kept, "abc"));
}

TEST(UsersFile, EachLineIsAUserAndCommentsAreIgnored) {
  const auto users =
      parse_users("# users\n\nci use " + kSecret + " ci reports/nightly\r\n\t boss\tadmin " +
                      kSecret + "\n  # end",
                  "users");
  ASSERT_TRUE(users) << users.error().detail;
  ASSERT_EQ(users->size(), 2U);
  const User& ci = users->front();
  EXPECT_EQ(ci.name, "ci");
  EXPECT_EQ(ci.role, wire::Access::kUse);
  EXPECT_EQ(ci.secret, (Digest{kSalt, kDigest}));
  EXPECT_THAT(ci.prefixes, ElementsAre("ci", "reports/nightly"));
  EXPECT_EQ(users->back().name, "boss");
  EXPECT_THAT(users->back().prefixes, IsEmpty());
}

TEST(UsersFile, ABackupUserHasNoPrefixes) {
  const auto users = parse_users("night backup " + kSecret, "users");
  ASSERT_TRUE(users) << users.error().detail;
  EXPECT_EQ(users->front().role, wire::Access::kBackup);
  EXPECT_EQ(with_user("", users->front()), "night backup " + kSecret + "\n");
  EXPECT_THAT(problem_in("night backup " + kSecret + " ci"), HasSubstr("has no prefixes"));
}

TEST(UsersFile, ErrorsNameFileAndLineWithoutRepeatingTheLine) {
  EXPECT_THAT(problem_in("\nci use\n"), HasSubstr("users:2: expected: name role secret"));
  EXPECT_THAT(problem_in("c:i use " + kSecret), HasSubstr("users:1: a user's name is 1 to 64"));
  EXPECT_THAT(problem_in(std::string(65, 'a') + " use " + kSecret), HasSubstr("a user's name"));
  EXPECT_THAT(problem_in("ci owner " + kSecret), HasSubstr("observe, use, admin or backup"));
  EXPECT_THAT(problem_in("ci use hunter2"), HasSubstr("sha256:SALT:DIGEST"));
  EXPECT_THAT(problem_in("ci use hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(problem_in("ci use sha256:" + kSalt + ":" + std::string(64, 'A')),
              HasSubstr("lowercase"));
  EXPECT_THAT(problem_in("ci use " + kSecret + " a%2fb"), HasSubstr("%20"));
  EXPECT_THAT(problem_in("ci use " + kSecret + " a%2"), HasSubstr("%20"));
  EXPECT_THAT(problem_in("ci use " + kSecret + " \xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(problem_in("ci use " + kSecret + " " + std::string(513, 'a')), HasSubstr("512"));
  EXPECT_THAT(problem_in("ci use " + kSecret + "\n\nci use " + kSecret),
              HasSubstr("users:3: this user is listed"));
  std::string many = "ci use " + kSecret;
  for (int i = 0; i < 65; ++i) many += " p";
  EXPECT_THAT(problem_in(many), HasSubstr("at most 64 prefixes"));
  EXPECT_THAT(problem_in(std::string(kFileBytesMax + 1, '\n')), HasSubstr("longer than 4194304"));
}

TEST(UsersFile, AddingAndRemovingAUserKeepsEveryOtherLine) {
  const std::string before = "# ours\n\nboss\tadmin   " + kSecret + "\n# end";
  const User ci{"ci", wire::Access::kUse, {kSalt, kDigest}, {"with space", "100%", "ci"}};
  const std::string added = with_user(before, ci);
  EXPECT_EQ(added, before + "\nci use " + kSecret + " with%20space 100%25 ci\n");
  const auto users = parse_users(added, "users");
  ASSERT_TRUE(users) << users.error().detail;
  EXPECT_EQ(users->back(), ci);
  EXPECT_EQ(without_user(added, "ci"), before + "\n");
  EXPECT_EQ(without_user(added, "boss"),
            "# ours\n\n# end\nci use " + kSecret + " with%20space 100%25 ci\n");
  EXPECT_EQ(without_user(added, "c"), added);
  EXPECT_EQ(with_user("", ci), "ci use " + kSecret + " with%20space 100%25 ci\n");
}

TEST(UsersFile, APrefixCoversWholeSegmentsOnly) {
  EXPECT_TRUE(covers("a/b", "a/b"));
  EXPECT_TRUE(covers("a/b", "a/b/c"));
  EXPECT_FALSE(covers("a/b", "a/bc"));
  EXPECT_FALSE(covers("a/b", "a"));
  EXPECT_TRUE(covers("a/b/", "a/b/c"));
  EXPECT_FALSE(covers("a/b/", "a/b"));
  EXPECT_FALSE(covers("a/b/", "a/bc"));
}

}  // namespace
}  // namespace pawl::auth
