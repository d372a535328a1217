#include "auth/users_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/text.h"

namespace pawl::auth {
namespace {

constexpr std::string_view kBlank = " \t\r";  // \r: for editors that end lines with \r\n.
constexpr std::string_view kMethod = "sha256:";

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '@' || c == '-';
}

bool is_hex(std::string_view digits, std::size_t count) {
  return digits.size() == count && std::all_of(digits.begin(), digits.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Removes the next line from `text` and returns it without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return fields;
    const std::size_t end = line.find_first_of(kBlank, begin);
    fields.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end);
  }
}

// The fields of a line that describes a user; empty for blank lines and comments.
std::vector<std::string_view> user_fields(std::string_view line) {
  auto fields = fields_of(line);
  if (!fields.empty() && fields.front().front() == '#') fields.clear();
  return fields;
}

std::optional<Digest> parse_secret(std::string_view text) {
  if (!text.starts_with(kMethod)) return std::nullopt;
  text.remove_prefix(kMethod.size());
  if (text.size() != kSaltDigits + 1 + kDigestDigits || text[kSaltDigits] != ':')
    return std::nullopt;
  const std::string_view salt = text.substr(0, kSaltDigits), digest = text.substr(kSaltDigits + 1);
  if (!is_hex(salt, kSaltDigits) || !is_hex(digest, kDigestDigits)) return std::nullopt;
  return Digest{std::string(salt), std::string(digest)};
}

std::string encode_prefix(std::string_view prefix) {
  std::string out;
  for (const char c : prefix) {
    if (c == ' ') {
      out += "%20";
    } else if (c == '%') {
      out += "%25";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Only the two that we write: anything else that looks encoded is a mistake, not a name.
std::optional<std::string> decode_prefix(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '%') {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    if (!text.starts_with("%20") && !text.starts_with("%25")) return std::nullopt;
    out.push_back(text[2] == '0' ? ' ' : '%');
    text.remove_prefix(3);
  }
  return out;
}

// Fills in `user`, or returns what is wrong.
std::optional<std::string> read_user(const std::vector<std::string_view>& fields, User& user) {
  if (fields.size() < 3) return "expected: name role secret [prefix]...";
  if (auto problem = problem_with_name(fields[0])) return problem;
  user.name = fields[0];
  const auto role = role_from_text(fields[1]);
  if (!role) return "the role must be observe, use, admin or backup";
  user.role = *role;
  auto secret = parse_secret(fields[2]);
  if (!secret) {
    return "the secret must be sha256:SALT:DIGEST (32 and 64 lowercase hex digits), as `pawl auth "
           "add` writes it";
  }
  user.secret = *std::move(secret);
  for (std::size_t i = 3; i < fields.size(); ++i) {
    auto prefix = decode_prefix(fields[i]);
    if (!prefix)
      return "in a prefix a space is written %20 and a percent sign %25, and nothing else is "
             "encoded";
    if (auto problem = problem_with_prefix(*prefix)) return problem;
    user.prefixes.push_back(*std::move(prefix));
  }
  return problem_with_prefixes_of(user.role, user.prefixes.size());
}

std::string to_line(const User& user) {
  std::string line = fmt::format("{} {} {}{}:{}", user.name, wire::to_text(user.role), kMethod,
                                 user.secret.salt, user.secret.sha256);
  for (const std::string& prefix : user.prefixes) line += " " + encode_prefix(prefix);
  return line + "\n";
}

}  // namespace

bool covers(std::string_view prefix, std::string_view lock) {
  if (!lock.starts_with(prefix)) return false;
  return lock.size() == prefix.size() || prefix.ends_with('/') || lock[prefix.size()] == '/';
}

std::optional<wire::Access> role_from_text(std::string_view text) {
  for (const wire::Access role :
       {wire::Access::kObserve, wire::Access::kUse, wire::Access::kAdmin, wire::Access::kBackup}) {
    if (text == wire::to_text(role)) return role;
  }
  return std::nullopt;
}

std::optional<std::string> problem_with_name(std::string_view name) {
  if (!name.empty() && name.size() <= kUserNameMax &&
      std::all_of(name.begin(), name.end(), is_name_character))
    return std::nullopt;
  return fmt::format("a user's name is 1 to {} of A-Z a-z 0-9 . _ @ -", kUserNameMax);
}

std::optional<std::string> problem_with_prefix(std::string_view prefix) {
  if (!prefix.empty() && prefix.size() <= limits::kLockNameMax && wire::is_plain_text(prefix))
    return std::nullopt;
  return fmt::format("a prefix is 1 to {} bytes of UTF-8 without control characters",
                     limits::kLockNameMax);
}

std::optional<std::string> problem_with_prefixes_of(wire::Access role, std::size_t prefixes) {
  if (prefixes > kPrefixesMax) return fmt::format("at most {} prefixes for a user", kPrefixesMax);
  if (role == wire::Access::kBackup && prefixes > 0)
    return "a user with the role backup has no prefixes: a backup holds every lock";
  return std::nullopt;
}

Result<std::vector<User>> parse_users(std::string_view text, const std::string& file) {
  if (text.size() > kFileBytesMax) {
    return Error{Code::kInvalid, fmt::format("{}: longer than {} bytes", file, kFileBytesMax)};
  }
  std::vector<User> users;
  std::unordered_set<std::string> names;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto fields = user_fields(take_line(text));
    if (fields.empty()) continue;
    User user;
    auto problem = read_user(fields, user);
    if (!problem && !names.insert(user.name).second) problem = "this user is listed already";
    if (!problem && users.size() == kUsersMax) problem = fmt::format("at most {} users", kUsersMax);
    if (problem) return Error{Code::kInvalid, fmt::format("{}:{}: {}", file, number, *problem)};
    users.push_back(std::move(user));
  }
  return users;
}

std::string with_user(std::string_view text, const User& user) {
  PAWL_ASSERT(!problem_with_name(user.name) && user.prefixes.size() <= kPrefixesMax);
  std::string changed(text);
  if (!changed.empty() && changed.back() != '\n') changed.push_back('\n');
  return changed + to_line(user);
}

std::string without_user(std::string_view text, std::string_view name) {
  std::string changed;
  while (!text.empty()) {
    const std::string_view rest = text;
    const auto fields = user_fields(take_line(text));
    const std::string_view whole = rest.substr(0, rest.size() - text.size());  // with its end
    if (fields.empty() || fields.front() != name) changed += whole;
  }
  return changed;
}

}  // namespace pawl::auth
