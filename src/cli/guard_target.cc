#include "cli/guard_target.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/shell_word.h"

namespace pawl::cli {

namespace {

constexpr const char* kKindHelp = "what it is installed in";

std::vector<std::string> kind_choices() {
  std::vector<std::string> names;
  for (const guard::Kind* kind : guard::all_kinds()) names.emplace_back(kind->name);
  return names;
}

// "sqlite": the kinds whose place is a file.
std::string file_kinds() {
  std::string names;
  for (const guard::Kind* kind : guard::all_kinds()) {
    if (kind->location != guard::Location::kFile) continue;
    names += (names.empty() ? "" : ", ") + std::string(kind->name);
  }
  return names;
}

void declare_where(Verb& verb, std::string& dsn, std::string& file) {
  verb.text(
      "--dsn", "DSN", dsn,
      "where: a URI or key=value pairs (PAWL_GUARD_DSN; else PGHOST, PGDATABASE, PGSERVICE, …, or "
      "~/.my.cnf). Put passwords into ~/.pgpass, ~/.my.cnf, for redis REDISCLI_AUTH or for etcd "
      "ETCDCTL_PASSWORD, and keys of s3 and dynamodb into AWS_ACCESS_KEY_ID and "
      "AWS_SECRET_ACCESS_KEY or "
      "~/.aws/credentials, not here");
  verb.text("--file", "PATH", file, (file_kinds() + ": where, the same as --dsn").c_str());
  verb.not_both("--file", "--dsn");
}

}  // namespace

void GuardTarget::declare(Verb& verb) {
  verb.choice("KIND", kind, kind_choices(), kKindHelp);
  declare_where(verb, dsn, file);
}

void GuardTarget::declare_optional(Verb& verb) {
  verb.optional_choice("KIND", kind, kind_choices(), kKindHelp);
  declare_where(verb, dsn, file);
}

void GuardTarget::declare_option_of_run(Verb& verb) {
  verb.hidden_flag("--for-run", for_run);
}

std::string GuardTarget::where() const {
  const char* environment = std::getenv("PAWL_GUARD_DSN");
  if (!file.empty()) return file;
  return !dsn.empty() ? dsn : environment == nullptr ? "" : environment;
}

std::string GuardTarget::command(std::string_view words) const {
  const std::string place = !file.empty()  ? " --file " + shell_word(file)
                            : !dsn.empty() ? std::string(" --dsn DSN")
                                           : "";
  return printable(fmt::format("pawl guard {}{}", words, place));
}

Result<std::unique_ptr<guard::Administration>> GuardTarget::connect() const {
  const auto known = guard::need_kind(kind);
  if (!known) return known.error();
  if ((*known)->location == guard::Location::kFile) {
    if (where().empty())
      return Error{Code::kInvalid, fmt::format("no file: name it with {} or PAWL_GUARD_DSN.",
                                               for_run ? "--guard-dsn" : "--file, --dsn")};
    return (*known)->open_administration(where());
  }
  if (!file.empty())
    return Error{Code::kInvalid,
                 fmt::format("--file is for {}; other kinds are named with --dsn", file_kinds())};
  auto connected = (*known)->open_administration(where());
  if (connected || connected.error().code != Code::kUnavailable) return connected;
  const std::string& why = connected.error().detail;
  return Error{Code::kUnavailable,
               fmt::format("{}{} Name the database with {} or PAWL_GUARD_DSN.", why,
                           why.ends_with('.') ? "" : ".", for_run ? "--guard-dsn" : "--dsn")};
}

Result<std::unique_ptr<guard::Administration>> GuardTarget::open() const {
  auto opened = connect();
  if (!opened) return opened;
  const auto installed = (*opened)->installed();
  if (!installed) return installed.error();
  if (!*installed) {
    return Error{Code::kInvalid, fmt::format("no guard is installed here. Install it with: {}",
                                             command("install " + kind))};
  }
  if ((*installed)->contract != kGuardContract) {
    return Error{
        Code::kInvalid,
        fmt::format(
            "guard {} is installed here, with contract version {}; this pawl knows version {}. {}",
            (*installed)->version, (*installed)->contract, kGuardContract,
            (*installed)->contract < kGuardContract
                ? fmt::format("Upgrade it with: {}", command("install " + kind))
                : "Use a newer pawl.")};
  }
  return opened;
}

Result<std::unique_ptr<guard::Administration>> GuardTarget::open(
    const ChangeOptions& change) const {
  auto opened = open();
  if (!opened || !change.dry_run || (*opened)->can(guard::Task::kRehearse)) return opened;
  return Error{Code::kInvalid, fmt::format("--dry-run: a guard in {} cannot rehearse a change",
                                           (*opened)->title())};
}

void ChangeOptions::declare_dry_run(Verb& verb) {
  verb.flag("--dry-run", dry_run, "check everything, change nothing");
}

void ChangeOptions::declare_yes(Verb& verb) {
  verb.flag("--yes", yes, "do not ask");
}

int report_change(Console& console, const ChangeOptions& options, std::string_view done,
                  std::string_view would) {
  if (console.json()) {
    Json json;
    json.object().key("done").boolean(!options.dry_run).key("dry_run").boolean(options.dry_run);
    json.key("change").string(options.dry_run ? would : done).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  return console.data(fmt::format("{}\n", options.dry_run ? would : done)) ? kExitOk : kExitOutput;
}

}  // namespace pawl::cli
