// What went wrong, for programs and for people: application/problem+json (RFC 9457).
//
//   return Problem{409, "held", "someone else holds it", "reports/nightly is held by …", Retry::kLater};
//
// `code` is stable; programs decide by it. `retryable` says whether the very same request may
// succeed later.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "http/message.h"

namespace pawl::http {

enum class Retry : std::uint8_t { kNever, kLater };

struct Problem {
  int status = 500;
  std::string code;
  std::string title;   // the same for every problem of this code
  std::string detail;  // what it was this time
  Retry retry = Retry::kNever;
  std::vector<Header> headers = {};
  boost::json::object more = {};  // members of this code
};
[[nodiscard]] Response to_response(const Problem& problem);

}  // namespace pawl::http
