// For tests: one user of each role, and one who is limited to prefixes. The secret of NAME is
// secret-of-NAME.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "auth/secret.h"
#include "auth/users_file.h"
#include "base/random.h"
#include "server/testlib/permission_rows.h"

namespace pawl::server {

inline std::string secret_of(const std::string& name) {
  return "secret-of-" + name;
}

inline auth::User user(const std::string& name, wire::Access role,
                       std::vector<std::string> prefixes = {}, const std::string& secret = "") {
  SeededRandom salt(name.size());
  return {name, role, auth::digest_of(secret.empty() ? secret_of(name) : secret, salt),
          std::move(prefixes)};
}

inline std::vector<auth::User> everyone() {
  return {user("looker", wire::Access::kObserve), user("worker", wire::Access::kUse),
          user("boss", wire::Access::kAdmin),
          user("limited", wire::Access::kAdmin, {std::string(kMine)}),
          user("copier", wire::Access::kBackup)};
}

// The name of such a user; empty for kNobody.
inline std::string name_of(Caller caller) {
  switch (caller) {
    case Caller::kNobody:
      return "";
    case Caller::kObserve:
      return "looker";
    case Caller::kUse:
      return "worker";
    case Caller::kAdmin:
      return "boss";
    case Caller::kLimited:
      return "limited";
    case Caller::kBackup:
      return "copier";
  }
  return "";
}

}  // namespace pawl::server
