// The row that the demo's workers write to: a scratch resource of a kind of the user's choice,
// without a guard at first. Each write is a line in its log; the row is the last line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "drill/target.h"
#include "guard/scratch.h"
#include "pawl/result.h"

namespace pawl::drill {

class DemoRow {
 public:
  struct Content {
    std::uint64_t token = 0;  // that it was last written with
    std::string value;
  };

  // `kind`: a name in guard/kinds.h; `where`: a file, or a DSN. The guard must be installed there.
  // Everything is removed with the object.
  static Result<std::unique_ptr<DemoRow>> make(const std::string& kind, const std::string& where);

  // How a worker writes to it.
  [[nodiscard]] Target target() const;

  Result<Content> read();
  // A new row without a guard, which nobody has written to yet.
  Result<void> reset(const std::string& value);
  // The same under guard: from now on the resource itself refuses old tokens.
  Result<void> protect();

 private:
  DemoRow(std::string kind, std::string where, std::unique_ptr<guard::ScratchSpace> space);

  const std::string kind_;
  const std::string where_;
  const std::unique_ptr<guard::ScratchSpace> space_;
  std::string resource_;
  std::string initial_;
  bool guarded_ = false;
};

}  // namespace pawl::drill
