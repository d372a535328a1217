// Who pawl is to pawld. Never a flag: whoever lists the processes of a machine sees those.
#pragma once

#include <string>
#include <string_view>

#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl::cli {

// "user:secret". `source` is what errors call it; they repeat nothing of the text.
[[nodiscard]] Result<Auth> parse_credentials(std::string_view text, std::string_view source);
// The first line of the file, or, when no file is named, PAWL_AUTH; nobody when there is neither.
[[nodiscard]] Result<Auth> find_credentials(const std::string& file);

}  // namespace pawl::cli
