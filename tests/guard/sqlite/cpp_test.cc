// pawl::SqliteGuard with leases of a real pawld. What a token alone can show is in
// src/guard/sqlite/guard_test.cc.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "e2e/pawld_process.h"
#include "pawl/pawl.h"
#include "pawl/sqlite.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

class SqliteFront : public testing::Test {
 protected:
  SqliteFront() {
    exec("PRAGMA journal_mode = WAL; CREATE TABLE orders (n INT); INSERT INTO orders VALUES (0)");
    if (!sqlite::register_functions(db_.get())) throw std::runtime_error("no functions");
    exec("SELECT pawl_install(); SELECT pawl_protect('orders', NULL, 'enforce')");
  }
  ~SqliteFront() override { std::filesystem::remove_all(folder_); }

  static std::filesystem::path make_folder() {
    std::string name = std::filesystem::temp_directory_path() / "pawl-sqlite-XXXXXX";
    return ::mkdtemp(name.data());
  }
  sqlite3* open() {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ / "shop.db").c_str(), &db), SQLITE_OK);
    return db;
  }
  int exec(const char* sql) { return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr); }
  auto increment() {
    return [this] { return exec("UPDATE orders SET n = n + 1"); };
  }
  int n() {
    int found = -1;
    const auto read_value = [](void* out, int, char** values, char**) {
      *static_cast<int*>(out) = std::atoi(values[0]);
      return 0;
    };
    sqlite3_exec(db_.get(), "SELECT n FROM orders", read_value, &found, nullptr);
    return found;
  }
  Lease take(const std::string& lock, AcquireOptions options = {}) {
    auto lease = client.acquire(lock, std::move(options));
    if (!lease) throw std::runtime_error(lease.error().detail);
    return *std::move(lease);
  }

  PawldProcess pawld;
  Client client{pawld.address()};
  const std::filesystem::path folder_ = make_folder();
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db_{open(), sqlite3_close};
  SqliteGuard guard{db_.get()};
};

TEST_F(SqliteFront, WriteUnderALiveLeaseIsCommitted) {
  const Lease lease = take("a");
  const auto done = guard.write(lease, "orders", increment());
  ASSERT_TRUE(done) << done.error().detail;
  EXPECT_EQ(done->verdict, Verdict::kAdmitted);
  EXPECT_EQ(done->token, lease.token());
  EXPECT_EQ(guard.write(lease, "orders", increment(), {.operation = 7})->verdict,
            Verdict::kAdmitted);
  EXPECT_EQ(guard.write(lease, "orders", increment(), {.operation = 7})->verdict,
            Verdict::kReplayed);
  EXPECT_EQ(n(), 2);
}

TEST_F(SqliteFront,
       AcquireWithAGuardAdvancesBeforeItReturns) {  // Hard case 54.
  const Lease old = take("a");
  const Lease newer = take("b", {.guards = {{&guard, "orders"}}});
  const auto refused = guard.write(old, "orders", increment());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kStaleToken) << refused.error().detail;
  EXPECT_TRUE(guard.write(newer, "orders", increment()));
  EXPECT_EQ(n(), 1);
}

TEST_F(SqliteFront, LeaseLostDuringTheWorkIsNotCommittedAndBlocksLaterWrites) {
  const Lease lease = take("a", {.ttl = 1s});
  int runs = 0;
  const auto work = [&] {
    ++runs;
    const int done = exec("UPDATE orders SET n = n + 1");
    pawld.kill();
    EXPECT_TRUE(eventually([&] { return !lease.check(); }));
    return done;
  };
  EXPECT_EQ(guard.write(lease, "orders", work).error().code, Code::kLeaseLost);
  EXPECT_EQ(guard.write(lease, "orders", work).error().code, Code::kLeaseLost);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(n(), 0);
  EXPECT_NE(sqlite3_get_autocommit(db_.get()), 0);
}

TEST_F(SqliteFront, FenceBeyondEveryGrantedTokenIsIssuerBehind) {  // Hard case 44.
  const Lease lease = take("a");
  ASSERT_TRUE(guard.advance("orders", lease.token() + 1000, 5s));
  const auto written = guard.write(lease, "orders", increment());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kIssuerBehind) << written.error().detail;
  EXPECT_EQ(n(), 0);
}

}  // namespace
}  // namespace pawl
