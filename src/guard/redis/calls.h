// Calls the functions of an installed guard: by FCALL, or where the server has no functions by
// EVALSHA with the same text (guards/redis/pawl.lua).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "guard/redis/connection.h"
#include "pawl/guard.h"

namespace pawl::guard {

// The hash that has all of the resource's guard: {orders}:pawl.
[[nodiscard]] std::string guard_key(std::string_view resource);

struct RedisInstallation {
  std::string version;
  std::string contract;
};

// Used by one thread at a time.
class RedisCalls {
 public:
  using Send = std::function<RedisAnswer(const RedisWords&)>;
  enum class Form : std::uint8_t { kFunctions, kScript };
  // `form`: nothing: whichever is installed.
  explicit RedisCalls(Send send, std::optional<Form> form = {});

  // Nothing: no guard is installed. Finds out the form.
  [[nodiscard]] Result<std::optional<RedisInstallation>> installed();
  // kInvalid unless a guard with the contract of this libpawl is installed. Asks once.
  [[nodiscard]] Result<void> verify();
  [[nodiscard]] Form form() const { return form_.value_or(Form::kFunctions); }

  // `resource` or a guard's name; the arguments are those of the function.
  RedisAnswer call(std::string_view function, std::string_view resource, RedisWords arguments);

  // As Guard has them.
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token);
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token);

 private:
  RedisAnswer eval(RedisWords words);

  const Send send_;
  std::optional<Form> form_;
  bool verified_ = false;
  std::string hash_;  // of the script, as the server has named it
};

// What FUNCTION LOAD takes, and what EVAL takes.
[[nodiscard]] std::string_view redis_library();
[[nodiscard]] std::string_view redis_script();
// Marks a server in which scripts are used: "VERSION CONTRACT".
inline constexpr const char* kScriptMark = "pawl:script";

}  // namespace pawl::guard
