// pawl: acquire, look at, and hand on locks from the shell.
#include "base/standard_descriptors.h"
#include "cli/command_line.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  pawl::open_standard_descriptors();
  pawl::cli::CommandLine line;
  pawl::cli::add_run(line);
  pawl::cli::add_elect(line);
  pawl::cli::add_acquire(line);
  pawl::cli::add_renew(line);
  pawl::cli::add_release(line);
  pawl::cli::add_show(line);
  pawl::cli::add_ls(line);
  pawl::cli::add_watch(line);
  pawl::cli::add_history(line);
  pawl::cli::add_ask(line);
  pawl::cli::add_break(line);
  pawl::cli::add_raise(line);
  pawl::cli::add_backup(line);
  pawl::cli::add_handover(line);
  pawl::cli::add_status(line);
  pawl::cli::add_auth(line);
  pawl::cli::add_guard(line);
  pawl::cli::add_gate(line);
  pawl::cli::add_drill(line);
  pawl::cli::add_drill_worker(line);
  pawl::cli::add_demo(line);
  pawl::cli::add_version(line);
  pawl::cli::add_help(line);
  pawl::cli::add_completion(line);
  pawl::cli::add_manual(line);
  return line.main(argc, argv);
}
