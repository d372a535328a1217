// Places for what a drill or the demo makes: a temporary directory, and a SQLite file in one. Both
// are removed when their owner is destroyed.
#pragma once

#include <string>
#include <utility>

#include "guard/kind.h"
#include "pawl/result.h"

namespace pawl::drill {

// Under $TMPDIR, named pawl-drill-XXXXXX.
class TemporaryDirectory {
 public:
  // kUnavailable: it could not be made, and why.
  static Result<TemporaryDirectory> make();
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// A new file with the guard installed, fit for several writers at once, for users without a
// database.
class ScratchDatabase {
 public:
  // Of a kind that needs no server: Kind::create is set.
  static Result<ScratchDatabase> make(const guard::Kind& kind);
  // What target.where is for it.
  [[nodiscard]] std::string path() const { return directory_.file("shop.db"); }

 private:
  explicit ScratchDatabase(TemporaryDirectory directory) : directory_(std::move(directory)) {}

  TemporaryDirectory directory_;
};

}  // namespace pawl::drill
