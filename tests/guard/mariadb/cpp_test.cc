// pawl::MariaGuard against a real MariaDB, with leases of a real pawld.
#include "pawl/mariadb.h"

#include <gtest/gtest.h>
#include <mysql.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>

#include "drill/testlib/threaded_proxy.h"
#include "e2e/pawld_process.h"
#include "pawl/pawl.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

std::uint16_t server_port() {
  const char* port = std::getenv("PAWL_TEST_MARIADB_PORT");
  if (port == nullptr)
    throw std::runtime_error("set PAWL_TEST_MARIADB_PORT (pawltest.with_database does)");
  return static_cast<std::uint16_t>(std::atoi(port));
}

class Connection {
 public:
  explicit Connection(std::uint16_t port = server_port()) {
    if (mysql_real_connect(get(), "127.0.0.1", "root", nullptr, "shop", port, nullptr, 0) ==
        nullptr)
      throw std::runtime_error(mysql_error(get()));
  }
  [[nodiscard]] MYSQL* get() const { return raw_.get(); }
  // The first value; fails the test when the statement does.
  std::string ask(const std::string& sql) {
    std::string first;
    int more = mysql_real_query(get(), sql.data(), sql.size());
    while (more == 0) {
      const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(
          mysql_store_result(get()), mysql_free_result);
      MYSQL_ROW row = result == nullptr ? nullptr : mysql_fetch_row(result.get());
      if (row != nullptr && row[0] != nullptr && first.empty()) first = row[0];
      more = mysql_next_result(get());
    }
    EXPECT_EQ(more, -1) << sql << ": " << mysql_error(get());
    return first;
  }

 private:
  std::unique_ptr<MYSQL, decltype(&mysql_close)> raw_{mysql_init(nullptr), mysql_close};
};

class MariaFront : public testing::Test {
 protected:
  MariaFront() {
    for (const std::string table : {"orders", "stock"}) {
      db.ask("CREATE OR REPLACE TABLE " + table +
             " (id INT PRIMARY KEY, n INT NOT NULL, note TEXT)");
      db.ask("INSERT INTO " + table + " (id, n) VALUES (1, 0)");
      db.ask("CALL pawl.protect('shop." + table + "', '" + table + "', NULL, 'enforce')");
      db.ask("CALL pawl.set_policy('" + table + "', TRUE, NULL, NULL, NULL)");
    }
  }
  ~MariaFront() override {
    for (const std::string table : {"orders", "stock"}) {
      db.ask("CALL pawl.unprotect('shop." + table + "')");
      db.ask("CALL pawl.drop_guard('" + table + "')");
    }
  }

  Lease take(const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }
  // A newer holder has been at the guard.
  std::uint64_t overtake(const std::string& resource = "orders") {
    Lease newer = take("newer");
    const auto advanced = guard.advance(resource, newer.token(), 5s);
    EXPECT_TRUE(advanced) << advanced.error().detail;
    return newer.token();
  }
  static auto increment(const std::string& table = "orders") {
    return [table](MariaTransaction& tx) {
      tx.exec("UPDATE " + table + " SET n = n + 1 WHERE id = ?", {"1"});
    };
  }
  std::string n(const std::string& table = "orders") { return db.ask("SELECT n FROM " + table); }
  std::string open_transactions() {
    return db.ask(
        "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = "
        "CONNECTION_ID()");
  }

  PawldProcess pawld;
  Client client{pawld.address()};
  Connection db;
  MariaGuard guard{db.get()};
};

// A trigger that was made later moves the row; the guard ends the statement with 1317.
TEST_F(MariaFront, RefusalAfterTheRowWasWrittenIsAVerdict) {
  db.ask("CREATE OR REPLACE TABLE `lines` (customer INT, n INT)");
  db.ask("CALL pawl.protect('shop.lines', 'lines', 'customer', 'enforce')");
  db.ask("CREATE TRIGGER sly BEFORE INSERT ON `lines` FOR EACH ROW SET NEW.customer = 2");
  const Lease older = take("a");
  ASSERT_TRUE(guard.advance("lines:1", older.token(), 5s));
  ASSERT_TRUE(guard.advance("lines:2", older.token(), 5s));
  overtake("lines:2");
  for (const std::vector<MariaValue>& values :
       {std::vector<MariaValue>{}, std::vector<MariaValue>{"1"}}) {
    const auto done = guard.write(older, "lines:1", [&](MariaTransaction& tx) {
      tx.exec(values.empty() ? "INSERT INTO `lines` (customer) VALUES (1)"
                             : "INSERT INTO `lines` (customer) VALUES (?)",
              values);
    });
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().detail.find("write to lines:2 without a token"), std::string::npos)
        << done.error().detail;
    EXPECT_NE(done.error().code, Code::kUnavailable);
  }
  EXPECT_EQ(db.ask("SELECT COUNT(*) FROM `lines`"), "0");
  db.ask("CALL pawl.unprotect('shop.lines')");
  db.ask("CALL pawl.drop_guard('lines')");
}

TEST_F(MariaFront, WriteUnderALiveLeaseIsCommitted) {
  const Lease lease = take("a");
  for (int i = 0; i < 3; ++i) {
    const auto done = guard.write(lease, "orders", increment());
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(done->token, lease.token());
    EXPECT_FALSE(done->let_through);
  }
  EXPECT_EQ(Connection().ask("SELECT n FROM orders"), "3");
}

TEST_F(MariaFront, ParametersAndRowsKeepTextNumbersAndNull) {
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    const std::string odd = "it's \"odd\"\\ \n é";
    EXPECT_EQ(
        tx.exec("UPDATE orders SET note = ?, n = ? WHERE id = ?", {odd, "42", "1"}).affected(), 1u);
    for (const MariaRows& rows : {tx.exec("SELECT note, n, NULL FROM orders WHERE id = ?", {"1"}),
                                  tx.exec("SELECT note, n, NULL FROM orders")}) {
      ASSERT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows.at(0, 0), odd);
      EXPECT_EQ(rows.at(0, 1), "42");
      EXPECT_EQ(rows.at(0, 2), std::nullopt);
      EXPECT_EQ(rows.at(0, 3), std::nullopt);
      EXPECT_EQ(rows.at(1, 0), std::nullopt);
    }
    EXPECT_EQ(tx.exec("UPDATE orders SET note = ?", {std::nullopt}).affected(), 1u);
    EXPECT_EQ(tx.exec("SELECT id FROM orders WHERE id = ?", {"9"}).size(), 0u);
  });
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(db.ask("SELECT COUNT(*) FROM orders WHERE note IS NULL"), "1");
}

TEST_F(MariaFront, StaleTokenIsRefusedBeforeTheWorkRuns) {  // Hard cases 1, 54.
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  bool ran = false;
  const auto done = guard.write(old, "orders", [&](MariaTransaction&) { ran = true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos)
      << done.error().detail;
  EXPECT_FALSE(ran);
  EXPECT_EQ(open_transactions(), "0");
}

TEST_F(MariaFront, ShadowAppliesAStaleWriteAndReportsIt) {
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  db.ask("CALL pawl.set_mode('orders', 'shadow', NULL, NULL)");
  const auto done = guard.write(old, "orders", increment());
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->verdict, Verdict::kStale);
  EXPECT_TRUE(done->let_through);
  EXPECT_EQ(done->max, newer);
  EXPECT_EQ(done->mode, GuardMode::kShadow);
  EXPECT_EQ(n(), "1");
}

TEST_F(MariaFront, CheckNeverMovesAFence) {
  const Lease lease = take("a");
  const auto unwritten = guard.check("orders", lease.token());
  ASSERT_TRUE(unwritten) << unwritten.error().detail;
  EXPECT_EQ(unwritten->verdict, Verdict::kAdmitted);
  EXPECT_EQ(unwritten->max, 0u);
  overtake();
  const auto stale = guard.check("orders", lease.token());
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->verdict, Verdict::kStale);
  EXPECT_FALSE(stale->let_through);
  db.ask("CALL pawl.set_mode('orders', 'shadow', NULL, NULL)");
  const auto shadow = guard.check("orders", lease.token());
  ASSERT_TRUE(shadow);
  EXPECT_EQ(shadow->verdict, Verdict::kStale);
  EXPECT_TRUE(shadow->let_through);
}

TEST_F(MariaFront, FailedWorkIsRolledBack) {
  const Lease lease = take("a");
  EXPECT_THROW(static_cast<void>(guard.write(lease, "orders",
                                             [&](MariaTransaction& tx) {
                                               increment()(tx);
                                               throw std::runtime_error("no");
                                             })),
               std::runtime_error);
  const auto refused = guard.write(lease, "orders", [&](MariaTransaction& tx) -> Result<void> {
    increment()(tx);
    return Error{Code::kInvalid, "changed my mind"};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "changed my mind");
  EXPECT_EQ(n(), "0");
  EXPECT_EQ(open_transactions(), "0");
}

TEST_F(MariaFront, FailedStatementReportsMariaDbsMessage) {
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    increment()(tx);
    EXPECT_FALSE(tx.exec("UPDATE nowhere SET n = ?", {"0"}).ok());
    increment()(tx);  // Not even sent.
    EXPECT_FALSE(tx.ok());
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("nowhere"), std::string::npos) << done.error().detail;
  const auto miscounted = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    tx.exec("UPDATE orders SET n = ?", {"1", "2"});
  });
  ASSERT_FALSE(miscounted);
  EXPECT_EQ(miscounted.error().code, Code::kInvalid);
  EXPECT_NE(miscounted.error().detail.find("1 parameters"), std::string::npos)
      << miscounted.error().detail;
  EXPECT_EQ(n(), "0");
}

TEST_F(MariaFront, WorkThatCommitsIsInvalid) {
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    tx.exec("CREATE OR REPLACE TABLE commits_by_itself (id INT)");
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("ended the transaction"), std::string::npos)
      << done.error().detail;
}

TEST_F(MariaFront, NewTokenIsAdmittedAtEveryIsolationLevel) {
  for (const std::string level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    db.ask("SET SESSION TRANSACTION ISOLATION LEVEL " + level);
    ASSERT_TRUE(guard.write(take("a"), "orders", increment())) << level;
    const auto numbered = guard.write(take("a"), "orders", increment(), {.operation = 1});
    ASSERT_TRUE(numbered) << level << ": " << numbered.error().detail;
    const auto several = guard.write(take("a"), std::vector<std::string>{"orders", "stock"},
                                     increment(), {.operation = 2});
    ASSERT_TRUE(several) << level << ": " << several.error().detail;
  }
  EXPECT_EQ(n(), "9");
}

TEST_F(MariaFront, DeadlockIsRetriedAndNotCalledStale) {  // Hard case 56.
  const Lease lease = take("a");
  ASSERT_TRUE(guard.write(lease, "orders", increment()));
  int runs = 0;
  const auto done = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    increment()(tx);
    if (++runs > 1) return;
    // What MariaDB answers to the victim, raised by hand.
    tx.exec("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found'");
  });
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(n(), "2");
}

TEST_F(MariaFront, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const Verdict expected : {Verdict::kAdmitted, Verdict::kReplayed, Verdict::kReplayed}) {
    const auto done = guard.write(lease, "orders", increment(), {.operation = 7});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, expected);
  }
  ASSERT_TRUE(guard.write(lease, "orders", increment(), {.operation = 3}));  // In any order.
  EXPECT_EQ(n(), "2");
}

class MariaUnknownCommit : public MariaFront {
 protected:
  static constexpr const char* kCommit = "CALL pawl.finish()";
  drill::ThreadedProxy proxy{server_port()};
  Connection through{proxy.port()};
  MariaGuard cut{through.get()};
};

TEST_F(MariaUnknownCommit, OperationNumberSettlesAnUnknownCommit) {
  const Lease lease = take("a");
  std::uint64_t operation = 0;
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    proxy.close_at(how, kCommit);
    const auto done = cut.write(lease, "orders", increment(), {.operation = ++operation});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(n(), std::to_string(operation)) << "once, neither twice nor never";
  }
}

TEST_F(MariaUnknownCommit, LostCommitReplyWithoutOperationNumberIsUnknown) {
  const Lease lease = take("a");
  proxy.close_at(drill::CloseAt::kReply, kCommit);
  const auto done = cut.write(lease, "orders", increment());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
  EXPECT_EQ(n(), "1");
}

TEST_F(MariaUnknownCommit, ConnectionLostBeforeCommitChangesNothing) {
  const Lease lease = take("a");
  const auto done = cut.write(lease, "orders", [&](MariaTransaction& tx) {
    increment()(tx);
    db.ask("KILL CONNECTION " + std::to_string(mysql_thread_id(tx.connection())));
    increment()(tx);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable) << done.error().detail;
  EXPECT_EQ(n(), "0");
}

TEST_F(MariaFront, AdvanceNamesItsBlockersAndFailsUntilTheyEnd) {
  const Lease old = take("a");
  Connection other;
  MariaGuard straggler(other.get());
  const auto written = straggler.write(old, "orders", [&](MariaTransaction& tx) {
    increment()(tx);
    const Lease newer = take("b");
    const auto blocked = guard.advance("orders", newer.token(), 50ms);
    ASSERT_FALSE(blocked);
    EXPECT_EQ(blocked.error().code, Code::kBusy);
    EXPECT_NE(
        blocked.error().detail.find("connection " + std::to_string(mysql_thread_id(other.get()))),
        std::string::npos)
        << blocked.error().detail;
  });
  ASSERT_TRUE(written) << written.error().detail;  // Nothing was promised, so it may.
  EXPECT_EQ(n(), "1");
}

TEST_F(MariaFront, LeaseLostDuringTheWorkIsNotCommitted) {
  const Lease lease = take("a", {.ttl = 1s});
  const auto done = guard.write(lease, "orders", [&](MariaTransaction& tx) {
    increment()(tx);
    pawld.kill();
    EXPECT_TRUE(eventually([&] { return !lease.check(); }));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kLeaseLost);
  EXPECT_EQ(n(), "0");
}

TEST_F(MariaFront, ResourcesAreAdmittedTogetherOrNotAtAll) {
  const Lease lease = take("a");
  const auto both = [&](MariaTransaction& tx) {
    increment("orders")(tx);
    increment("stock")(tx);
  };
  const auto first = guard.write(lease, std::vector<std::string>{"stock", "orders"}, both);
  ASSERT_TRUE(first) << first.error().detail;
  EXPECT_EQ(n("stock"), "1");
  overtake("stock");
  const auto done = guard.write(lease, std::vector<std::string>{"orders", "stock"}, both);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_EQ(n("orders"), "1");
}

TEST_F(MariaFront, WritersInAnyOrderDoNotDeadlock) {
  const Lease lease = take("a");
  for (const char* resource : {"orders", "stock"})
    ASSERT_TRUE(guard.advance(resource, lease.token(), 5s));
  const auto work = [&](std::vector<std::string> resources) {
    return std::async(std::launch::async, [&lease, resources] {
      Connection own;
      MariaGuard mine(own.get());
      for (int i = 0; i < 25; ++i) {
        const auto done = mine.write(lease, resources, increment("orders"), {.retries = 0});
        ASSERT_TRUE(done) << done.error().detail;
      }
    });
  };
  auto one = work({"orders", "stock"});
  auto other = work({"stock", "orders"});
  one.get();
  other.get();
  EXPECT_EQ(n(), "50");
}

TEST_F(MariaFront,
       AcquireWithGuardsAdvancesBeforeItReturns) {  // Hard case 54.
  const Lease old = take("a");
  ASSERT_TRUE(guard.write(old, "orders", increment()));
  const Lease newer = take("b", {.guards = {{&guard, "orders"}, {&guard, "stock"}}});
  for (const char* resource : {"orders", "stock"}) {
    Connection other;
    MariaGuard former(other.get());
    const auto done = former.write(old, resource, increment(resource));
    ASSERT_FALSE(done) << resource;
    EXPECT_EQ(done.error().code, Code::kStaleToken);
  }
  EXPECT_TRUE(guard.write(newer, "orders", increment()));
}

TEST_F(MariaFront, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  const Lease lease = take("a");
  ASSERT_TRUE(guard.advance("orders", lease.token() + 1000, 5s));
  const auto written = guard.write(lease, "orders", increment());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kIssuerBehind) << written.error().detail;
  const auto acquired = client.acquire("b", {.guards = {{&guard, "orders"}}});
  ASSERT_FALSE(acquired);
  EXPECT_EQ(acquired.error().code, Code::kIssuerBehind) << acquired.error().detail;
}

TEST_F(MariaFront, GuardWithAnotherContractIsRefused) {
  const Lease lease = take("a");
  db.ask("CREATE OR REPLACE FUNCTION pawl.contract() RETURNS INT DETERMINISTIC NO SQL RETURN 2");
  Connection other;
  MariaGuard unknown(other.get());
  const auto written = unknown.write(lease, "orders", increment());
  const auto advanced = unknown.advance("orders", lease.token(), 1s);
  const auto checked = unknown.check("orders", lease.token());
  db.ask("CREATE OR REPLACE FUNCTION pawl.contract() RETURNS INT DETERMINISTIC NO SQL RETURN 1");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kInvalid);
  EXPECT_NE(written.error().detail.find("contract 2"), std::string::npos) << written.error().detail;
  EXPECT_FALSE(advanced);
  EXPECT_FALSE(checked);
  EXPECT_EQ(n(), "0");
}

TEST_F(MariaFront, BadInputIsAnErrorWithoutEffect) {
  const Lease lease = take("a");
  const auto unknown = guard.write(lease, "no-such-guard", increment());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_NE(unknown.error().detail.find("no-such-guard"), std::string::npos)
      << unknown.error().detail;
  EXPECT_EQ(guard.check("no-such-guard", 1).error().code, Code::kInvalid);
  EXPECT_EQ(guard.check("orders", 0).error().code, Code::kInvalid);
  EXPECT_EQ(guard.write(lease, std::vector<std::string>{}, increment()).error().code,
            Code::kInvalid);
  EXPECT_EQ(guard.advance("orders", 0, 1s).error().code, Code::kInvalid);
  EXPECT_EQ(guard.advance("orders", std::uint64_t{1} << 53, 1s).error().code, Code::kInvalid);
  db.ask("START TRANSACTION");
  EXPECT_EQ(guard.write(lease, "orders", increment()).error().code, Code::kInvalid);
  db.ask("ROLLBACK");
  const my_bool on = 1;
  mysql_optionsv(db.get(), MYSQL_OPT_RECONNECT, &on);
  const auto reconnects = guard.write(lease, "orders", increment());
  ASSERT_FALSE(reconnects);
  EXPECT_NE(reconnects.error().detail.find("MYSQL_OPT_RECONNECT"), std::string::npos);
  EXPECT_EQ(n(), "0");
}

}  // namespace
}  // namespace pawl
