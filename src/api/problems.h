// The problems that routes answer, and what each error of the wire becomes.
#pragma once

#include <string>
#include <string_view>

#include "http/problem.h"
#include "wire/value.h"

namespace pawl::api {

// Of an error reply ("LOST expired").
[[nodiscard]] http::Problem problem_of(std::string_view line);

// The request itself is wrong; `detail` says what was expected.
[[nodiscard]] http::Problem invalid(std::string detail, std::string code = "invalid");
[[nodiscard]] http::Problem not_found(std::string code, std::string title, std::string detail);
// A limit is reached; nothing happened.
[[nodiscard]] http::Problem busy(std::string detail);
// pawld hung up before it answered.
[[nodiscard]] http::Problem uncertain();
// pawld answered what it never should.
[[nodiscard]] http::Problem strange(std::string_view to);

}  // namespace pawl::api
