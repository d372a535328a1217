#include "drill/scratch.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "conformance/subjects.h"
#include "guard/sqlite/administration.h"

namespace pawl::drill {

Result<TemporaryDirectory> TemporaryDirectory::make() {
  std::error_code failed;
  std::string path = std::filesystem::temp_directory_path(failed) / "pawl-drill-XXXXXX";
  if (!failed && ::mkdtemp(path.data()) != nullptr) return TemporaryDirectory(std::move(path));
  const std::string why = failed ? failed.message() : std::strerror(errno);
  return Error{Code::kUnavailable, "cannot make a temporary directory: " + why + "; set TMPDIR"};
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<ScratchDatabase> ScratchDatabase::make() {
  auto directory = TemporaryDirectory::make();
  if (!directory) return directory.error();
  ScratchDatabase scratch(*std::move(directory));
  std::ofstream(scratch.path()).flush();  // An empty file is an empty database.
  auto administration = guard::open_sqlite(scratch.path());
  if (!administration) return administration.error();
  if (const auto done = (*administration)->install(guard::Rehearse::kNo); !done)
    return done.error();
  auto database = conformance::open_database(kKind, scratch.path());
  if (!database) return database.error();
  // Drills need several writers at once.
  if (const auto done = (*database)->run("PRAGMA journal_mode = WAL"); !done) return done.error();
  return scratch;
}

}  // namespace pawl::drill
