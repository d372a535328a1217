// Result<T>: a value, or an Error that says what the caller may conclude.
//
//   pawl::Result<int> parsed = parse(text);
//   if (!parsed) return report(parsed.error());
//   use(*parsed);
//
// Spelled like std::expected, which C++20 users (and clang 14) do not have yet; it can become an
// alias later.
#pragma once

#if __cplusplus < 202002L
#error "Pawl's headers need C++20 or later: compile with -std=c++20"
#endif

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace pawl {

enum class Code {
  kBusy,          // Someone else holds it. Wait, or try later.
  kLeaseLost,     // You no longer hold it. Stop touching the resource.
  kStaleToken,    // A newer holder has been here. Stop, and do not retry.
  kUnavailable,   // Nothing happened. Safe to retry the same call.
  kUnknown,       // It may have happened. Ask before you act.
  kInvalid,       // The request itself is wrong. Fix the caller.
  kDenied,        // Not allowed. Nothing happened.
  kIssuerBehind,  // pawld's counter is behind the guard. Stop; an operator must raise it.
};

// One word, for logs and messages.
[[nodiscard]] constexpr std::string_view to_text(Code code) {
  switch (code) {
    case Code::kBusy:
      return "busy";
    case Code::kLeaseLost:
      return "lost";
    case Code::kStaleToken:
      return "stale";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalid:
      return "invalid";
    case Code::kDenied:
      return "denied";
    case Code::kIssuerBehind:
      return "issuer_behind";
  }
  return "unknown";
}

// Programs read code; people read detail.
struct Error {
  Code code = Code::kInvalid;
  std::string detail;

  bool operator==(const Error&) const = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Using the value of an error throws std::bad_variant_access: a bug in the caller, never an
  // outcome.
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  [[nodiscard]] T& value() & { return **this; }
  [[nodiscard]] const T& value() const& { return **this; }
  [[nodiscard]] T&& value() && { return *std::move(*this); }

  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  void value() const { static_cast<void>(std::get<0>(state_)); }
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace pawl
