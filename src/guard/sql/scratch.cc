#include "guard/sql/scratch.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "guard/sql/scratch_abilities.h"

namespace pawl::guard {
namespace {

constexpr const char* kReason = "conformance";

class SqlScratch final : public ScratchSpace {
 public:
  SqlScratch(std::unique_ptr<SqlDatabase> database, ScratchNames names)
      : database_(std::move(database)),
        names_(std::move(names)),
        able_(abilities_of(database_->traits(), {}, names_.form)) {}

  // As far as it can; the names of what stays behind say where it came from.
  ~SqlScratch() override {
    while (!guards_.empty()) drop(std::string(*guards_.begin()));
    static_cast<void>(database_->run("DROP TABLE IF EXISTS " + names_.common_table()));
    if (!names_.schema.empty())
      static_cast<void>(database_->run("DROP SCHEMA IF EXISTS " + names_.schema));
  }

  Result<void> prepare() {
    if (const auto fit = database_->inspect(); !fit) return fit.error();
    able_ = abilities_of(database_->traits(), database_->lacks_here(), names_.form);
    if (!names_.schema.empty()) {
      if (const auto made = database_->run("CREATE SCHEMA " + names_.schema); !made)
        return made.error();
    }
    return make_table(names_.common_table(), Layout::kLines, database_->traits().key_type);
  }

  [[nodiscard]] std::string name() const override {
    const std::string remark = database_->remark(names_.layout_of(names_.name));
    return fmt::format("{} {}{}", database_->traits().kind, to_text(names_.form),
                       remark.empty() ? "" : " (" + remark + ")");
  }
  [[nodiscard]] Abilities abilities() const override { return able_.abilities; }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    const auto found = able_.lacks.find(ability);
    return found == able_.lacks.end() ? std::string() : found->second;
  }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    std::vector<std::string> resources;
    while (resources.size() < count) {
      const auto made = fresh_guard(policy, database_->traits().key_type);
      if (!made) return made.error();
      const std::string& guard = *made;
      if (!names_.keyed()) resources.push_back(guard);
      for (std::size_t i = 1; names_.keyed() && i <= count; ++i)
        resources.push_back(fmt::format("{}:k{}", guard, i));
    }
    return resources;
  }

  Result<std::vector<std::string>> fresh_spellings(const Policy& policy) override {
    const auto guard = fresh_guard(policy, database_->traits().loose_key_type);
    if (!guard) return guard.error();
    std::vector<std::string> names;
    for (const std::string_view spelling : database_->traits().spellings)
      names.push_back(fmt::format("{}:{}", *guard, spelling));
    return names;
  }

  Result<std::string> bare() override { return names_.bare(++made_); }

  Result<std::unique_ptr<Session>> open() override { return database_->open(names_); }

  // Catalogs that grow make every guard dearer.
  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : resources) drop(ScratchNames::guard_of(resource));
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    return change(resource, policy, Rehearse::kNo);
  }
  Result<void> rehearse_policy(const std::string& resource, const Policy& policy) override {
    return change(resource, policy, Rehearse::kYes);
  }
  Result<void> rehearse_compact(const std::string& resource, std::uint64_t below) override {
    return administration().compact(ScratchNames::guard_of(resource), below, Rehearse::kYes);
  }
  Result<void> make_unreachable(const std::string& resource) override {
    const auto made = database_->make_unreachable(names_.table_of(resource));
    if (!made) return made.error();
    undo_[ScratchNames::guard_of(resource)] = *made;
    return {};
  }
  Result<std::optional<std::string>> enclose(const std::string& resource) override {
    const std::string larger = names_.larger(resource);
    const auto made = database_->enclose(names_.table_of(resource), names_.table_of(larger));
    if (!made) return made.error();
    if (!*made) return std::optional<std::string>{};
    undo_[ScratchNames::guard_of(resource)] = **made;
    return std::optional<std::string>(larger);
  }

  Result<void> emergency(const std::string& resource) override {
    return administration().emergency(ScratchNames::guard_of(resource), kReason);
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return administration().compact(ScratchNames::guard_of(resource), below, Rehearse::kNo);
  }
  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    return administration().fence(resource);
  }
  Result<std::vector<Effect>> effects(const std::string& resource) override {
    return database_->effects(names_.table_of(resource), names_.layout_of(resource),
                              names_.key_of(resource));
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto status = administration().status(ScratchNames::guard_of(resource));
    if (!status) return status.error();
    PAWL_ASSERT(status->size() == 1);  // A guard that is not there is an error.
    const Status& now = status->front();
    return Counts{now.replayed, now.stale, now.missing, now.ahead, now.would_refuse};
  }

 private:
  Administration& administration() { return database_->administration(); }

  Result<void> make_table(const std::string& table, Layout layout, std::string_view key_type) {
    return database_->run(
        fmt::format("CREATE TABLE {} ({})", table, database_->columns(layout, key_type)));
  }

  Result<std::string> fresh_guard(const Policy& policy, std::string_view key_type) {
    std::string guard = names_.guard(++made_);
    guards_.insert(guard);
    if (const auto made = make_guard(guard, key_type); !made) return made.error();
    if (const auto set = set_policy(guard, policy); !set) return set.error();
    return guard;
  }

  Result<void> change(const std::string& resource, const Policy& policy, Rehearse rehearse) {
    const std::string guard = ScratchNames::guard_of(resource);
    ModeChange mode{guard, std::string(to_text(policy.mode)), {}, kReason};
    if (policy.mode == GuardMode::kCanary) mode.percent = policy.percent;
    PolicyChange rest{guard, policy.require_token, {}, policy.max_step, {}, kReason};
    if (abilities().has(Ability::kEqualOnce)) rest.equal = to_text(policy.equal);
    if (const auto done = administration().set_policy(rest, rehearse); !done) return done.error();
    return administration().set_mode(mode, rehearse);
  }

  Result<void> make_guard(const std::string& guard, std::string_view key_type) {
    if (!names_.watched())
      return database_->run(
          fmt::format("{}create_guard('{}', {})", database_->traits().call, guard, names_.keyed()));
    Protection wanted{.table = names_.table_of(guard), .guard = guard};
    if (const auto made = make_table(wanted.table, names_.layout_of(guard), key_type); !made)
      return made.error();
    if (names_.form == Form::kRow) wanted.key = "resource";
    if (names_.form == Form::kBy) wanted.by = database_->traits().by;
    const auto done = administration().protect(wanted, Rehearse::kNo);
    if (!done) return done.error();
    return {};
  }

  void drop(const std::string& guard) {
    if (guards_.erase(guard) == 0) return;
    if (auto undo = undo_.extract(guard)) {
      for (const std::string& sql : undo.mapped()) static_cast<void>(database_->run(sql));
    }
    if (names_.watched()) {
      const std::string table = names_.table_of(guard);
      static_cast<void>(administration().unprotect(table, Rehearse::kNo));
      static_cast<void>(database_->run("DROP TABLE IF EXISTS " + table));
    }
    static_cast<void>(
        database_->run(fmt::format("{}drop_guard('{}')", database_->traits().call, guard)));
  }

  const std::unique_ptr<SqlDatabase> database_;
  const ScratchNames names_;
  ScratchAbilities able_;
  std::set<std::string> guards_;                          // that there are now
  std::map<std::string, std::vector<std::string>> undo_;  // of make_unreachable() and enclose()
  std::uint64_t made_ = 0;
};

Result<Form> need_form(std::string_view text) {
  if (const auto form = parse_form(text)) return *form;
  return Error{Code::kInvalid, fmt::format("unknown form \"{}\" of a guard in a database", text)};
}

}  // namespace

Result<std::vector<std::string>> SqlDatabase::make_unreachable(const std::string&) {
  return Error{Code::kInvalid, "an advance always reaches its fence here"};
}

Result<std::optional<std::vector<std::string>>> SqlDatabase::enclose(const std::string&,
                                                                     const std::string&) {
  return Error{Code::kInvalid, "a table cannot become a part of another here"};
}

Result<std::unique_ptr<ScratchSpace>> open_sql_scratch(std::unique_ptr<SqlDatabase> database,
                                                       std::string_view form) {
  const auto known = need_form(form);
  if (!known) return known.error();
  SystemRandom random;  // Two spaces in one database must not share names.
  ScratchNames names{*known, fmt::format("pawl_conformance_{:08x}", random.next() & 0xffff'ffff),
                     ""};
  if (database->traits().schemas) names.schema = names.name;
  auto space = std::make_unique<SqlScratch>(std::move(database), std::move(names));
  if (const auto ready = space->prepare(); !ready) return ready.error();
  return std::unique_ptr<ScratchSpace>(std::move(space));
}

Result<std::unique_ptr<Session>> open_sql_session(std::unique_ptr<SqlDatabase> database,
                                                  const SessionRequest& request) {
  if (request.scratch_resource.empty()) {
    // No resource has this name, so none is taken for a bare one.
    return database->open({request.watched ? Form::kTable : Form::kAdmit, "\n", ""});
  }
  const auto form = need_form(request.form);
  if (!form) return form.error();
  ScratchNames names = ScratchNames::around(*form, request.scratch_resource);
  if (database->traits().schemas) names.schema = names.name;
  return database->open(names);
}

}  // namespace pawl::guard
