#include "guard/redis/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard/redis/calls.h"

namespace pawl::guard {
namespace {

// A key that the pattern stands for.
std::string example_of(std::string_view pattern) {
  if (!pattern.ends_with('*')) return std::string(pattern);
  return std::string(pattern.substr(0, pattern.size() - 1)) + "pawl-probe";
}

// Each stands for a kind of write; without any of them a user cannot change the key.
std::vector<RedisWords> writes_to(const std::string& key) {
  return {{"SET", key, "x"},    {"DEL", key},         {"HSET", key, "f", "x"},
          {"RPUSH", key, "x"},  {"SADD", key, "x"},   {"ZADD", key, "1", "x"},
          {"EXPIRE", key, "1"}, {"RENAME", key, key}, {"XADD", key, "*", "f", "x"}};
}

bool may(const RedisSend& send, const std::string& user, const RedisWords& words) {
  RedisWords rehearsal{"ACL", "DRYRUN", user};
  rehearsal.insert(rehearsal.end(), words.begin(), words.end());
  const RedisAnswer answer = send(rehearsal);
  return answer && to_text(answer.reply) == "OK";
}

bool may_any(const RedisSend& send, const std::string& user,
             const std::vector<RedisWords>& commands) {
  return std::any_of(commands.begin(), commands.end(),
                     [&](const RedisWords& words) { return may(send, user, words); });
}

bool is_enabled(const RedisSend& send, const std::string& user) {
  const RedisAnswer answer = send({"ACL", "GETUSER", user});
  if (!answer || answer.reply.items.size() < 2) return true;
  const auto& flags = answer.reply.items[1].items;
  return std::none_of(flags.begin(), flags.end(),
                      [](const RedisReply& flag) { return flag.text == "off"; });
}

// They may also drop the guard. `default` is whoever connects.
bool is_administrator(const RedisSend& send, const std::string& user) {
  return user != "default" && may(send, user, {"ACL", "SETUSER", user});
}

}  // namespace

RedisAccess find_access(const RedisSend& send, std::string_view guard,
                        const std::vector<std::string>& patterns) {
  RedisAccess found;
  const RedisAnswer users = send({"ACL", "USERS"});
  if (!users || (!may(send, "default", {"PING"}) && !send({"ACL", "DRYRUN", "default", "PING"}))) {
    found.unknown = "this user may not ask (ACL USERS, ACL DRYRUN), or Redis is older than 7";
    return found;
  }
  std::vector<RedisWords> around = writes_to(guard_key(guard));
  for (const std::string& pattern : patterns) {
    const auto more = writes_to(example_of(pattern));
    around.insert(around.end(), more.begin(), more.end());
  }
  const std::vector<RedisWords> erasing{{"FLUSHALL"}, {"FLUSHDB"}, {"FUNCTION", "FLUSH"}};
  for (const RedisReply& each : users.reply.items) {
    const std::string& user = each.text;
    if (!is_enabled(send, user) || is_administrator(send, user)) continue;
    const bool is_writer = user.starts_with(kWriterPrefix);
    if (may_any(send, user, erasing) || (!is_writer && may_any(send, user, around)))
      found.users.push_back(user);
  }
  return found;
}

std::string access_rules(std::string_view guard, const std::vector<std::string>& patterns) {
  std::string keys;
  for (const std::string& pattern : patterns) keys += fmt::format(" ~{}", pattern);
  return fmt::format(
      "Redis lets other users write these keys around the guard. Rules that keep them out, with "
      "PASSWORD and app:* (the keys that other programs write) replaced:\n"
      "  ACL SETUSER admin on >PASSWORD ~* &* +@all\n"
      "  ACL SETUSER {}{} on >PASSWORD resetkeys{} ~{} -@all +@read +@write +@connection "
      "-@dangerous -@scripting +info +fcall|pawl_write +fcall|pawl_write_all +fcall|pawl_advance "
      "+fcall|pawl_check +fcall|pawl_max +fcall_ro|pawl_version\n"
      "  ACL SETUSER default resetkeys %R~* ~app:* -@dangerous -function",
      kWriterPrefix, guard, keys, guard_key(guard));
}

}  // namespace pawl::guard
