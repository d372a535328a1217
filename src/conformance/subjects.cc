#include "conformance/subjects.h"

#include <fmt/format.h>

#include <utility>

#include "conformance/sql_subject.h"

namespace pawl::conformance {

Result<std::unique_ptr<SqlDatabase>> open_database(std::string_view kind,
                                                   const std::string& where) {
  struct Known {
    std::string_view kind;
    Result<std::unique_ptr<SqlDatabase>> (*open)(const std::string& where);
  };
  static constexpr Known kKnown[] = {{"postgres", open_postgres_database},
                                     {"sqlite", open_sqlite_database},
                                     {"mariadb", open_maria_database}};
  for (const Known& known : kKnown) {
    if (kind == known.kind) return known.open(where);
  }
  return Error{Code::kInvalid,
               fmt::format("there is no guard of ours in \"{}\": postgres, sqlite, mariadb", kind)};
}

Result<std::unique_ptr<Subject>> start_subject(std::string_view kind, const std::string& where,
                                               Form form) {
  auto database = open_database(kind, where);
  if (!database) return database.error();
  return make_sql_subject(*std::move(database), form);
}

Result<std::unique_ptr<Session>> open_session(std::string_view kind, const std::string& where,
                                              Form form, const std::string& resource) {
  auto database = open_database(kind, where);
  if (!database) return database.error();
  Place place = Place::around(form, resource);
  if ((*database)->traits().schemas) place.schema = place.name;
  return (*database)->open(place);
}

Result<std::unique_ptr<Session>> open_session(std::string_view kind, const std::string& where,
                                              Form form) {
  auto database = open_database(kind, where);
  if (!database) return database.error();
  return (*database)->open(
      {form, "\n", ""});  // No resource is named so: none is taken for a bare one.
}

}  // namespace pawl::conformance
