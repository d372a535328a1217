// The auth_file on disk. Reading refuses one that others can read; changing replaces it whole, or
// not at all.
//
//   const auto users = auth::load_users("/etc/pawl/users");
//   auth::change_file(path, auth::WhenMissing::kCreate, [](std::string_view old) -> Result<std::string> { … });
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/users_file.h"
#include "pawl/result.h"

namespace pawl::auth {

// The text. kInvalid, with the file's name and what to do, when it cannot be read, or when others
// than its owner and group have any access to it.
[[nodiscard]] Result<std::string> read_file(const std::string& path);
[[nodiscard]] Result<std::vector<User>> load_users(const std::string& path);

enum class WhenMissing { kCreate, kRefuse };

// Replaces the file by what `change` makes of it: a reader sees the old text or the new one, after
// a power cut too. Owner and mode stay; a new file gets 0600. Others who change it meanwhile wait
// their turn. An error of `change` leaves it as it is.
[[nodiscard]] Result<void> change_file(
    const std::string& path, WhenMissing when_missing,
    const std::function<Result<std::string>(std::string_view)>& change);

}  // namespace pawl::auth
