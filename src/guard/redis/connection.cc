#include "guard/redis/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/assert.h"

namespace pawl::guard {
namespace {

constexpr timeval kConnectTimeout{.tv_sec = 10, .tv_usec = 0};
constexpr timeval kAnswerTimeout{.tv_sec = 120, .tv_usec = 0};
constexpr int kRedirectsMax = 5;

RedisReply to_reply(const redisReply& raw) {
  using Type = RedisReply::Type;
  switch (raw.type) {
    case REDIS_REPLY_STATUS:
      return {.type = Type::kStatus, .text = std::string(raw.str, raw.len)};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_ERROR:  // Inside an array, as EXEC has it.
      return {.type = Type::kText, .text = std::string(raw.str, raw.len)};
    case REDIS_REPLY_INTEGER:
      return {.type = Type::kInteger, .integer = raw.integer};
    case REDIS_REPLY_ARRAY: {
      RedisReply reply{.type = Type::kArray};
      for (std::size_t i = 0; i < raw.elements; ++i)
        reply.items.push_back(to_reply(*raw.element[i]));
      return reply;
    }
    default:
      return {};
  }
}

RedisFailure disconnected(const redisContext* connection) {
  return {fmt::format("the connection to Redis failed: {}", connection->errstr), true};
}

// The commands that were refused as a whole, for a reason that passes.
constexpr std::array<std::string_view, 9> kUnavailable{"LOADING",  "READONLY",   "OOM",
                                                       "MISCONF",  "MASTERDOWN", "BUSY",
                                                       "TRYAGAIN", "MOVED",      "CLUSTERDOWN"};

Result<std::string> read_password(const RedisDsn& dsn) {
  if (dsn.password_file.empty()) {
    const char* environment = std::getenv("REDISCLI_AUTH");
    return std::string(environment == nullptr ? "" : environment);
  }
  std::ifstream file(dsn.password_file);
  std::string line;
  if (!std::getline(file, line))
    return Error{Code::kInvalid, fmt::format("no password can be read from {}", dsn.password_file)};
  return line;
}

std::string address_of(const std::string& host, int port) {
  return fmt::format("{}:{}", host, port);
}

}  // namespace

std::string_view RedisFailure::word() const {
  return std::string_view(text).substr(0, text.find(' '));
}

Error to_error(const RedisFailure& failure) {
  if (failure.disconnected) return {Code::kUnknown, failure.text};
  const std::string_view word = failure.word();
  if (word == "PAWLSTALE") return {Code::kStaleToken, failure.text};
  for (const std::string_view known : kUnavailable) {
    if (word == known) return {Code::kUnavailable, "Redis: " + failure.text};
  }
  // The second is how a script says NOPERM of a command in it.
  if (word == "NOPERM" || word == "NOAUTH" || word == "WRONGPASS" ||
      failure.text.find("The user executing the script can't") != std::string::npos)
    return {Code::kDenied, "Redis: " + failure.text};
  if (word.starts_with("PAWL")) return {Code::kInvalid, failure.text};
  return {Code::kInvalid, "Redis: " + failure.text};
}

std::optional<std::string> to_text(const RedisReply& reply) {
  switch (reply.type) {
    case RedisReply::Type::kStatus:
    case RedisReply::Type::kText:
      return reply.text;
    case RedisReply::Type::kInteger:
      return std::to_string(reply.integer);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> RedisAnswer::at(std::size_t item) const {
  if (item >= reply.items.size()) return std::nullopt;
  return to_text(reply.items[item]);
}

RedisAnswer command(redisContext* connection, const RedisWords& words) {
  PAWL_ASSERT(connection != nullptr && !words.empty());
  if (connection->err != 0) return {.failure = disconnected(connection)};
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  void* answer =
      redisCommandArgv(connection, static_cast<int>(words.size()), texts.data(), lengths.data());
  const std::unique_ptr<redisReply, void (*)(void*)> raw(static_cast<redisReply*>(answer),
                                                         freeReplyObject);
  if (raw == nullptr) return {.failure = disconnected(connection)};
  if (raw->type == REDIS_REPLY_ERROR)
    return {.failure = RedisFailure{std::string(raw->str, raw->len), false}};
  return {.reply = to_reply(*raw)};
}

Result<void> log_in(redisContext* connection, const RedisDsn& dsn) {
  const auto password = read_password(dsn);
  if (!password) return password.error();
  if (!password->empty()) {
    RedisWords words{"AUTH"};
    if (!dsn.user.empty()) words.push_back(dsn.user);
    words.push_back(*password);
    if (const auto done = command(connection, words); !done) return to_error(*done.failure);
  } else if (!dsn.user.empty()) {
    return Error{Code::kDenied, fmt::format("there is no password for the user {}: set "
                                            "REDISCLI_AUTH, or name a password_file",
                                            dsn.user)};
  }
  if (dsn.db == 0) return {};
  if (const auto done = command(connection, {"SELECT", std::to_string(dsn.db)}); !done)
    return to_error(*done.failure);
  return {};
}

Result<std::shared_ptr<redisContext>> connect(const RedisDsn& dsn) {
  redisContext* made = dsn.socket.empty()
                           ? redisConnectWithTimeout(dsn.host.c_str(), dsn.port, kConnectTimeout)
                           : redisConnectUnixWithTimeout(dsn.socket.c_str(), kConnectTimeout);
  if (made == nullptr) return Error{Code::kUnavailable, "out of memory"};
  std::shared_ptr<redisContext> connection(made, redisFree);
  if (connection->err != 0) {
    const std::string where = dsn.socket.empty() ? address_of(dsn.host, dsn.port) : dsn.socket;
    return Error{Code::kUnavailable,
                 fmt::format("cannot connect to Redis at {}: {}.", where, connection->errstr)};
  }
  redisEnableKeepAlive(connection.get());
  redisSetTimeout(connection.get(), kAnswerTimeout);
  if (const auto ready = log_in(connection.get(), dsn); !ready) return ready.error();
  return connection;
}

Result<std::shared_ptr<RedisClient>> RedisClient::open(const RedisDsn& dsn) {
  auto connection = connect(dsn);
  if (!connection) return connection.error();
  std::shared_ptr<RedisClient> client(new RedisClient(dsn, *std::move(connection)));
  // A connection is only known to be one when it has answered.
  if (const auto alive = client->command({"PING"}); !alive) {
    const Error error = to_error(*alive.failure);
    return error.code == Code::kUnknown ? Error{Code::kUnavailable, error.detail} : error;
  }
  return client;
}

RedisClient::RedisClient(RedisDsn dsn, std::shared_ptr<redisContext> first)
    : dsn_(std::move(dsn)), first_(std::move(first)) {}

redisContext* RedisClient::node(const std::string& address) {
  auto& kept = nodes_[address];
  if (kept != nullptr && kept->err == 0) return kept.get();
  const std::size_t colon = address.rfind(':');
  RedisDsn there = dsn_;
  there.socket.clear();
  if (colon > 0) there.host = address.substr(0, colon);  // An empty host: the one asked.
  there.port = static_cast<std::uint16_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10));
  auto connection = connect(there);
  if (!connection) return nullptr;
  kept = *std::move(connection);
  return kept.get();
}

RedisAnswer RedisClient::command(const RedisWords& words) {
  RedisAnswer answer = guard::command(first_.get(), words);
  // MOVED 3999 127.0.0.1:6381
  for (int i = 0; i < kRedirectsMax && answer.failure && answer.failure->word() == "MOVED"; ++i) {
    const std::string text = answer.failure->text;
    redisContext* there = node(text.substr(text.rfind(' ') + 1));
    if (there == nullptr) return answer;
    answer = guard::command(there, words);
  }
  return answer;
}

RedisAnswer RedisClient::on_every_master(const RedisWords& words) {
  const RedisAnswer nodes = guard::command(first_.get(), {"CLUSTER", "NODES"});
  if (!nodes) return guard::command(first_.get(), words);  // "cluster support disabled"
  // ID HOST:PORT@BUS,NAME FLAGS …
  RedisAnswer answer;
  std::string_view text = nodes.reply.text;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    const std::string address(line.substr(0, line.find('@')));
    const std::string_view flags = line.substr(std::min(line.find(' '), line.size()));
    if (flags.empty() || flags.substr(1, flags.find(' ', 1)).find("master") == flags.npos) continue;
    redisContext* there = node(address);
    if (there == nullptr)
      return {.failure = RedisFailure{"CLUSTERDOWN cannot connect to " + address, false}};
    answer = guard::command(there, words);
    if (!answer) return answer;
  }
  return answer;
}

}  // namespace pawl::guard
