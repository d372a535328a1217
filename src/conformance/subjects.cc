#include "conformance/subjects.h"

#include <fmt/format.h>

#include <utility>

#include "conformance/sql_subject.h"

namespace pawl::conformance {

Result<std::unique_ptr<Subject>> start_subject(std::string_view kind, const std::string& where, Form form) {
  struct Known {
    std::string_view kind;
    Result<std::unique_ptr<SqlDatabase>> (*open)(const std::string& where);
  };
  static constexpr Known kKnown[] = {{"postgres", open_postgres_database},
                                     {"sqlite", open_sqlite_database},
                                     {"mariadb", open_maria_database}};
  for (const Known& known : kKnown) {
    if (kind != known.kind) continue;
    auto database = known.open(where);
    if (!database) return database.error();
    return make_sql_subject(*std::move(database), form);
  }
  return Error{Code::kInvalid,
               fmt::format("there is no guard of ours in \"{}\": postgres, sqlite, mariadb", kind)};
}

}  // namespace pawl::conformance
