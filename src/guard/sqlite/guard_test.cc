#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "pawl/sqlite.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

using Db = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

// A guarded table `orders (n)` in a file of its own.
class SqliteGuardTest : public testing::Test {
 protected:
  SqliteGuardTest() {
    exec(db_, "PRAGMA journal_mode = WAL; CREATE TABLE orders (n)");
    EXPECT_TRUE(sqlite::register_functions(db_.get()));
    exec(db_, "SELECT pawl_install(); SELECT pawl_protect('orders', NULL, 'enforce')");
  }
  ~SqliteGuardTest() override { std::filesystem::remove_all(folder_); }

  Db open() {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ / "shop.db").c_str(), &db), SQLITE_OK);
    return {db, sqlite3_close};
  }
  static int exec(const Db& db, const char* sql) {
    return sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr);
  }
  Result<Decision> insert(std::uint64_t token, const SqliteWriteOptions& options = {}) {
    return guard_.write(
        token, "orders", [&] { return exec(db_, "INSERT INTO orders VALUES (1)"); }, options);
  }
  int rows() {
    int count = 0;
    const auto tell = [](void* out, int, char** values, char**) {
      *static_cast<int*>(out) = std::atoi(values[0]);
      return 0;
    };
    sqlite3_exec(db_.get(), "SELECT count(*) FROM orders", tell, &count, nullptr);
    return count;
  }

  static std::filesystem::path make_folder() {
    std::string name = std::filesystem::temp_directory_path() / "pawl-sqlite-XXXXXX";
    return ::mkdtemp(name.data());
  }

  std::filesystem::path folder_ = make_folder();
  Db db_ = open();
  SqliteGuard guard_{db_.get()};
};

TEST_F(SqliteGuardTest, AStaleTokenIsRefusedAndNothingIsWritten) {
  ASSERT_TRUE(insert(34));
  const auto refused = insert(33);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kStaleToken);
  EXPECT_EQ(rows(), 1);
  EXPECT_EQ(guard_.check("orders", 33)->verdict, Verdict::kStale);
}

TEST_F(SqliteGuardTest, AnAdvanceFencesOutBeforeAnythingIsWritten) {
  EXPECT_EQ(*guard_.advance("orders", 34, 1s), 0U);
  EXPECT_EQ(insert(33).error().code, Code::kStaleToken);
  EXPECT_EQ(guard_.advance("orders", 33, 1s).error().code, Code::kStaleToken);
}

TEST_F(SqliteGuardTest, AnOperationTakesEffectOnce) {
  EXPECT_EQ(insert(34, {.operation = 7})->verdict, Verdict::kAdmitted);
  EXPECT_EQ(insert(34, {.operation = 7})->verdict, Verdict::kReplayed);
  EXPECT_EQ(rows(), 1);
}

TEST_F(SqliteGuardTest, BusyIsNotStale) {
  const Db other = open();
  ASSERT_EQ(exec(other, "BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_EQ(insert(34, {.wait = 20ms}).error().code, Code::kBusy);
  EXPECT_EQ(guard_.advance("orders", 34, 20ms).error().code, Code::kBusy);
  ASSERT_EQ(exec(other, "ROLLBACK"), SQLITE_OK);
  EXPECT_TRUE(insert(34, {.wait = 20ms}));
}

TEST_F(SqliteGuardTest, WorkThatFailsOrThrowsIsRolledBack) {
  EXPECT_EQ(guard_.write(34, "orders", [&] { return exec(db_, "INSERT INTO nowhere VALUES (1)"); })
                .error()
                .code,
            Code::kInvalid);
  EXPECT_THROW(static_cast<void>(guard_.write(34, "orders",
                                              [&]() -> int {
                                                exec(db_, "INSERT INTO orders VALUES (1)");
                                                throw 7;
                                              })),
               int);
  EXPECT_NE(sqlite3_get_autocommit(db_.get()), 0);
  EXPECT_EQ(rows(), 0);
  EXPECT_EQ(guard_.check("orders", 1)->verdict, Verdict::kAdmitted);  // Its fence went with it.
}

TEST_F(SqliteGuardTest, AConnectionWithoutTheFunctionsCannotWrite) {
  const Db plain = open();
  EXPECT_NE(exec(plain, "INSERT INTO orders VALUES (1)"), SQLITE_OK);
  SqliteGuard guard(plain.get());
  EXPECT_EQ(guard.check("orders", 34).error().code, Code::kInvalid);
}

TEST_F(SqliteGuardTest, AGuardedConnectionCanBeClosed) {
  ASSERT_TRUE(insert(34));
  ASSERT_FALSE(insert(33));
  EXPECT_EQ(sqlite3_close(db_.release()), SQLITE_OK);  // Not BUSY: no statement of ours is left.
}

TEST_F(SqliteGuardTest, WhatIsNoTokenIsInvalid) {
  EXPECT_EQ(insert(0).error().code, Code::kInvalid);
  EXPECT_EQ(insert(34, {.operation = 0}).error().code, Code::kInvalid);
  EXPECT_EQ(insert(std::uint64_t{1} << 53).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace pawl
