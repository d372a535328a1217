// The parts of a request's target.
//
//   "/v1/locks/reports%2Fnightly?limit=5"   path "/v1/locks/reports%2Fnightly", query {limit: "5"}
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::http {

// Decodes %2F to '/' and so on. Nothing if a % is not followed by two hex digits.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

using Query = std::map<std::string, std::string, std::less<>>;

struct Target {
  std::string path;  // Not decoded: an encoded slash is part of a name.
  Query query;       // Decoded; '+' is a space.
};
// kInvalid, with what is wrong, if it is not a path, an encoding is malformed, or a parameter is
// given twice.
[[nodiscard]] Result<Target> parse_target(std::string_view target);

}  // namespace pawl::http
