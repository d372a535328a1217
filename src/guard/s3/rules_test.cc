#include "guard/s3/rules.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

S3Envelope fenced_at(std::uint64_t token, GuardMode mode = GuardMode::kEnforce) {
  S3Envelope envelope{.key = "a", .sequence = 1};
  envelope.token = token;
  envelope.policy.mode = mode;
  return envelope;
}

TEST(S3Rules, TokenIsComparedWithTheFence) {
  const S3Envelope now = fenced_at(34);
  EXPECT_EQ(judge_s3_write(now, 33, 0).verdict, Verdict::kStale);
  EXPECT_EQ(judge_s3_write(now, 34, 0).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_s3_write(now, 35, 0).verdict, Verdict::kAdmitted);
  EXPECT_EQ(judge_s3_write(now, 34 + (1ULL << 44) + 1, 0).verdict, Verdict::kAhead);
  EXPECT_EQ(judge_s3_write(now, 0, 0).verdict, Verdict::kMissing);
}

TEST(S3Rules, FloorCountsLikeAFence) {
  S3Envelope now = fenced_at(34);
  now.policy.floor = 40;
  EXPECT_EQ(judge_s3_write(now, 39, 0).verdict, Verdict::kStale);
  EXPECT_EQ(judge_s3_write(now, 40, 0).verdict, Verdict::kAdmitted);
}

TEST(S3Rules, OperationsUnderATokenGrow) {
  S3Envelope now = fenced_at(0);
  raise_s3_fence(now, 34, 7);
  EXPECT_EQ(judge_s3_write(now, 34, 7).verdict, Verdict::kReplayed);
  EXPECT_EQ(judge_s3_write(now, 34, 6).verdict, Verdict::kStale);
  EXPECT_EQ(judge_s3_write(now, 34, 8).verdict, Verdict::kAdmitted);
  raise_s3_fence(now, 34, 0);
  EXPECT_EQ(now.operation, 7u) << "a write without a number does not forget the last one";
  raise_s3_fence(now, 35, 1);
  EXPECT_EQ(now.operation, 1u);
}

TEST(S3Rules, PolicyEqualLimitsAnEqualToken) {
  S3Envelope now = fenced_at(34);
  now.policy.equal = Equal::kRefuse;
  EXPECT_EQ(judge_s3_write(now, 34, 0).verdict, Verdict::kAdmitted) << "only advanced to so far";
  raise_s3_fence(now, 34, 0);
  EXPECT_EQ(judge_s3_write(now, 34, 0).verdict, Verdict::kStale);
  now.policy.equal = Equal::kOnce;
  EXPECT_EQ(judge_s3_write(now, 34, 0).verdict, Verdict::kMissing);
  EXPECT_EQ(judge_s3_write(now, 34, 1).verdict, Verdict::kAdmitted);
}

TEST(S3Rules, OnlyEnforceRefuses) {
  EXPECT_FALSE(judge_s3_write(fenced_at(34), 33, 0).let_through);
  const S3Verdict shadow = judge_s3_write(fenced_at(34, GuardMode::kShadow), 33, 0);
  EXPECT_TRUE(shadow.let_through && shadow.would_refuse);
  const S3Verdict observe = judge_s3_write(fenced_at(34, GuardMode::kObserve), 33, 0);
  EXPECT_TRUE(observe.let_through && !observe.would_refuse);
}

TEST(S3Rules, MissingTokenIsRefusedOnlyWhereOneIsRequired) {
  S3Envelope now = fenced_at(34);
  EXPECT_TRUE(judge_s3_write(now, 0, 0).let_through);
  now.policy.require_token = true;
  EXPECT_FALSE(judge_s3_write(now, 0, 0).let_through);
}

TEST(S3Rules, RefusalNamesTheNumbers) {
  const S3Envelope now = fenced_at(34);
  const Error error = explain_s3_refusal(now, judge_s3_write(now, 33, 0), 33, 0);
  EXPECT_EQ(error.code, Code::kStaleToken);
  EXPECT_NE(error.detail.find("[resource=a token=33 max=34 mode=enforce]"), std::string::npos);
}

}  // namespace
}  // namespace pawl::guard
