// Reads and writes the lines between the drill and its workers (worker.h has the protocol).
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drill/record.h"
#include "drill/target.h"
#include "pawl/client.h"

namespace pawl::drill {

namespace json = boost::json;

// Splits a byte stream into lines.
class LineReader {
 public:
  // Reads once, and blocks if there is nothing to read; false at the end of the stream.
  [[nodiscard]] bool read(int fd);
  // The next complete line, without its line feed.
  [[nodiscard]] std::optional<std::string> next();

 private:
  std::string bytes_;
};

// Nothing: not a JSON object.
[[nodiscard]] std::optional<json::object> parse(std::string_view line);
// A missing member, or one of another type, is "", 0 or false: both ends are this program.
[[nodiscard]] std::string text(const json::object& object, const char* key);
[[nodiscard]] std::uint64_t number(const json::object& object, const char* key);
[[nodiscard]] bool flag(const json::object& object, const char* key);

[[nodiscard]] json::object to_json(const Target& target);
[[nodiscard]] Target target_from(const json::object& object);
[[nodiscard]] json::object to_json(const TriedWay& tried);
[[nodiscard]] TriedWay tried_way_from(const json::object& object);
[[nodiscard]] json::object to_json(const TlsOptions& tls);
[[nodiscard]] TlsOptions tls_from(const json::object& object);

}  // namespace pawl::drill
