// An empty SQLite file with the guard installed, for a drill or a demo without a database of the
// user's. Removed when its owner is destroyed.
#pragma once

#include <string>
#include <utility>

#include "drill/temporary_directory.h"
#include "pawl/result.h"

namespace pawl::drill {

class ScratchDatabase {
 public:
  static constexpr const char* kKind = "sqlite";

  static Result<ScratchDatabase> make();
  // What target.where is for it.
  [[nodiscard]] std::string path() const { return directory_.file("shop.db"); }

 private:
  explicit ScratchDatabase(TemporaryDirectory directory) : directory_(std::move(directory)) {}

  TemporaryDirectory directory_;
};

}  // namespace pawl::drill
