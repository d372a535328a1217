// Writes whose answers are lost, late or wrong: whatever the store says, each takes effect once or
// not at all, and its caller is told which.
#include "guard/s3/change.h"

#include <gtest/gtest.h>

#include "guard/s3/front.h"
#include "guard/s3/names.h"
#include "guard/s3/testlib/memory_store.h"

namespace pawl::guard {
namespace {

class S3Changes : public testing::Test {
 protected:
  S3Changes() {
    MemoryStore store(bucket);
    const S3Installation installation{"0.1.0", std::to_string(kGuardContract)};
    put(kS3Installation, to_bytes(installation));
    S3Envelope envelope{.key = "a", .sequence = 100};
    envelope.nonces = {std::string(32, '0')};
    envelope.policy.mode = GuardMode::kEnforce;
    put("a", to_bytes(envelope));
    bucket.puts = 0;
  }

  void put(const std::string& key, const std::string& bytes) {
    ASSERT_TRUE(MemoryStore(bucket).put(key, bytes, {}, EtagForm::kQuoted));
  }
  std::unique_ptr<S3Front> open(std::size_t inline_max = 1000) {
    return std::make_unique<S3Front>(
        std::unique_ptr<ObjectStore>(std::make_unique<MemoryStore>(bucket)),
        S3Options{.bucket = "b", .inline_max = inline_max});
  }
  static Result<Decision> append(S3Front& front, std::uint64_t token, const std::string& text,
                                 std::uint64_t operation = 0) {
    S3Write write{.held = {.token = token}, .key = "a", .operation = operation};
    write.content = [&](const std::optional<std::string>& before) {
      return before.value_or("") + text;
    };
    return front.write(write);
  }
  std::string content() { return open()->read("a")->value_or("(none)"); }

  MemoryBucket bucket;
};

TEST_F(S3Changes, WriteOfAHolderIsOnePut) {
  const auto front = open();
  ASSERT_TRUE(append(*front, 34, "x"));
  bucket.puts = 0;
  bucket.gets = 0;
  ASSERT_TRUE(append(*front, 34, "y"));
  EXPECT_EQ(bucket.puts, 1);
  EXPECT_EQ(bucket.gets, 0);
  EXPECT_EQ(content(), "xy");
}

TEST_F(S3Changes, LargerContentCostsOnePutMore) {
  const auto front = open(0);
  ASSERT_TRUE(append(*front, 34, "x"));
  bucket.puts = 0;
  S3Write write{.held = {.token = 34}, .key = "a"};
  write.content = [](const auto&) { return std::string("y"); };
  ASSERT_TRUE(front->write(write));
  EXPECT_EQ(bucket.puts, 2);
  EXPECT_EQ(content(), "y");
}

TEST_F(S3Changes, RememberedStateIsNotTrustedForARefusal) {
  const auto old = open();
  const auto other = open();
  ASSERT_TRUE(append(*old, 33, "x"));
  ASSERT_TRUE(other->advance("a", 34));
  const auto done = append(*old, 33, "y");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_EQ(content(), "x");
}

TEST_F(S3Changes, WriteThatLandedWithoutAnAnswerIsDoneOnce) {
  for (const PutFate fate : {PutFate::kLandsWithoutAnswer, PutFate::kLostOnTheWay,
                             PutFate::kLandsLate, PutFate::kConflict, PutFate::kLandsTwice}) {
    SCOPED_TRACE(static_cast<int>(fate));
    const std::string before = content() == "(none)" ? "" : content();
    bucket.fates = {fate};
    const auto done = append(*open(), 34, "x");
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(content(), before + "x");
  }
}

TEST_F(S3Changes, WriteThatWasReplacedSinceIsKnownToHaveLanded) {
  const auto front = open();
  const auto other = open();
  ASSERT_TRUE(append(*front, 34, "x"));
  bucket.fates = {PutFate::kLandsWithoutAnswer};
  bucket.before_get = [&] { ASSERT_TRUE(append(*other, 34, "z")); };
  ASSERT_TRUE(append(*front, 34, "y"));
  EXPECT_EQ(content(), "xyz") << "once, although another was there when it was read back";
}

TEST_F(S3Changes, WriteThatIsForgottenIsUnknownWithoutAnOperationNumber) {
  const auto front = open();
  const auto other = open();
  ASSERT_TRUE(append(*front, 34, "x"));
  const auto bury = [&] {
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(other->write({.held = {.token = 34}, .key = "a"}));
  };
  bucket.fates = {PutFate::kLandsWithoutAnswer};
  bucket.before_get = bury;
  const auto done = append(*front, 34, "y");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
}

TEST_F(S3Changes, WriterThatHasSleptThroughManyWritesGoesOn) {
  const auto front = open();
  const auto other = open();
  ASSERT_TRUE(append(*front, 34, "x"));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(append(*other, 34, "."));
  const auto done = append(*front, 34, "y");
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(content(), "x" + std::string(100, '.') + "y");
}

TEST_F(S3Changes, LateCopyOfASettledWriteCannotLand) {
  bucket.fates = {PutFate::kLandsLate};
  ASSERT_TRUE(append(*open(), 33, "x"));
  ASSERT_TRUE(open()->advance("a", 34));
  EXPECT_EQ(content(), "x");
  EXPECT_FALSE(append(*open(), 33, "y"));
}

TEST_F(S3Changes, WriteThatAnotherOvertookIsJudgedAgain) {
  const auto newer = open();
  bucket.before_put = [&] { ASSERT_TRUE(newer->advance("a", 34)); };
  const auto done = append(*open(), 33, "x");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_EQ(content(), "(none)");
}

TEST_F(S3Changes, OldSequenceNumbersTellWhatHasLanded) {
  S3Loaded now{"e", {.key = "a", .sequence = 110}};
  now.envelope.nonces = {"n110", "n109", "n108"};
  const auto landing = [&](std::uint64_t sequence, const std::string& nonce) {
    S3Replacement sent{"a", "base", {.key = "a", .sequence = sequence}};
    sent.next.nonces = {nonce};
    return find_landing(sent, now);
  };
  EXPECT_EQ(landing(109, "n109"), S3Landing::kApplied);
  EXPECT_EQ(landing(109, "mine"), S3Landing::kSuperseded);
  EXPECT_EQ(landing(107, "mine"), S3Landing::kCannotTell) << "forgotten";
  EXPECT_EQ(landing(111, "mine"), S3Landing::kCannotTell) << "another object of that name";
  now.etag = "base";
  EXPECT_EQ(landing(111, "mine"), S3Landing::kUnchanged);
}

TEST_F(S3Changes, LosersLeaveGarbageAndNothingElse) {
  const auto newer = open(0);
  ASSERT_TRUE(append(*open(0), 33, "x"));
  bucket.before_put = [&] { ASSERT_TRUE(newer->advance("a", 34)); };
  ASSERT_FALSE(append(*open(0), 33, "y"));
  const auto data = MemoryStore(bucket).list(data_prefix("a"));
  ASSERT_EQ(data->size(), 2u);
  const auto now = newer->load("a");
  const auto garbage =
      find_garbage(*data, (*now)->envelope.sequence, (*now)->envelope.content.object);
  ASSERT_EQ(garbage.size(), 1u);
  EXPECT_NE(garbage.front(), (*now)->envelope.content.object);
  EXPECT_EQ(content(), "x");
}

TEST_F(S3Changes, RemovedContentKeepsTheFence) {
  const auto front = open();
  ASSERT_TRUE(append(*front, 34, "x"));
  ASSERT_TRUE(front->write({.held = {.token = 35}, .key = "a"}));
  EXPECT_EQ(content(), "(none)");
  EXPECT_FALSE(append(*front, 34, "y"));
}

TEST_F(S3Changes, ObjectThatWasOverwrittenIsNotUnderGuard) {
  put("a", "plain");
  const auto front = open();
  const auto done = append(*front, 34, "x");
  ASSERT_FALSE(done);
  EXPECT_TRUE(front->unguarded());
  EXPECT_EQ(bucket.objects.at("a").bytes, "plain");
}

TEST_F(S3Changes, CopyOfAFencedObjectGuardsNothing) {
  put("copy", bucket.objects.at("a").bytes);
  const auto done = open()->advance("copy", 34);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().detail.find("is a copy of"), std::string::npos);
}

TEST_F(S3Changes, LetThroughMovesNoFence) {
  S3Envelope envelope{.key = "a", .sequence = 100};
  envelope.nonces = {std::string(32, '0')};
  envelope.token = 34;
  envelope.policy.mode = GuardMode::kShadow;
  put("a", to_bytes(envelope));
  const auto done = append(*open(), 33, "x");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->verdict, Verdict::kStale);
  EXPECT_TRUE(done->let_through);
  EXPECT_EQ(content(), "x");
  EXPECT_EQ((*open()->load("a"))->envelope.token, 34u);
}

TEST_F(S3Changes, FrontIsFencedOnlyUnderABucketPolicy) {
  EXPECT_EQ(open()->strength().strength, Strength::kBestEffort);
  bucket.policy = R"({"Sid": "PawlGuardPut"})";
  EXPECT_EQ(open()->strength().strength, Strength::kFenced);
  bucket.faults.ignores_match = true;
  EXPECT_NE(open()->strength().because.find("ignores If-Match"), std::string::npos);
}

}  // namespace
}  // namespace pawl::guard
