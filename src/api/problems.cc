#include "api/problems.h"

#include <array>

#include "wire/error_code.h"

namespace pawl::api {
namespace {

using http::Problem;
using http::Retry;
using wire::ErrorCode;

struct Row {
  ErrorCode error;
  int status;
  std::string_view code;
  std::string_view title;
  Retry retry;
};

constexpr std::array<Row, wire::kErrorCodes> kRows{{
    {ErrorCode::kErr, 400, "invalid", "the request is wrong", Retry::kNever},
    {ErrorCode::kLost, 410, "lost", "the lease is over", Retry::kNever},
    {ErrorCode::kConflict, 409, "conflict", "the request id means something else", Retry::kNever},
    {ErrorCode::kBusy, 503, "busy", "a limit is reached", Retry::kLater},
    {ErrorCode::kTooLong, 400, "too_long", "longer than its limit", Retry::kNever},
    {ErrorCode::kNoAuth, 401, "noauth", "credentials are needed", Retry::kNever},
    {ErrorCode::kWrongPass, 401, "wrongpass", "wrong user or secret", Retry::kNever},
    {ErrorCode::kNoPerm, 403, "noperm", "this user may not do that", Retry::kNever},
    {ErrorCode::kNoProto, 500, "strange", "pawld answered what it never should", Retry::kNever},
    {ErrorCode::kLoading, 503, "loading", "pawld is still reading its data", Retry::kLater},
    {ErrorCode::kReadOnly, 503, "standby", "another pawld is active", Retry::kLater},
    {ErrorCode::kUncertain, 503, "uncertain", "it may have happened", Retry::kLater},
    {ErrorCode::kFull, 503, "full", "no disk space for new grants", Retry::kLater},
    {ErrorCode::kExhausted, 503, "exhausted", "the tokens are used up", Retry::kNever},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].error) != i) return false;
  }
  return true;
}
static_assert(in_order(), "row_of() indexes the table by ErrorCode");

Problem from(const Row& row, std::string detail) {
  Problem problem{row.status, std::string(row.code), std::string(row.title), std::move(detail), row.retry};
  if (row.status == 401) problem.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (row.retry == Retry::kLater) problem.headers.push_back({"Retry-After", "1"});
  return problem;
}

const Row& row_of(ErrorCode error) {
  return kRows[static_cast<std::size_t>(error)];
}

}  // namespace

Problem problem_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string detail(space == std::string_view::npos ? line : line.substr(space + 1));
  const auto error = wire::error_code_from_text(line.substr(0, space));
  if (!error) return from(row_of(ErrorCode::kNoProto), std::string(line));
  Problem problem = from(row_of(*error), detail);
  constexpr std::string_view kActive = "active=";
  if (error == ErrorCode::kReadOnly && detail.starts_with(kActive))
    problem.headers.push_back({"Pawl-Active", detail.substr(kActive.size())});
  return problem;
}

Problem invalid(std::string detail, std::string code) {
  Problem problem = from(row_of(ErrorCode::kErr), std::move(detail));
  problem.code = std::move(code);
  return problem;
}

Problem not_found(std::string code, std::string title, std::string detail) {
  return {404, std::move(code), std::move(title), std::move(detail)};
}

Problem busy(std::string detail) {
  return from(row_of(ErrorCode::kBusy), std::move(detail));
}

Problem uncertain() {
  return from(row_of(ErrorCode::kUncertain),
              "pawld closed before it answered; ask again with the same Idempotency-Key");
}

Problem strange(std::string_view to) {
  return from(row_of(ErrorCode::kNoProto), "an unexpected reply to " + std::string(to));
}

}  // namespace pawl::api
