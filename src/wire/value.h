// A reply as the client sees it: a small tree.
//
//   const wire::Value* token = reply.find("token");     // a RESP3 map, or RESP2's flat array of pairs
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
    kText,    // bulk or verbatim
    kError,   // text is the line: "LOST expired"
    kArray,   // arrays and sets
    kMap,     // items are key, value, key, value, …
    kPush,    // out of band; items as an array
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

  // The value of `key` in a map or in a flat array of pairs; nullptr when there is none.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // Integers and booleans; and text or simple strings that are a decimal integer (RESP2 has no
  // other way).
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;
  // Text and simple strings; empty for everything else.
  [[nodiscard]] std::optional<std::string_view> as_text() const;

  bool operator==(const Value&) const = default;
};

// For messages and tests: {"lease": "…", "token": 34}.
[[nodiscard]] std::string to_string(const Value& value);

}  // namespace pawl::wire
