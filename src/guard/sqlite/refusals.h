// Refusals on their way into the tables. What was refused is rolled back, and programs often end
// right then; so a refusal is first a line in a file beside the database, FILE-pawl-refusals, and
// is taken into pawl_count and pawl_refusal when its transaction is over, or when someone asks for
// the status.
//
// Both happen under SQLite's write lock, so no other connection touches the file meanwhile. A
// process that dies between the commit and the truncation lets its lines be counted twice: counters
// are for people.
#pragma once

#include <string>

#include "guard/sqlite/store.h"

namespace pawl::sqlite {

// `path`: of the database; in memory (empty) nothing is kept. Never fails loudly: the refusal
// itself matters more.
void note_refusal(const std::string& path, const Refusal& refusal) noexcept;
// Through a connection of its own. What cannot be taken now (someone writes) stays for the next
// time.
void import_refusals(const std::string& path) noexcept;
// Removes the file, when the guard is uninstalled.
void forget_refusals(const std::string& path);

}  // namespace pawl::sqlite
