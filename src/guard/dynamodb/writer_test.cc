#include "guard/dynamodb/writer.h"

#include <boost/json/parse.hpp>

#include <gtest/gtest.h>

#include <deque>

namespace pawl::guard {
namespace {

constexpr std::string_view kGuardItem =
    R"({"Item":{"name":{"S":"guard orders"},"pawl_change":{"N":"7"},"policy":{"S":)"
    R"("contract=1\nmode=enforce\nkind=row\nitems=orders id S - - \n"}}})";

// Answers as it is told, in this order; {} once it has nothing left.
class ScriptedStore final : public DynamoStore {
 public:
  [[nodiscard]] std::string name() const override { return "scripted"; }
  Result<DynamoAnswer> call(std::string_view operation, const boost::json::object& body) override {
    asked.emplace_back(operation);
    if (const auto item = object_in(body, "Item"))
      nonces.emplace_back(text_of(*item, "pawl_nonce", "S"));
    if (answers.empty()) return DynamoAnswer{};
    const auto answer = answers.front();
    answers.pop_front();
    if (answer.first == 0) return Error{Code::kUnknown, "no answer"};
    std::string text = answer.second;
    if (const std::size_t at = text.find("MINE"); at != text.npos)
      text.replace(at, 4, nonces.back());
    return read_dynamo_answer(answer.first, text);
  }

  std::deque<std::pair<int, std::string>> answers;  // 0: none comes
  std::vector<std::string> asked;
  std::vector<std::string> nonces;
};

class DynamoWriterTest : public testing::Test {
 protected:
  Result<Decision> write(std::uint64_t operation, const std::string& condition = {}) {
    DynamoOrder order{.resources = {"orders:7"}, .operation = operation};
    order.ops.push_back(
        {.table = "orders", .fields = {{"id", string_value("7")}}, .condition = condition});
    DynamoWriter writer(calls, {.token = 34}, std::move(order));
    return writer.run();
  }
  // The item as it is now, by a write of `nonce`.
  static std::string item(std::uint64_t token, const std::string& nonce, std::uint64_t operation) {
    return R"({"Item":{"id":{"S":"7"},"pawl_token":{"N":")" + std::to_string(token) +
           R"("},"pawl_op":{"N":")" + std::to_string(operation) + R"("},"pawl_nonce":{"S":")" +
           nonce + R"("}}})";
  }

  ScriptedStore store;
  DynamoCalls calls{store, "pawl_guards"};
  const std::string guard{kGuardItem};
};

TEST_F(DynamoWriterTest, LostAnswerOfAWriteThatLandedIsSettledByReadingBack) {
  store.answers = {{200, guard}, {200, "{}"}, {0, ""}, {200, guard}, {200, item(34, "MINE", 0)}};
  const auto done = write(0);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->verdict, Verdict::kAdmitted);
  EXPECT_EQ(store.nonces.size(), 1u) << "it was not sent again";
}

TEST_F(DynamoWriterTest, WriteThatAnotherFollowedIsUnknownWithoutANumber) {
  store.answers = {{200, guard}, {200, "{}"}, {0, ""}, {200, guard}, {200, item(34, "other", 0)}};
  const auto done = write(0);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
  EXPECT_EQ(store.nonces.size(), 1u) << "it was not sent again";
}

TEST_F(DynamoWriterTest, WriteThatAnotherFollowedIsFoundOutByItsNumber) {
  store.answers = {{200, guard},
                   {200, "{}"},
                   {0, ""},
                   {200, guard},
                   {200, item(34, "other", 5)},
                   {400, R"({"__type":"x#ConditionalCheckFailedException"})"},
                   {200, guard},
                   {200, item(34, "other", 5)}};
  const auto done = write(5);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->verdict, Verdict::kAdmitted) << "by the first of its attempts";
}

TEST_F(DynamoWriterTest, CopyThatLandsBetweenReadingBackAndRepeatingIsSeen) {
  store.answers = {{200, guard}, {200, "{}"},
                   {0, ""},      {200, guard},
                   {200, "{}"},  {400, R"({"__type":"x#ConditionalCheckFailedException"})"},
                   {200, guard}, {200, item(34, "MINE", 0)}};
  const auto done = write(0);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(store.nonces.size(), 2u);
  EXPECT_EQ(store.nonces.front(), store.nonces.back());
}

TEST_F(DynamoWriterTest, OtherWriteBetweenReadingBackAndRepeatingLeavesItUnknown) {
  store.answers = {{200, guard}, {200, "{}"},
                   {0, ""},      {200, guard},
                   {200, "{}"},  {400, R"({"__type":"x#ConditionalCheckFailedException"})"},
                   {200, guard}, {200, item(34, "other", 0)},
                   {200, guard}, {200, item(34, "other", 0)}};
  const auto done = write(0);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
  EXPECT_EQ(store.nonces.size(), 2u) << "not a third time, which could be a second effect";
}

// It may still arrive, when the condition is met again.
TEST_F(DynamoWriterTest, ConditionOfTheUserThatIsNotMetByARepetitionIsUnknown) {
  store.answers = {{200, guard}, {200, "{}"},
                   {0, ""},      {200, guard},
                   {200, "{}"},  {400, R"({"__type":"x#ConditionalCheckFailedException"})"},
                   {200, guard}, {200, "{}"}};
  const auto done = write(0, "attribute_exists(paid)");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
}

TEST_F(DynamoWriterTest, ErrorsThatGoOnAreTriedAgain) {
  store.answers = {{200, guard}, {200, "{}"}};
  for (int i = 0; i < 3; ++i) {
    store.answers.insert(store.answers.end(), {{500, "{}"}, {200, guard}, {200, "{}"}});
    if (i > 0) store.answers.insert(store.answers.end(), {{200, guard}, {200, "{}"}});
  }
  const auto done = write(0);
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(store.nonces.size(), 4u);
}

}  // namespace
}  // namespace pawl::guard
