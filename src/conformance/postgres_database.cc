// Pawl's guard in PostgreSQL, as SqlSubject needs to know it.
#include <fmt/format.h>

#include <utility>

#include "conformance/postgres_session.h"
#include "conformance/sql_database.h"
#include "guard/postgres/administration.h"
#include "guard/postgres/connection.h"
#include "guard/postgres/failures.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

// A token is a bigint in the functions, so that only where it travels as a setting does the guard
// see its spelling.
constexpr SqlTraits kPostgresTraits{
    .kind = "postgres",
    .call = "SELECT pawl.",
    .by = "resource",
    .abilities = {Ability::kReadCommitted, Ability::kRepeatableRead, Ability::kSerializable,
                  Ability::kLostCommit},
    .watched = {Ability::kTextTokens},
};

class PostgresDatabase final : public SqlDatabase {
 public:
  PostgresDatabase(std::string dsn, std::shared_ptr<PGconn> connection,
                   std::unique_ptr<guard::Administration> administration)
      : dsn_(std::move(dsn)),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kPostgresTraits; }
  guard::Administration& administration() override { return *administration_; }

  Result<void> inspect() override {
    const auto asked = query("SHOW track_commit_timestamp");
    if (!asked) return asked.error();
    by_commit_ = asked->at(0, 0) == "on";
    return {};
  }

  // What is in one row is in the order of its versions.
  [[nodiscard]] std::string remark(Layout layout) const override {
    return fmt::format("effects in order of {}",
                       by_commit_ || layout == Layout::kOneRow ? "commits" : "inserts");
  }

  Result<void> run(const std::string& sql) override {
    if (const auto done = query(sql); !done) return done.error();
    return {};
  }

  [[nodiscard]] std::string_view columns(Layout layout) const override {
    if (layout == Layout::kOneRow) return "resource text PRIMARY KEY, log jsonb NOT NULL";
    return "id bigint GENERATED ALWAYS AS IDENTITY, resource text NOT NULL, token bigint NOT NULL, "
           "value text NOT NULL";
  }

  Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                      const std::string& key) override {
    const auto rows = query(effects_sql(table, layout), {key});
    if (!rows) return rows.error();
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < rows->size(); ++i)
      effects.push_back({guard::parse_token(rows->at(i, 0).value_or("")).value_or(0),
                         rows->at(i, 1).value_or("")});
    return effects;
  }

  Result<std::unique_ptr<Session>> open(const Place& place) override {
    auto connection = guard::connect(dsn_);
    if (!connection) return connection.error();
    return make_postgres_session(*std::move(connection), place);
  }

 private:
  [[nodiscard]] std::string effects_sql(const std::string& table, Layout layout) const {
    if (layout == Layout::kOneRow)
      return fmt::format(
          "SELECT e.line ->> 0, e.line ->> 1 FROM {} t, jsonb_array_elements(t.log) WITH "
          "ORDINALITY AS e "
          "(line, place) WHERE t.resource = $1 ORDER BY e.place",
          table);
    return fmt::format("SELECT token, value FROM {} t WHERE resource = $1 ORDER BY {}id", table,
                       by_commit_ ? "pg_xact_commit_timestamp(t.xmin), " : "");
  }

  Result<PgRows> query(const std::string& sql, const std::vector<PgValue>& parameters = {}) {
    const auto done = guard::execute(connection_.get(), sql, parameters);
    if (!done) return guard::to_error(*done.failure);
    return PgRows(done.result);
  }

  const std::string dsn_;
  const std::shared_ptr<PGconn> connection_;
  const std::unique_ptr<guard::Administration> administration_;
  bool by_commit_ = false;
};

}  // namespace

Result<std::unique_ptr<SqlDatabase>> open_postgres_database(const std::string& where) {
  auto connection = guard::connect(where);
  if (!connection) return connection.error();
  auto administration = guard::connect_postgres(where);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(std::make_unique<PostgresDatabase>(
      where, *std::move(connection), *std::move(administration)));
}

}  // namespace pawl::conformance
