// JSON for --json: a builder over Boost.JSON, and the translation of replies. Members keep their
// order.
//
//   Json json;
//   json.object().key("token").number(34).key("slot").null().end();
//   json.text();  // {"token":34,"slot":null}
//
// Strings come out as valid UTF-8: an invalid byte becomes U+FFFD.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/value.h"

namespace pawl::cli {

class Json {
 public:
  // Containers nest until their end().
  Json& object() { return open(boost::json::object()); }
  Json& array() { return open(boost::json::array()); }
  Json& end();
  // In an object, before each value.
  Json& key(std::string_view name);
  Json& string(std::string_view value);
  Json& number(std::int64_t value) { return add(value); }
  Json& boolean(bool value) { return add(value); }
  Json& null() { return add(nullptr); }
  // A reply as it was received: maps with their keys, tokens as numbers.
  Json& value(const wire::Value& value);

  // The document. All containers must have ended.
  [[nodiscard]] std::string text() const;

 private:
  struct Container {
    std::string key;  // in its parent
    boost::json::value value;
  };
  Json& open(boost::json::value container);
  Json& add(boost::json::value value);

  boost::json::value root_;
  std::vector<Container> open_;  // outermost first
  std::string key_;              // of the next value
};

}  // namespace pawl::cli
