// Which guard a verb talks to: its kind, and where it is.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "guard/kinds.h"

namespace pawl::cli {

struct ChangeOptions;

struct GuardTarget {
  std::string kind;  // a name in guard/kinds.h
  std::string dsn;   // empty: PAWL_GUARD_DSN, else the environment and files of its client library
  std::string file;  // instead of dsn, for kinds that are a file
  bool for_run = false;  // called by `pawl run --guard`: errors name the options of run

  // The first word behind the verb, and --dsn or --file.
  void declare(Verb& verb);
  // --for-run, not listed in --help.
  void declare_option_of_run(Verb& verb);
  // The same as declare(), for a verb that does not always need a guard.
  void declare_optional(Verb& verb);
  // --file or --dsn, else PAWL_GUARD_DSN, else empty, which leaves it to the kind's client library.
  [[nodiscard]] std::string where() const;
  // A command for the same place, to be printed: "pawl guard WORDS", and --file or --dsn where
  // the place was given so. The DSN itself is not repeated: it may contain a password.
  [[nodiscard]] std::string command(std::string_view words) const;
  [[nodiscard]] Result<std::unique_ptr<guard::Administration>> connect() const;
  // Connects, and makes sure that what is installed there keeps the contract this pawl knows.
  [[nodiscard]] Result<std::unique_ptr<guard::Administration>> open() const;
  // The same for a change; an error also where a dry run is wanted and not possible.
  [[nodiscard]] Result<std::unique_ptr<guard::Administration>> open(
      const ChangeOptions& change) const;
};

// Options of all verbs that change something.
struct ChangeOptions {
  bool dry_run = false;
  bool yes = false;

  void declare_dry_run(Verb& verb);
  void declare_yes(Verb& verb);
  [[nodiscard]] guard::Rehearse rehearse() const {
    return dry_run ? guard::Rehearse::kYes : guard::Rehearse::kNo;
  }
};

// {"done":…,"dry_run":…} or a sentence. The exit code.
int report_change(Console& console, const ChangeOptions& options, std::string_view done,
                  std::string_view would);

}  // namespace pawl::cli
