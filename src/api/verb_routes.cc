// The routes of the verbs, from the table of verbs.
#include <array>

#include "api/json.h"
#include "api/route.h"
#include "base/assert.h"
#include "server/verbs/table.h"

namespace pawl::api {
namespace {

struct VerbHandler {
  std::string_view id;
  Step (*handler)(const RouteRequest& asked);
};
constexpr std::array kHandlers{
    VerbHandler{"acquire", acquire},      VerbHandler{"renew", renew},
    VerbHandler{"release", release},      VerbHandler{"list", list_locks},
    VerbHandler{"history", show_history}, VerbHandler{"break", break_lock},
    VerbHandler{"ask", ask_holders},      VerbHandler{"events", stream_events},
};

std::string_view value_of(const HttpParameter& parameter, const RouteRequest& asked) {
  switch (parameter.in) {
    case ParameterIn::kPath:
      return asked.name;
    case ParameterIn::kHeader:
      return asked.http.header(parameter.name).value_or("");
    case ParameterIn::kQuery:
      break;
  }
  const auto found = asked.query.find(parameter.name);
  return found == asked.query.end() ? std::string_view() : std::string_view(found->second);
}

// The parameters as arguments, in order; an empty value is the same as none. The answer is the
// reply as JSON.
Handler plain_handler(const server::Verb& verb) {
  return [&verb](const RouteRequest& asked) -> Step {
    std::vector<std::string> command{std::string(verb.name)};
    for (const HttpParameter& parameter : verb.http->parameters) {
      const std::string_view value = value_of(parameter, asked);
      if (value.empty() && !parameter.required) continue;
      if (!parameter.option.empty()) command.emplace_back(parameter.option);
      command.emplace_back(value);
    }
    return RunCommand{std::move(command), [](const wire::Value& reply) -> Step {
                        return json_response(200, to_json(reply));
                      }};
  };
}

Handler handler_of(const server::Verb& verb) {
  for (const VerbHandler& known : kHandlers) {
    if (known.id == verb.http->id) return known.handler;
  }
  PAWL_ASSERT(verb.http->method == "GET" && verb.http->body.empty());
  return plain_handler(verb);
}

}  // namespace

void add_verb_routes(RouteTable& table) {
  for (const server::Verb* verb : server::all_verbs()) {
    if (verb->http == nullptr) continue;
    const server::HttpRoute& route = *verb->http;
    table.add({.method = route.method,
               .path = route.path,
               .access = verb->access,
               .id = route.id,
               .summary = route.summary,
               .handler = handler_of(*verb),
               .parameters = {route.parameters.begin(), route.parameters.end()},
               .body = route.body,
               .answers = {route.answers.begin(), route.answers.end()},
               .redirected = !verb->while_loading,
               .on_reserved = verb->on_reserved,
               .example = route.example});
  }
}

}  // namespace pawl::api
