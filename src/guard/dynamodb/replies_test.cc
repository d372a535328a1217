#include "guard/dynamodb/replies.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(DynamoReplies, ConditionThatFailedTellsTheItem) {
  const auto answer = read_dynamo_answer(
      400, R"({"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",)"
           R"("Message":"The conditional request failed","Item":{"pawl_token":{"N":"34"}}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->failure, DynamoFailure::kCondition);
  ASSERT_TRUE(answer->item);
  EXPECT_TRUE(answer->item->contains("pawl_token"));
}

TEST(DynamoReplies, CancelledTransactionHasReasons) {
  const auto answer = read_dynamo_answer(
      400, R"({"__type":"x#TransactionCanceledException","CancellationReasons":[{"Code":"None"},)"
           R"({"Code":"ConditionalCheckFailed","Message":"m","Item":{"a":{"S":"b"}}}]})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->failure, DynamoFailure::kCancelled);
  ASSERT_EQ(answer->reasons.size(), 2u);
  EXPECT_EQ(answer->reasons[0].code, "None");
  EXPECT_TRUE(answer->reasons[1].item);
}

TEST(DynamoReplies, ErrorsSayWhatMayBeConcluded) {
  const std::tuple<int, const char*, Code> cases[] = {
      {500, R"({"__type":"x#InternalServerError"})", Code::kUnknown},
      {503, "", Code::kUnknown},
      {400, R"({"__type":"x#ProvisionedThroughputExceededException"})", Code::kUnavailable},
      {400, R"({"__type":"x#ThrottlingException"})", Code::kUnavailable},
      {400, R"({"__type":"x#AccessDeniedException"})", Code::kDenied},
      {400, R"({"__type":"x#ValidationException","message":"m"})", Code::kInvalid},
      {400, "<html>", Code::kInvalid},
      {200, "not JSON", Code::kUnknown},
      {302, "", Code::kUnknown}};
  for (const auto& [status, body, code] : cases) {
    const auto answer = read_dynamo_answer(status, body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().code, code) << body;
  }
}

TEST(DynamoReplies, DeepNestingIsRefused) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(read_dynamo_answer(200, deep));
}

}  // namespace
}  // namespace pawl::guard
