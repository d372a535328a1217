// Which guard a `pawl guard` verb talks to: what it is installed in, and where that is.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "guard/administration.h"

namespace pawl::cli {

struct GuardTarget {
  std::string kind;  // postgres, sqlite, mariadb
  std::string dsn;   // empty: PAWL_GUARD_DSN, else the database's own environment and files
  std::string file;  // sqlite: instead

  // The first word behind the verb, and --dsn or --file.
  void declare(Verb& verb);
  // The same for a verb that can do without.
  void declare_optional(Verb& verb);
  // --file or --dsn, else PAWL_GUARD_DSN, else nothing, which leaves it to libpq or libmariadb.
  [[nodiscard]] std::string where() const;
  [[nodiscard]] Result<std::unique_ptr<guard::Administration>> connect() const;
  // Connects, and makes sure that what is installed there keeps the contract this pawl knows.
  [[nodiscard]] Result<std::unique_ptr<guard::Administration>> open() const;
};

// What is common to verbs that change something.
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
int tell_change(Console& console, const ChangeOptions& options, std::string_view done,
                std::string_view would);

}  // namespace pawl::cli
