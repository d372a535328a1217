// A new directory for one test, removed with its content at the end of the scope.
//
//   const TempDirectory directory;
//   write(directory.path() + "/users", …);
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/assert.h"

namespace pawl {

class TempDirectory {
 public:
  // A directory in `parent`, which exists.
  explicit TempDirectory(const std::string& parent = std::filesystem::temp_directory_path())
      : path_(parent + "/pawl-test-XXXXXX") {
    PAWL_ASSERT(::mkdtemp(path_.data()) != nullptr);
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pawl
