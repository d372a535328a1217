// MariaDB as a kind of guard: its scratch database, and its row in the table of kinds.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "guard/mariadb/connection.h"
#include "guard/mariadb/kind.h"
#include "guard/sql/scratch.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::array kMariadbLacks{
    Lack{Ability::kUnreachable,
         "fences are in tables of the guard, where nothing of the user's stands"},
    Lack{Ability::kEnclosed, "in MariaDB a table cannot become a part of another"},
};

constexpr SqlTraits kMariadbTraits{
    .kind = "mariadb",
    .call = "CALL pawl.",
    .by = "resource",
    .abilities = {Ability::kReadCommitted, Ability::kRepeatableRead, Ability::kSerializable,
                  Ability::kTextTokens, Ability::kLostCommit, Ability::kPrepared},
    .lacks = kMariadbLacks,
    .key_type = "VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    .loose_key_type = "VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    .spellings = {"alice", "ALICE"},
};

class MariaDatabase final : public SqlDatabase {
 public:
  MariaDatabase(MariaDsn dsn, std::shared_ptr<MYSQL> connection,
                std::unique_ptr<Administration> administration)
      : dsn_(std::move(dsn)),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kMariadbTraits; }
  Administration& administration() override { return *administration_; }
  Result<void> inspect() override { return {}; }

  // What is in one row is in the order of its versions.
  [[nodiscard]] std::string remark(Layout layout) const override {
    return fmt::format("effects in order of {}", layout == Layout::kOneRow ? "commits" : "inserts");
  }

  Result<void> run(const std::string& sql) override {
    if (const auto done = guard::execute(connection_.get(), sql); !done)
      return to_error(*done.failure);
    return {};
  }

  [[nodiscard]] std::string columns(Layout layout, std::string_view key_type) const override {
    if (layout == Layout::kOneRow)
      return fmt::format("resource {} PRIMARY KEY, log LONGTEXT CHARACTER SET utf8mb4 NOT NULL",
                         key_type);
    return fmt::format(
        "id BIGINT AUTO_INCREMENT PRIMARY KEY, resource {} NOT NULL, token BIGINT NOT NULL, "
        "value TEXT CHARACTER SET utf8mb4 NOT NULL",
        key_type);
  }

  Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                      const std::string& key) override {
    const auto found =
        execute(connection_.get(), effects_sql(table, layout, literal(connection_.get(), key)));
    if (!found) return to_error(*found.failure);
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < found.rows.size(); ++i)
      effects.push_back({parse_token(found.at(i, "token").value_or("")).value_or(0),
                         found.at(i, "value").value_or("")});
    return effects;
  }

  Result<std::unique_ptr<Session>> open(const ScratchNames& names) override {
    auto connection = connect(dsn_);
    if (!connection) return connection.error();
    return make_maria_session(*std::move(connection), names);
  }

 private:
  static std::string effects_sql(const std::string& table, Layout layout, const std::string& key) {
    if (layout == Layout::kOneRow)
      return fmt::format(
          "SELECT e.token, e.value FROM {} t, JSON_TABLE(t.log, '$[*]' COLUMNS (place FOR "
          "ORDINALITY, token "
          "BIGINT PATH '$[0]', value TEXT PATH '$[1]')) AS e WHERE t.resource = {} ORDER BY "
          "e.place",
          table, key);
    return fmt::format("SELECT token, value FROM {} WHERE resource = {} ORDER BY id", table, key);
  }

  const MariaDsn dsn_;
  const std::shared_ptr<MYSQL> connection_;
  const std::unique_ptr<Administration> administration_;
};

Result<std::unique_ptr<SqlDatabase>> open_database(const std::string& where) {
  const auto dsn = parse_maria_dsn(where);
  if (!dsn) return dsn.error();
  auto connection = connect(*dsn);
  if (!connection) return connection.error();
  auto administration = open_maria_administration(where);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(
      std::make_unique<MariaDatabase>(*dsn, *std::move(connection), *std::move(administration)));
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
  std::error_code ignored;
  return std::filesystem::exists("/run/mysqld/mysqld.sock", ignored);
}

}  // namespace

const Kind kMariaKind{
    .name = "mariadb",
    .title = "MariaDB",
    .location = Location::kDsn,
    .where_example = "'database=DATABASE'",
    .abilities = kSqlAbilities,
    .forms = kFormNames,
    .scratch_form = "table",
    .open_administration = open_maria_administration,
    .open_session = open_session,
    .open_scratch = open_scratch,
    .seems_local = seems_local,
};

}  // namespace pawl::guard
