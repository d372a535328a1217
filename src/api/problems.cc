#include "api/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

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
    {ErrorCode::kConflict, 409, "conflict", "the Idempotency-Key means something else",
     Retry::kNever},
    {ErrorCode::kBusy, 503, "busy", "a limit is reached", Retry::kLater},
    {ErrorCode::kTooLong, 400, "too_long", "longer than its limit", Retry::kNever},
    {ErrorCode::kNoAuth, 401, "noauth", "credentials are needed", Retry::kNever},
    {ErrorCode::kWrongPass, 401, "wrongpass", "wrong user or secret", Retry::kNever},
    {ErrorCode::kNoPerm, 403, "noperm", "this user may not do that", Retry::kNever},
    {ErrorCode::kNoProto, 500, "internal", "pawld answered what it never should", Retry::kNever},
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
  Problem problem{row.status, std::string(row.code), std::string(row.title), std::move(detail),
                  row.retry};
  if (row.status == 401) problem.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (row.retry == Retry::kLater) problem.headers.push_back({"Retry-After", "1"});
  return problem;
}

const Row& row_of(ErrorCode error) {
  return kRows[static_cast<std::size_t>(error)];
}

// What a lease's holder should know, by how the lease ended.
struct End {
  std::string_view how, detail;
};
constexpr std::array kEnds{
    End{"released", "the lease was released"},
    End{"expired", "the lease expired: no renewal arrived within its ttl_ms"},
    End{"broken", "the lease was broken by an operator"},
    End{"max_hold", "the lease reached its max_hold_ms"},
    End{"unknown",
        "pawld does not know this lease: it never existed, or it ended before pawld restarted, or "
        "so long "
        "ago that pawld forgot it"},
};

// `detail` is how it ended, of a lease ("expired") or of a request that is sent again ("granted as
// 34, expired"). Behind "broken" may be by whom and why ("broken by ops: host is gone").
void explain_loss(Problem& problem) {
  constexpr std::string_view kBroken = "broken";
  const std::string_view detail = problem.detail;
  if (detail.starts_with("broken by ") || detail.starts_with("broken: ")) {
    problem.more["how"] = kBroken;
    problem.detail = "the lease was " + problem.detail;
    return;
  }
  const std::string_view how = detail.substr(detail.rfind(' ') + 1);
  const auto* const end =
      std::find_if(kEnds.begin(), kEnds.end(), [&](const End& e) { return e.how == how; });
  if (end == kEnds.end()) return;
  problem.more["how"] = end->how;
  if (detail == how) {
    problem.detail = end->detail;
  } else {  // "granted as 34, expired"
    const std::string granted(detail.substr(0, detail.rfind(' ')));
    problem.detail =
        fmt::format("this request was {} and {}; another request needs another Idempotency-Key",
                    granted, end->detail);
  }
}

// Of "restoring: … grants begin in N ms, …".
Millis time_left(std::string_view detail) {
  constexpr std::string_view kBefore = "grants begin in ";
  const std::size_t at = detail.find(kBefore);
  std::int64_t ms = 0;
  if (at != std::string_view::npos)
    std::from_chars(detail.data() + at + kBefore.size(), detail.data() + detail.size(), ms);
  return Millis(ms);
}

}  // namespace

Problem still_restoring(Millis left) {
  const auto seconds =
      std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(left).count(), 1);
  return {503,
          "restoring",
          "locks are not granted yet after a restore",
          fmt::format("restored from a backup: locks are granted in {} s, when every lease from "
                      "before has run out",
                      seconds),
          Retry::kLater,
          {{"Retry-After", std::to_string(seconds)}}};
}

Problem problem_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string detail(space == std::string_view::npos ? line : line.substr(space + 1));
  const auto error = wire::error_code_from_text(line.substr(0, space));
  if (!error) return from(row_of(ErrorCode::kNoProto), std::string(line));
  Problem problem = from(row_of(*error), detail);
  if (error == ErrorCode::kLost) explain_loss(problem);
  if (error == ErrorCode::kBusy && detail.starts_with("restoring: "))
    return still_restoring(time_left(detail));
  if (error == ErrorCode::kConflict && detail.starts_with("the request id "))
    problem.detail = "the Idempotency-Key was used with other locks, shared, limit or ttl_ms";
  if (const auto active = wire::active_in(line);
      error == ErrorCode::kReadOnly && !active.resp.empty())
    problem.headers.push_back({"Pawl-Active", std::string(active.resp)});
  return problem;
}

Problem problem_of(std::string_view line, const Subject& subject) {
  Problem problem = problem_of(line);
  const std::string refused = fmt::format("{} needs the role ", subject.command);
  if (!problem.detail.starts_with(refused)) return problem;
  const std::string route = fmt::format("{} {} needs the role ", subject.method, subject.path);
  if (problem.code == "noauth") {
    problem.detail = fmt::format("{}{}: send Authorization: Bearer USER:SECRET", route,
                                 wire::to_text(subject.access));
  } else {
    problem.detail = route + problem.detail.substr(refused.size());
  }
  return problem;
}

Problem standby(std::string_view line, const http::Request& request) {
  Problem problem = problem_of(line);
  const std::string http(wire::active_in(line).http);
  if (http.empty()) return problem;
  const std::string at = (request.tls ? "https://" : "http://") + http;
  // Not Retry-After: the client need not wait.
  std::erase_if(problem.headers,
                [](const http::Header& header) { return header.name == "Retry-After"; });
  problem.status = 307;
  problem.detail = "this pawld stands by; ask the active one: " + at;
  problem.headers.push_back({"Location", at + request.target});
  return problem;
}

// AUTH with a user and a secret is answered -ERR only where there are no users.
Problem problem_of_credentials(std::string_view line) {
  Problem problem = problem_of(line);
  if (problem.code != "invalid") return problem;
  problem = invalid(
      "this pawld has no users, so it cannot check the Authorization header: leave the header out, "
      "or start "
      "pawld with auth_file",
      "no_users");
  problem.title = "pawld has no users";
  return problem;
}

Problem too_long(std::string detail) {
  return from(row_of(ErrorCode::kTooLong), std::move(detail));
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

Problem unexpected_reply(std::string_view to) {
  return from(row_of(ErrorCode::kNoProto), "an unexpected reply to " + std::string(to));
}

}  // namespace pawl::api
