// Reads the arguments of one command in order, and keeps the first thing that is wrong.
//
//   ArgReader in(verb, args);
//   const std::string_view lock = in.lock();
//   while (in.more()) {
//     if (in.option("COUNT")) count = in.number("COUNT", {1, 1000});
//     else in.refuse_rest();
//   }
//   if (!in.ok()) return in.take_error();
//
// After a refusal every further read answers an empty value and more() is false, so callers need no
// check per read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/short_list.h"
#include "base/types.h"
#include "wire/error_code.h"
#include "wire/verbs.h"

namespace pawl::wire {

struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

class ArgReader {
 public:
  // Checks the number of arguments at once.
  ArgReader(const Verb& verb, std::span<const std::string_view> args);

  [[nodiscard]] bool ok() const { return !error_; }
  [[nodiscard]] bool more() const { return ok() && at_ < args_.size(); }
  [[nodiscard]] std::optional<WireError> take_error() { return std::move(error_); }
  void refuse(ErrorCode code, std::string text);
  // The next argument is not an option of this command.
  void refuse_rest();
  // The option was given before.
  void refuse_twice(std::string_view word);

  // Whether the next argument is this word; then it is behind us. A second time is refused.
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
  std::span<const std::string_view> rest();

 private:
  std::uint64_t bounded(std::string_view what, Range range, std::string_view unit);

  const Verb& verb_;
  std::span<const std::string_view> args_;
  std::size_t at_ = 1;
  ShortList<std::string_view, 16> seen_;  // options given so far
  std::optional<WireError> error_;
};

// Decimal digits only: no sign, no space, at most 18 of them.
[[nodiscard]] std::optional<std::uint64_t> digits_to_number(std::string_view digits);

}  // namespace pawl::wire
