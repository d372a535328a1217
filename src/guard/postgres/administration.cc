// The administration of a guard in PostgreSQL, over a connection of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "guard/postgres/connection.h"
#include "guard/postgres/install.h"
#include "guard/postgres/kind.h"
#include "guard/postgres/uninstall.h"
#include "guard/sql/values.h"
#include "pawl/postgres.h"

namespace pawl::guard {
namespace {

// What stands between the lines `BEGIN;` and `COMMIT;` of a script (guards/postgres/*.sql), to be
// run in a transaction that the caller may take back.
std::string transaction_body(std::string_view file) {
  constexpr std::string_view kBegin = "\nBEGIN;\n";
  constexpr std::string_view kCommit = "\nCOMMIT;\n";
  const std::size_t begin = file.find(kBegin);
  const std::size_t commit = file.rfind(kCommit);
  PAWL_ASSERT(begin != file.npos && commit != file.npos && begin < commit);
  return std::string(file.substr(begin + kBegin.size(), commit - begin - kBegin.size()));
}

class PostgresAdministration final : public Administration {
 public:
  explicit PostgresAdministration(std::shared_ptr<PGconn> connection)
      : connection_(std::move(connection)) {}

  [[nodiscard]] std::string_view title() const override { return "PostgreSQL"; }
  [[nodiscard]] bool can(Task) const override { return true; }

  Result<std::optional<Installation>> installed() override {
    const auto there = query(
        "SELECT to_regprocedure('pawl.contract()') IS NOT NULL, "
        "to_regprocedure('pawl.fast_path()') IS NOT NULL");
    if (!there) return there.error();
    if (there->at(0, 0) != "t") return std::optional<Installation>{};
    const auto rows =
        query(there->at(0, 1) == "t" ? "SELECT pawl.version(), pawl.contract(), pawl.fast_path()"
                                     : "SELECT pawl.version(), pawl.contract(), ''");
    if (!rows) return rows.error();
    return std::optional<Installation>{{rows->at(0, 0).value_or(""),
                                        static_cast<int>(to_number(rows->at(0, 1))),
                                        rows->at(0, 2).value_or("")}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (const auto newer = check_not_newer(*before); !newer) return newer.error();
    std::optional<Installation> after;
    const auto done = in_transaction(rehearse, [&]() -> Result<void> {
      if (const auto ran = run_script(transaction_body(kPostgresInstallFile)); !ran)
        return ran.error();
      auto now = installed();
      if (!now) return now.error();
      after = *std::move(now);
      return {};
    });
    if (!done) return done.error();
    return require_installation(after);
  }

  Result<void> uninstall(Rehearse rehearse) override {
    return in_transaction(rehearse,
                          [&] { return run_script(transaction_body(kPostgresUninstallFile)); });
  }

  [[nodiscard]] Result<std::string_view> script() const override {
    return std::string_view(kPostgresInstallFile);
  }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    std::string name;
    const auto done = in_transaction(rehearse, [&]() -> Result<void> {
      const auto rows = query(
          "SELECT pawl.protect($1::text::regclass, guard => $2::text, key => $3::text, by => "
          "$4::text, mode "
          "=> $5::text)",
          {wanted.table, given(wanted.guard), given(wanted.key), given(wanted.by), wanted.mode});
      if (!rows) return rows.error();
      name = rows->at(0, 0).value_or("");
      return {};
    });
    if (!done) return done.error();
    return name;
  }

  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    return change(rehearse, "SELECT pawl.unprotect($1::text::regclass)", {table});
  }

  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    return change(rehearse, "SELECT pawl.drop_guard($1::text)", {guard});
  }

  Result<std::vector<Problem>> problems() override {
    const auto rows = query("SELECT severity, guard, object, problem, fix FROM pawl.problems()");
    if (!rows) return rows.error();
    std::vector<Problem> list;
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const auto text = [&](std::size_t column) { return rows->at(i, column).value_or(""); };
      list.push_back({text(0), text(1), text(2), text(3), text(4)});
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    const auto rows = query(
        "SELECT s.guard, kind, array_to_string(tables, E'\\n'), mode, percent, require_token, "
        "equal, "
        "max_step, fence, floor, replayed, stale, missing, ahead, malformed, would_refuse, "
        "r.ready, array_to_string(r.because, E'\\n') "
        "FROM pawl.status s CROSS JOIN LATERAL pawl.readiness(s.guard) r "
        "WHERE $1::text IS NULL OR s.guard = $1 ORDER BY s.guard",
        {given(guard)});
    if (!rows) return rows.error();
    if (rows->size() == 0 && !guard.empty()) return no_such_guard(guard);
    std::vector<Status> list;
    for (std::size_t i = 0; i < rows->size(); ++i) list.push_back(status_of(*rows, i));
    return list;
  }

  Result<std::vector<Sighting>> sightings(const std::string& guard) override {
    const auto rows = query(
        "SELECT guard, login, role, application_name, statement, count, last_seen FROM "
        "pawl.tokenless_writers "
        "WHERE $1::text IS NULL OR guard = $1 ORDER BY count DESC LIMIT 100",
        {given(guard)});
    if (!rows) return rows.error();
    std::vector<Sighting> list;
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const auto text = [&](std::size_t column) { return rows->at(i, column).value_or(""); };
      list.push_back(
          {text(0), text(1), text(2), text(3), text(4), to_number(rows->at(i, 5)), text(6)});
    }
    return list;
  }

  // setval() is not undone by ROLLBACK, so what uses it is rehearsed by functions of its own.
  Result<void> set_mode(const ModeChange& wanted, Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) {
      return change(rehearse, "SELECT pawl.rehearse_mode($1::text, $2::text, percent => $3::int)",
                    {wanted.guard, wanted.mode, given(wanted.percent)});
    }
    return change(
        rehearse,
        "SELECT pawl.set_mode($1::text, $2::text, percent => $3::int, reason => $4::text)",
        {wanted.guard, wanted.mode, given(wanted.percent), given(wanted.reason)});
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) {
      return change(
          rehearse,
          "SELECT pawl.rehearse_policy($1::text, require_token => $2::boolean, equal => $3::text, "
          "max_step => $4::bigint, bare_token => $5::text)",
          {wanted.guard, given(wanted.require_token), given(wanted.equal), given(wanted.max_step),
           given(wanted.bare_token)});
    }
    return change(
        rehearse,
        "SELECT pawl.set_policy($1::text, require_token => $2::boolean, equal => $3::text, "
        "max_step => $4::bigint, bare_token => $5::text, reason => $6::text)",
        {wanted.guard, given(wanted.require_token), given(wanted.equal), given(wanted.max_step),
         given(wanted.bare_token), given(wanted.reason)});
  }

  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    return change(Rehearse::kNo, "SELECT pawl.emergency($1::text, $2::text)",
                  {reason, given(guard)});
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const auto rows = query("SELECT pawl.fence($1::text)", {resource});
    if (!rows) return rows.error();
    const PgValue text = rows->at(0, 0);
    return text ? std::optional(to_number(text)) : std::nullopt;
  }

  Result<std::vector<std::string>> blockers(const std::string& resource) override {
    const auto rows = query(
        "SELECT concat_ws(' ', 'pid ' || pid, 'prepared ' || gid, role, application_name, 'since ' "
        "|| since, "
        "query) "
        "FROM pawl.blockers($1::text)",
        {resource});
    if (!rows) return rows.error();
    std::vector<std::string> list;
    for (std::size_t i = 0; i < rows->size(); ++i) list.push_back(rows->at(i, 0).value_or(""));
    return list;
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds wait, Stragglers stragglers) override {
    PgGuard guard(connection_.get());
    guard.evict_stragglers(stragglers == Stragglers::kEvict);
    return guard.advance(resource, token, wait);
  }

  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    const std::string verb = rehearse == Rehearse::kYes ? "rehearse_compact" : "compact";
    return change(rehearse, "SELECT pawl." + verb + "($1::text, $2::bigint)",
                  {guard, std::to_string(below)});
  }

 private:
  // As status() selects them.
  static constexpr std::array<std::string_view, 18> kStatusColumns{
      "guard",   "kind",     "tables",    "mode",         "percent",  "require_token",
      "equal",   "max_step", "fence",     "floor",        "replayed", "stale",
      "missing", "ahead",    "malformed", "would_refuse", "ready",    "because"};

  static Status status_of(const PgRows& rows, std::size_t row) {
    const auto value = [&](std::string_view column) {
      const auto* const found = std::find(kStatusColumns.begin(), kStatusColumns.end(), column);
      return rows.at(row, static_cast<std::size_t>(found - kStatusColumns.begin()));
    };
    Status status = to_status(value);
    status.ready = value("ready") == "t";
    status.because = lines_of(value("because"));
    return status;
  }

  Result<PgRows> query(const std::string& sql, const std::vector<PgValue>& parameters = {}) {
    const auto done = execute(connection_.get(), sql, parameters);
    if (!done) return to_error(*done.failure);
    return PgRows(done.result);
  }

  Result<void> run_script(std::string_view script) {
    const auto done = execute_all(connection_.get(), std::string(script));
    if (!done) return to_error(*done.failure);
    return {};
  }

  Result<void> change(Rehearse rehearse, const std::string& sql,
                      const std::vector<PgValue>& parameters) {
    return in_transaction(rehearse, [&]() -> Result<void> {
      const auto rows = query(sql, parameters);
      if (!rows) return rows.error();
      return {};
    });
  }

  template <class Work>
  Result<void> in_transaction(Rehearse rehearse, const Work& work) {
    if (const auto begun = run_script("BEGIN"); !begun) return begun.error();
    if (const Result<void> worked = work(); !worked) {
      static_cast<void>(run_script("ROLLBACK"));
      return worked.error();
    }
    if (rehearse == Rehearse::kYes) return run_script("ROLLBACK");
    const auto done = execute_all(connection_.get(), "COMMIT");
    if (done) return {};
    if (done.failure->disconnected)
      return Error{Code::kUnknown, "the connection broke at the commit; look before you try again"};
    return to_error(*done.failure);
  }

  std::shared_ptr<PGconn> connection_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_postgres_administration(const std::string& dsn) {
  auto connection = connect(dsn);
  if (!connection) return connection.error();
  return std::unique_ptr<Administration>(
      std::make_unique<PostgresAdministration>(*std::move(connection)));
}

}  // namespace pawl::guard
