// Looking at locks, and breaking them.
#include <fmt/format.h>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/limits.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

// Free, nobody waits, and its last token is forgotten: nothing is known of it.
bool is_unknown(const wire::Value& lock) {
  const wire::Value *state = lock.find("state"), *waiters = lock.find("waiters"),
                    *last = lock.find("last_token");
  return state != nullptr && state->text == "free" && waiters != nullptr && waiters->as_integer() == 0 &&
         (last == nullptr || last->is_null());
}

http::Problem unknown_lock(const std::string& name) {
  return not_found("unknown_lock", "nothing is known of this lock",
                   fmt::format("{} is free, and pawld remembers no holder of it", wire::shown(name)));
}

void append_parameter(std::vector<std::string>& command, const Asked& asked, std::string_view name,
                      std::string_view option) {
  const auto found = asked.query.find(name);
  if (found != asked.query.end() && !found->second.empty())
    command.insert(command.end(), {std::string(option), found->second});
}

Step list(const Asked& asked) {
  std::vector<std::string> command{"LOCKS"};
  append_parameter(command, asked, "prefix", "PREFIX");
  append_parameter(command, asked, "cursor", "CURSOR");
  append_parameter(command, asked, "limit", "COUNT");
  return Ask{std::move(command), [](const wire::Value& page) -> Step {
               if (page.items.size() != 2) return strange("LOCKS");
               return json_response(
                   200, json::object{{"cursor", page.items[0].text}, {"locks", to_json(page.items[1])}});
             }};
}

Step show(const Asked& asked) {
  return Ask{{"INSPECT", asked.name}, [name = asked.name](const wire::Value& lock) -> Step {
               if (is_unknown(lock)) return unknown_lock(name);
               return json_response(200, to_json(lock));
             }};
}

Step history(const Asked& asked) {
  std::vector<std::string> command{"HISTORY", asked.name};
  append_parameter(command, asked, "limit", "COUNT");
  return Ask{std::move(command), [name = asked.name](const wire::Value& epochs) -> Step {
               const json::object answer{{"lock", name}, {"history", to_json(epochs)}};
               if (!epochs.items.empty()) return json_response(200, answer);
               // Nobody held it before; perhaps somebody holds it now.
               return Ask{{"INSPECT", name}, [name, answer](const wire::Value& lock) -> Step {
                            if (is_unknown(lock)) return unknown_lock(name);
                            return json_response(200, answer);
                          }};
             }};
}

Step break_lock(const Asked& asked) {
  Body body(asked.http.body);
  const auto token = body.number("token");
  const bool now = body.boolean("now").value_or(false);
  const auto reason = body.text("reason");
  if (!token) body.refuse("token is required: the one that the operator saw");
  if (!reason) body.refuse("reason is required: it is logged, and observers are told");
  if (auto wrong = body.finish()) return *wrong;
  std::vector<std::string> command{"BREAK", asked.name, "TOKEN", std::to_string(*token)};
  if (now) command.emplace_back("NOW");
  command.insert(command.end(), {"REASON", *reason});
  return Ask{std::move(command), [name = asked.name, token, now](const wire::Value& done) -> Step {
               if (done.integer == 0) {
                 return not_found("not_held", "that token does not hold it",
                                  fmt::format("token {} does not hold {}", *token, wire::shown(name)));
               }
               return json_response(
                   200,
                   json::object{{"lock", name}, {"token", *token}, {"state", now ? "broken" : "breaking"}});
             }};
}

}  // namespace

void add_lock_routes(RouteTable& table) {
  constexpr std::string_view kProblem = "application/problem+json";
  const Parameter name{Place::kPath, "name", true, "string",
                       "the lock, percent-encoded; slashes may stand as they are"};
  const Answer unknown{404, "Problem", "nothing is known of this lock", kProblem};
  table.add({
      .method = "GET",
      .path = "/v1/locks",
      .access = wire::Access::kObserve,
      .id = "list",
      .summary = "the locks that are held, closed or waited for, page by page",
      .handler = list,
      .parameters = {{Place::kQuery, "prefix", false, "string", "only names that begin so"},
                     {Place::kQuery, "cursor", false, "string",
                      "of the page before; an empty page with a cursor is normal"},
                     {Place::kQuery, "limit", false, "integer", "at most so many, 1 to 1000 (default 100)"}},
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
      .answers = {{200, "Lock", "as it is now"}, unknown},
      .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly",
  });
  table.add({
      .method = "GET",
      .path = "/v1/locks/{name}/history",
      .access = wire::Access::kObserve,
      .id = "history",
      .summary = "the leases that held a lock before, newest first; forgotten when pawld restarts",
      .handler = history,
      .parameters = {name,
                     {Place::kQuery, "limit", false, "integer", "at most so many, 1 to 1000 (default 100)"}},
      .answers = {{200, "History", "what is remembered"}, unknown},
      .example = "http://127.0.0.1:7296/v1/locks/reports%2Fnightly/history",
  });
  table.add({
      .method = "POST",
      .path = "/v1/locks/{name}/break",
      .access = wire::Access::kAdmin,
      .id = "break",
      .summary = "refuse further renewals of a lease; with now, hand its locks on at once (only guards "
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
