#include "drill/scratch_database.h"

#include <fstream>

#include "conformance/subjects.h"
#include "guard/sqlite/administration.h"

namespace pawl::drill {

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
