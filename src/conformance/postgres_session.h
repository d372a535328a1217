// One connection to PostgreSQL as a Session.
#pragma once

#include <memory>

#include "conformance/sql_session.h"
#include "guard/postgres/statement.h"

namespace pawl::conformance {

[[nodiscard]] std::unique_ptr<Session> make_postgres_session(std::shared_ptr<PGconn> connection,
                                                             const Place& place);

}  // namespace pawl::conformance
