#include "cli/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/assert.h"
#include "cli/utf8.h"

namespace pawl::cli {

Json& Json::open(char left, char right) {
  separate();
  out_.push_back(left);
  closers_.push_back(right);
  first_ = true;
  return *this;
}

Json& Json::end() {
  PAWL_ASSERT(!closers_.empty());
  out_.push_back(closers_.back());
  closers_.pop_back();
  first_ = false;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  quote(name);
  out_.push_back(':');
  first_ = true;  // Its value follows without a comma.
  return *this;
}

Json& Json::string(std::string_view value) {
  separate();
  quote(value);
  return *this;
}

Json& Json::number(std::int64_t value) {
  separate();
  out_ += std::to_string(value);
  return *this;
}

Json& Json::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

Json& Json::null() {
  separate();
  out_ += "null";
  return *this;
}

Json& Json::value(const wire::Value& value) {
  using Kind = wire::Value::Kind;
  switch (value.kind) {
    case Kind::kNull:
      return null();
    case Kind::kInteger:
      return number(value.integer);
    case Kind::kBoolean:
      return boolean(value.integer != 0);
    case Kind::kReal:
      separate();
      out_ += std::isfinite(value.real) ? fmt::format("{}", value.real) : "null";
      return *this;
    case Kind::kSimple:
    case Kind::kText:
    case Kind::kError:
      return string(value.text);
    case Kind::kArray:
    case Kind::kPush:
      array();
      for (const wire::Value& item : value.items) this->value(item);
      return end();
    case Kind::kMap:
      object();
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        key(value.items[i].text).value(value.items[i + 1]);
      }
      return end();
  }
  return null();
}

void Json::separate() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

void Json::quote(std::string_view value) {
  out_.push_back('"');
  for (std::string_view rest = value; !rest.empty();) {
    const std::size_t size = utf8_length(rest);
    const char byte = rest.front();
    if (size == 0) {
      out_ += "\\ufffd";
    } else if (byte == '"' || byte == '\\') {
      out_ += {'\\', byte};
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned char>(byte));
    } else {
      out_ += rest.substr(0, size);
    }
    rest.remove_prefix(std::max<std::size_t>(size, 1));
  }
  out_.push_back('"');
}

}  // namespace pawl::cli
