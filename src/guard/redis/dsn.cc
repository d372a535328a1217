#include "guard/redis/dsn.h"

#include <algorithm>
#include <charconv>

namespace pawl::guard {
namespace {

constexpr std::string_view kScheme = "redis://";

template <class Number>
Result<void> set_number(Number& field, std::string_view key, std::string_view value) {
  const auto read = std::from_chars(value.data(), value.data() + value.size(), field);
  if (!value.empty() && read.ec == std::errc{} && read.ptr == value.data() + value.size())
    return {};
  return Error{Code::kInvalid, std::string(key) + " is a number"};
}

Error password_refused() {
  return {Code::kInvalid,
          "a password belongs into a password_file or the variable REDISCLI_AUTH, not into the "
          "DSN"};
}

Result<void> set(RedisDsn& dsn, std::string_view key, std::string_view value) {
  struct Known {
    std::string_view key;
    std::string RedisDsn::*field;
  };
  static constexpr Known kKnown[] = {{"host", &RedisDsn::host},
                                     {"socket", &RedisDsn::socket},
                                     {"user", &RedisDsn::user},
                                     {"password_file", &RedisDsn::password_file}};
  for (const Known& known : kKnown) {
    if (key != known.key) continue;
    dsn.*known.field = value;
    return {};
  }
  if (key == "port") return set_number(dsn.port, key, value);
  if (key == "db") return set_number(dsn.db, key, value);
  if (key == "form" && (value == "functions" || value == "script")) {
    dsn.script = value == "script";
    return {};
  }
  if (key == "password") return password_refused();
  return Error{Code::kInvalid,
               "a DSN for Redis has host, port, socket, user, password_file, db and form "
               "(functions or script), such as host=127.0.0.1 port=6379"};
}

// redis://[USER@]HOST[:PORT][/DB]
Result<RedisDsn> parse_uri(std::string_view rest) {
  RedisDsn dsn;
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    dsn.user = rest.substr(0, at);
    if (dsn.user.find(':') != dsn.user.npos) return password_refused();
    rest.remove_prefix(at + 1);
  }
  if (const std::size_t slash = rest.find('/'); slash != rest.npos) {
    const std::string_view db = rest.substr(slash + 1);
    if (!db.empty()) {
      if (const auto read = set_number(dsn.db, "db", db); !read) return read.error();
    }
    rest = rest.substr(0, slash);
  }
  if (const std::size_t colon = rest.rfind(':'); colon != rest.npos) {
    const auto read = set_number(dsn.port, "port", rest.substr(colon + 1));
    if (!read) return read.error();
    rest = rest.substr(0, colon);
  }
  if (!rest.empty()) dsn.host = rest;
  return dsn;
}

}  // namespace

Result<RedisDsn> parse_redis_dsn(std::string_view text) {
  if (text.starts_with(kScheme)) return parse_uri(text.substr(kScheme.size()));
  RedisDsn dsn;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view value = equals == pair.npos ? "" : pair.substr(equals + 1);
    if (const auto done = set(dsn, pair.substr(0, equals), value); !done) return done.error();
  }
  return dsn;
}

}  // namespace pawl::guard
