// pawl::PgGuard against a real PostgreSQL, with leases of a real pawld.
#include "pawl/postgres.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>

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
using Isolation = PgWriteOptions::Isolation;

class Connection {
 public:
  explicit Connection(const std::string& more = "") {
    const char* dsn = std::getenv("PAWL_TEST_DSN");
    if (dsn == nullptr) throw std::runtime_error("set PAWL_TEST_DSN (pawltest.with_database does)");
    raw_.reset(PQconnectdb((dsn + (" " + more)).c_str()));
    if (PQstatus(raw_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(raw_.get()));
    PQsetNoticeProcessor(
        raw_.get(), [](void*, const char*) {}, nullptr);
  }
  [[nodiscard]] PGconn* get() const { return raw_.get(); }
  // The first value; fails the test when the statement does.
  std::string ask(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(get(), sql.c_str()), PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    EXPECT_TRUE(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        << sql << ": " << PQerrorMessage(get());
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> raw_{nullptr, PQfinish};
};

class PostgresFront : public testing::Test {
 protected:
  PostgresFront() {
    db.ask("DROP TABLE IF EXISTS orders, stock");
    for (const char* table : {"orders", "stock"}) {
      db.ask(std::string("CREATE TABLE ") + table + " (id int PRIMARY KEY, n int NOT NULL)");
      db.ask(std::string("INSERT INTO ") + table + " VALUES (1, 0)");
      db.ask("SELECT pawl.protect('" + std::string(table) + "', mode => 'enforce')");
      db.ask("SELECT pawl.set_policy('" + std::string(table) + "', require_token => true)");
    }
  }
  ~PostgresFront() override {
    for (const char* table : {"orders", "stock"}) {
      db.ask("SELECT pawl.unprotect('" + std::string(table) + "')");
      db.ask("SELECT pawl.drop_guard('" + std::string(table) + "')");
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
    return [table](PgTransaction& tx) {
      tx.exec("UPDATE " + table + " SET n = n + 1 WHERE id = $1", {"1"});
    };
  }
  std::string n(const std::string& table = "orders") { return db.ask("SELECT n FROM " + table); }

  PawldProcess pawld;
  Client client{pawld.address()};
  Connection db;
  PgGuard guard{db.get()};
};

TEST_F(PostgresFront, WriteUnderALiveLeaseIsCommitted) {
  const Lease lease = take("a");
  for (int i = 0; i < 3; ++i) {
    const auto done = guard.write(lease, "orders", increment());
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(done->token, lease.token());
    EXPECT_FALSE(done->let_through);
  }
  EXPECT_EQ(n(), "3");
}

TEST_F(PostgresFront, StaleTokenIsRefusedBeforeTheWorkRuns) {  // Hard cases 1, 54.
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  bool ran = false;
  const auto done = guard.write(old, "orders", [&](PgTransaction&) { ran = true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_NE(done.error().detail.find("max=" + std::to_string(newer)), std::string::npos)
      << done.error().detail;
  EXPECT_FALSE(ran);
  EXPECT_EQ(PQtransactionStatus(db.get()), PQTRANS_IDLE);
}

TEST_F(PostgresFront, ShadowAppliesAStaleWriteAndReportsIt) {
  const Lease old = take("a");
  const std::uint64_t newer = overtake();
  db.ask("SELECT pawl.set_mode('orders', 'shadow')");
  const auto done = guard.write(old, "orders", increment());
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->verdict, Verdict::kStale);
  EXPECT_TRUE(done->let_through);
  EXPECT_EQ(done->max, newer);
  EXPECT_EQ(done->mode, GuardMode::kShadow);
  EXPECT_EQ(n(), "1");
}

TEST_F(PostgresFront, CheckNeverMovesAFence) {
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
  db.ask("SELECT pawl.set_mode('orders', 'shadow')");
  const auto shadow = guard.check("orders", lease.token());
  ASSERT_TRUE(shadow);
  EXPECT_EQ(shadow->verdict, Verdict::kStale);
  EXPECT_TRUE(shadow->let_through);
}

TEST_F(PostgresFront, FailedWorkIsRolledBack) {
  const Lease lease = take("a");
  EXPECT_THROW(static_cast<void>(guard.write(lease, "orders",
                                             [&](PgTransaction& tx) {
                                               increment()(tx);
                                               throw std::runtime_error("no");
                                             })),
               std::runtime_error);
  const auto refused = guard.write(lease, "orders", [&](PgTransaction& tx) -> Result<void> {
    increment()(tx);
    return Error{Code::kInvalid, "changed my mind"};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "changed my mind");
  EXPECT_EQ(n(), "0");
  EXPECT_EQ(PQtransactionStatus(db.get()), PQTRANS_IDLE);
}

TEST_F(PostgresFront, FailedStatementReportsPostgresMessage) {
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", [&](PgTransaction& tx) {
    EXPECT_FALSE(tx.exec("UPDATE orders SET n = 1 / $1::int", {"0"}).ok());
    increment()(tx);  // Not even sent.
    EXPECT_FALSE(tx.ok());
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_NE(done.error().detail.find("division by zero"), std::string::npos);
}

TEST_F(PostgresFront, SerializationFailureIsRetriedAndNotCalledStale) {  // Hard case 56.
  const Lease lease = take("a");
  ASSERT_TRUE(guard.write(lease, "orders", increment()));
  int runs = 0;
  const auto done =
      guard.write(lease, "orders",
                  [&](PgTransaction& tx) {
                    tx.exec("SELECT n FROM orders");
                    if (++runs == 1) {  // Another session with the same token commits in between.
                      Connection sibling;
                      PgGuard second(sibling.get());
                      ASSERT_TRUE(second.write(lease, "orders", increment()));
                    }
                    increment()(tx);
                  },
                  {.isolation = Isolation::kRepeatableRead});
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(n(), "3");
}

TEST_F(PostgresFront, RepeatedOperationTakesEffectOnce) {  // Hard case 55.
  const Lease lease = take("a");
  for (const Verdict expected : {Verdict::kAdmitted, Verdict::kReplayed, Verdict::kReplayed}) {
    const auto done = guard.write(lease, "orders", increment(), {.operation = 7});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, expected);
  }
  ASSERT_TRUE(guard.write(lease, "orders", increment(), {.operation = 3}));  // In any order.
  EXPECT_EQ(n(), "2");
}

class UnknownCommit : public PostgresFront {
 protected:
  static constexpr std::string_view kCommit{"COMMIT\0",
                                            7};  // The whole statement: not READ COMMITTED.
  drill::ThreadedProxy proxy{static_cast<std::uint16_t>(std::atoi(PQport(db.get())))};
  Connection through{"port=" + std::to_string(proxy.port())};
  PgGuard cut{through.get()};
};

TEST_F(UnknownCommit, OperationNumberSettlesAnUnknownCommit) {
  const Lease lease = take("a");
  std::uint64_t operation = 0;
  for (const auto how : {drill::CloseAt::kReply, drill::CloseAt::kRequest}) {
    proxy.close_at(how, std::string(kCommit));
    const auto done = cut.write(lease, "orders", increment(), {.operation = ++operation});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->verdict, Verdict::kAdmitted);
    EXPECT_EQ(n(), std::to_string(operation)) << "once, neither twice nor never";
  }
}

TEST_F(UnknownCommit, LostCommitReplyWithoutOperationNumberIsUnknown) {
  const Lease lease = take("a");
  proxy.close_at(drill::CloseAt::kReply, std::string(kCommit));
  const auto done = cut.write(lease, "orders", increment());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnknown);
  EXPECT_EQ(n(), "1");
}

TEST_F(UnknownCommit, ConnectionLostBeforeCommitChangesNothing) {
  const Lease lease = take("a");
  const auto done = cut.write(lease, "orders", [&](PgTransaction& tx) {
    db.ask("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(tx.connection())) + ")");
    increment()(tx);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_EQ(n(), "0");
}

TEST_F(PostgresFront, AdvanceNamesItsBlockersAndFailsUntilTheyEnd) {
  const Lease old = take("a");
  Connection other{"application_name=straggler"};
  PgGuard straggler(other.get());
  const auto written = straggler.write(old, "orders", [&](PgTransaction& tx) {
    increment()(tx);
    const Lease newer = take("b");
    const auto blocked = guard.advance("orders", newer.token(), 50ms);
    ASSERT_FALSE(blocked);
    EXPECT_EQ(blocked.error().code, Code::kBusy);
    EXPECT_NE(blocked.error().detail.find("straggler"), std::string::npos)
        << blocked.error().detail;
  });
  ASSERT_TRUE(written) << written.error().detail;  // Nothing was promised, so it may.
  EXPECT_EQ(n(), "1");
}

TEST_F(PostgresFront, LeaseLostDuringTheWorkIsNotCommitted) {
  const Lease lease = take("a", {.ttl = 1s});
  const auto done = guard.write(lease, "orders", [&](PgTransaction& tx) {
    increment()(tx);
    pawld.kill();
    EXPECT_TRUE(eventually([&] { return !lease.check(); }));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kLeaseLost);
  EXPECT_EQ(n(), "0");
}

TEST_F(PostgresFront, ResourcesAreAdmittedTogetherOrNotAtAll) {
  const Lease lease = take("a");
  const auto both = [&](PgTransaction& tx) {
    increment("orders")(tx);
    increment("stock")(tx);
  };
  ASSERT_TRUE(guard.write(lease, std::vector<std::string>{"stock", "orders"}, both));
  EXPECT_EQ(n("stock"), "1");
  overtake("stock");
  const auto done = guard.write(lease, std::vector<std::string>{"orders", "stock"}, both);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kStaleToken);
  EXPECT_EQ(n("orders"), "1");
}

TEST_F(PostgresFront, WritersInAnyOrderDoNotDeadlock) {
  const Lease lease = take("a");
  const auto work = [&](std::vector<std::string> resources) {
    return std::async(std::launch::async, [&lease, resources] {
      Connection own;
      PgGuard mine(own.get());
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

TEST_F(PostgresFront,
       AcquireWithGuardsAdvancesBeforeItReturns) {  // Hard case 54.
  const Lease old = take("a");
  ASSERT_TRUE(guard.write(old, "orders", increment()));
  const Lease newer = take("b", {.guards = {{&guard, "orders"}, {&guard, "stock"}}});
  for (const char* resource : {"orders", "stock"}) {
    Connection other;
    PgGuard former(other.get());
    const auto done = former.write(old, resource, increment(resource));
    ASSERT_FALSE(done) << resource;
    EXPECT_EQ(done.error().code, Code::kStaleToken);
  }
  EXPECT_TRUE(guard.write(newer, "orders", increment()));
}

TEST_F(PostgresFront, GuardIsNamedLikeTheLockByDefault) {
  const Lease lease = take("orders", {.guards = {&guard}});
  EXPECT_EQ(db.ask("SELECT pawl.fence('orders')"), std::to_string(lease.token()));
}

TEST_F(PostgresFront, AcquireReleasesTheLockWhenAdvanceIsBlocked) {
  const Lease old = take("a");
  Connection other{"application_name=straggler"};
  PgGuard straggler(other.get());
  const auto written = straggler.write(old, "orders", [&](PgTransaction& tx) {
    increment()(tx);
    const auto busy = client.acquire("b", {.guards = {{&guard, "orders"}}, .guard_wait = 100ms});
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code, Code::kBusy);
    EXPECT_NE(busy.error().detail.find("straggler"), std::string::npos) << busy.error().detail;
  });
  EXPECT_TRUE(written) << written.error().detail;
  EXPECT_TRUE(client.acquire("b")) << "it was given back";
}

TEST_F(PostgresFront, EvictEndsAnOlderTransactionWithoutEffect) {
  const Lease old = take("a");
  Connection other;
  PgGuard straggler(other.get());
  const auto written = straggler.write(old, "orders", [&](PgTransaction& tx) {
    increment()(tx);
    guard.evict_stragglers(true);
    const auto lease = client.acquire("b", {.guards = {{&guard, "orders"}}, .guard_wait = 100ms});
    EXPECT_TRUE(lease) << lease.error().detail;
  });
  EXPECT_FALSE(written);
  EXPECT_EQ(n(), "0");
}

TEST_F(PostgresFront,
       FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  const Lease lease = take("a");
  ASSERT_TRUE(guard.advance("orders", lease.token() + 1000, 5s));
  const auto written = guard.write(lease, "orders", increment());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kIssuerBehind) << written.error().detail;
  const auto acquired = client.acquire("b", {.guards = {{&guard, "orders"}}});
  ASSERT_FALSE(acquired);
  EXPECT_EQ(acquired.error().code, Code::kIssuerBehind) << acquired.error().detail;
}

TEST_F(PostgresFront, ReadersAdvanceToTheirFloor) {  // Design rule 15.
  const Lease writer = take("a");
  const Lease first = take("b", {.sharing = Sharing::kShared});
  const Lease second = take("b", {.sharing = Sharing::kShared, .guards = {{&guard, "orders"}}});
  EXPECT_EQ(second.floor(), first.token());
  EXPECT_EQ(db.ask("SELECT pawl.fence('orders')"), std::to_string(first.token()));
  EXPECT_EQ(guard.write(writer, "orders", increment()).error().code, Code::kStaleToken);
  const auto seen = guard.check("orders", second.floor());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->verdict, Verdict::kAdmitted);
}

TEST_F(PostgresFront, LockWithALimitCannotAdvanceAGuard) {
  const auto limited =
      client.acquire("a", {.sharing = Sharing::kLimit, .limit = 2, .guards = {{&guard, "orders"}}});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, Code::kInvalid);
}

TEST_F(PostgresFront, GuardWithAnotherContractIsRefused) {
  const Lease lease = take("a");
  db.ask(
      "CREATE OR REPLACE FUNCTION pawl.contract() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT "
      "2'");
  Connection other;
  PgGuard unknown(other.get());
  const auto written = unknown.write(lease, "orders", increment());
  const auto advanced = unknown.advance("orders", lease.token(), 1s);
  const auto checked = unknown.check("orders", lease.token());
  db.ask(
      "CREATE OR REPLACE FUNCTION pawl.contract() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT "
      "1'");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kInvalid);
  EXPECT_NE(written.error().detail.find("contract 2"), std::string::npos) << written.error().detail;
  EXPECT_FALSE(advanced);
  EXPECT_FALSE(checked);
  EXPECT_EQ(n(), "0");
}

TEST_F(PostgresFront, BadInputIsAnErrorWithoutEffect) {
  const Lease lease = take("a");
  const auto unknown = guard.write(lease, "no-such-guard", increment());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_NE(unknown.error().detail.find("no-such-guard"), std::string::npos)
      << unknown.error().detail;
  EXPECT_EQ(guard.write(lease, std::vector<std::string>{}, increment()).error().code,
            Code::kInvalid);
  EXPECT_EQ(guard.advance("orders", 0, 1s).error().code, Code::kInvalid);
  EXPECT_EQ(guard.advance("orders", std::uint64_t{1} << 53, 1s).error().code, Code::kInvalid);
  db.ask("BEGIN");
  EXPECT_EQ(guard.write(lease, "orders", increment()).error().code, Code::kInvalid);
  db.ask("ROLLBACK");
  db.ask("SET default_transaction_read_only = on");
  EXPECT_EQ(guard.write(lease, "orders", increment()).error().code, Code::kInvalid);
  db.ask("SET default_transaction_read_only = off");
  EXPECT_EQ(n(), "0");
}

}  // namespace
}  // namespace pawl
