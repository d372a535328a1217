#include "bench/conversation.h"

#include <array>
#include <charconv>
#include <initializer_list>

namespace pawl::bench {
namespace {

// The lock everybody learns first: take it if it is free, number the grant; give it back only if it
// is still ours.
constexpr std::string_view kRedisAcquire =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', "
    "KEYS[2]) end "
    "return 0";
constexpr std::string_view kRedisRelease =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
constexpr std::string_view kRedisRenew =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) "
    "end return "
    "0";

// Redis has no queue for a lock, so a fair one has to be made. Polling, or waking one waiter that
// must then acquire (two durable writes per handoff), would be easy to beat. Here the release
// itself makes the next waiter the holder and wakes it through a list on which that waiter blocks:
// first come first served, no herd, one durable write per handoff, as in pawl.
constexpr std::string_view kRedisQueue =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', "
    "KEYS[2]) end "
    "redis.call('RPUSH', KEYS[3], ARGV[1]) return false";
constexpr std::string_view kRedisHandOn =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local heir = redis.call('LPOP', KEYS[3]) "
    "if not heir then return redis.call('DEL', KEYS[1]) end "
    "redis.call('SET', KEYS[1], heir, 'PX', ARGV[2]) "
    "redis.call('RPUSH', 'wake:' .. heir, redis.call('INCR', KEYS[2])) return 1";

enum Script : std::size_t { kAcquire, kRelease, kRenew, kQueue, kHandOn };
constexpr std::array kScripts{kRedisAcquire, kRedisRelease, kRedisRenew, kRedisQueue, kRedisHandOn};

constexpr std::string_view kTtl = "60000";
constexpr std::string_view kWait = "60000";
constexpr std::string_view kNoLeaseYet = "00000000000000000000000000000000";
static_assert(kNoLeaseYet.size() == kLeaseSize);

std::string command(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
  return text;
}

Step step(Expect expect, std::initializer_list<std::string_view> words) {
  Step made{command(words), expect, kNoLease};
  made.lease_at = made.request.find(kNoLeaseYet);
  return made;
}

std::string padded(std::string_view start, std::size_t number, std::size_t size) {
  std::string digits = std::to_string(number);
  std::string text(start);
  text.append(size > text.size() + digits.size() ? size - text.size() - digits.size() : 0, '0')
      .append(digits);
  return text;
}

Conversation with_pawl(Workload workload, const Names& my) {
  const Step acquire = step(Expect::kGrant, {"ACQUIRE", my.lock, "TTL", kTtl, "OWNER", my.owner});
  const Step wait =
      step(Expect::kGrant, {"ACQUIRE", my.lock, "TTL", kTtl, "WAIT", kWait, "OWNER", my.owner});
  const Step release = step(Expect::kPositive, {"RELEASE", kNoLeaseYet});
  switch (workload) {
    case Workload::kCycle:
      return {{}, {acquire, release}, {}};
    case Workload::kHandoff:
      return {{}, {wait, release}, {}};
    case Workload::kRenew:
      return {{acquire}, {step(Expect::kPositive, {"RENEW", kNoLeaseYet})}, {release}};
  }
  return {};
}

Conversation with_redis(Workload workload, const Names& my,
                        const std::vector<std::string>& scripts) {
  const std::string queue = my.lock + ":queue";
  const Step acquire = step(
      Expect::kPositive, {"EVALSHA", scripts.at(kAcquire), "2", my.lock, "token", my.owner, kTtl});
  const Step release =
      step(Expect::kPositive, {"EVALSHA", scripts.at(kRelease), "1", my.lock, my.owner});
  switch (workload) {
    case Workload::kCycle:
      return {{}, {acquire, release}, {}};
    case Workload::kHandoff:
      return {{},
              {step(Expect::kTokenOrNil,
                    {"EVALSHA", scripts.at(kQueue), "3", my.lock, "token", queue, my.owner, kTtl}),
               step(Expect::kPair, {"BLPOP", "wake:" + my.owner, "60"}),
               step(Expect::kPositive, {"EVALSHA", scripts.at(kHandOn), "3", my.lock, "token",
                                        queue, my.owner, kTtl})},
              {}};
    case Workload::kRenew:
      return {
          {acquire},
          {step(Expect::kPositive, {"EVALSHA", scripts.at(kRenew), "1", my.lock, my.owner, kTtl})},
          {release}};
  }
  return {};
}

// The same messages as pawl gets, so that the ceilings carry the same bytes; the answer is what was
// sent.
Conversation with_echo(Workload workload, const Names& my) {
  Conversation talk = with_pawl(workload, my);
  for (Step& each : talk.round) {
    each.expect = Expect::kSame;
    each.lease_at = kNoLease;
  }
  talk.opening.clear();
  talk.closing.clear();
  return talk;
}

std::optional<long long> number(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of `count` values that begin at `at`: where they end.
std::optional<std::size_t> frames_end(std::string_view bytes, std::size_t at, long long count) {
  for (; count > 0; --count) {
    const auto size = frame_size(bytes.substr(at));
    if (!size || *size == 0) return size;
    at += *size;
  }
  return at;
}

bool take_lease(Conversation& talk, std::string_view lease) {
  if (lease.empty()) return false;
  for (std::vector<Step>* part : {&talk.round, &talk.closing}) {
    for (Step& each : *part) {
      if (each.lease_at != kNoLease) lease.copy(each.request.data() + each.lease_at, kLeaseSize);
    }
  }
  return true;
}

}  // namespace

Names names(Workload workload, std::string_view run, std::size_t connection) {
  const bool shared = workload == Workload::kHandoff;
  return {padded(std::string("bench/").append(run).append("/"), shared ? 0 : connection, 24),
          padded(std::string(run).append("@"), connection, 16)};
}

bool take_reply(Conversation& talk, const Step& step, std::string_view reply) {
  switch (step.expect) {
    case Expect::kGrant:
      return take_lease(talk, lease_in(reply));
    case Expect::kPositive:
      return reply[0] == ':' && reply[1] > '0' && reply[1] <= '9';
    case Expect::kTokenOrNil:
      return reply[0] == ':' || reply.starts_with("$-1") || reply[0] == '_';
    case Expect::kPair:
      return reply.starts_with("*2");
    case Expect::kSame:
      return true;
  }
  return false;
}

Conversation conversation(Peer peer, Workload workload, std::string_view run,
                          std::size_t connection, const std::vector<std::string>& scripts) {
  const Names my = names(workload, run, connection);
  switch (peer) {
    case Peer::kPawl:
      return with_pawl(workload, my);
    case Peer::kRedis:
      return with_redis(workload, my, scripts);
    case Peer::kEcho:
      return with_echo(workload, my);
  }
  return {};
}

std::vector<std::string> preparation(Peer peer) {
  std::vector<std::string> requests;
  if (peer != Peer::kRedis) return requests;
  for (const std::string_view text : kScripts) {
    requests.push_back(command({"SCRIPT", "LOAD", text}));
  }
  return requests;
}

std::optional<std::size_t> frame_size(std::string_view bytes) {
  const std::size_t line_end = bytes.find("\r\n");
  if (line_end == std::string_view::npos) return 0;
  const std::size_t line = line_end + 2;
  const auto count = number(bytes.substr(1, line_end - 1));
  switch (bytes[0]) {
    case '+':
    case '-':
    case ':':
    case '_':
    case '#':
    case ',':
      return line;
    case '$':
      if (!count) return std::nullopt;
      if (*count < 0) return line;
      return bytes.size() < line + static_cast<std::size_t>(*count) + 2
                 ? 0
                 : line + static_cast<std::size_t>(*count) + 2;
    case '*':
    case '%':
      if (!count) return std::nullopt;
      return frames_end(bytes, line, bytes[0] == '%' ? *count * 2 : *count);
    default:
      return std::nullopt;
  }
}

std::string_view lease_in(std::string_view reply) {
  constexpr std::string_view kKey = "lease\r\n$32\r\n";
  const std::size_t at = reply.find(kKey);
  if (at == std::string_view::npos || reply.size() < at + kKey.size() + kLeaseSize) return {};
  return reply.substr(at + kKey.size(), kLeaseSize);
}

}  // namespace pawl::bench
