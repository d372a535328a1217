// What happens to locks, as it happens: server-sent events, on the same ring as OBSERVE.
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include "api/json.h"
#include "api/problems.h"
#include "api/route.h"
#include "base/limits.h"
#include "wire/events.h"
#include "wire/text.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

// The id without data makes no event, but a client that loses its connection before the first one
// resumes from here.
std::string begin(const wire::Value& id) {
  return fmt::format("retry: 1000\nid: {}\n\n", id.text);
}

std::string event_text(std::string_view event, std::string_view id, const json::object& data) {
  const std::string line = id.empty() ? "" : fmt::format("id: {}\n", id);
  return fmt::format("{}event: {}\ndata: {}\n\n", line, event, json::serialize(data));
}

// A push ["pawl", event, id, lock, map]; or the error with which pawld lets a reader go that does
// not keep up.
std::string event_of_push(const wire::Value& frame) {
  if (frame.is_error()) {
    const http::Problem problem = problem_of(frame.text);
    return event_text("cut", "",
                      {{"event", "cut"},
                       {"lock", ""},
                       {"code", problem.code},
                       {"detail", problem.detail},
                       {"retryable", true}});
  }
  if (!wire::read_event(frame)) return "";
  const std::string &event = frame.items[1].text, &id = frame.items[2].text;
  json::object data{{"event", event}, {"id", id}, {"lock", frame.items[3].text}};
  const json::value more = to_json(frame.items[4]);
  for (const auto& member : more.as_object()) data.insert(member);
  return event_text(event, id, data);
}

}  // namespace

Step stream_events(const RouteRequest& asked) {
  const auto prefix = asked.query.find("prefix");
  std::vector<std::string> command{"OBSERVE", prefix == asked.query.end() ? "" : prefix->second};
  if (prefix != asked.query.end()) {
    if (auto wrong = wrong_text("prefix", prefix->second, {0, limits::kLockNameMax})) return *wrong;
  }
  const auto last = asked.http.header("Last-Event-ID");
  if (last && !last->empty() && !wire::event_id_from_text(*last)) {
    return invalid(fmt::format(
        "Last-Event-ID must be the id of an earlier event, got {}; leave it out to begin "
        "with what happens now",
        wire::shown(*last)));
  }
  if (last && !last->empty()) command.insert(command.end(), {"FROM", std::string(*last)});
  return Stream{std::move(command), begin, event_of_push};
}

}  // namespace pawl::api
