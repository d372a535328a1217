// Redis as a kind of guard.
#pragma once

#include <memory>
#include <string>

#include "guard/kind.h"
#include "guard/redis/connection.h"
#include "guard/redis/names.h"

namespace pawl::guard {

extern const Kind kRedisKind;

// Its parts.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_redis_administration(
    const std::string& dsn);
[[nodiscard]] Result<std::unique_ptr<Session>> open_redis_session(const std::string& dsn,
                                                                  const SessionRequest& request);
[[nodiscard]] Result<std::unique_ptr<ScratchSpace>> open_redis_scratch(const std::string& dsn,
                                                                       std::string_view form);

}  // namespace pawl::guard
