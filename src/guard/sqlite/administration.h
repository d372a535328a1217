// The administration of a guard in a SQLite file, over a connection of its own.
#pragma once

#include <memory>
#include <string>

#include "guard/administration.h"

namespace pawl::guard {

[[nodiscard]] Result<std::unique_ptr<Administration>> open_sqlite(const std::string& path);

}  // namespace pawl::guard
