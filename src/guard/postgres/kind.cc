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
                  Ability::kLostCommit, Ability::kPrepared, Ability::kUnreachable,
                  Ability::kEnclosed},
    .watched = {Ability::kTextTokens},
    .key_type = "text",
    .loose_key_type = "numeric",
    .spellings = {"7", "7.0"},
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
    const auto prepared = query("SHOW max_prepared_transactions");
    if (!prepared) return prepared.error();
    can_prepare_ = prepared->at(0, 0) != "0";
    return {};
  }

  [[nodiscard]] std::vector<Lack> lacks_here() const override {
    if (can_prepare_) return {};
    return {{Ability::kPrepared, "max_prepared_transactions is 0 on this server"}};
  }

  // What is in one row is in the order of its versions.
  [[nodiscard]] std::string remark(Layout layout) const override {
    return fmt::format("effects in order of {}",
                       by_commit_ || layout == Layout::kOneRow ? "commits" : "inserts");
  }

  Result<void> run(const std::string& sql) override {
    if (const auto done = execute_all(connection_.get(), sql); !done)
      return to_error(*done.failure);
    return {};
  }

  [[nodiscard]] std::string columns(Layout layout, std::string_view key_type) const override {
    if (layout == Layout::kOneRow)
      return fmt::format("resource {} PRIMARY KEY, log jsonb NOT NULL", key_type);
    return fmt::format(
        "id bigint GENERATED ALWAYS AS IDENTITY, resource {} NOT NULL, token bigint NOT NULL, "
        "value text NOT NULL",
        key_type);
  }

  // A trigger that drops an UPDATE unless it appends to the log. It comes before the guard's.
  Result<std::vector<std::string>> make_unreachable(const std::string& table) override {
    const auto made = run(fmt::format(
        "CREATE FUNCTION {0}_drop_others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.log = OLD.log THEN RETURN NULL; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER drop_others BEFORE UPDATE ON {0} FOR EACH ROW "
        "EXECUTE FUNCTION {0}_drop_others()",
        table));
    if (!made) return made.error();
    return std::vector<std::string>{fmt::format("DROP FUNCTION {}_drop_others() CASCADE", table)};
  }

  // The table becomes the default partition of a new one.
  Result<std::optional<std::vector<std::string>>> enclose(const std::string& table,
                                                          const std::string& larger) override {
    // The identity of a partition does not count where its rows come through the whole.
    const auto made = run(
        fmt::format("CREATE TABLE {1} (LIKE {0} INCLUDING INDEXES) PARTITION BY LIST (resource); "
                    "DO $$ BEGIN ALTER TABLE {1} ALTER COLUMN id SET DEFAULT 0; "
                    "EXCEPTION WHEN undefined_column THEN NULL; END $$",
                    table, larger));
    if (!made) return made.error();
    const std::string drop = "DROP TABLE IF EXISTS " + larger;
    const auto attached =
        execute_all(connection_.get(),
                    fmt::format("ALTER TABLE {} ATTACH PARTITION {} DEFAULT", larger, table));
    if (!attached && attached.failure->state == "55000") {  // As the guard says that it cannot.
      static_cast<void>(run(drop));
      return std::optional<std::vector<std::string>>{};
    }
    if (!attached) return to_error(*attached.failure);
    return std::optional<std::vector<std::string>>{
        {fmt::format("ALTER TABLE {} DETACH PARTITION {}", larger, table),
         fmt::format("SELECT pawl.unprotect('{}')", larger), drop}};
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
  bool can_prepare_ = false;
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
