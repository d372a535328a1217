// Where a Redis is, as users spell it: `host=127.0.0.1 port=6379 user=app db=0`, or
// `redis://app@127.0.0.1:6379/0`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::guard {

struct RedisDsn {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  std::string socket = {};  // a path, instead of host and port
  std::string user = {};
  std::string password_file = {};  // else the environment variable REDISCLI_AUTH
  unsigned db = 0;
  bool script = false;  // use EVAL even where the server has functions
};

// A password is refused: it would show in the list of processes. An error names the key and never
// repeats a value.
[[nodiscard]] Result<RedisDsn> parse_redis_dsn(std::string_view text);

}  // namespace pawl::guard
