// LOCKS from beginning to end, page by page.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "pawl/result.h"
#include "wire/value.h"

namespace pawl::cli {

using LockPage = std::vector<wire::Value>;

// Calls `take` with each page of locks whose names start with `prefix`. Pages may be empty. An
// error of `take` ends the listing.
Result<void> each_lock_page(Console& console, const std::string& prefix,
                            const std::function<Result<void>(const LockPage&)>& take);

}  // namespace pawl::cli
