#include "guard/etcd/calls.h"

#include <gtest/gtest.h>

#include "guard/etcd/names.h"
#include "guard/etcd/testlib/keys_in_memory.h"
#include "guard/etcd/writer.h"

namespace pawl::guard {
namespace {

using End = EtcdAnswer::End;

class EtcdCallsTest : public testing::Test {
 protected:
  EtcdCallsTest() {
    set_policy(policy);
    db.put("pawl-guard/orders/fence", first_fence_of(0));
  }
  void set_policy(const EtcdPolicy& wanted) { db.put("pawl-guard/orders/policy", to_text(wanted)); }
  static EtcdOrder order(std::uint64_t token, std::string value, std::uint64_t operation = 0) {
    return {.resources = {"orders"},
            .token = std::to_string(token),
            .operation = operation,
            .changes = {EtcdPut{"orders/7", std::move(value)}}};
  }
  End write(const EtcdOrder& wanted) {
    const auto answer = calls.write(wanted);
    if (!answer) {
      ADD_FAILURE() << answer.error().detail;
      return End::kUnguarded;
    }
    return answer->end;
  }
  [[nodiscard]] int transactions_of(const EtcdOrder& wanted) {
    const int before = db.transactions;
    EXPECT_EQ(write(wanted), End::kAdmitted);
    return db.transactions - before;
  }

  EtcdPolicy policy{
      .version = "0.1.0", .contract = "1", .mode = GuardMode::kEnforce, .keys = {"orders/*"}};
  KeysInMemory db;
  EtcdCalls calls{db.as_function()};
};

TEST_F(EtcdCallsTest, AdmittedWriteIsOneTransaction) {
  EXPECT_EQ(transactions_of(order(34, "a")), 2);  // The policy is not known yet.
  EXPECT_EQ(transactions_of(order(34, "b")), 1);
  EXPECT_EQ(transactions_of(order(35, "c")), 1);
  EXPECT_EQ(transactions_of(order(35, "d", 1)), 1);
  EXPECT_EQ(transactions_of(order(35, "e", 2)), 1);
  EXPECT_EQ(transactions_of(order(35, "f")), 1);
  EXPECT_EQ(db.get("pawl-guard/orders/fence"), "0000000000000035 0000000000000002");
  EXPECT_EQ(db.get("orders/7"), "f");
}

TEST_F(EtcdCallsTest, StaleWriteChangesNothingButItsCounter) {
  EXPECT_EQ(write(order(34, "new")), End::kAdmitted);
  EXPECT_EQ(write(order(33, "old")), End::kStale);
  EXPECT_EQ(db.get("orders/7"), "new");
  EXPECT_EQ(db.get("pawl-guard/orders/fence"), "0000000000000034 0000000000000000");
  EXPECT_EQ(db.keys.at("pawl-guard/orders/count/stale").version, 1);
}

TEST_F(EtcdCallsTest, WriterThatKnowsAnOldFenceIsRefused) {
  EtcdCalls other(db.as_function());
  EXPECT_EQ(write(order(34, "a")), End::kAdmitted);
  ASSERT_TRUE(other.advance("orders", 35));
  EXPECT_EQ(write(order(34, "b")), End::kStale);
  EXPECT_EQ(db.get("orders/7"), "a");
}

TEST_F(EtcdCallsTest, ChangedPolicyIsObeyedByTheNextWrite) {
  EXPECT_EQ(write(order(34, "a")), End::kAdmitted);
  policy.mode = GuardMode::kShadow;
  policy.change = 1;
  set_policy(policy);
  EXPECT_EQ(write(order(33, "b")), End::kStale);
  EXPECT_EQ(db.get("orders/7"), "b") << "let through";
  EXPECT_EQ(db.keys.at("pawl-guard/orders/count/would_refuse").version, 1);
  EXPECT_EQ(db.get("pawl-guard/orders/fence"), "0000000000000034 0000000000000000");
  policy.floor = 40;
  policy.mode = GuardMode::kEnforce;
  policy.change = 2;
  set_policy(policy);
  EXPECT_EQ(write(order(39, "c")), End::kStale);
  EXPECT_EQ(write(order(40, "d")), End::kAdmitted);
}

TEST_F(EtcdCallsTest, LostGuardRefusesEveryWrite) {
  EXPECT_EQ(write(order(34, "a")), End::kAdmitted);
  db.keys.erase("pawl-guard/orders/fence");
  EXPECT_EQ(write(order(35, "b")), End::kUnguarded);
  db.put("pawl-guard/orders/fence", first_fence_of(0));
  db.keys.erase("pawl-guard/orders/policy");
  EXPECT_EQ(write(order(35, "b")), End::kUnguarded);
  EXPECT_EQ(db.get("orders/7"), "a");
}

TEST_F(EtcdCallsTest, DamagedFenceIsAnErrorAndNotNone) {
  db.put("pawl-guard/orders/fence", "34");
  EXPECT_FALSE(calls.write(order(35, "b")));
  EXPECT_EQ(db.get("orders/7"), "");
}

TEST_F(EtcdCallsTest, TokenDoesNotReachOtherKeys) {
  EtcdOrder elsewhere = order(34, "a");
  elsewhere.changes.emplace_back(EtcdPut{"other", "x"});
  EXPECT_EQ(write(elsewhere), End::kUnguarded);
  EXPECT_EQ(write(order(34, "a")), End::kAdmitted);
  EXPECT_EQ(write(elsewhere), End::kUnguarded);
  EXPECT_EQ(db.get("other"), "");
}

TEST_F(EtcdCallsTest, ConditionOfTheCallerIsToldFromAStaleToken) {
  EtcdOrder once = order(34, "a");
  once.conditions = {{"orders/7", 0}};
  EXPECT_EQ(write(once), End::kAdmitted);
  EXPECT_EQ(write(once), End::kUnmet);
  once.token = "33";
  EXPECT_EQ(write(once), End::kStale);
}

TEST_F(EtcdCallsTest, AdvanceKeepsTheOperationOfItsOwnToken) {
  EXPECT_EQ(write(order(34, "a", 8)), End::kAdmitted);
  EXPECT_EQ(calls.advance("orders", 34)->max, 34u);
  EXPECT_EQ(write(order(34, "b", 8)), End::kReplayed);
  EXPECT_EQ(calls.advance("orders", 35)->max, 34u);
  EXPECT_EQ(calls.advance("orders", 34)->end, End::kStale);
  EXPECT_EQ(db.get("orders/7"), "a");
}

// A reply is lost, and the same bytes are sent again.
TEST_F(EtcdCallsTest, OperationThatWasSentTwiceIsAdmittedAndAppliedOnce) {
  EtcdCalls twice([this](const etcd::TxnRequest& request, EtcdSending sending) {
    if (sending == EtcdSending::kUntilDecided) static_cast<void>(db.apply(request));
    return Result<EtcdTransacted>(
        EtcdTransacted{db.apply(request), sending == EtcdSending::kUntilDecided});
  });
  for (std::uint64_t operation = 1; operation <= 3; ++operation) {
    const auto answer = twice.write(order(34, std::to_string(operation), operation));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->end, End::kAdmitted);
    EXPECT_EQ(db.keys.at("orders/7").version, static_cast<std::int64_t>(operation));
  }
}

TEST_F(EtcdCallsTest, WriteWithoutANumberIsSentOnce) {
  int once = 0;
  EtcdCalls counting([&](const etcd::TxnRequest& request, EtcdSending sending) {
    if (!request.compare.empty()) once += sending == EtcdSending::kOnce ? 1 : 0;
    return Result<EtcdTransacted>(EtcdTransacted{db.apply(request), false});
  });
  ASSERT_TRUE(counting.write(order(34, "a")));
  ASSERT_TRUE(counting.write(order(34, "b")));
  EXPECT_EQ(once, 2);
}

TEST_F(EtcdCallsTest, SeveralResourcesAreAllAdmittedOrNone) {
  db.put("pawl-guard/carts/policy", to_text(EtcdPolicy{.version = "0.1.0",
                                                       .contract = "1",
                                                       .mode = GuardMode::kEnforce,
                                                       .scope = EtcdScope::kRow,
                                                       .keys = {"cart/*"}}));
  EtcdOrder both = order(34, "a");
  both.resources.emplace_back("carts:7");
  both.changes.emplace_back(EtcdPut{"cart/7", "b"});
  EXPECT_EQ(write(both), End::kAdmitted);
  EXPECT_EQ(db.get("pawl-guard/carts/fence/7"), "0000000000000034 0000000000000000");
  ASSERT_TRUE(calls.advance("carts:7", 40));
  both.token = "39";
  EXPECT_EQ(write(both), End::kStale);
  EXPECT_EQ(db.get("pawl-guard/orders/fence"), "0000000000000034 0000000000000000");
}

TEST_F(EtcdCallsTest, FirstTokenMayBeAnyNumber) {
  EXPECT_EQ(write(order(kEtcdTokenMax, "a")), End::kAdmitted);
  EXPECT_EQ(write(order(kEtcdTokenMax - 1, "b")), End::kStale);
}

TEST_F(EtcdCallsTest, TokenTooFarAheadIsRefusedByAWriterThatHasNotRead) {
  EXPECT_EQ(write(order(1, "a")), End::kAdmitted);
  EXPECT_EQ(write(order(1 + kEtcdStepDefault, "b")), End::kAdmitted);
  EXPECT_EQ(write(order(2 + 2 * kEtcdStepDefault, "c")), End::kAhead);
  EXPECT_EQ(db.get("orders/7"), "b");
}

}  // namespace
}  // namespace pawl::guard
