// The administration of a guard in MariaDB, over a connection of its own.
#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/mariadb/advance.h"
#include "guard/mariadb/connection.h"
#include "guard/mariadb/kind.h"
#include "guard/mariadb/scripts.h"
#include "guard/sql/values.h"

namespace pawl::guard {
namespace {

constexpr unsigned kNoSuchRoutine = 1305;
constexpr unsigned kNoSuchDefiner = 1449;

class MariaAdministration final : public Administration {
 public:
  MariaAdministration(std::shared_ptr<MYSQL> connection, MariaDsn dsn)
      : connection_(std::move(connection)), dsn_(std::move(dsn)) {}

  [[nodiscard]] std::string_view title() const override { return "MariaDB"; }
  [[nodiscard]] bool can(Task) const override { return true; }

  Result<std::optional<Installation>> installed() override {
    // Asked outright: information_schema hides routines from those who may run them only as
    // everyone.
    auto found =
        execute(connection_.get(), "SELECT pawl.version() AS version, pawl.contract() AS contract");
    if (!found && found.failure->number == kNoSuchRoutine) return std::optional<Installation>{};
    // No routine runs any more; an administrator can read the table.
    if (!found && found.failure->number == kNoSuchDefiner)
      found = execute(connection_.get(), "SELECT version, contract FROM pawl.installation");
    if (!found) return to_error(*found.failure);
    return std::optional<Installation>{{found.at(0, "version").value_or(""),
                                        static_cast<int>(to_number(found.at(0, "contract")))}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (const auto newer = check_not_newer(*before); !newer) return newer.error();
    if (rehearse == Rehearse::kYes) {
      if (const auto may = check_rights(); !may) return may.error();
      return Installation{std::string(offered_version()), kGuardContract};
    }
    if (const auto ran = run_script(maria_install_file()); !ran) return ran.error();
    const auto after = installed();
    if (!after) return after.error();
    return require_installation(*after);
  }

  Result<void> uninstall(Rehearse rehearse) override {
    return rehearse == Rehearse::kYes ? check_rights() : run_script(maria_uninstall_file());
  }

  [[nodiscard]] Result<std::string_view> script() const override { return maria_install_file(); }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    const std::string table = qualified(wanted.table);
    const std::string column = wanted.key.empty() ? wanted.by : wanted.key;
    const std::vector<MariaValue> values{table, given(wanted.guard), given(column), wanted.mode};
    if (rehearse == Rehearse::kYes) {  // DDL cannot be rolled back.
      if (const auto could = ask("_insist_on_protectable", values); !could) return could.error();
      return wanted.guard.empty() ? table : wanted.guard;
    }
    const auto done = ask("protect", values);
    if (!done) return done.error();
    return done->at(0, "guard").value_or("");
  }

  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    const std::string name = qualified(table);
    if (rehearse == Rehearse::kNo) return done_or_error(ask("unprotect", {name}));
    const auto there =
        query("SELECT 1 FROM pawl.protected WHERE CONCAT(db, '.', tbl) = " + quoted(name));
    if (!there) return there.error();
    if (there->rows.empty())
      return Error{Code::kInvalid, fmt::format("{} is not under guard", name)};
    return {};
  }

  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    if (rehearse == Rehearse::kNo) return done_or_error(ask("drop_guard", {guard}));
    const auto there = status(guard);
    if (!there) return there.error();
    if (!there->front().tables.empty())
      return Error{Code::kInvalid, "tables are under this guard: unprotect each of them first"};
    return {};
  }

  Result<std::vector<Problem>> problems() override {
    const auto found = call(connection_.get(), "problems", {});
    std::vector<Problem> list;
    if (!found && found.failure->number == kNoSuchDefiner) {
      list.push_back({"error", "", "pawl_definer@localhost",
                      "the account that the guard runs as is gone: every write to a protected "
                      "table fails with 1449",
                      "pawl guard install mariadb"});
      return list;
    }
    if (!found) return to_error(*found.failure);
    for (std::size_t i = 0; i < found.rows.size(); ++i) {
      const auto text = [&](const char* column) { return found.at(i, column).value_or(""); };
      list.push_back(
          {text("severity"), text("guard"), text("object"), text("problem"), text("fix")});
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    const auto answer = call(connection_.get(), "status", {given(guard)});
    if (!answer && answer.failure->number == kNoSuchDefiner)
      return Error{Code::kDenied,
                   "the account that the guard runs as is gone; run: pawl guard install mariadb"};
    if (!answer) return to_error(*answer.failure);
    const auto* const found = &answer;
    if (found->rows.empty() && !guard.empty()) return no_such_guard(guard);
    const auto wrong = problems();
    if (!wrong) return wrong.error();
    std::vector<Status> list;
    for (std::size_t i = 0; i < found->rows.size(); ++i)
      list.push_back(status_of(*found, i, *wrong));
    return list;
  }

  Result<std::vector<Sighting>> sightings(const std::string& guard) override {
    const auto found = query(
        "SELECT guard, login, statement, count, last_seen FROM pawl.tokenless_writers WHERE " +
        (guard.empty() ? "TRUE" : "guard = " + quoted(guard)) + " ORDER BY count DESC LIMIT 100");
    if (!found) return found.error();
    std::vector<Sighting> list;
    for (std::size_t i = 0; i < found->rows.size(); ++i) {
      const auto text = [&](const char* column) { return found->at(i, column).value_or(""); };
      list.push_back({text("guard"), text("login"), "", "", text("statement"),
                      to_number(found->at(i, "count")), text("last_seen")});
    }
    return list;
  }

  Result<void> set_mode(const ModeChange& wanted, Rehearse rehearse) override {
    return change(rehearse, "set_mode",
                  {wanted.guard, wanted.mode, given(wanted.percent), given(wanted.reason)});
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (wanted.bare_token)
      return Error{Code::kInvalid,
                   "a guard in MariaDB has no bare_token: tokens come by pawl.use() only"};
    return change(rehearse, "set_policy",
                  {wanted.guard, given(wanted.require_token), given(wanted.equal),
                   given(wanted.max_step), given(wanted.reason)});
  }

  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    return done_or_error(ask("emergency", {given(guard), reason}));
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const auto known = ask("check", {resource, std::nullopt});
    if (!known) return known.error();
    if (known->at(0, "verdict") == "unknown")
      return Error{Code::kInvalid, fmt::format("unknown resource '{}'", resource)};
    const MariaValue text = known->at(0, "max");
    return text ? std::optional(to_number(text)) : std::nullopt;
  }

  Result<std::vector<std::string>> blockers(const std::string& resource) override {
    return guard::blockers(connection_.get(), resource);
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds wait, Stragglers stragglers) override {
    if (stragglers == Stragglers::kSpare)
      return guard::advance(connection_.get(), resource, token, wait);
    const auto killer = connect(dsn_);
    if (!killer) return killer.error();
    return advance_and_evict(connection_.get(), killer->get(), resource, token, wait);
  }

  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    return change(rehearse, "compact", {guard, std::to_string(below)});
  }

 private:
  static Status status_of(const MariaOutcome& found, std::size_t row,
                          const std::vector<Problem>& problems) {
    const auto text = [&](const char* column) { return found.at(row, column).value_or(""); };
    const auto number = [&](const char* column) { return to_number(found.at(row, column)); };
    Status status = to_status([&](std::string_view column) { return found.at(row, column); });
    for (const Problem& problem : problems) {
      // set_mode() refuses to enforce until such a warning is acknowledged.
      const bool keeps_from_enforcing =
          problem.severity == "error" || problem.fix.find("pawl.acknowledge(") != std::string::npos;
      if (keeps_from_enforcing && (problem.guard.empty() || problem.guard == status.guard))
        status.because.push_back(fmt::format("{}{}{}", problem.object,
                                             problem.object.empty() ? "" : ": ", problem.problem));
    }
    if (status.mode == "observe")
      status.because.emplace_back("the mode is observe, which judges nothing: run in shadow first");
    if (number("has_fence") == 0)
      status.because.emplace_back("no token has been seen yet: no writer sends one");
    if (number("tokenless_since") > 0)
      status.because.push_back(
          fmt::format("somebody writes without a token, seen {} times since {}",
                      number("tokenless_since"), text("mode_since")));
    if (number("would_refuse_since") > 0 && status.mode != "enforce")
      status.because.push_back(fmt::format("{} writes would have been refused since {}",
                                           number("would_refuse_since"), text("mode_since")));
    status.ready = status.because.empty();
    return status;
  }

  // The version that the script installs, as it says itself.
  static std::string_view offered_version() {
    constexpr std::string_view kBefore = "_insist_on_upgrade('";
    const std::string_view file = maria_install_file();
    PAWL_ASSERT(file.find(kBefore) != file.npos);
    const std::size_t from = file.find(kBefore) + kBefore.size();
    return file.substr(from, file.find('\'', from) - from);
  }

  [[nodiscard]] std::string quoted(const std::string& text) const {
    return literal(connection_.get(), text);
  }

  // `orders` is meant in the connection's database.
  [[nodiscard]] std::string qualified(const std::string& table) const {
    return table.find('.') != table.npos || dsn_.database.empty() ? table
                                                                  : dsn_.database + "." + table;
  }

  Result<void> check_rights() {
    const auto found = query(
        "SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'CREATE ROUTINE' "
        "AND "
        "grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')");
    if (!found) return found.error();
    if (found->rows.empty())
      return Error{Code::kDenied,
                   "an account with all rights, such as root, installs and uninstalls it"};
    return {};
  }

  Result<MariaOutcome> query(const std::string& sql) {
    auto done = execute(connection_.get(), sql);
    if (!done) return to_error(*done.failure);
    return done;
  }

  Result<MariaOutcome> ask(std::string_view procedure, const std::vector<MariaValue>& values) {
    auto done = call(connection_.get(), procedure, values);
    if (!done) return to_error(*done.failure);
    return done;
  }

  static Result<void> done_or_error(const Result<MariaOutcome>& done) {
    if (!done) return done.error();
    return {};
  }

  Result<void> run_script(std::string_view script) {
    for (const std::string& statement : statements_of(script)) {
      if (const auto done = query(statement); !done) return done.error();
    }
    return {};
  }

  // A rehearsal is a transaction around the procedure, which then leaves the end to us. What no
  // ROLLBACK undoes, the emergency switch, it leaves alone when it is told.
  Result<void> change(Rehearse rehearse, std::string_view procedure,
                      const std::vector<MariaValue>& values) {
    if (rehearse == Rehearse::kNo) return done_or_error(ask(procedure, values));
    if (const auto told = query("SET @pawl_rehearsal = TRUE"); !told) return told.error();
    if (const auto begun = query("START TRANSACTION"); !begun) return begun.error();
    const auto done = ask(procedure, values);
    const auto taken_back = query("ROLLBACK");
    if (const auto over = query("SET @pawl_rehearsal = NULL"); !over) return over.error();
    return done_or_error(done ? taken_back : done);
  }

  std::shared_ptr<MYSQL> connection_;
  const MariaDsn dsn_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_maria_administration(const std::string& dsn) {
  const auto where = parse_maria_dsn(dsn);
  if (!where) return where.error();
  auto connection = connect(*where);
  if (!connection) return connection.error();
  return std::unique_ptr<Administration>(
      std::make_unique<MariaAdministration>(*std::move(connection), *where));
}

}  // namespace pawl::guard
