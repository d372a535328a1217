// The auth_file: who may talk to pawld, and what each may do. Text, one user per line, made by
// `pawl auth` and readable by people:
//
//   # name  role   secret                              prefixes
//   ci      use    sha256:SALT:DIGEST                  ci reports/nightly
//   grafana observe sha256:SALT:DIGEST
//
// Valid: fields parted by spaces or tabs. The name: 1–64 of A-Z a-z 0-9 . _ @ -, each once in the
// file. The role: observe, use or admin, each including the ones before it; or backup, which may
// only make backups, and has no prefixes. The secret: "sha256:", 32 hex digits of salt, ":", 64 of
// SHA-256 over the salt's digits and the secret. Then up to 64 prefixes, or none: all locks. In a
// prefix a space is written %20 and a percent sign %25; decoded it is what a lock name may be.
// Lines that are blank or begin with # are for people. At most 10,000 users and 4 MiB. Anything
// else is an error that names file and line; nothing of the line is repeated, for it may hold a
// secret that was pasted into the wrong place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/secret.h"
#include "pawl/result.h"
#include "wire/access.h"

namespace pawl::auth {

inline constexpr std::size_t kUserNameMax = 64;
inline constexpr std::size_t kPrefixesMax = 64;
inline constexpr std::size_t kUsersMax = 10'000;
inline constexpr std::size_t kFileBytesMax = 4 * 1024 * 1024;

struct User {
  std::string name;
  wire::Access role = wire::Access::kObserve;
  Digest secret;
  std::vector<std::string> prefixes;  // empty: every lock
  bool operator==(const User&) const = default;
};

// By path segment: "a/b" covers "a/b" and "a/b/c", and not "a/bc"; "a/b/" covers only what is
// below.
[[nodiscard]] bool covers(std::string_view prefix, std::string_view lock);

[[nodiscard]] std::optional<wire::Access> role_from_text(std::string_view text);
// What is wrong with it, for people; nothing when it can be used.
[[nodiscard]] std::optional<std::string> problem_with_name(std::string_view name);
[[nodiscard]] std::optional<std::string> problem_with_prefix(std::string_view prefix);
[[nodiscard]] std::optional<std::string> problem_with_prefixes_of(wire::Access role,
                                                                  std::size_t prefixes);

// In the order of the file. `file` is what errors call it.
[[nodiscard]] Result<std::vector<User>> parse_users(std::string_view text, const std::string& file);

// Changes to a text that parse_users() understands: every other line, comments included, stays as it is
[[nodiscard]] std::string with_user(std::string_view text, const User& user);
[[nodiscard]] std::string without_user(std::string_view text, std::string_view name);

}  // namespace pawl::auth
