// MariaDB as a kind of guard.
#pragma once

#include <memory>
#include <string>

#include "guard/kind.h"
#include "guard/sql/scratch_names.h"

struct st_mysql;

namespace pawl::guard {

extern const Kind kMariaKind;

// Its parts; `dsn` as in dsn.h. MariaDB commits at every CREATE and DROP, so a rehearsal of those
// checks what can be checked and runs nothing. Evicting open transactions takes a second
// connection, which finds out what the first one waits for.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_maria_administration(
    const std::string& dsn);
// Its default isolation is READ COMMITTED, not the server's: a new token inside a REPEATABLE READ
// transaction has to be advanced to first, which is a conformance case of its own.
[[nodiscard]] std::unique_ptr<Session> make_maria_session(std::shared_ptr<st_mysql> connection,
                                                          const ScratchNames& names);

}  // namespace pawl::guard
