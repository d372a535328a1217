// JSON for --json: a writer that puts the commas, and the translation of replies.
//
//   Json json;
//   json.object().key("token").number(34).key("slot").null().end();
//   json.text()                                       {"token":34,"slot":null}
//
// Strings come out as valid UTF-8 whatever goes in: a byte that is none becomes U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/value.h"

namespace pawl::cli {

class Json {
 public:
  Json& object() { return open('{', '}'); }
  Json& array() { return open('[', ']'); }
  Json& end();
  Json& key(std::string_view name);
  Json& string(std::string_view value);
  Json& number(std::int64_t value);
  Json& boolean(bool value);
  Json& null();
  // A reply as it came: maps with their keys, tokens as numbers.
  Json& value(const wire::Value& value);

  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  Json& open(char left, char right);
  void separate();
  void quote(std::string_view value);

  std::string out_;
  std::vector<char> closers_;
  bool first_ = true;  // nothing stands before the next item in its container
};

}  // namespace pawl::cli
