// pawl backup: a copy of everything, made by pawld on its own machine.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

// A large store on a slow disk takes its time; whoever loses patience earlier can interrupt.
constexpr std::chrono::hours kPatience{24};

struct BackupArguments {
  std::string directory;
};

int backup(Console& console, const BackupArguments& options) {
  if (!options.directory.starts_with('/')) {
    return console.fail(
        Error{Code::kInvalid,
              fmt::format("\"{}\": DIR must be absolute: it is a path on the machine of pawld",
                          options.directory)},
        kExitUsage);
  }
  console.progress("pawld copies its store …");
  console.be_patient(kPatience);
  const auto reply =
      console.ask({"BACKUP", options.directory}, client::CommandCall::Repeat::kForbidden);
  console.end_progress();
  if (!reply) return console.fail(reply.error());
  if (console.json()) {
    Json json;
    json.value(*reply);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  const std::string text =
      fmt::format("{}: {} records in {} files, {} bytes, read back; last token {}\n",
                  text_of(*reply, "dir"), text_of(*reply, "records"), text_of(*reply, "files"),
                  text_of(*reply, "bytes"), text_of(*reply, "last_token"));
  return console.data(text) ? kExitOk : kExitOutput;
}

}  // namespace

void add_backup(CommandLine& line) {
  auto options = std::make_shared<BackupArguments>();
  Verb verb = line.verb("backup",
                        "copy everything that is durable into a new directory, while pawld serves",
                        Talks::kToPawld);
  verb.required("DIR", options->directory,
                "absolute path on the machine of pawld; it must not exist, its parent must");
  verb.examples(
      "  pawl backup /var/backups/pawl/$(date -u +%Y-%m-%dT%H%M%SZ)\n"
      "  pawld verify --data /var/backups/pawl/2026-11-16T031700Z\n"
      "  pawld restore --from /var/backups/pawl/2026-11-16T031700Z --data /var/lib/pawl\n"
      "It needs the role backup or admin. The package has a timer for it: pawl-backup.timer.");
  verb.run([options](Console& console) { return backup(console, *options); });
}

}  // namespace pawl::cli
