#include "server/verbs/observe_verbs.h"

#include <fmt/format.h>

#include <array>

#include "wire/text.h"

namespace pawl::server {
namespace {

constexpr std::string_view kMissed = "what came after that id is not known here any more";

std::string_view parse_prefix(wire::ArgReader& in) {
  return in.text("a prefix", {0, limits::kLockNameMax});
}

// The reply is the id to resume from, so that a connection that breaks before the first event
// misses nothing either.
Served observe(Command& command, const ObserveRequest& request) {
  Session& session = command.session;
  Observers& observers = command.services.observers;
  if (const Refusal refusal = AccessControl::check_prefix(session, request.prefix))
    return command.error(*refusal);
  const bool known = session.observation != nullptr && session.observation->has(request.prefix);
  if (!known) {
    if (const Refusal refusal = observers.check_limits(session)) return command.error(*refusal);
  }
  const Observers::Start start = observers.start_at(request.from);
  command.reply().bulk(to_text(start.id));
  command.done();
  if (session.hung_up) return Served::kOk;  // Nothing is kept for a peer that is leaving.
  if (start.missed) {
    wire::EventView reset;
    reset.id = start.id;
    reset.reason = kMissed;
    wire::ReplyWriter push = command.reply();
    wire::write_event(push, reset);
    command.done();
  }
  // One that is observed already goes on where it is: to begin again would leave a gap.
  if (!known || request.from) observers.add(session, request.prefix, start.position);
  return Served::kOk;
}

Served unobserve(Command& command, std::string_view prefix) {
  const bool observed = command.services.observers.remove(command.session, prefix);
  command.reply().integer(observed ? 1 : 0);
  return command.done();
}

constexpr std::array kEventsParameters{
    HttpParameter{ParameterIn::kQuery, "prefix", false, R"({"type":"string"})",
                  "only locks whose names begin with this"},
    HttpParameter{ParameterIn::kHeader, "Last-Event-ID", false, R"({"type":"string"})",
                  "resume after this event; browsers send it by themselves", "FROM"}};
constexpr std::array kEventsAnswers{
    HttpAnswer{200, "Event",
               "granted, released, expired, breaking, broken, raised, release_wanted; reset: some "
               "may have been missed, look "
               "again; cut: this reader was too slow and is closed",
               "text/event-stream"}};
constexpr HttpRoute kEventsRoute{
    .method = "GET",
    .path = "/v1/events",
    .id = "events",
    .summary =
        "what happens to locks, as it happens and only when it is durable: server-sent events",
    .parameters = kEventsParameters,
    .answers = kEventsAnswers,
    .example = "-N 'http://127.0.0.1:7296/v1/events?prefix=reports/'",
};

}  // namespace

ObserveRequest parse_observe(wire::ArgReader& in) {
  ObserveRequest observe{.prefix = parse_prefix(in), .from = {}};
  if (in.option("FROM")) {
    const std::string_view id = in.any("FROM");
    observe.from = wire::event_id_from_text(id);
    if (in.ok() && !observe.from) {
      in.refuse(
          wire::ErrorCode::kErr,
          fmt::format("FROM must be an event id from OBSERVE or a push, got {}", wire::shown(id)));
    }
  }
  in.refuse_rest();
  return observe;
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kObserve{
    .name = "OBSERVE",
    .arity = -2,
    .access = wire::Access::kObserve,
    .group = "inspect",
    .while_observing = true,
    .usage = "prefix [FROM id]",
    .summary =
        "receive what happens to the locks whose names begin with a prefix (empty: all), from "
        "now or from after an event",
    .reply = "the id to resume from; then one push per event (RESP3), or array message (RESP2)",
    .example = "OBSERVE elections/",
    .handler = kHandler<parse_observe, observe>,
    .http = &kEventsRoute,
};

constinit const Verb kUnobserve{
    .name = "UNOBSERVE",
    .arity = 2,
    .access = wire::Access::kObserve,
    .group = "inspect",
    .while_observing = true,
    .usage = "prefix",
    .summary = "stop observing a prefix",
    .reply = "1 no longer observed; 0 it was not observed",
    .example = "UNOBSERVE elections/",
    .handler = kHandler<parse_prefix, unobserve>,
};

}  // namespace pawl::server
