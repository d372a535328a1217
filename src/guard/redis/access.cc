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

// Every command that can change a key; `KEY` stands for it.
constexpr std::string_view kWrites[] = {
    "SET KEY x",
    "SETNX KEY x",
    "SETEX KEY 1 x",
    "PSETEX KEY 1 x",
    "GETSET KEY x",
    "GETDEL KEY",
    "GETEX KEY EX 1",
    "APPEND KEY x",
    "SETRANGE KEY 0 x",
    "SETBIT KEY 0 1",
    "BITFIELD KEY SET u8 0 1",
    "BITOP NOT KEY KEY",
    "INCR KEY",
    "INCRBY KEY 1",
    "INCRBYFLOAT KEY 1",
    "DECR KEY",
    "DECRBY KEY 1",
    "MSET KEY x",
    "MSETNX KEY x",
    "DEL KEY",
    "UNLINK KEY",
    "RENAME KEY KEY",
    "RENAMENX KEY KEY",
    "COPY KEY KEY",
    "MOVE KEY 1",
    "RESTORE KEY 0 x",
    "MIGRATE host 1 KEY 0 1",
    "EXPIRE KEY 1",
    "EXPIREAT KEY 1",
    "PEXPIRE KEY 1",
    "PEXPIREAT KEY 1",
    "PERSIST KEY",
    "SORT KEY STORE KEY",
    "HSET KEY f x",
    "HSETNX KEY f x",
    "HMSET KEY f x",
    "HDEL KEY f",
    "HINCRBY KEY f 1",
    "HINCRBYFLOAT KEY f 1",
    "LPUSH KEY x",
    "RPUSH KEY x",
    "LPUSHX KEY x",
    "RPUSHX KEY x",
    "LPOP KEY",
    "RPOP KEY",
    "LREM KEY 0 x",
    "LSET KEY 0 x",
    "LINSERT KEY BEFORE x x",
    "LTRIM KEY 0 1",
    "LMOVE KEY KEY LEFT LEFT",
    "BLMOVE KEY KEY LEFT LEFT 1",
    "RPOPLPUSH KEY KEY",
    "BRPOPLPUSH KEY KEY 1",
    "BLPOP KEY 1",
    "BRPOP KEY 1",
    "LMPOP 1 KEY LEFT",
    "BLMPOP 1 1 KEY LEFT",
    "SADD KEY x",
    "SREM KEY x",
    "SPOP KEY",
    "SMOVE KEY KEY x",
    "SINTERSTORE KEY KEY",
    "SUNIONSTORE KEY KEY",
    "SDIFFSTORE KEY KEY",
    "ZADD KEY 1 x",
    "ZINCRBY KEY 1 x",
    "ZREM KEY x",
    "ZPOPMIN KEY",
    "ZPOPMAX KEY",
    "BZPOPMIN KEY 1",
    "BZPOPMAX KEY 1",
    "ZMPOP 1 KEY MIN",
    "BZMPOP 1 1 KEY MIN",
    "ZREMRANGEBYRANK KEY 0 1",
    "ZREMRANGEBYSCORE KEY 0 1",
    "ZREMRANGEBYLEX KEY - +",
    "ZRANGESTORE KEY KEY 0 1",
    "ZINTERSTORE KEY 1 KEY",
    "ZUNIONSTORE KEY 1 KEY",
    "ZDIFFSTORE KEY 1 KEY",
    "PFADD KEY x",
    "PFMERGE KEY KEY",
    "GEOADD KEY 1 1 x",
    "GEOSEARCHSTORE KEY KEY FROMMEMBER x BYRADIUS 1 m",
    "GEORADIUS KEY 1 1 1 m STORE KEY",
    "GEORADIUSBYMEMBER KEY x 1 m STORE KEY",
    "XADD KEY * f x",
    "XDEL KEY 1-1",
    "XTRIM KEY MAXLEN 1",
    "XSETID KEY 1-1",
    "XGROUP CREATE KEY g 0",
    "XREADGROUP GROUP g c STREAMS KEY >",  // To ACL rules that is reading; it moves the group.
    "XACK KEY g 1-1",
    "XCLAIM KEY g c 0 1-1",
    "XAUTOCLAIM KEY g c 0 0",
};

// Commands that take the fences away, or replace what judges.
const std::vector<RedisWords> kErasing{{"FLUSHALL"},
                                       {"FLUSHDB"},
                                       {"SWAPDB", "0", "1"},
                                       {"FUNCTION", "FLUSH"},
                                       {"FUNCTION", "DELETE", "pawl"},
                                       {"FUNCTION", "LOAD", "x"},
                                       {"FUNCTION", "RESTORE", "x"},
                                       {"REPLICAOF", "NO", "ONE"},
                                       {"MODULE", "LOAD", "x"}};

RedisWords to_words(std::string_view text, const std::string& key) {
  RedisWords words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    words.push_back(word == "KEY" ? key : std::string(word));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

std::vector<RedisWords> writes_to(const std::string& key) {
  std::vector<RedisWords> all;
  for (const std::string_view each : kWrites) all.push_back(to_words(each, key));
  return all;
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

// Of two STORE in these the last one counts, but some servers check the right to the first only.
// Whoever may run them can then write every key.
bool may_store_anywhere(const RedisSend& send, const std::string& user) {
  for (const char* command : {"GEORADIUS KEY 1 1 1 m STORE first STORE last",
                              "GEORADIUSBYMEMBER KEY x 1 m STORE first STORE last"}) {
    const RedisWords words = to_words(command, "geo");
    RedisWords asked{"COMMAND", "GETKEYS"};
    asked.insert(asked.end(), words.begin(), words.end());
    const RedisAnswer keys = send(asked);
    const auto is_last = [](const RedisReply& key) { return key.text == "last"; };
    if (!keys || std::any_of(keys.reply.items.begin(), keys.reply.items.end(), is_last)) continue;
    RedisWords rehearsal{"ACL", "DRYRUN", user};
    rehearsal.insert(rehearsal.end(), words.begin(), words.end());
    const RedisAnswer answer = send(rehearsal);
    // The other reason is "… to run the 'georadius' command".
    const std::string said = answer ? to_text(answer.reply).value_or("") : "";
    if (said == "OK" || said.find("' key") != said.npos) return true;
  }
  return false;
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
  for (const RedisReply& each : users.reply.items) {
    const std::string& user = each.text;
    if (!is_enabled(send, user) || is_administrator(send, user)) continue;
    const bool is_writer = user.starts_with(kWriterPrefix);
    if (may_any(send, user, kErasing) ||
        (!is_writer && (may_any(send, user, around) || may_store_anywhere(send, user))))
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
      "  ACL SETUSER default resetkeys %R~* ~app:* -@dangerous -function -georadius "
      "-georadiusbymember -xreadgroup (+xreadgroup ~app:*)",
      kWriterPrefix, guard, keys, guard_key(guard));
}

}  // namespace pawl::guard
