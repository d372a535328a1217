// The keys of an account, found where Amazon's own tools find them.
#pragma once

#include <string>
#include <string_view>

#include "aws/sigv4.h"
#include "pawl/result.h"

namespace pawl::aws {

// Without a file: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; then
// AWS_SHARED_CREDENTIALS_FILE, then ~/.aws/credentials. Without a profile: AWS_PROFILE, or
// `default`. Empty keys: there are none. kInvalid: the file that was named cannot be read, or has
// no such profile.
[[nodiscard]] Result<Credentials> find_credentials(std::string file, std::string profile);

// Of one profile of a credentials file, in Amazon's format. Pure.
[[nodiscard]] Result<Credentials> read_credentials(std::string_view file, std::string_view profile);

// The value of a variable of the environment; empty: it is not set.
[[nodiscard]] std::string from_environment(const char* name);

}  // namespace pawl::aws
