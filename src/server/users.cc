#include "server/users.h"

#include <algorithm>

#include "wire/text.h"

namespace pawl::server {
namespace {

constexpr std::size_t kPrefixesShown = 4;

// What an unknown user's secret is compared with: nothing matches it.
const auth::Digest& digest_of_no_user() {
  static const auth::Digest digest{std::string(auth::kSaltDigits, '0'),
                                   std::string(auth::kDigestDigits, '0')};
  return digest;
}

template <class Covers>
bool any_prefix(const UserPtr& user, Covers covers) {
  if (user == nullptr || user->prefixes.empty()) return true;
  return std::any_of(user->prefixes.begin(), user->prefixes.end(), covers);
}

}  // namespace

Users::Users(std::vector<auth::User> users) {
  for (auth::User& user : users) {
    auto entry = std::make_shared<const auth::User>(std::move(user));
    by_name_.emplace(entry->name, entry);
  }
}

UserPtr Users::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

UserPtr Users::check(std::string_view name, std::string_view secret) const {
  UserPtr user = find(name);
  const bool right = auth::matches(user != nullptr ? user->secret : digest_of_no_user(), secret);
  return right ? user : nullptr;
}

bool reaches(const UserPtr& user, std::string_view lock) {
  return any_prefix(user, [&](const std::string& prefix) { return auth::covers(prefix, lock); });
}

bool reaches_below(const UserPtr& user, std::string_view beginning) {
  return any_prefix(user, [&](const std::string& prefix) {
    return prefix.starts_with(beginning) || auth::covers(prefix, beginning);
  });
}

std::string prefixes_of(const auth::User& user) {
  std::string list;
  for (std::size_t i = 0; i < user.prefixes.size(); ++i) {
    if (i == kPrefixesShown) return list + ", ...";
    list += (list.empty() ? "" : ", ") + wire::shown(user.prefixes[i]);
  }
  return list;
}

}  // namespace pawl::server
