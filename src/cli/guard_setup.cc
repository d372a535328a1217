// pawl guard install, uninstall, protect, unprotect, drop: what stands under guard.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "base/version.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/guard_verbs.h"
#include "cli/shell_word.h"

namespace pawl::cli {
namespace {

struct Install {
  GuardTarget target;
  ChangeOptions change;
  bool script = false;
};

int print_script(Console& console, const std::string& kind, std::string_view script) {
  if (!console.json()) return console.data(script) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("kind").string(kind).key("script").string(script).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

int install(Console& console, const Install& options) {
  auto opened = options.target.connect();
  if (!opened) return console.fail(opened.error());
  if (options.script) {
    const auto script = (*opened)->script();
    if (!script) return console.fail(script.error());
    return print_script(console, options.target.kind, *script);
  }
  const auto before = (*opened)->installed();
  if (!before) return console.fail(before.error());
  const auto after = (*opened)->install(options.change.rehearse());
  if (!after) return console.fail(after.error());
  const std::string how =
      after->fast_path.empty() ? "" : fmt::format(", fast path in {}", after->fast_path);
  const std::string from = how + (*before ? fmt::format(" (replaces {})", (*before)->version) : "");
  return report_change(console, options.change,
                       fmt::format("installed: guard {}{}", after->version, from),
                       fmt::format("would install guard {}{}", after->version, from));
}

struct Uninstall {
  GuardTarget target;
  ChangeOptions change;
};

int uninstall(Console& console, const Uninstall& options) {
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const auto status = (*opened)->status("");
  if (!status) return console.fail(status.error());
  const std::string what =
      fmt::format("{} guard{} with {} fences and policies", status->size(),
                  status->size() == 1 ? "" : "s", status->size() == 1 ? "its" : "their");
  if (!options.change.dry_run && !options.change.yes) {
    const auto go = confirm(
        console,
        fmt::format("{} would be forgotten: from then on every old token can write, and a guard "
                    "installed later starts from nothing.",
                    what),
        "Uninstall?");
    if (!go) return console.fail(go.error());
    if (!*go) return kExitNothingDone;
  }
  if (const auto done = (*opened)->uninstall(options.change.rehearse()); !done)
    return console.fail(done.error());
  return report_change(console, options.change, "uninstalled: " + what, "would uninstall " + what);
}

struct Protect {
  GuardTarget target;
  ChangeOptions change;
  guard::Protection wanted;
  std::string mode;  // --mode; empty: not given

  [[nodiscard]] bool mode_given() const { return !mode.empty(); }
};

// The mode that the guard is in, which a guard that existed before keeps.
Result<std::string> mode_of(guard::Administration& guards, const std::string& guard,
                            const Protect& options) {
  const auto status = guards.status(guard);
  if (status) return status->front().mode;
  if (options.change.dry_run) return options.wanted.mode;  // It does not exist yet.
  return status.error();
}

int protect(Console& console, const Protect& options) {
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const auto name = (*opened)->protect(options.wanted, options.change.rehearse());
  if (!name) return console.fail(name.error());
  const auto mode = mode_of(**opened, *name, options);
  if (!mode) return console.fail(mode.error());
  const std::string what = fmt::format("{} under guard {}, mode {}",
                                       printable(options.wanted.table), printable(*name), *mode);
  const int ended = report_change(console, options.change, what, "would put " + what);
  if (*mode != options.wanted.mode && options.mode_given()) {
    console.note(
        fmt::format("The guard existed and keeps its mode; to change it: {}",
                    options.target.command(fmt::format("mode {} {} {}", options.target.kind,
                                                       shell_word(*name), options.wanted.mode))));
  }
  if (!console.json() && !options.change.dry_run) {
    const auto advice = (*opened)->access_advice(*name);
    if (!advice) return console.fail(advice.error());
    if (!advice->empty()) console.note(*advice);
  }
  if (!console.json() && !options.change.dry_run && *mode == "observe") {
    console.note(
        fmt::format("Nothing is refused yet. This shows which programs write without a token:\n"
                    "  {}\n"
                    "Then count what would be refused:\n"
                    "  {}",
                    options.target.command("status " + options.target.kind),
                    options.target.command(
                        fmt::format("mode {} {} shadow", options.target.kind, shell_word(*name)))));
  }
  return ended;
}

struct Unprotect {
  GuardTarget target;
  ChangeOptions change;
  std::string table;
};

int unprotect(Console& console, const Unprotect& options) {
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  if (!options.change.dry_run && !options.change.yes) {
    const auto go = confirm(
        console, fmt::format("Writes to {} would no longer be checked.", printable(options.table)),
        "Stop guarding it?");
    if (!go) return console.fail(go.error());
    if (!*go) return kExitNothingDone;
  }
  const auto done = (*opened)->unprotect(options.table, options.change.rehearse());
  if (!done) return console.fail(done.error());
  return report_change(console, options.change, printable(options.table) + " is no longer checked",
                       printable(options.table) + " would no longer be checked");
}

struct Drop {
  GuardTarget target;
  ChangeOptions change;
  std::string guard;
};

int drop(Console& console, const Drop& options) {
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const std::string name = printable(options.guard);
  if (!options.change.dry_run && !options.change.yes) {
    const auto go = confirm(
        console,
        fmt::format("The fences, policy and counters of {} would be forgotten: a guard of that "
                    "name that is made later admits every old token.",
                    name),
        "Drop it?");
    if (!go) return console.fail(go.error());
    if (!*go) return kExitNothingDone;
  }
  if (const auto done = (*opened)->drop(options.guard, options.change.rehearse()); !done)
    return console.fail(done.error());
  return report_change(console, options.change, "dropped: " + name, "would drop " + name);
}

}  // namespace

void add_guard_install(CommandLine& line) {
  auto options = std::make_shared<Install>();
  Verb verb =
      line.verb("guard", "install", "install the guard in a database, or upgrade it in place",
                Talks::kToNobody);
  options->target.declare(verb);
  options->change.declare_dry_run(verb);
  verb.flag("--script", options->script,
            "print what would be run, for psql, mariadb and migration tools");
  verb.examples(
      "  pawl guard install postgres --dsn postgresql:///shop\n"
      "  pawl guard install postgres --script > pawl.sql\n"
      "  pawl guard install mariadb --dsn 'host=127.0.0.1 user=root'\n"
      "No table is guarded yet: run `pawl guard protect` for each of them.");
  verb.run([options](Console& console) { return install(console, *options); });
}

void add_guard_uninstall(CommandLine& line) {
  auto options = std::make_shared<Uninstall>();
  Verb verb = line.verb("guard", "uninstall", "remove the guard from a database, with all fences",
                        Talks::kToNobody);
  options->target.declare(verb);
  options->change.declare_dry_run(verb);
  options->change.declare_yes(verb);
  verb.examples("  pawl guard uninstall postgres --dry-run");
  verb.run([options](Console& console) { return uninstall(console, *options); });
}

void add_guard_protect(CommandLine& line) {
  auto options = std::make_shared<Protect>();
  Verb verb = line.verb("guard", "protect", "put a table under guard", Talks::kToNobody);
  options->target.declare(verb);
  verb.required(
      "TABLE", options->wanted.table,
      "the table, as in SQL: orders, shop.orders; redis, etcd: a key, or 'orders:*'; s3: an "
      "object; dynamodb: a table, or 'shop/order#*'");
  verb.text("--guard", "NAME", options->wanted.guard,
            "the guard's name (default: the table's); several tables may share it");
  verb.text("--key", "COLUMN", options->wanted.key, "each row is a resource of its own, NAME:KEY");
  verb.text("--by", "EXPRESSION", options->wanted.by,
            "rows with the same value are one resource, NAME:VALUE");
  verb.text("--mode", "MODE", options->mode,
            "of a new guard: observe (the default), shadow or enforce");
  verb.not_both("--key", "--by");
  options->change.declare_dry_run(verb);
  verb.examples(
      "  pawl guard protect postgres orders               one lock guards all of it\n"
      "  pawl guard protect postgres accounts --key id    a lock for each row\n"
      "  pawl guard protect postgres lines --by order_id  a lock for each order\n"
      "  pawl guard protect mariadb shop.orders           in MariaDB --by takes a column\n"
      "  pawl guard protect redis 'orders:*'              keys that begin with orders:\n"
      "  pawl guard protect s3 reports/nightly.csv        one object\n"
      "  pawl guard protect dynamodb orders --key '*'     each item of a table");
  verb.run([options](Console& console) {
    if (options->mode_given()) options->wanted.mode = options->mode;
    return protect(console, *options);
  });
}

void add_guard_unprotect(CommandLine& line) {
  auto options = std::make_shared<Unprotect>();
  Verb verb = line.verb("guard", "unprotect", "stop guarding a table", Talks::kToNobody);
  options->target.declare(verb);
  verb.required("TABLE", options->table, "the table, as in SQL");
  options->change.declare_dry_run(verb);
  options->change.declare_yes(verb);
  verb.examples("  pawl guard unprotect postgres orders");
  verb.run([options](Console& console) { return unprotect(console, *options); });
}

void add_guard_drop(CommandLine& line) {
  auto options = std::make_shared<Drop>();
  Verb verb = line.verb("guard", "drop", "forget a guard and its fences; no table may be under it",
                        Talks::kToNobody);
  options->target.declare(verb);
  verb.required("GUARD", options->guard, "its name");
  options->change.declare_dry_run(verb);
  options->change.declare_yes(verb);
  verb.examples(
      "  pawl guard unprotect postgres orders && pawl guard drop postgres orders\n"
      "  pawl guard drop postgres orders --dry-run");
  verb.run([options](Console& console) { return drop(console, *options); });
}

}  // namespace pawl::cli
