// The verbs of `pawl guard`; guard.cc puts them together.
#pragma once

namespace pawl::cli {

class CommandLine;

void add_guard_install(CommandLine& line);
void add_guard_protect(CommandLine& line);
void add_guard_unprotect(CommandLine& line);
void add_guard_drop(CommandLine& line);
void add_guard_check(CommandLine& line);
void add_guard_status(CommandLine& line);
void add_guard_mode(CommandLine& line);
void add_guard_policy(CommandLine& line);
void add_guard_emergency(CommandLine& line);
void add_guard_advance(CommandLine& line);
void add_guard_max(CommandLine& line);
void add_guard_compact(CommandLine& line);
void add_guard_put(CommandLine& line);
void add_guard_get(CommandLine& line);
void add_guard_gc(CommandLine& line);
void add_guard_conformance(CommandLine& line);
void add_guard_uninstall(CommandLine& line);

}  // namespace pawl::cli
