// PostgreSQL as a kind of guard: its scratch database, and its row in the table of kinds.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "guard/postgres/connection.h"
#include "guard/postgres/kind.h"
#include "guard/sql/scratch.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
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
                   std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kPostgresTraits; }
  Administration& administration() override { return *administration_; }

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
      effects.push_back(
          {parse_token(rows->at(i, 0).value_or("")).value_or(0), rows->at(i, 1).value_or("")});
    return effects;
  }

  Result<std::unique_ptr<Session>> open(const ScratchNames& names) override {
    auto connection = connect(dsn_);
    if (!connection) return connection.error();
    return make_postgres_session(*std::move(connection), names);
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
    const auto done = execute(connection_.get(), sql, parameters);
    if (!done) return to_error(*done.failure);
    return PgRows(done.result);
  }

  const std::string dsn_;
  const std::shared_ptr<PGconn> connection_;
  const std::unique_ptr<Administration> administration_;
  bool by_commit_ = false;
};

Result<std::unique_ptr<SqlDatabase>> open_database(const std::string& dsn) {
  auto connection = connect(dsn);
  if (!connection) return connection.error();
  auto administration = open_postgres_administration(dsn);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(
      std::make_unique<PostgresDatabase>(dsn, *std::move(connection), *std::move(administration)));
}

Result<std::unique_ptr<Session>> open_session(const std::string& dsn,
                                              const SessionRequest& request) {
  auto database = open_database(dsn);
  if (!database) return database.error();
  return open_sql_session(*std::move(database), request);
}

Result<std::unique_ptr<ScratchSpace>> open_scratch(const std::string& dsn, std::string_view form) {
  auto database = open_database(dsn);
  if (!database) return database.error();
  return open_sql_scratch(*std::move(database), form);
}

bool seems_local() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  std::error_code ignored;
  return is_set("PGHOST") || is_set("PGSERVICE") ||
         std::filesystem::exists("/run/postgresql/.s.PGSQL.5432", ignored);
}

}  // namespace

const Kind kPostgresKind{
    .name = "postgres",
    .title = "PostgreSQL",
    .location = Location::kDsn,
    .where_example = "postgresql:///DATABASE",
    .abilities = kSqlAbilities,
    .forms = kFormNames,
    .scratch_form = "table",
    .open_administration = open_postgres_administration,
    .open_session = open_session,
    .open_scratch = open_scratch,
    .seems_local = seems_local,
};

}  // namespace pawl::guard
