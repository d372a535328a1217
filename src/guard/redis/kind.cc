#include "guard/redis/kind.h"

#include <filesystem>

namespace pawl::guard {
namespace {

constexpr Abilities kRedisAbilities{
    Ability::kConcurrency,  Ability::kOperationLast, Ability::kTextTokens, Ability::kTokenless,
    Ability::kUnguarded,    Ability::kModes,         Ability::kCanary,     Ability::kEmergency,
    Ability::kRequireToken, Ability::kMaxStep,       Ability::kEqualOnce,  Ability::kEqualRefuse,
    Ability::kCounts,       Ability::kRemove,        Ability::kCompact,    Ability::kElsewhere,
    Ability::kRehearsal};

bool seems_local() {
  std::error_code ignored;
  return std::filesystem::exists("/run/redis/redis-server.pid", ignored);
}

}  // namespace

const Kind kRedisKind{
    .name = "redis",
    .title = "Redis",
    .location = Location::kDsn,
    .where_example = "'host=127.0.0.1 port=6379'",
    .abilities = kRedisAbilities,
    .forms = kRedisForms,
    .scratch_form = "static",
    .open_administration = open_redis_administration,
    .open_session = open_redis_session,
    .open_scratch = open_redis_scratch,
    .seems_local = seems_local,
};

}  // namespace pawl::guard
