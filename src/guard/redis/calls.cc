#include "guard/redis/calls.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "guard/redis/library.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

bool is_absent(const RedisFailure& failure) {
  return failure.text.find("Function not found") != std::string::npos ||
         failure.text.find("unknown command") != std::string::npos;
}

std::uint64_t number(const std::optional<std::string>& text) {
  return parse_token(text.value_or("")).value_or(0);
}

Error not_understood() {
  return {Code::kInvalid, "the installed guard answered what this libpawl does not know"};
}

}  // namespace

std::string guard_key(std::string_view resource) {
  return fmt::format("{{{}}}:pawl", resource.substr(0, resource.find(':')));
}

std::string_view redis_library() {
  return kRedisLibraryFile;
}

std::string_view redis_script() {
  const std::string_view file = redis_library();
  return file.substr(file.find('\n') + 1);
}

RedisCalls::RedisCalls(Send send, std::optional<Form> form) : send_(std::move(send)), form_(form) {}

Result<std::optional<RedisInstallation>> RedisCalls::installed() {
  using Found = std::optional<RedisInstallation>;
  if (form_ != Form::kScript) {
    const RedisAnswer asked = send_({"FCALL_RO", "pawl_version", "0"});
    if (asked) {
      form_ = Form::kFunctions;
      return Found{{asked.at(0).value_or(""), asked.at(1).value_or("")}};
    }
    if (!is_absent(*asked.failure)) return to_error(*asked.failure);
    if (form_) return Found{};
  }
  const RedisAnswer mark = send_({"GET", kScriptMark});
  if (!mark) return to_error(*mark.failure);
  const std::string text = to_text(mark.reply).value_or("");
  const std::size_t space = text.find(' ');
  if (space == text.npos) return Found{};
  form_ = Form::kScript;
  return Found{{text.substr(0, space), text.substr(space + 1)}};
}

Result<void> RedisCalls::verify() {
  if (verified_) return {};
  const auto found = installed();
  if (!found) return found.error();
  if (!*found)
    return Error{Code::kInvalid, "no guard is installed in this Redis: pawl guard install redis"};
  if (const auto same = check_contract_version((*found)->contract, (*found)->version); !same)
    return same.error();
  verified_ = true;
  return {};
}

RedisAnswer RedisCalls::call(std::string_view function, std::string_view resource,
                             RedisWords arguments) {
  // All keys of a command have the hash tag of the guard in a Cluster, so that one tells the slot.
  const bool script = form() == Form::kScript;
  RedisWords words =
      script ? RedisWords{"EVALSHA", hash_, "1", guard_key(resource), std::string(function)}
             : RedisWords{"FCALL", std::string(function), "1", guard_key(resource)};
  words.insert(words.end(), std::make_move_iterator(arguments.begin()),
               std::make_move_iterator(arguments.end()));
  return script ? eval(std::move(words)) : send_(words);
}

// NOSCRIPT says that nothing was executed. EVAL then also gives the script to the server.
RedisAnswer RedisCalls::eval(RedisWords words) {
  if (hash_.empty()) {
    const RedisAnswer loaded = send_({"SCRIPT", "LOAD", std::string(redis_script())});
    if (!loaded) return loaded;
    hash_ = to_text(loaded.reply).value_or("");
    words[1] = hash_;
  }
  RedisAnswer answer = send_(words);
  if (!answer.failure || answer.failure->word() != "NOSCRIPT") return answer;
  words[0] = "EVAL";
  words[1] = redis_script();
  return send_(words);
}

Result<std::uint64_t> RedisCalls::advance(std::string_view resource, std::uint64_t token) {
  const RedisAnswer done =
      call("pawl_advance", resource, {std::string(resource), std::to_string(token)});
  if (!done) return to_error(*done.failure);
  return number(to_text(done.reply));
}

Result<Decision> RedisCalls::check(std::string_view resource, std::uint64_t token) {
  const RedisAnswer asked =
      call("pawl_check", resource, {std::string(resource), std::to_string(token)});
  if (!asked) return to_error(*asked.failure);
  const auto verdict = parse_verdict(asked.at(0).value_or(""));
  const auto mode = parse_mode(asked.at(2).value_or(""));
  if (!verdict || !mode) return not_understood();
  return Decision{.verdict = *verdict,
                  .token = token,
                  .max = number(asked.at(1)),
                  .mode = *mode,
                  .let_through = asked.at(3) == "1"};
}

}  // namespace pawl::guard
