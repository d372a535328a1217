// pawl::DynamoGuard against dynalite with transactions, with leases of a real pawld.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "drill/testlib/threaded_proxy.h"
#include "e2e/pawld_process.h"
#include "guard/dynamodb/kind.h"
#include "pawl/dynamodb.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string("set ") + name);
  return value;
}

std::uint16_t server_port() {
  return static_cast<std::uint16_t>(std::stoi(environment("PAWL_TEST_DYNAMODB_PORT")));
}

DynamoOptions options_at(std::uint16_t port) {
  return {.endpoint = "http://127.0.0.1:" + std::to_string(port),
          .access_key = environment("AWS_ACCESS_KEY_ID"),
          .secret_key = environment("AWS_SECRET_ACCESS_KEY")};
}

// Guards of the items that begin with a prefix of this test's own in the table `orders`.
class DynamoFrontTest : public testing::Test {
 protected:
  DynamoFrontTest() {
    static int count = 0;
    ++count;
    rows = "rows" + std::to_string(count);
    whole = "whole" + std::to_string(count);
    const std::string dsn = "endpoint=http://127.0.0.1:" + std::to_string(server_port());
    administration = *guard::open_dynamo_administration(dsn);
    EXPECT_TRUE(administration->install(guard::Rehearse::kNo));
    protect({.table = "orders/" + rows + "#*", .guard = rows, .key = "*", .mode = "enforce"});
    protect({.table = "orders/" + whole + "#*", .guard = whole, .mode = "enforce"});
  }
  void protect(const guard::Protection& wanted) {
    const auto made = administration->protect(wanted, guard::Rehearse::kNo);
    EXPECT_TRUE(made) << made.error().detail;
  }

  Lease take(const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }
  // A newer holder has been at the guard.
  std::uint64_t overtake(const std::string& resource) {
    const Lease newer = take("newer");
    DynamoGuard other(options_at(server_port()));
    const auto advanced = other.advance(resource, newer.token(), 5s);
    EXPECT_TRUE(advanced) << advanced.error().detail;
    return newer.token();
  }

  static DynamoItem key(const std::string& prefix, const std::string& name) {
    return {{"id", DynamoValue::text(prefix + "#" + name)}};
  }
  DynamoPut put(const std::string& prefix, const std::string& name, const std::string& state) {
    DynamoPut change{"orders", key(prefix, name)};
    change.item.emplace("state", DynamoValue::text(state));
    return change;
  }
  DynamoUpdate add(const std::string& prefix, const std::string& name, const std::string& text) {
    return {.table = "orders",
            .key = key(prefix, name),
            .update = "SET #l = list_append(if_not_exists(#l, :none), :text)",
            .names = {{"#l", "log"}},
            .values = {{":none", DynamoValue::json(R"({"L":[]})")},
                       {":text", DynamoValue::json(R"({"L":[{"S":")" + text + R"("}]})")}}};
  }
  // The JSON of an attribute; empty: there is none.
  std::string value(const std::string& prefix, const std::string& name,
                    const std::string& attribute = "state") {
    const auto item = DynamoGuard(options_at(server_port())).read("orders", key(prefix, name));
    EXPECT_TRUE(item) << item.error().detail;
    if (!item || !*item || !(*item)->contains(attribute)) return "";
    return (*item)->at(attribute).json();
  }
  static std::string text(const std::string& state) { return DynamoValue::text(state).json(); }

  std::string rows;
  std::string whole;
  PawldProcess pawld;
  Client client{pawld.address()};
  std::unique_ptr<guard::Administration> administration;
  DynamoGuard guard{options_at(server_port())};
};

TEST_F(DynamoFrontTest, WriteUnderALiveLeaseIsInEffect) {
  const Lease lease = take("a");
  for (const std::string state : {"one", "two"}) {
    for (const auto& [resource, prefix] : {std::pair(rows + ":7", rows), std::pair(whole, whole)}) {
      const auto done = guard.write(lease, resource, put(prefix, "7", state));
      ASSERT_TRUE(done) << done.error().detail;
      EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
      EXPECT_EQ(done->decision.token, lease.token());
      EXPECT_EQ(value(prefix, "7"), text(state));
    }
  }
}

TEST_F(DynamoFrontTest, StaleTokenIsRefusedAndNothingIsWritten) {  // Hard cases 1, 54.
  const Lease old = take("a");
  for (const auto& [resource, prefix] : {std::pair(rows + ":7", rows), std::pair(whole, whole)}) {
    ASSERT_TRUE(guard.write(old, resource, put(prefix, "7", "old")));
    const std::uint64_t newer = overtake(resource);
    for (const DynamoChange& change :
         {DynamoChange(put(prefix, "7", "late")), DynamoChange(add(prefix, "7", "late")),
          DynamoChange(DynamoDelete{"orders", key(prefix, "7")})}) {
      const auto done = guard.write(old, resource, change);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Code::kStaleToken);
      EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos);
      EXPECT_EQ(value(prefix, "7"), text("old"));
    }
  }
}

TEST_F(DynamoFrontTest, DeletedItemKeepsItsFence) {
  const Lease old = take("a");
  const Lease lease = take("b");
  ASSERT_TRUE(guard.write(lease, rows + ":7", put(rows, "7", "x")));
  ASSERT_TRUE(guard.write(lease, rows + ":7", DynamoDelete{"orders", key(rows, "7")}));
  EXPECT_EQ(value(rows, "7"), "");
  const auto late = guard.write(old, rows + ":7", put(rows, "7", "made anew"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kStaleToken);
  ASSERT_TRUE(guard.write(lease, rows + ":7", add(rows, "7", "y")));
  EXPECT_EQ(value(rows, "7", "log"), R"({"L":[{"S":"y"}]})");
}

TEST_F(DynamoFrontTest, ChangesOfSeveralItemsAreAllOrNone) {
  const Lease old = take("a");
  const Lease lease = take("b");
  const std::vector<std::string> both{rows + ":1", rows + ":2"};
  ASSERT_TRUE(guard.write_all(lease, both, {put(rows, "1", "x"), put(rows, "2", "x")}));
  overtake(rows + ":2");
  const auto done = guard.write_all(lease, both, {put(rows, "1", "y"), put(rows, "2", "y")});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_EQ(value(rows, "1") + value(rows, "2"), text("x") + text("x"));
  // Items under one fence.
  ASSERT_TRUE(guard.write_all(lease, {whole}, {put(whole, "1", "x"), put(whole, "2", "x")}));
  const auto late = guard.write_all(old, {whole}, {put(whole, "1", "y"), put(whole, "2", "y")});
  ASSERT_FALSE(late);
  EXPECT_EQ(value(whole, "1") + value(whole, "2"), text("x") + text("x"));
}

TEST_F(DynamoFrontTest, ConditionOfTheUserIsNotAVerdict) {
  const Lease lease = take("a");
  for (const auto& [resource, prefix] : {std::pair(rows + ":7", rows), std::pair(whole, whole)}) {
    DynamoPut change = put(prefix, "7", "first");
    change.condition = "attribute_not_exists(#s) OR #s = :s";
    change.names = {{"#s", "state"}};
    change.values = {{":s", DynamoValue::text("second")}};
    auto done = guard.write(lease, resource, change);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_TRUE(done->met);
    done = guard.write(lease, resource, change);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_FALSE(done->met);
    EXPECT_EQ(value(prefix, "7"), text("first"));
    overtake(resource);
    const auto late = guard.write(lease, resource, change);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kStaleToken);
  }
}

TEST_F(DynamoFrontTest, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const auto& [resource, prefix] : {std::pair(rows + ":7", rows), std::pair(whole, whole)}) {
    for (const Verdict wanted : {Verdict::kAdmitted, Verdict::kReplayed}) {
      const auto done = guard.write(lease, resource, add(prefix, "7", "x"), {.operation = 7});
      ASSERT_TRUE(done) << done.error().detail;
      EXPECT_EQ(done->decision.verdict, wanted);
    }
    EXPECT_EQ(value(prefix, "7", "log"), R"({"L":[{"S":"x"}]})");
  }
}

TEST_F(DynamoFrontTest, CheckNeverMovesAFence) {
  for (const std::string& resource : {rows + ":7", whole}) {
    EXPECT_EQ(guard.check(resource, 50)->verdict, Verdict::kAdmitted);
    ASSERT_TRUE(guard.advance(resource, 34, 0s));
    const auto stale = guard.check(resource, 33);
    ASSERT_TRUE(stale);
    EXPECT_EQ(stale->verdict, Verdict::kStale);
    EXPECT_EQ(stale->max, 34u);
    EXPECT_EQ(stale->mode, GuardMode::kEnforce);
    EXPECT_EQ(*guard.advance(resource, 34, 0s), 34u);
  }
}

TEST_F(DynamoFrontTest, NumbersOfTheUserAreExact) {
  const Lease lease = take("a");
  constexpr std::string_view kLong = "12345678901234567890123456789012345678";
  DynamoPut change = put(rows, "7", "x");
  change.item.insert_or_assign("state", DynamoValue::number(kLong));
  ASSERT_TRUE(guard.write(lease, rows + ":7", change));
  EXPECT_EQ(value(rows, "7"), DynamoValue::number(kLong).json());
}

TEST_F(DynamoFrontTest, WhatIsWrongIsNamedAndNothingIsWritten) {
  const Lease lease = take("a");
  DynamoPut reserved = put(rows, "7", "x");
  reserved.item.emplace("pawl_token", DynamoValue::number(99));
  EXPECT_EQ(guard.write(lease, rows + ":7", reserved).error().code, Code::kInvalid);
  const auto other = guard.write(lease, rows + ":7", put(rows, "8", "x"));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().detail.find("is not part of"), std::string::npos);
  EXPECT_EQ(guard.write(lease, "nothing:7", put(rows, "7", "x")).error().code, Code::kInvalid);
  const auto large = guard.write(lease, rows + ":7", put(rows, "7", std::string(500'000, 'x')));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kInvalid) << large.error().detail;
  DynamoPut broken = put(rows, "7", "x");
  broken.item.insert_or_assign("state", DynamoValue::json("7"));
  EXPECT_EQ(guard.write(lease, rows + ":7", broken).error().code, Code::kInvalid);
  EXPECT_EQ(value(rows, "7"), "");
}

TEST_F(DynamoFrontTest, AcquireWithGuardsAdvancesBeforeItReturns) {
  const Lease lease = take("a", {.guards = {{&guard, rows + ":7"}}});
  EXPECT_EQ(guard.check(rows + ":7", lease.token())->max, lease.token());
}

TEST_F(DynamoFrontTest, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  ASSERT_TRUE(guard.advance(rows + ":7", 1'000'000, 0s));
  const Lease lease = take("a");
  const auto done = guard.write(lease, rows + ":7", put(rows, "7", "x"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kIssuerBehind) << done.error().detail;
}

TEST_F(DynamoFrontTest, OptionsThatCannotWorkAreNamed) {
  DynamoGuard nowhere({});
  const auto done = nowhere.advance("orders", 34, 0s);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().detail.find("credentials"), std::string::npos);
}

class DynamoUnknownOutcome : public DynamoFrontTest {
 protected:
  drill::ThreadedProxy proxy{server_port()};
  DynamoGuard cut{options_at(proxy.port())};
};

// Without operation numbers: the nonce in the item settles it.
TEST_F(DynamoUnknownOutcome, ThatHasLandedIsSettledByReadingBack) {
  const Lease lease = take("a");
  for (const auto& [resource, prefix, request] : {std::tuple(rows + ":7", rows, "UpdateItem"),
                                                  std::tuple(whole, whole, "TransactWriteItems")}) {
    ASSERT_TRUE(cut.check(resource, lease.token()));
    proxy.close_at(drill::CloseAt::kReply, request);
    const auto done = cut.write(lease, resource, add(prefix, "7", "x"));
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->decision.verdict, Verdict::kAdmitted);
    EXPECT_EQ(value(prefix, "7", "log"), R"({"L":[{"S":"x"}]})");
  }
}

// With numbers it is settled in every case, and takes effect once.
TEST_F(DynamoUnknownOutcome, WithANumberTakesEffectOnce) {
  const Lease lease = take("a");
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    for (const auto& [resource, prefix, request] :
         {std::tuple(rows + ":7", rows, "UpdateItem"),
          std::tuple(whole, whole, "TransactWriteItems")}) {
      ASSERT_TRUE(cut.check(resource, lease.token()));
      proxy.close_at(how, request);
      const std::uint64_t operation = how == drill::CloseAt::kReply ? 1 : 2;
      const auto done = cut.write(lease, resource, add(prefix, "7", "x"), {.operation = operation});
      ASSERT_TRUE(done) << done.error().detail;
      EXPECT_EQ(value(prefix, "7", "log"),
                operation == 1 ? R"({"L":[{"S":"x"}]})" : R"({"L":[{"S":"x"},{"S":"x"}]})");
    }
  }
}

// Without a number: of copies of one request, also those that libcurl sends, one lands.
TEST_F(DynamoUnknownOutcome, TakesEffectOnceAlsoWithoutANumber) {
  const Lease lease = take("a");
  std::string lines;
  for (const auto how :
       {drill::CloseAt::kReply, drill::CloseAt::kRequest, drill::CloseAt::kReply}) {
    lines += lines.empty() ? R"({"S":"x"})" : R"(,{"S":"x"})";
    for (const auto& [resource, prefix, request] :
         {std::tuple(rows + ":7", rows, "UpdateItem"),
          std::tuple(whole, whole, "TransactWriteItems")}) {
      ASSERT_TRUE(cut.check(resource, lease.token()));
      proxy.close_at(how, request);
      const auto done = cut.write(lease, resource, add(prefix, "7", "x"));
      ASSERT_TRUE(done) << done.error().detail;
      EXPECT_EQ(value(prefix, "7", "log"), R"({"L":[)" + lines + "]}");
    }
  }
}

}  // namespace
}  // namespace pawl
