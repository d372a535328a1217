// The headers that carry tokens.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/types.h"
#include "gate/http1.h"
#include "http/message.h"

namespace pawl::gate {

inline constexpr std::string_view kTokenHeader = "X-Fencing-Token";
inline constexpr std::string_view kMaxHeader = "X-Fencing-Max";

inline http::Header max_header(Token max) {
  return {std::string(kMaxHeader), fmt::format("{}", max.value)};
}

// Whether a method changes nothing.
inline bool is_read(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

// Some services take the method from a header, if there is one: then GET may be a DELETE.
inline bool names_other_method(const Headers& headers) {
  return count_of(headers, "X-HTTP-Method-Override") + count_of(headers, "X-HTTP-Method") +
             count_of(headers, "X-Method-Override") >
         0;
}

}  // namespace pawl::gate
