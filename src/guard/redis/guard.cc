#include <fmt/format.h>

#include <utility>

#include "guard/redis/calls.h"
#include "guard/redis/health.h"
#include "guard/redis/writer.h"
#include "pawl/redis.h"

namespace pawl {
namespace {

Result<RedisWrite> write_held(guard::RedisCalls& calls, guard::RedisOrder order,
                              const std::function<bool()>& connect_again) {
  guard::RedisWriter writer(calls, std::move(order), connect_again);
  const auto decision = writer.run();
  if (!decision) return decision.error();
  return RedisWrite{*decision, writer.reply()};
}

}  // namespace

RedisGuard::RedisGuard(redisContext* connection, std::function<bool(redisContext*)> prepare)
    : connection_(connection),
      prepare_(std::move(prepare)),
      calls_(std::make_unique<guard::RedisCalls>([connection](const guard::RedisWords& words) {
        return guard::command(connection, words);
      })) {}

RedisGuard::~RedisGuard() = default;

std::string RedisGuard::name() const {
  if (connection_->connection_type == REDIS_CONN_UNIX)
    return fmt::format("redis {}", connection_->unix_sock.path);
  return fmt::format("redis {}:{}", connection_->tcp.host == nullptr ? "" : connection_->tcp.host,
                     connection_->tcp.port);
}

GuardStrength RedisGuard::strength() {
  return guard::to_strength(guard::find_weaknesses(
      [this](const guard::RedisWords& words) { return guard::command(connection_, words); }));
}

Result<void> RedisGuard::verify_installation() {
  return calls_->verify();
}

bool RedisGuard::connect_again() {
  return redisReconnect(connection_) == REDIS_OK && (!prepare_ || prepare_(connection_));
}

Result<std::uint64_t> RedisGuard::advance(std::string_view resource, std::uint64_t token,
                                          std::chrono::milliseconds) {
  if (const auto known = verify_installation(); !known) return known.error();
  return calls_->advance(resource, token);
}

Result<Decision> RedisGuard::check(std::string_view resource, std::uint64_t token) {
  if (const auto known = verify_installation(); !known) return known.error();
  return calls_->check(resource, token);
}

Result<RedisWrite> RedisGuard::write(const Lease& lease, std::string_view resource,
                                     const std::vector<std::string>& command,
                                     const RedisWriteOptions& options) {
  if (const auto known = verify_installation(); !known) return known.error();
  return write_held(*calls_,
                    {guard::held_by(lease), std::string(resource), options.operation, command},
                    [this] { return connect_again(); });
}

Result<RedisWrite> RedisGuard::write(std::uint64_t token, std::string_view resource,
                                     const std::vector<std::string>& command,
                                     const RedisWriteOptions& options) {
  if (const auto known = verify_installation(); !known) return known.error();
  return write_held(*calls_, {{.token = token}, std::string(resource), options.operation, command},
                    [this] { return connect_again(); });
}

}  // namespace pawl
