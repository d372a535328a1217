// Pawl's guard in MariaDB, as SqlSubject needs to know it.
#include <fmt/format.h>

#include <utility>

#include "conformance/mariadb_session.h"
#include "conformance/sql_database.h"
#include "guard/mariadb/administration.h"
#include "guard/mariadb/connection.h"
#include "guard/mariadb/failures.h"
#include "guard/words.h"

namespace pawl::conformance {
namespace {

constexpr SqlTraits kMariadbTraits{
    .kind = "mariadb",
    .call = "CALL pawl.",
    .by = "resource",
    .abilities = {Ability::kReadCommitted, Ability::kRepeatableRead, Ability::kSerializable,
                  Ability::kTextTokens, Ability::kLostCommit},
};

class MariaDatabase final : public SqlDatabase {
 public:
  MariaDatabase(guard::MariaDsn dsn, std::shared_ptr<MYSQL> connection,
                std::unique_ptr<guard::Administration> administration)
      : dsn_(std::move(dsn)),
        connection_(std::move(connection)),
        administration_(std::move(administration)) {}

  [[nodiscard]] const SqlTraits& traits() const override { return kMariadbTraits; }
  guard::Administration& administration() override { return *administration_; }
  Result<void> inspect() override { return {}; }

  // What is in one row is in the order of its versions.
  [[nodiscard]] std::string remark(Layout layout) const override {
    return fmt::format("effects in order of {}", layout == Layout::kOneRow ? "commits" : "inserts");
  }

  Result<void> run(const std::string& sql) override {
    if (const auto done = guard::execute(connection_.get(), sql); !done)
      return guard::to_error(*done.failure);
    return {};
  }

  [[nodiscard]] std::string_view columns(Layout layout) const override {
    if (layout == Layout::kOneRow)
      return "resource VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, "
             "log LONGTEXT CHARACTER SET utf8mb4 NOT NULL";
    return "id BIGINT AUTO_INCREMENT PRIMARY KEY, resource VARCHAR(600) CHARACTER SET utf8mb4 "
           "COLLATE "
           "utf8mb4_bin NOT NULL, token BIGINT NOT NULL, value TEXT CHARACTER SET utf8mb4 NOT NULL";
  }

  Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                      const std::string& key) override {
    const auto found = guard::execute(
        connection_.get(), effects_sql(table, layout, guard::literal(connection_.get(), key)));
    if (!found) return guard::to_error(*found.failure);
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < found.rows.size(); ++i)
      effects.push_back({guard::parse_token(found.at(i, "token").value_or("")).value_or(0),
                         found.at(i, "value").value_or("")});
    return effects;
  }

  Result<std::unique_ptr<Session>> open(const Place& place) override {
    auto connection = guard::connect(dsn_);
    if (!connection) return connection.error();
    return make_maria_session(*std::move(connection), place);
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

  const guard::MariaDsn dsn_;
  const std::shared_ptr<MYSQL> connection_;
  const std::unique_ptr<guard::Administration> administration_;
};

}  // namespace

Result<std::unique_ptr<SqlDatabase>> open_maria_database(const std::string& where) {
  const auto dsn = guard::parse_maria_dsn(where);
  if (!dsn) return dsn.error();
  auto connection = guard::connect(*dsn);
  if (!connection) return connection.error();
  auto administration = guard::connect_maria(where);
  if (!administration) return administration.error();
  return std::unique_ptr<SqlDatabase>(
      std::make_unique<MariaDatabase>(*dsn, *std::move(connection), *std::move(administration)));
}

}  // namespace pawl::conformance
