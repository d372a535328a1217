// Looking at locks, asking for them, and breaking them.
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
void append_parameter(std::vector<std::string>& command, const RouteRequest& asked,
                      std::string_view name, std::string_view option) {
  const auto found = asked.query.find(name);
  if (found != asked.query.end() && !found->second.empty())
    command.insert(command.end(), {std::string(option), found->second});
}

template <class Wrong>
std::optional<http::Problem> refuse_value(const RouteRequest& asked, std::string_view name,
                                          Wrong wrong) {
  const auto found = asked.query.find(name);
  return found == asked.query.end() || found->second.empty() ? std::nullopt : wrong(found->second);
}

std::optional<std::uint64_t> digits_of(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::optional<http::Problem> refuse_limit(const RouteRequest& asked) {
  return refuse_value(asked, "limit", [](std::string_view text) -> std::optional<http::Problem> {
    const auto number = digits_of(text);
    if (number && *number >= 1 && *number <= limits::kCountMax) return std::nullopt;
    return invalid(
        fmt::format("limit must be 1 to {}, got {}", limits::kCountMax, wire::shown(text)));
  });
}

std::optional<http::Problem> refuse_page(const RouteRequest& asked) {
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

}  // namespace

Step list_locks(const RouteRequest& asked) {
  if (auto wrong = refuse_page(asked)) return *wrong;
  std::vector<std::string> command{"LOCKS"};
  append_parameter(command, asked, "prefix", "PREFIX");
  append_parameter(command, asked, "cursor", "CURSOR");
  append_parameter(command, asked, "limit", "COUNT");
  return RunCommand{std::move(command), [](const wire::Value& page) -> Step {
                      if (page.items.size() != 2) return unexpected_reply("LOCKS");
                      return json_response(200, json::object{{"cursor", page.items[0].text},
                                                             {"locks", to_json(page.items[1])}});
                    }};
}

Step show_history(const RouteRequest& asked) {
  if (auto wrong = refuse_limit(asked)) return *wrong;
  std::vector<std::string> command{"HISTORY", asked.name};
  append_parameter(command, asked, "limit", "COUNT");
  return RunCommand{
      std::move(command), [name = asked.name](const wire::Value& leases) -> Step {
        return json_response(200, json::object{{"lock", name}, {"history", to_json(leases)}});
      }};
}

Step ask_holders(const RouteRequest& asked) {
  Body body(asked.http.body, {"owner", "reason"});
  const auto owner = body.text("owner", {1, limits::kOwnerMax});
  const auto reason = body.text("reason", {1, limits::kReasonMax});
  if (auto wrong = body.finish()) return *wrong;
  std::vector<std::string> command{"ASK", asked.name};
  if (owner) command.insert(command.end(), {"OWNER", *owner});
  if (reason) command.insert(command.end(), {"REASON", *reason});
  return RunCommand{std::move(command), [name = asked.name](const wire::Value& done) -> Step {
                      json::value answer = to_json(done);
                      answer.as_object()["lock"] = name;
                      return json_response(200, std::move(answer));
                    }};
}

Step break_lock(const RouteRequest& asked) {
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
  return RunCommand{
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

}  // namespace pawl::api
