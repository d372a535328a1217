#include "drill/demo_row.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"
#include "conformance/subjects.h"

namespace pawl::drill {
namespace {

constexpr const char* kKey = "widgets";

// Unique: several demos may run in one database.
std::string fresh_name() {
  SystemRandom random;
  return fmt::format("pawl_demo_{:08x}", random.next() & 0xffff'ffff);
}

}  // namespace

DemoRow::DemoRow(std::string kind, std::string where,
                 std::unique_ptr<conformance::SqlDatabase> database)
    : kind_(std::move(kind)),
      where_(std::move(where)),
      database_(std::move(database)),
      table_(fresh_name()) {}

Result<std::unique_ptr<DemoRow>> DemoRow::make(const std::string& kind, const std::string& where) {
  auto database = conformance::open_database(kind, where);
  if (!database) return database.error();
  std::unique_ptr<DemoRow> row(new DemoRow(kind, where, *std::move(database)));
  const auto made = row->database_->run(fmt::format(
      "CREATE TABLE {} ({})", row->table_, row->database_->columns(conformance::Layout::kLines)));
  if (!made) return made.error();
  return row;
}

DemoRow::~DemoRow() {
  if (guarded_) {
    static_cast<void>(database_->administration().unprotect(table_, guard::Rehearse::kNo));
  }
  static_cast<void>(database_->run("DROP TABLE IF EXISTS " + table_));
  if (guarded_) {
    static_cast<void>(
        database_->run(fmt::format("{}drop_guard('{}')", database_->traits().call, table_)));
  }
}

Target DemoRow::target() const {
  return {.kind = kind_,
          .where = where_,
          .resource = table_,
          .scratch = true,
          .guarded = guarded_,
          .statement = fmt::format(
              "UPDATE {} SET token = :token, value = :value WHERE resource = '{}'", table_, kKey)};
}

Result<DemoRow::Content> DemoRow::read() {
  const auto rows = database_->effects(table_, conformance::Layout::kLines, kKey);
  if (!rows) return rows.error();
  if (rows->size() != 1) return Error{Code::kUnknown, "the row of the demo has disappeared"};
  return Content{rows->front().token, rows->front().value};
}

Result<void> DemoRow::reset(const std::string& value) {
  if (const auto gone = database_->run("DELETE FROM " + table_); !gone) return gone;
  return database_->run(fmt::format(
      "INSERT INTO {} (resource, token, value) VALUES ('{}', 0, '{}')", table_, kKey, value));
}

Result<void> DemoRow::protect() {
  const auto done = database_->administration().protect(
      {.table = table_, .guard = table_, .mode = "enforce"}, guard::Rehearse::kNo);
  if (!done) return done.error();
  guarded_ = true;
  return {};
}

}  // namespace pawl::drill
