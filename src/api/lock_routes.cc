// Looking at locks, and breaking them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/limits.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

// Adds `option` and the parameter's value to the command. An empty value is the same as no
// parameter.
void append_parameter(std::vector<std::string>& command, const Asked& asked, std::string_view name,
                      std::string_view option) {
  const auto found = asked.query.find(name);
  if (found != asked.query.end() && !found->second.empty())
    command.insert(command.end(), {std::string(option), found->second});
}

template <class Wrong>
std::optional<http::Problem> refuse_value(const Asked& asked, std::string_view name, Wrong wrong) {
  const auto found = asked.query.find(name);
  return found == asked.query.end() || found->second.empty() ? std::nullopt : wrong(found->second);
}

std::optional<std::uint64_t> digits_of(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::optional<http::Problem> refuse_limit(const Asked& asked) {
  return refuse_value(asked, "limit", [](std::string_view text) -> std::optional<http::Problem> {
    const auto number = digits_of(text);
    if (number && *number >= 1 && *number <= limits::kCountMax) return std::nullopt;
    return invalid(
        fmt::format("limit must be 1 to {}, got {}", limits::kCountMax, wire::shown(text)));
  });
}

std::optional<http::Problem> refuse_page(const Asked& asked) {
  if (auto wrong = refuse_limit(asked)) return wrong;
  auto wrong =
      refuse_value(asked, "cursor", [](std::string_view text) -> std::optional<http::Problem> {
        if (digits_of(text)) return std::nullopt;
        return invalid(fmt::format("cursor must be the cursor of the page before, or 0, got {}",
                                   wire::shown(text)));
      });
  if (wrong) return wrong;
  return refuse_value(asked, "prefix", [](std::string_view text) {
    return wrong_text("prefix", text, {0, limits::kLockNameMax});
  });
}

Step list(const Asked& asked) {
  if (auto wrong = refuse_page(asked)) return *wrong;
  std::vector<std::string> command{"LOCKS"};
  append_parameter(command, asked, "prefix", "PREFIX");
  append_parameter(command, asked, "cursor", "CURSOR");
  append_parameter(command, asked, "limit", "COUNT");
  return Ask{std::move(command), [](const wire::Value& page) -> Step {
               if (page.items.size() != 2) return strange("LOCKS");
               return json_response(200, json::object{{"cursor", page.items[0].text},
                                                      {"locks", to_json(page.items[1])}});
             }};
}

// Every name is a lock: one that was never held is free, before and after a restart.
Step show(const Asked& asked) {
  return Ask{{"INSPECT", asked.name},
             [](const wire::Value& lock) -> Step { return json_response(200, to_json(lock)); }};
}

Step history(const Asked& asked) {
  if (auto wrong = refuse_limit(asked)) return *wrong;
  std::vector<std::string> command{"HISTORY", asked.name};
  append_parameter(command, asked, "limit", "COUNT");
  return Ask{
      std::move(command), [name = asked.name](const wire::Value& leases) -> Step {
        return json_response(200, json::object{{"lock", name}, {"history", to_json(leases)}});
      }};
}

Step break_lock(const Asked& asked) {
  Body body(asked.http.body, {"token", "now", "reason"});
  const auto token = body.number("token", {1, limits::kTokenMax});
  const bool now = body.boolean("now").value_or(false);
  const auto reason = body.text("reason", {1, limits::kReasonMax});
  if (!token) body.refuse("token is required: the one that the operator saw");
  if (!reason) body.refuse("reason is required: it is logged, and sent to observers");
  if (auto wrong = body.finish()) return *wrong;
  std::vector<std::string> command{"BREAK", asked.name, "TOKEN", std::to_string(*token)};
  if (now) command.emplace_back("NOW");
  command.insert(command.end(), {"REASON", *reason});
  return Ask{
      std::move(command), [name = asked.name, token, now](const wire::Value& done) -> Step {
        if (done.integer == 0) {
          return not_found("not_held", "that token does not hold it",
                           fmt::format("token {} does not hold {}", *token, wire::shown(name)));
        }
        return json_response(
            200, json::object{
                     {"lock", name}, {"token", *token}, {"state", now ? "broken" : "breaking"}});
      }};
}

}  // namespace

void add_lock_routes(RouteTable& table) {
  constexpr std::string_view kProblem = "application/problem+json";
  constexpr std::string_view kPageSize =
      R"({"type":"integer","minimum":1,"maximum":1000,"default":100})";
  const Parameter name{Place::kPath, "name", true, R"({"$ref":"#/components/schemas/LockName"})",
                       "the lock, percent-encoded; slashes may stand as they are"};
  const Parameter page_size{
      Place::kQuery, "limit", false, kPageSize,
      "page size: at most so many, 1 to 1000 (default 100); nothing to do with the "
      "limit of acquire"};
  table.add({
      .method = "GET",
      .path = "/v1/locks",
      .access = wire::Access::kObserve,
      .id = "list",
      .summary = "the locks that are held, closed or waited for, page by page",
      .handler = list,
      .parameters = {{Place::kQuery, "prefix", false, R"({"type":"string"})",
                      "only names that begin so"},
                     {Place::kQuery, "cursor", false, R"({"type":"string","pattern":"^[0-9]*$"})",
                      "of the page before; an empty page with a cursor is normal"},
                     page_size},
      .answers = {{200, "Page", "a page; the last one's cursor is \"0\""}},
      .example = "'http://127.0.0.1:7296/v1/locks?prefix=reports/'",
  });
  table.add({
      .method = "GET",
      .path = "/v1/locks/{name}",
      .access = wire::Access::kObserve,
      .id = "show",
      .summary = "who holds a lock, until when, and who waits",
      .handler = show,
      .parameters = {name},
      .answers = {{200, "Lock", "as it is now; a lock that was never held is free"}},
      .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly",
  });
  table.add({
      .method = "GET",
      .path = "/v1/locks/{name}/history",
      .access = wire::Access::kObserve,
      .id = "history",
      .summary = "the leases that held a lock before, newest first; forgotten when pawld restarts",
      .handler = history,
      .parameters = {name, page_size},
      .answers = {{200, "History", "what is remembered, which may be nothing"}},
      .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly/history",
  });
  table.add({
      .method = "POST",
      .path = "/v1/locks/{name}/break",
      .access = wire::Access::kAdmin,
      .id = "break",
      .summary =
          "refuse further renewals of a lease; with now, hand its locks on at once (only guards "
          "protect then)",
      .handler = break_lock,
      .parameters = {name},
      .body = "BreakRequest",
      .answers = {{200, "Broken", "it will run out; with now it is over"},
                  {404, "Problem", "that token does not hold it (code not_held)", kProblem}},
      .example =
          R"(-H 'Content-Type: application/json' -d '{"token":34,"reason":"host is gone"}' http://127.0.0.1:7296/v1/locks/reports%2Fnightly/break)",
  });
}

}  // namespace pawl::api
