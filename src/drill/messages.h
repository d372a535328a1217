// The lines between the drill and its workers, read and written in one place.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drill/target.h"
#include "pawl/client.h"

namespace pawl::drill {

namespace json = boost::json;

// Bytes that come in pieces, as lines.
class Lines {
 public:
  // Reads once; false at the end.
  [[nodiscard]] bool read(int fd);
  // A whole line without its end; nothing: none yet.
  [[nodiscard]] std::optional<std::string> next();

 private:
  std::string bytes_;
};

// Nothing: it is no object.
[[nodiscard]] std::optional<json::object> parse(std::string_view line);
// What is not there, or of another kind, is empty, 0 or false: both ends are this program.
[[nodiscard]] std::string text(const json::object& object, const char* key);
[[nodiscard]] std::uint64_t number(const json::object& object, const char* key);
[[nodiscard]] bool flag(const json::object& object, const char* key);

[[nodiscard]] json::object to_json(const Target& target);
[[nodiscard]] Target target_from(const json::object& object);
[[nodiscard]] json::object to_json(const TlsOptions& tls);
[[nodiscard]] TlsOptions tls_from(const json::object& object);

}  // namespace pawl::drill
