// Pawl's own guards as Subjects, by the words that users name them with.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "conformance/sql_database.h"
#include "conformance/sql_place.h"
#include "conformance/subject.h"

namespace pawl::conformance {

// `kind`: postgres, sqlite, mariadb. `where`: a DSN, or a file. The guard must be installed there.
// It makes tables and guards of its own, named pawl_conformance_…, and removes them at its end.
//   postgres  effects are in the order of commits where the server records it (track_commit_timestamp), else in that of
//             inserts, which shows less; name() tells which
//   sqlite    the file must be in WAL mode (kInvalid): with a rollback journal an open reader keeps others from committing
//   mariadb   effects are in the order of inserts
[[nodiscard]] Result<std::unique_ptr<Subject>> start_subject(std::string_view kind,
                                                             const std::string& where, Form form);

// The database alone, for who makes tables of his own there.
[[nodiscard]] Result<std::unique_ptr<SqlDatabase>> open_database(std::string_view kind,
                                                                 const std::string& where);

// A writer to a resource that a Subject of this form has made there, perhaps in another process, by
// fresh() or bare().
[[nodiscard]] Result<std::unique_ptr<Session>> open_session(std::string_view kind,
                                                            const std::string& where, Form form,
                                                            const std::string& resource);
// A writer to what users have put under guard themselves: admit() asks as a table with triggers
// wants it (kTable), or as create_guard() does (kAdmit), and execute() does what is to be done;
// there is no log to apply() to.
[[nodiscard]] Result<std::unique_ptr<Session>> open_session(std::string_view kind,
                                                            const std::string& where, Form form);

}  // namespace pawl::conformance
