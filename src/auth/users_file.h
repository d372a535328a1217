// The format of the auth_file: the users of pawld and what each may do. Text, one user per line,
// written by `pawl auth`:
//
//   # name   role     secret               prefixes
//   ci       use      sha256:SALT:DIGEST   ci reports/nightly
//   grafana  observe  sha256:SALT:DIGEST
//
// Valid: fields separated by spaces or tabs.
//   name      1-64 of A-Z a-z 0-9 . _ @ -, unique in the file
//   role      observe, use or admin, each including the ones before it; or backup, which may only
//             make backups and has no prefixes
//   secret    "sha256:", 32 hex digits of salt, ":", 64 hex digits of SHA-256 over the digits of
//             the salt and the secret
//   prefixes  up to 64; none: all locks. A space is written %20 and a percent sign %25; decoded, a
//             prefix is what a lock name may be
// Blank lines and lines that begin with # are ignored. At most 10,000 users and 4 MiB. Anything
// else is an error that names file and line. Errors never repeat the text of the line, which may
// hold a secret that was pasted into the wrong place.
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
  std::vector<std::string> prefixes;  // Empty: every lock.
  bool operator==(const User&) const = default;
};

// Whether a prefix covers a lock, by whole path segments: "a/b" covers "a/b" and "a/b/c" but not
// "a/bc"; "a/b/" covers only what is below.
[[nodiscard]] bool covers(std::string_view prefix, std::string_view lock);

[[nodiscard]] std::optional<wire::Access> role_from_text(std::string_view text);
// What is wrong with it, for people; nothing if it is valid.
[[nodiscard]] std::optional<std::string> problem_with_name(std::string_view name);
[[nodiscard]] std::optional<std::string> problem_with_prefix(std::string_view prefix);
[[nodiscard]] std::optional<std::string> problem_with_prefixes_of(wire::Access role,
                                                                  std::size_t prefixes);

// Returns the users in the order of the file. Errors (kInvalid) call it `file`.
[[nodiscard]] Result<std::vector<User>> parse_users(std::string_view text, const std::string& file);

// Add or remove the line of a user in a text that parse_users() accepts. Every other line, comments
// included, stays as it is.
[[nodiscard]] std::string with_user(std::string_view text, const User& user);
[[nodiscard]] std::string without_user(std::string_view text, std::string_view name);

}  // namespace pawl::auth
