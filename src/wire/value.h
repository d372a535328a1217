// A decoded reply: a small tree.
//
//   const wire::Value* token = reply.find("token");   // in a map, or in RESP2's array of pairs
//   if (token && token->as_integer()) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::wire {

struct Value {
  enum class Kind : std::uint8_t {
    kNull,
    kInteger,
    kReal,
    kBoolean,
    kSimple,  // +text
    kText,    // A bulk or verbatim string.
    kError,   // `text` is the line: "LOST expired".
    kArray,   // An array or a set.
    kMap,     // `items` are key, value, key, value, …
    kPush,    // Out of band; `items` as in an array.
  };

  Kind kind = Kind::kNull;
  std::int64_t integer = 0;  // kInteger; 1 or 0 for kBoolean
  double real = 0;
  std::string text;
  std::vector<Value> items;

  static Value null() { return {}; }
  static Value of(std::int64_t integer);
  static Value of(std::string_view text);
  static Value error(std::string_view line);

  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  [[nodiscard]] bool is_error() const { return kind == Kind::kError; }
  [[nodiscard]] bool is_push() const { return kind == Kind::kPush; }

  // The value of `key` in a map or in a flat array of pairs; null if there is none.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // For integers, booleans, and texts and simple strings that are a decimal integer (RESP2 has no
  // other way).
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;
  // For texts and simple strings; nothing for everything else.
  [[nodiscard]] std::optional<std::string_view> as_text() const;

  bool operator==(const Value&) const = default;
};

// For messages and tests: {"lease": "…", "token": 34}.
[[nodiscard]] std::string to_string(const Value& value);

}  // namespace pawl::wire
