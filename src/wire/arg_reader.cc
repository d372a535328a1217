#include "wire/arg_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hex.h"
#include "base/limits.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr std::size_t kTokenDigits = 16;

std::string usage(const Syntax& syntax) {
  return fmt::format("usage: {}{}{}", syntax.name, syntax.usage.empty() ? "" : " ", syntax.usage);
}

bool is_request_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::optional<std::uint64_t> digits_to_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

ArgReader::ArgReader(const Syntax& syntax, std::span<const std::string_view> args)
    : syntax_(syntax), args_(args) {
  if (syntax.accepts(args.size())) return;
  refuse(ErrorCode::kErr,
         fmt::format("wrong number of arguments for {}; {}", syntax.name, usage(syntax)));
}

void ArgReader::refuse(ErrorCode code, std::string text) {
  if (!error_) error_ = WireError{code, std::move(text)};
}

void ArgReader::refuse_rest() {
  if (!more()) return;
  refuse(ErrorCode::kErr, fmt::format("did not expect {}; {}", shown(args_[at_]), usage(syntax_)));
}

bool ArgReader::option(std::string_view word) {
  if (!repeated_option(word)) return false;
  if (seen_.contains(word)) {
    refuse_twice(word);
  } else {
    seen_.push_back(word);
  }
  return true;
}

void ArgReader::refuse_twice(std::string_view word) {
  refuse(ErrorCode::kErr, fmt::format("{} is given twice; {}", word, usage(syntax_)));
}

bool ArgReader::repeated_option(std::string_view word) {
  if (!more() || !is_word(args_[at_], word)) return false;
  ++at_;
  return true;
}

std::string_view ArgReader::any(std::string_view what) {
  if (!ok()) return {};
  if (at_ < args_.size()) return args_[at_++];
  refuse(ErrorCode::kErr, fmt::format("{} needs a value; {}", what, usage(syntax_)));
  return {};
}

std::string_view ArgReader::text(std::string_view what, Range bytes) {
  const std::string_view text = any(what);
  if (!ok()) return {};
  if (text.size() > bytes.max) {
    refuse(ErrorCode::kTooLong,
           fmt::format("{} takes at most {} bytes, got {}", what, bytes.max, text.size()));
  } else if (text.size() < bytes.min) {
    refuse(ErrorCode::kErr, fmt::format("{} must be {} to {} bytes, got {}", what, bytes.min,
                                        bytes.max, text.size()));
  } else if (!is_plain_text(text)) {
    refuse(ErrorCode::kErr, fmt::format("{} must be UTF-8 without control characters", what));
  }
  return text;
}

std::string_view ArgReader::lock() {
  return text("a lock name", {1, limits::kLockNameMax});
}

std::uint64_t ArgReader::bounded(std::string_view what, Range range, std::string_view unit) {
  const std::string_view digits = any(what);
  if (!ok()) return 0;
  const auto number = digits_to_number(digits);
  if (number && *number >= range.min && *number <= range.max) return *number;
  const std::string got = number ? std::string(digits) : shown(digits);
  refuse(ErrorCode::kErr,
         fmt::format("{} must be {} to {}{}, got {}", what, range.min, range.max, unit, got));
  return 0;
}

std::uint64_t ArgReader::number(std::string_view what, Range range) {
  return bounded(what, range, "");
}

Millis ArgReader::millis(std::string_view what, Millis min, Millis max) {
  const Range range{static_cast<std::uint64_t>(min.count()),
                    static_cast<std::uint64_t>(max.count())};
  return Millis(bounded(what, range, " ms"));
}

// Stricter than other numbers, as every guard is: ^[1-9][0-9]{0,15}$ and no more than a double
// holds exactly.
Token ArgReader::token(std::string_view what) {
  const std::string_view digits = any(what);
  if (!ok()) return {};
  const auto number = digits_to_number(digits);
  const bool canonical = number && digits.size() <= kTokenDigits && digits.front() != '0';
  if (canonical && *number <= limits::kTokenMax) return Token{*number};
  refuse(ErrorCode::kErr, fmt::format("{} must be a token, 1 to {}, got {}", what,
                                      limits::kTokenMax, shown(digits)));
  return {};
}

// What was sent is not repeated, here and below: it may be a secret with a slip in it.
LeaseId ArgReader::lease() {
  const std::string_view digits = any("lease");
  const auto lease = lease_from_hex(digits);
  if (!lease)
    refuse(ErrorCode::kErr, fmt::format("a lease is {} lowercase hex digits", kLeaseDigits));
  return lease.value_or(LeaseId{});
}

std::string_view ArgReader::request_id() {
  const std::string_view id = any("REQUEST");
  if (!ok()) return {};
  const bool letters = std::all_of(id.begin(), id.end(), is_request_character);
  if (id.size() > limits::kRequestMax) {
    refuse(ErrorCode::kTooLong, fmt::format("a request id takes at most {} characters, got {}",
                                            limits::kRequestMax, id.size()));
  } else if (id.size() < limits::kRequestMin || !letters) {
    refuse(ErrorCode::kErr, fmt::format("a request id must be {} to {} of A-Z a-z 0-9 _ -",
                                        limits::kRequestMin, limits::kRequestMax));
  }
  return id;
}

std::span<const std::string_view> ArgReader::rest() {
  if (!ok()) return {};
  const auto rest = args_.subspan(at_);
  at_ = args_.size();
  return rest;
}

}  // namespace pawl::wire
