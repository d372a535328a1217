// Which resource a request is for: its path, compared with patterns such as path:/accounts/{id}.
//
//   path:/accounts/{id}    /accounts/7 and everything below it is the resource /accounts/7
//   path:/reports          everything below /reports is one resource
//   path:/                 the whole service is one resource
//
// Two spellings of one path must not be two resources, or an old token would get around the fence.
// So a path is refused unless it has one spelling only: no empty, `.` or `..` segments, no encoded
// characters that need no encoding, no encoded slash, no backslash, no parameters (`;`). Upper and
// lower case are different: use the gate only in front of services for which they are. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::gate {

class ResourcePattern {
 public:
  // kInvalid says what is wrong with it.
  [[nodiscard]] static Result<ResourcePattern> parse(std::string_view text);
  // The resource, if the canonical `path` is one of this pattern.
  [[nodiscard]] std::optional<std::string> match(std::string_view path) const;

 private:
  std::vector<std::string> segments_;  // empty: any one segment
};

// The path of a target, without its query. kInvalid: it has other spellings; the text says which
// part.
[[nodiscard]] Result<std::string> canonical_path(std::string_view target);

}  // namespace pawl::gate
