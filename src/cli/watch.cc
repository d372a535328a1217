// pawl watch: print the events of locks as they happen.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"
#include "client/poll_connection.h"

namespace pawl::cli {
namespace {

using wire::EventKind;
using wire::EventPush;

constexpr Millis kWatchConnectTimeout{3'000};

struct WatchArguments {
  std::string prefix;
  std::string from;
};

std::string to_line(const EventPush& event) {
  if (event.kind == EventKind::kReset)
    return "reset  some events may have been missed: read the state again with pawl ls\n";
  std::string line = fmt::format("{}  {:<8}", time_text(event.at), wire::to_text(event.kind));
  if (!event.lock.empty()) line += "  " + printable(event.lock);
  line += fmt::format("  token {}", event.token.value);
  if (!event.owner.empty()) line += "  " + printable(event.owner);
  if (!event.reason.empty()) line += fmt::format("  ({})", printable(event.reason));
  return line + "\n";
}

// The same members as the events that pawld sends over HTTP.
Json to_json(const EventPush& event) {
  Json json;
  json.object()
      .key("event")
      .string(wire::to_text(event.kind))
      .key("id")
      .string(wire::to_text(event.id));
  json.key("lock").string(event.lock);
  if (event.token.value != 0)
    json.key("token").number(static_cast<std::int64_t>(event.token.value));
  const auto text = [&json](std::string_view key, const std::string& value) {
    if (!value.empty()) json.key(key).string(value);
  };
  text("mode", event.mode);
  text("owner", event.owner);
  text("how", event.how);
  text("reason", event.reason);
  if (event.at.value != 0) json.key("at").number(static_cast<std::int64_t>(event.at.value));
  json.end();
  return json;
}

bool print(Console& console, const EventPush& event) {
  return console.json() ? console.data(to_json(event)) : console.data(to_line(event));
}

// The error when pawld refused the observation.
std::optional<Error> refusal(client::Machine& machine) {
  for (const client::Completion& done : machine.take_completions()) {
    const auto* result = std::get_if<Result<client::ObserveEnded>>(&done.outcome);
    if (result != nullptr && !*result) return result->error();
  }
  return std::nullopt;
}

int watch(Console& console, const WatchArguments& options) {
  const auto from = wire::event_id_from_text(options.from);
  if (!options.from.empty() && !from) {
    return console.fail(
        {Code::kInvalid, fmt::format("--from: \"{}\" is not the id of an event; take it from "
                                     "the output of pawl watch --json",
                                     printable(options.from))},
        kExitUsage);
  }
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  SystemRandom random;
  client::PollConnection pawld(std::move(*endpoints), random,
                               {.name = "pawl-watch", .auth = console.auth()},
                               kWatchConnectTimeout);
  client::Machine& machine = pawld.machine();
  machine.observe({.prefix = options.prefix, .from = from}, client::boot_now());
  std::string last_error;
  for (;;) {
    pawld.wait_and_process();
    if (const auto error = refusal(machine)) {
      const bool unreachable = error->code == Code::kUnavailable && !machine.reached();
      return unreachable ? console.fail_unreachable(error->detail) : console.fail(*error);
    }
    for (const client::ObservedEvent& seen : machine.take_observed_events()) {
      if (!seen.event) {
        console.progress("watching; nothing has happened yet");
      } else if (!print(console, *seen.event)) {
        return kExitOutput;
      }
    }
    if (!machine.reached()) continue;
    // It was reached once, so it is waited for: no event is missed meanwhile, or a reset says so.
    pawld.keep_retrying();
    if (machine.last_error() != last_error) {
      last_error = machine.last_error();
      if (!last_error.empty()) console.note("pawl: " + printable(last_error) + "; retrying");
    }
  }
}

}  // namespace

void add_watch(CommandLine& line) {
  auto options = std::make_shared<WatchArguments>();
  Verb verb = line.verb("watch", "print the events of locks as they happen", Talks::kToPawld);
  verb.optional("PREFIX", options->prefix, "only locks starting with PREFIX");
  verb.text("--from", "ID", options->from,
            "continue after the event with this id (from --json) instead of from now");
  verb.examples(
      "  pawl watch                                 every grant, release, expiry and break\n"
      "  pawl watch reports/\n"
      "  pawl watch --json | jq --unbuffered -r 'select(.event == \"expired\") | .lock'\n"
      "  pawl watch --json --from 8c1f0a2b5d3e4f60-458753   what came after that event\n"
      "\n"
      "One line per event, until a signal; with --json one JSON object per line. Only durable\n"
      "changes are events. After a lost connection it continues with the next event; `reset` "
      "means\n"
      "that some events may have been missed.");
  verb.run([options](Console& console) { return watch(console, *options); });
}

}  // namespace pawl::cli
