// PostgreSQL as a kind of guard.
#pragma once

#include <memory>
#include <string>

#include "guard/kind.h"
#include "guard/sql/scratch_names.h"

struct pg_conn;

namespace pawl::guard {

extern const Kind kPostgresKind;

// Its parts; `dsn` as in connection.h.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_postgres_administration(
    const std::string& dsn);
[[nodiscard]] std::unique_ptr<Session> make_postgres_session(std::shared_ptr<pg_conn> connection,
                                                             const ScratchNames& names);

}  // namespace pawl::guard
