#include "guard/redis/dsn.h"

#include <limits>

#include "guard/dsn_pairs.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kScheme = "redis://";

constexpr DsnText<RedisDsn> kTexts[] = {{"host", &RedisDsn::host},
                                        {"socket", &RedisDsn::socket},
                                        {"user", &RedisDsn::user},
                                        {"password_file", &RedisDsn::password_file}};

Error password_refused() {
  return {Code::kInvalid,
          "a password belongs into a password_file or the variable REDISCLI_AUTH, not into the "
          "DSN"};
}

Result<void> set(RedisDsn& dsn, std::string_view key, std::string_view value) {
  if (set_dsn_text(dsn, kTexts, key, value)) return {};
  if (key == "port") {
    const auto port = parse_dsn_port(value);
    if (!port) return port.error();
    dsn.port = *port;
    return {};
  }
  if (key == "db") {
    const auto db = parse_dsn_number(key, value, 0, std::numeric_limits<std::int32_t>::max());
    if (!db) return db.error();
    dsn.db = *db;
    return {};
  }
  if (key == "form" && (value == "functions" || value == "script")) {
    dsn.script = value == "script";
    return {};
  }
  if (key == "password") return password_refused();
  return Error{Code::kInvalid,
               "a DSN for Redis has host, port, socket, user, password_file, db and form "
               "(functions or script), such as host=127.0.0.1 port=6379"};
}

// [USER@]HOST[:PORT][/DB]
Result<void> set_from_uri(RedisDsn& dsn, std::string_view rest) {
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    const std::string_view user = rest.substr(0, at);
    if (user.find(':') != user.npos) return password_refused();
    if (const auto done = set(dsn, "user", user); !done) return done.error();
    rest.remove_prefix(at + 1);
  }
  if (const std::size_t slash = rest.find('/'); slash != rest.npos) {
    const std::string_view db = rest.substr(slash + 1);
    if (!db.empty()) {
      if (const auto done = set(dsn, "db", db); !done) return done.error();
    }
    rest = rest.substr(0, slash);
  }
  if (const std::size_t colon = rest.rfind(':'); colon != rest.npos) {
    if (const auto done = set(dsn, "port", rest.substr(colon + 1)); !done) return done.error();
    rest = rest.substr(0, colon);
  }
  if (rest.empty()) return {};
  return set(dsn, "host", rest);
}

}  // namespace

Result<RedisDsn> parse_redis_dsn(std::string_view text) {
  RedisDsn dsn;
  const auto done = text.starts_with(kScheme)
                        ? set_from_uri(dsn, text.substr(kScheme.size()))
                        : read_dsn_pairs(text, [&](std::string_view key, std::string_view value) {
                            return set(dsn, key, value);
                          });
  if (!done) return done.error();
  return dsn;
}

}  // namespace pawl::guard
