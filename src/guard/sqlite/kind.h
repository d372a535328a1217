// A SQLite file as a kind of guard.
#pragma once

#include <memory>
#include <string>

#include "guard/kind.h"
#include "guard/sql/scratch_names.h"

struct sqlite3;

namespace pawl::guard {

extern const Kind kSqliteKind;

// Its parts.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_sqlite_administration(
    const std::string& path);
[[nodiscard]] std::unique_ptr<Session> make_sqlite_session(std::shared_ptr<sqlite3> db,
                                                           const ScratchNames& names);

}  // namespace pawl::guard
