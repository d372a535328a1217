// An auth_file: refused with a message that names it, or understood; and then adding a user and
// taking it away again leaves everyone else as they were.
#include <algorithm>
#include <string>
#include <string_view>

#include "auth/users_file.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::auth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto users = parse_users(text, "users");
  if (!users) {
    PAWL_ASSERT(users.error().code == pawl::Code::kInvalid &&
                users.error().detail.starts_with("users:"));
    return 0;
  }
  User added{"fuzz-added",
             pawl::wire::Access::kUse,
             {std::string(32, '0'), std::string(64, '1')},
             {"a b", "100%"}};
  const bool known = std::any_of(users->begin(), users->end(),
                                 [&](const User& user) { return user.name == added.name; });
  if (known || users->size() == kUsersMax) return 0;
  for (const User& user : *users) {
    PAWL_ASSERT(!problem_with_name(user.name));
    for (const std::string& prefix : user.prefixes) {
      PAWL_ASSERT(!problem_with_prefix(prefix) && covers(prefix, prefix) &&
                  covers(prefix, prefix + "/x"));
    }
  }
  const std::string with = with_user(text, added);
  const auto more = parse_users(with, "more");
  PAWL_ASSERT(more && more->size() == users->size() + 1 && more->back() == added);
  const auto again = parse_users(without_user(with, added.name), "again");
  PAWL_ASSERT(again && *again == *users);
  return 0;
}
