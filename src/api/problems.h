// The problems that routes answer, and what each error of the wire becomes.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "http/message.h"
#include "wire/access.h"
#include "wire/value.h"

namespace pawl::api {

// Of an error reply ("LOST expired"), in the words of HTTP where the wire's are others.
[[nodiscard]] http::Problem problem_of(std::string_view line);
// After a restore: no lock is granted for `left`.
[[nodiscard]] http::Problem still_restoring(Millis left);

// The command that a request became, and what the request calls it.
struct Subject {
  std::string_view command;  // "BREAK"
  std::string_view method;   // "POST"
  std::string_view path;     // "/v1/locks/{name}/break"
  wire::Access access = wire::Access::kNone;
};
// The same, for a refusal that names the command or how to authenticate.
[[nodiscard]] http::Problem problem_of(std::string_view line, const Subject& subject);
// Of a READONLY error: 307 to the same route of the active pawld, if its HTTP interface is known.
[[nodiscard]] http::Problem standby(std::string_view line, const http::Request& request);
// Of the error that the credentials of a request were answered with.
[[nodiscard]] http::Problem problem_of_credentials(std::string_view line);

// The request itself is wrong; `detail` says what was expected.
[[nodiscard]] http::Problem invalid(std::string detail, std::string code = "invalid");
[[nodiscard]] http::Problem too_long(std::string detail);
[[nodiscard]] http::Problem not_found(std::string code, std::string title, std::string detail);
// A limit is reached; nothing happened.
[[nodiscard]] http::Problem busy(std::string detail);
// pawld hung up before it answered.
[[nodiscard]] http::Problem uncertain();
// pawld answered what it never should.
[[nodiscard]] http::Problem unexpected_reply(std::string_view to);

}  // namespace pawl::api
