#include "wire/value.h"

#include <charconv>

namespace pawl::wire {

Value Value::of(std::int64_t integer) {
  Value value;
  value.kind = Kind::kInteger;
  value.integer = integer;
  return value;
}

Value Value::of(std::string_view text) {
  Value value;
  value.kind = Kind::kText;
  value.text = text;
  return value;
}

Value Value::error(std::string_view line) {
  Value value = of(line);
  value.kind = Kind::kError;
  return value;
}

const Value* Value::find(std::string_view key) const {
  if (kind != Kind::kMap && kind != Kind::kArray) return nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].as_text() == key) return &items[i + 1];
  }
  return nullptr;
}

std::optional<std::int64_t> Value::as_integer() const {
  if (kind == Kind::kInteger || kind == Kind::kBoolean) return integer;
  const auto digits = as_text();
  if (!digits) return std::nullopt;
  std::int64_t number = 0;
  const char* end = digits->data() + digits->size();
  const auto [stop, problem] = std::from_chars(digits->data(), end, number);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::optional<std::string_view> Value::as_text() const {
  if (kind == Kind::kText || kind == Kind::kSimple) return text;
  return std::nullopt;
}

namespace {

void show(const Value& value, std::string& out);

void show_items(const Value& value, std::string& out) {
  const bool map = value.kind == Value::Kind::kMap;
  out.push_back(map ? '{' : '[');
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) out.append(map && i % 2 == 1 ? ": " : ", ");
    show(value.items[i], out);
  }
  out.push_back(map ? '}' : ']');
}

void show(const Value& value, std::string& out) {
  switch (value.kind) {
    case Value::Kind::kNull:
      out.append("null");
      break;
    case Value::Kind::kInteger:
      out.append(std::to_string(value.integer));
      break;
    case Value::Kind::kBoolean:
      out.append(value.integer != 0 ? "true" : "false");
      break;
    case Value::Kind::kReal:
      out.append(std::to_string(value.real));
      break;
    case Value::Kind::kSimple:
      out.append(value.text);
      break;
    case Value::Kind::kText:
      out.append("\"").append(value.text).append("\"");
      break;
    case Value::Kind::kError:
      out.append("-").append(value.text);
      break;
    case Value::Kind::kPush:
      out.append("push ");
      show_items(value, out);
      break;
    case Value::Kind::kArray:
    case Value::Kind::kMap:
      show_items(value, out);
      break;
  }
}

}  // namespace

std::string to_string(const Value& value) {
  std::string out;
  show(value, out);
  return out;
}

}  // namespace pawl::wire
