// The users of the auth_file: who may use this pawld.
//
//   Users users(*auth::load_users(path));
//   if (const auto user = users.check(name, secret)) session.user = user;
//
// Does not change; a reload makes another one. What it hands out outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/users_file.h"

namespace pawl::server {

using UserPtr = std::shared_ptr<const auth::User>;

class Users {
 public:
  explicit Users(std::vector<auth::User> users);

  [[nodiscard]] std::size_t size() const { return by_name_.size(); }
  // nullptr when there is no such user.
  [[nodiscard]] UserPtr find(std::string_view name) const;
  // nullptr unless the secret is that user's. Takes as long for an unknown user as for a wrong
  // secret.
  [[nodiscard]] UserPtr check(std::string_view name, std::string_view secret) const;

 private:
  std::map<std::string, UserPtr, std::less<>> by_name_;
};

// Whether the user may touch the lock. nullptr stands for everyone where pawld knows no users.
[[nodiscard]] bool reaches(const UserPtr& user, std::string_view lock);
// Whether any lock whose name begins with `beginning` could be one that the user may touch.
[[nodiscard]] bool reaches_below(const UserPtr& user, std::string_view beginning);
// For error lines: the first few prefixes of a user that has any.
[[nodiscard]] std::string prefixes_of(const auth::User& user);

}  // namespace pawl::server
