#include "guard/redis/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl::guard {
namespace {

constexpr const char* kNotDurable =
    "acknowledged fences are lost when the server crashes: CONFIG SET appendonly yes and CONFIG "
    "SET appendfsync always";

// How this server persists; empty: every write before it is answered.
std::string find_durability(const RedisSend& send, std::string_view info) {
  if (info_field(info, "aof_enabled") != "1")
    return fmt::format("appendonly is off, so {}", kNotDurable);
  const RedisAnswer asked = send({"CONFIG", "GET", "appendfsync"});
  if (!asked) return "whether appendfsync is `always` is not known: this user may not CONFIG GET";
  const std::string value = asked.at(1).value_or("");
  if (value != "always") return fmt::format("appendfsync is {}, so {}", value, kNotDurable);
  return {};
}

std::string find_replication(std::string_view info) {
  if (info_field(info, "role") == "slave")
    return "this server is a replica: the guard is on its master";
  const std::string_view replicas = info_field(info, "connected_slaves");
  if (replicas.empty() || replicas == "0") return {};
  return fmt::format(
      "{} replica(s) copy this server asynchronously, and a failover to one of them loses the "
      "fences that it had not got yet; after a failover run pawl guard check redis",
      replicas);
}

std::string find_eviction(std::string_view info) {
  const std::string_view policy = info_field(info, "maxmemory_policy");
  if (info_field(info, "maxmemory") == "0" || !policy.starts_with("allkeys-")) return {};
  return fmt::format(
      "maxmemory-policy is {}, which may evict fences: CONFIG SET maxmemory-policy noeviction, or "
      "volatile-lru",
      policy);
}

}  // namespace

std::string_view info_field(std::string_view info, std::string_view name) {
  const std::string wanted = fmt::format("\n{}:", name);
  const std::size_t at = info.find(wanted);
  if (at == info.npos) return {};
  const std::string_view value = info.substr(at + wanted.size());
  return value.substr(0, value.find_first_of("\r\n"));
}

std::vector<std::string> find_weaknesses(const RedisSend& send) {
  std::string info;
  for (const char* section : {"persistence", "replication", "memory"}) {
    const RedisAnswer asked = send({"INFO", section});
    if (!asked) return {"how the server persists is not known: this user may not run INFO"};
    info += "\n" + asked.reply.text;
  }
  std::vector<std::string> found;
  for (std::string each :
       {find_durability(send, info), find_replication(info), find_eviction(info)}) {
    if (!each.empty()) found.push_back(std::move(each));
  }
  return found;
}

GuardStrength to_strength(const std::vector<std::string>& weaknesses) {
  if (weaknesses.empty()) return {Strength::kFenced, {}};
  return {Strength::kBestEffort, fmt::format("{}", fmt::join(weaknesses, "; "))};
}

}  // namespace pawl::guard
