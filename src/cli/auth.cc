// pawl auth: the users of a pawld. It edits the file; pawld reads it again on SIGHUP.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "auth/users_disk.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

constexpr const char* kHeader =
    "# The users of pawld: name role secret [prefix]...  Written by `pawl auth`, read by pawld at "
    "start and on SIGHUP.\n";
constexpr const char* kTakesEffect =
    "Takes effect after a restart or reload of pawld: systemctl reload pawld, or kill -HUP its "
    "pid.";

struct AuthArguments {
  std::string user;
  std::string role;
  std::vector<std::string> prefixes;
  std::string file;
};

void declare_file(Verb& verb, AuthArguments& options) {
  verb.text("--file", "FILE", options.file, "the auth_file of pawld");
  verb.must_have("--file");
}

// Why the user cannot be added to the file as it is.
std::optional<Error> objection(const std::vector<auth::User>& users, const AuthArguments& options) {
  const bool known = std::any_of(users.begin(), users.end(),
                                 [&](const auth::User& user) { return user.name == options.user; });
  if (known) {
    return Error{Code::kInvalid,
                 fmt::format("{} already has a user {}; for a new secret or role remove it first: "
                             "pawl auth rm {} --file {}",
                             options.file, options.user, options.user, options.file)};
  }
  if (users.size() >= auth::kUsersMax)
    return Error{Code::kInvalid,
                 fmt::format("{}: at most {} users", options.file, auth::kUsersMax)};
  return std::nullopt;
}

std::optional<std::string> problem_with(const AuthArguments& options) {
  if (auto problem = auth::problem_with_name(options.user)) return problem;
  for (const std::string& prefix : options.prefixes) {
    if (auto problem = auth::problem_with_prefix(prefix)) return problem;
  }
  return auth::problem_with_prefixes_of(*auth::role_from_text(options.role),
                                        options.prefixes.size());
}

int add(Console& console, const AuthArguments& options) {
  if (const auto problem = problem_with(options)) return console.fail({Code::kInvalid, *problem});
  SystemRandom random;
  const std::string secret = auth::new_secret(random);
  const auth::User user{options.user, *auth::role_from_text(options.role),
                        auth::digest_of(secret, random), options.prefixes};
  bool objected = false;
  const auto change = [&](std::string_view old) -> Result<std::string> {
    const auto users = auth::parse_users(old, options.file);
    if (!users) return users.error();
    if (auto why = objection(*users, options)) {
      objected = true;
      return *std::move(why);
    }
    return auth::with_user(old.empty() ? kHeader : old, user);
  };
  const auto changed = auth::change_file(options.file, auth::WhenMissing::kCreate, change);
  if (!changed) return console.fail(changed.error(), objected ? kExitUsage : kExitConfiguration);
  bool written = false;
  if (console.json()) {
    Json json;
    json.object().key("user").string(user.name).key("secret").string(secret);
    json.key("role").string(options.role).key("prefixes").array();
    for (const std::string& prefix : user.prefixes) json.string(prefix);
    written = console.data(json.end().end());
  } else {
    written = console.data(fmt::format("{}:{}\n", user.name, secret));
    console.note(
        "The secret is shown only once. Keep it where only its user can read it, and use it with "
        "PAWL_AUTH or --auth-file.");
    console.note(kTakesEffect);
  }
  return written ? kExitOk : kExitOutput;
}

int list(Console& console, const AuthArguments& options) {
  const auto users = auth::load_users(options.file);
  if (!users) return console.fail(users.error(), kExitConfiguration);
  if (console.json()) {
    Json json;
    json.object().key("users").array();
    for (const auth::User& user : *users) {
      json.object().key("user").string(user.name).key("role").string(wire::to_text(user.role));
      json.key("prefixes").array();
      for (const std::string& prefix : user.prefixes) json.string(prefix);
      json.end().end();
    }
    return console.data(json.end().end()) ? kExitOk : kExitOutput;
  }
  std::size_t width = 4;
  for (const auth::User& user : *users) width = std::max(width, user.name.size());
  std::string text = fmt::format("{:{}}  {:7}  PREFIXES\n", "USER", width, "ROLE");
  for (const auth::User& user : *users) {
    text += fmt::format(
        "{:{}}  {:7}  {}\n", user.name, width, wire::to_text(user.role),
        user.prefixes.empty() ? "(all)" : fmt::format("{}", fmt::join(user.prefixes, ", ")));
  }
  return console.data(text) ? kExitOk : kExitOutput;
}

int remove(Console& console, const AuthArguments& options) {
  bool found = false;
  const auto change = [&](std::string_view old) -> Result<std::string> {
    const auto users = auth::parse_users(old, options.file);
    if (!users) return users.error();
    std::string changed = auth::without_user(old, options.user);
    found = changed.size() != old.size();
    return changed;
  };
  const auto changed = auth::change_file(options.file, auth::WhenMissing::kRefuse, change);
  if (!changed) return console.fail(changed.error(), kExitConfiguration);
  if (console.json()) {
    Json json;
    json.object().key("user").string(options.user).key("removed").boolean(found).end();
    if (!console.data(json)) return kExitOutput;
  } else if (found) {
    console.note(fmt::format("removed. {} Leases stay until they end.", kTakesEffect));
  } else {
    console.note(fmt::format("pawl: {} has no such user; nothing was changed", options.file));
  }
  return found ? kExitOk : kExitNothingDone;
}

void declare_add(CommandLine& line) {
  auto options = std::make_shared<AuthArguments>();
  Verb verb = line.verb("auth", "add", "add a user and print its secret once", Talks::kToNobody);
  verb.required("USER", options->user, "its name: 1 to 64 of A-Z a-z 0-9 . _ @ -");
  verb.choice("--role", options->role, {"observe", "use", "admin", "backup"},
              "observe: read; use: also acquire locks; admin: also break, raise and back up; "
              "backup: only back up (and STATUS, PING)");
  verb.texts("--prefix", "PREFIX", options->prefixes,
             "only these locks, by path segment: a/b matches a/b and a/b/c, not a/bc; repeatable");
  declare_file(verb, *options);
  verb.examples(
      "  pawl auth add ci --role use --prefix ci --file users > ci.auth    the file is created "
      "with mode 0600\n"
      "  pawl status --auth-file ci.auth\n"
      "  PAWL_AUTH=$(cat ci.auth) pawl run ci/deploy -- ./deploy.sh\n"
      "  pawl auth add backup --role backup --file users > backup.auth    for a timer or cron");
  verb.run([options](Console& console) { return add(console, *options); });
}

void declare_ls(CommandLine& line) {
  auto options = std::make_shared<AuthArguments>();
  Verb verb = line.verb("auth", "ls", "list the users, their roles and prefixes", Talks::kToNobody);
  declare_file(verb, *options);
  verb.examples(
      "  pawl auth ls --file users\n  pawl auth ls --file users --json | jq -r '.users[].user'");
  verb.run([options](Console& console) { return list(console, *options); });
}

void declare_rm(CommandLine& line) {
  auto options = std::make_shared<AuthArguments>();
  Verb verb = line.verb("auth", "rm", "remove a user", Talks::kToNobody);
  verb.required("USER", options->user, "its name");
  declare_file(verb, *options);
  verb.examples("  pawl auth rm ci --file users && kill -HUP $(pidof pawld)");
  verb.run([options](Console& console) { return remove(console, *options); });
}

}  // namespace

void add_auth(CommandLine& line) {
  line.group(
      "auth", "the users of a pawld: add, list, remove",
      "Examples:\n"
      "  pawl auth add boss --role admin --file users      prints boss:SECRET, once\n"
      "  pawld --auth-file users                           serves only the users in it\n"
      "  PAWL_AUTH=boss:SECRET pawl status\n"
      "  kill -HUP $(pidof pawld)                          after a change: read the file again\n"
      "It edits the file and does not connect to pawld. Other lines and comments are kept.\n"
      "Exit codes: 0 done, 1 no such user, 64 usage, 78 the file cannot be read or written.");
  declare_add(line);
  declare_ls(line);
  declare_rm(line);
}

}  // namespace pawl::cli
