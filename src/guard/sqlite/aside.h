// A short transaction through a connection of its own: for what is to be kept although the caller's
// transaction is rolled back, or is not the caller's business at all. Waits a moment only, since it
// must not hold anybody up.
#pragma once

#include <functional>
#include <string>

#include "guard/sqlite/store.h"

namespace pawl::sqlite {

// `work` is done under the write lock, and committed. False: it was not, because someone writes or
// the file cannot be opened; there will be a next time. Never fails loudly. `path`: of the
// database; in memory (empty) nothing is done.
bool aside(const std::string& path, const std::function<void(Store&)>& work) noexcept;

}  // namespace pawl::sqlite
