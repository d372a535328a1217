// A worker in C++ with libpawl for frozen_worker_test.py: takes the lock, writes a value to
// `orders`, and prints its token. With `stay` it waits for a line on stdin, during which it gets
// frozen, and then writes twice: under its lease, which must know that it is over, and with its
// token alone, as a program would that does not ask, which the table must refuse.
//
//   worker postgres|sqlite|mariadb|redis|etcd|s3|dynamodb WHERE RESOURCE LOCK VALUE [stay]
// with the address of pawld in PAWL_ADDR.
//
// Ends with 0 when the write is in effect, with 121 when the last one was refused as stale.
#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "guard/dynamodb/dsn.h"
#include "guard/etcd/kind.h"
#include "guard/mariadb/connection.h"
#include "guard/redis/connection.h"
#include "guard/s3/dsn.h"
#include "pawl/dynamodb.h"
#include "pawl/etcd.h"
#include "pawl/mariadb.h"
#include "pawl/pawl.h"
#include "pawl/postgres.h"
#include "pawl/redis.h"
#include "pawl/s3.h"
#include "pawl/sqlite.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;

class Table {
 public:
  virtual ~Table() = default;
  virtual Guard& guard() = 0;
  virtual Result<Decision> write(const Lease& lease, const std::string& value) = 0;
  // By hand. The database's words when it refuses.
  virtual std::string write_with_token(std::uint64_t token, const std::string& value) = 0;
};

class PostgresTable final : public Table {
 public:
  PostgresTable(const char* where, std::string resource)
      : db_(PQconnectdb(where), PQfinish), guard_(db_.get()), resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    return guard_.write(lease, resource_,
                        [&](PgTransaction& tx) { tx.exec("UPDATE orders SET n = $1", {value}); });
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const std::string sql = "BEGIN; SELECT pawl.use('" + resource_ + "', " + std::to_string(token) +
                            "); UPDATE orders SET n = " + value + "; COMMIT";
    const std::unique_ptr<PGresult, decltype(&PQclear)> done(PQexec(db_.get(), sql.c_str()),
                                                             PQclear);
    if (PQresultStatus(done.get()) == PGRES_COMMAND_OK) return "";
    std::string refusal = PQerrorMessage(db_.get());
    PQclear(PQexec(db_.get(), "ROLLBACK"));
    return refusal;
  }

 private:
  const std::unique_ptr<PGconn, decltype(&PQfinish)> db_;
  PgGuard guard_;
  const std::string resource_;
};

class SqliteTable final : public Table {
 public:
  SqliteTable(const char* where, std::string resource) : resource_(std::move(resource)) {
    sqlite3* db = nullptr;
    sqlite3_open(where, &db);
    db_.reset(db);
    static_cast<void>(sqlite::register_functions(db));
    guard_ = std::make_unique<SqliteGuard>(db);
  }
  Guard& guard() override { return *guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    return guard_->write(lease, resource_, [&] { return exec("UPDATE orders SET n = " + value); });
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const auto done =
        guard_->write(token, resource_, [&] { return exec("UPDATE orders SET n = " + value); });
    return done ? "" : done.error().detail;
  }

 private:
  int exec(const std::string& sql) {
    return sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  }

  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db_{nullptr, sqlite3_close};
  std::unique_ptr<SqliteGuard> guard_;
  const std::string resource_;
};

class MariaTable final : public Table {
 public:
  MariaTable(const char* where, std::string resource)
      : db_(*guard::connect(*guard::parse_maria_dsn(where))),
        guard_(db_.get()),
        resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    return guard_.write(lease, resource_,
                        [&](MariaTransaction& tx) { tx.exec("UPDATE orders SET n = ?", {value}); });
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const std::string begin = "CALL pawl.begin('" + resource_ + "', " + std::to_string(token) + ")";
    for (const std::string& sql :
         {begin, "UPDATE orders SET n = " + value, std::string("CALL pawl.finish()")}) {
      const auto done = guard::execute(db_.get(), sql);
      if (done) continue;
      static_cast<void>(guard::call(db_.get(), "abandon", {}));
      return done.failure->message;
    }
    return "";
  }

 private:
  const std::shared_ptr<MYSQL> db_;
  MariaGuard guard_;
  const std::string resource_;
};

// The table is the key `orders:n`.
class RedisTable final : public Table {
 public:
  RedisTable(const char* where, std::string resource)
      : db_(*guard::connect(*guard::parse_redis_dsn(where))),
        guard_(db_.get()),
        resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    const auto done = guard_.write(lease, resource_, {"SET", "orders:n", value});
    if (!done) return done.error();
    return done->decision;
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const auto done = guard_.write(token, resource_, {"SET", "orders:n", value});
    return done ? "" : done.error().detail;
  }

 private:
  const std::shared_ptr<redisContext> db_;
  RedisGuard guard_;
  const std::string resource_;
};

// The table is the key `orders/n`.
class EtcdTable final : public Table {
 public:
  EtcdTable(const char* where, std::string resource)
      : guard_(*guard::to_etcd_options(where)), resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    const auto done = guard_.write(lease, resource_, {EtcdPut{"orders/n", value}});
    if (!done) return done.error();
    return done->decision;
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const auto done = guard_.write(token, resource_, {EtcdPut{"orders/n", value}});
    return done ? "" : done.error().detail;
  }

 private:
  EtcdGuard guard_;
  const std::string resource_;
};

// The table is the content of the object.
class S3Table final : public Table {
 public:
  S3Table(const char* where, std::string resource)
      : guard_(*guard::parse_s3_dsn(where)), resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    return guard_.write(lease, resource_, value);
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const auto done = guard_.write(token, resource_, value);
    return done ? "" : done.error().detail;
  }

 private:
  S3Guard guard_;
  const std::string resource_;
};

// The table is the attribute `n` of the item with the key of the resource.
class DynamoTable final : public Table {
 public:
  DynamoTable(const char* where, std::string resource)
      : guard_(*guard::parse_dynamo_dsn(where)), resource_(std::move(resource)) {}
  Guard& guard() override { return guard_; }
  Result<Decision> write(const Lease& lease, const std::string& value) override {
    const auto done = guard_.write(lease, resource_, put(value));
    if (!done) return done.error();
    return done->decision;
  }
  std::string write_with_token(std::uint64_t token, const std::string& value) override {
    const auto done = guard_.write(token, resource_, put(value));
    return done ? "" : done.error().detail;
  }

 private:
  [[nodiscard]] DynamoPut put(const std::string& value) const {
    const std::string id = resource_.substr(resource_.find(':') + 1);
    return {"orders", {{"id", DynamoValue::text(id)}, {"n", DynamoValue::number(value)}}};
  }

  DynamoGuard guard_;
  const std::string resource_;
};

std::unique_ptr<Table> open(const std::string& kind, const char* where,
                            const std::string& resource) {
  if (kind == "postgres") return std::make_unique<PostgresTable>(where, resource);
  if (kind == "sqlite") return std::make_unique<SqliteTable>(where, resource);
  if (kind == "mariadb") return std::make_unique<MariaTable>(where, resource);
  if (kind == "etcd") return std::make_unique<EtcdTable>(where, resource);
  if (kind == "redis") return std::make_unique<RedisTable>(where, resource);
  if (kind == "s3") return std::make_unique<S3Table>(where, resource);
  if (kind == "dynamodb") return std::make_unique<DynamoTable>(where, resource);
  return nullptr;
}

int wake_and_write(Table& table, const Lease& lease, const std::string& resource) {
  const auto under_lease = table.write(lease, "666");
  if (under_lease) return 1;
  std::cout << "with its lease: "
            << (under_lease.error().code == Code::kLeaseLost ? "lost" : "other") << ": "
            << under_lease.error().detail << "\n";
  const std::string refusal = table.write_with_token(lease.token(), "666");
  const auto now = table.guard().check(resource, lease.token());
  if (refusal.empty() || !now) return 1;
  std::cout << "with its token: " << to_text(now->verdict) << ": " << refusal << "\n";
  return now->verdict == Verdict::kStale ? 121 : 1;
}

int run(int argc, char** argv) {
  const char* pawld = std::getenv("PAWL_ADDR");
  if (argc < 6 || pawld == nullptr) return 64;
  const std::string resource = argv[3];
  const std::string lock = argv[4];
  const auto table = open(argv[1], argv[2], resource);
  if (table == nullptr) return 64;
  Client client(pawld);
  const auto lease =
      client.acquire(lock, {.ttl = 2s, .wait = 60s, .guards = {{&table->guard(), resource}}});
  if (!lease) {
    std::cout << lease.error().detail << "\n";
    return 75;
  }
  if (const auto written = table->write(*lease, argv[5]); !written) {
    std::cout << written.error().detail << "\n";
    return 1;
  }
  std::cout << "granted=" << lease->token() << std::endl;  // Flushed: the test waits for it.
  if (argc == 6) return 0;
  std::string go;
  std::getline(std::cin, go);
  return wake_and_write(*table, *lease, resource);
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}
