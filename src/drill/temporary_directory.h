// A directory under $TMPDIR that is removed with everything in it when its owner is destroyed.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "pawl/result.h"

namespace pawl::drill {

class TemporaryDirectory {
 public:
  // kUnavailable: it could not be made, and why.
  static Result<TemporaryDirectory> make() {
    std::error_code failed;
    std::string path = std::filesystem::temp_directory_path(failed) / "pawl-drill-XXXXXX";
    if (failed || ::mkdtemp(path.data()) == nullptr) {
      return Error{Code::kUnavailable,
                   std::string("cannot make a temporary directory: ") +
                       (failed ? failed.message() : std::string(std::strerror(errno))) +
                       "; set TMPDIR"};
    }
    return TemporaryDirectory(std::move(path));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace pawl::drill
