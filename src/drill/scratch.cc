#include "drill/scratch.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/assert.h"

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

Result<ScratchDatabase> ScratchDatabase::make(const guard::Kind& kind) {
  PAWL_ASSERT(kind.create != nullptr);
  auto directory = TemporaryDirectory::make();
  if (!directory) return directory.error();
  ScratchDatabase scratch(*std::move(directory));
  if (const auto done = kind.create(scratch.path()); !done) return done.error();
  return scratch;
}

}  // namespace pawl::drill
