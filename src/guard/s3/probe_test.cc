// Hard case 58: what is found out about stores that do not keep conditions.
#include "guard/s3/probe.h"

#include <gtest/gtest.h>

#include "guard/s3/testlib/memory_store.h"

namespace pawl::guard {
namespace {

S3Probe probe(const MemoryStoreFaults& faults) {
  MemoryBucket bucket;
  bucket.faults = faults;
  MemoryStore store(bucket);
  const auto report = probe_s3(store, "nonce");
  EXPECT_TRUE(report);
  EXPECT_TRUE(bucket.objects.empty()) << "the probe leaves nothing behind";
  return *report;
}

TEST(S3ProbeTest, StoreThatKeepsConditionsCanBeGuarded) {
  const S3Probe report = probe({});
  EXPECT_EQ(report.fatal, "");
  EXPECT_EQ(report.form, EtagForm::kQuoted);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_TRUE(report.conditional_delete);
}

TEST(S3ProbeTest, StoreThatWantsBareEtagsIsFollowed) {
  const S3Probe report = probe({.wants_unquoted = true});
  EXPECT_EQ(report.fatal, "");
  EXPECT_EQ(report.form, EtagForm::kUnquoted);
  EXPECT_EQ(report.notes.size(), 1u);
}

TEST(S3ProbeTest, StoreThatOverwritesIsRefused) {
  EXPECT_NE(probe({.ignores_absent = true}).fatal.find("ignores If-None-Match"), std::string::npos);
  EXPECT_NE(probe({.ignores_match = true}).fatal.find("ignores If-Match"), std::string::npos);
}

TEST(S3ProbeTest, StoreThatKnowsNoConditionsIsRefusedInItsWords) {
  EXPECT_NE(probe({.refuses_conditions = true}).fatal.find("501"), std::string::npos);
}

TEST(S3ProbeTest, StoreThatRefusesEveryMatchIsRefused) {
  EXPECT_NE(probe({.refuses_every_match = true}).fatal.find("even when the ETag is right"),
            std::string::npos);
}

TEST(S3ProbeTest, StoreThatRevivesADeletedObjectIsRefused) {
  EXPECT_NE(probe({.match_revives = true}).fatal.find("deleted"), std::string::npos);
}

TEST(S3ProbeTest, UnconditionalDeleteIsNoted) {
  const S3Probe report = probe({.ignores_delete_match = true});
  EXPECT_EQ(report.fatal, "");
  EXPECT_FALSE(report.conditional_delete);
  EXPECT_EQ(report.notes.size(), 1u);
}

TEST(S3ProbeTest, VersionsAreNoted) {
  EXPECT_EQ(probe({.versioning = Versioning::kOn}).notes.size(), 1u);
}

TEST(S3ProbeTest, PolicyOfTheAdviceIsRecognised) {
  const std::string policy = s3_policy_advice("shop", {"a", "b/c"});
  EXPECT_TRUE(policy_protects(policy, "b/c"));
  EXPECT_FALSE(policy_protects(policy, "d"));
  EXPECT_FALSE(policy_protects("{}", "a"));
}

}  // namespace
}  // namespace pawl::guard
