// The auth_file on disk. A file that other users of the machine can access is refused. A change
// replaces the whole file or nothing.
//
//   const auto users = auth::load_users("/etc/pawl/users");
//   auth::change_file(path, auth::WhenMissing::kCreate,
//                     [](std::string_view old) -> Result<std::string> { … });
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/users_file.h"
#include "pawl/result.h"

namespace pawl::auth {

// Returns the text. kInvalid, with the name of the file and what to do, if it cannot be read or if
// users other than its owner and group have any access to it.
[[nodiscard]] Result<std::string> read_file(const std::string& path);
// read_file() and parse_users().
[[nodiscard]] Result<std::vector<User>> load_users(const std::string& path);

enum class WhenMissing { kCreate, kRefuse };

// Replaces the text of the file by what `change` returns for it. A reader sees the old text or the
// new one, also after a power cut. Owner and mode stay; a new file gets mode 0600. Concurrent
// changes wait for each other. If `change` returns an error the file is not changed.
[[nodiscard]] Result<void> change_file(
    const std::string& path, WhenMissing when_missing,
    const std::function<Result<std::string>(std::string_view)>& change);

}  // namespace pawl::auth
