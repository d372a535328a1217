// Reads the arguments of one command in order, and keeps the first thing that is wrong.
//
//   ArgReader in({"HISTORY", -2, "lock [COUNT n]"}, args);
//   const std::string_view lock = in.lock();
//   while (in.more()) {
//     if (in.option("COUNT")) count = in.number("COUNT", {1, 1000});
//     else in.refuse_rest();
//   }
//   if (!in.ok()) return in.take_error();
//
// After a refusal every further read returns an empty value and more() is false, so callers need no
// check per read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/short_list.h"
#include "base/types.h"
#include "wire/error_code.h"

namespace pawl::wire {

// What a command looks like: enough to count its arguments, and to explain a mistake.
struct Syntax {
  std::string_view name;
  int arity = 1;           // counts the name, as in Redis; negative: at least
  std::string_view usage;  // arguments only; empty when there are none

  // Whether `args` arguments, the name included, can be right.
  [[nodiscard]] constexpr bool accepts(std::size_t args) const {
    return arity >= 0 ? args == static_cast<std::size_t>(arity)
                      : args >= static_cast<std::size_t>(-arity);
  }
};

struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

class ArgReader {
 public:
  // `args` holds at least the name. Checks the number of arguments at once.
  ArgReader(const Syntax& syntax, std::span<const std::string_view> args);

  [[nodiscard]] bool ok() const { return !error_; }
  [[nodiscard]] bool more() const { return ok() && at_ < args_.size(); }
  [[nodiscard]] std::optional<WireError> take_error() { return std::move(error_); }
  void refuse(ErrorCode code, std::string text);
  // The next argument, if there is one, is not an option of this command.
  void refuse_rest();
  // The option was given before.
  void refuse_twice(std::string_view word);

  // Whether the next argument is this word; then it is read. A second time is refused.
  bool option(std::string_view word);
  bool repeated_option(std::string_view word);

  // The next argument, whatever it holds; `what` names it when it is missing.
  std::string_view any(std::string_view what);
  std::string_view lock();
  // Plain text of a length in `bytes`; longer is TOOLONG.
  std::string_view text(std::string_view what, Range bytes);
  std::uint64_t number(std::string_view what, Range range);
  Millis millis(std::string_view what, Millis min, Millis max);
  Token token(std::string_view what);
  LeaseId lease();
  std::string_view request_id();
  // What was not read yet; rest() reads it.
  [[nodiscard]] std::span<const std::string_view> remaining() const { return args_.subspan(at_); }
  std::span<const std::string_view> rest();

 private:
  std::uint64_t bounded(std::string_view what, Range range, std::string_view unit);

  const Syntax syntax_;
  std::span<const std::string_view> args_;
  std::size_t at_ = 1;
  ShortList<std::string_view, 16> seen_;  // options given so far
  std::optional<WireError> error_;
};

// Decimal digits only: no sign, no space, at most 18 of them.
[[nodiscard]] std::optional<std::uint64_t> digits_to_number(std::string_view digits);

}  // namespace pawl::wire
