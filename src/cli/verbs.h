// The verbs of pawl. Each function declares a verb with its options and action; see command_line.h.
#pragma once

namespace pawl::cli {

class CommandLine;
class Console;

void add_run(CommandLine& line);
void add_elect(CommandLine& line);
void add_acquire(CommandLine& line);
void add_renew(CommandLine& line);
void add_release(CommandLine& line);
void add_show(CommandLine& line);
void add_ls(CommandLine& line);
void add_watch(CommandLine& line);
void add_history(CommandLine& line);
void add_ask(CommandLine& line);
void add_break(CommandLine& line);
void add_raise(CommandLine& line);
void add_backup(CommandLine& line);
void add_handover(CommandLine& line);
void add_status(CommandLine& line);
void add_auth(CommandLine& line);
void add_guard(CommandLine& line);
void add_gate(CommandLine& line);
void add_drill(CommandLine& line);
void add_drill_worker(CommandLine& line);
void add_demo(CommandLine& line);
void add_version(CommandLine& line);
// What `pawl version` and `pawl --version` print. The exit code.
int print_version(Console& console);
void add_help(CommandLine& line);
void add_completion(CommandLine& line);
void add_manual(CommandLine& line);

}  // namespace pawl::cli
