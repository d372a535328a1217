// The credentials of pawl. Never a flag: everyone who lists the processes of a machine sees those.
#pragma once

#include <string>
#include <string_view>

#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl::cli {

// "user:secret". Errors name `source` and repeat nothing of the text.
[[nodiscard]] Result<Auth> parse_credentials(std::string_view text, std::string_view source);
// From the first line of the file or, without a file, from PAWL_AUTH; empty when there is neither.
[[nodiscard]] Result<Auth> find_credentials(const std::string& file);

}  // namespace pawl::cli
