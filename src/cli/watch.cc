// pawl watch: what happens to locks, as it happens.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/utf8.h"
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
    return "reset  some events may have been missed: look again with pawl ls\n";
  std::string line = fmt::format("{}  {:<8}", time_text(event.at), wire::to_text(event.kind));
  if (!event.lock.empty()) line += "  " + printable(event.lock);
  line += fmt::format("  token {}", event.token.value);
  if (!event.owner.empty()) line += "  " + printable(event.owner);
  if (!event.reason.empty()) line += fmt::format("  ({})", printable(event.reason));
  return line + "\n";
}

// The same members as in the events that pawld tells over HTTP.
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

// How pawld ended the observing; it does so only when it refuses it.
std::optional<Error> refusal(client::Machine& machine) {
  for (const client::Completion& done : machine.take_completions()) {
    const auto* result = std::get_if<Result<client::Unobserved>>(&done.outcome);
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
  std::string trouble;
  for (;;) {
    pawld.wait_and_turn();
    if (const auto error = refusal(machine)) {
      return machine.greeted() ? console.fail(*error) : console.fail_unreachable(error->detail);
    }
    for (const client::Sighting& seen : machine.take_sightings()) {
      if (!seen.event) {
        console.progress("watching; nothing has happened yet");
      } else if (!print(console, *seen.event)) {
        return kExitOutput;
      }
    }
    if (!machine.greeted()) continue;
    pawld
        // Once it was there, it is waited for: nothing is missed meanwhile, or a reset says so.
        .be_patient();
    if (machine.trouble() != trouble) {
      trouble = machine.trouble();
      if (!trouble.empty()) console.note("pawl: " + printable(trouble) + "; trying again");
    }
  }
}

}  // namespace

void add_watch(CommandLine& line) {
  auto options = std::make_shared<WatchArguments>();
  Verb verb = line.verb("watch", "what happens to locks, as it happens", Talks::kToPawld);
  verb.optional("PREFIX", options->prefix, "only locks whose names begin so");
  verb.text("--from", "ID", options->from,
            "go on after the event with this id (from --json), not from now");
  verb.examples(
      "  pawl watch                                 every grant, release, expiry and break\n"
      "  pawl watch reports/\n"
      "  pawl watch --json | jq --unbuffered -r 'select(.event == \"expired\") | .lock'\n"
      "  pawl watch --json --from 8c1f0a2b5d3e4f60-458753   what came after that event\n"
      "\n"
      "One line per event, until a signal; with --json one JSON object per line. Only what is "
      "durable is "
      "told. Over a\n"
      "lost connection it goes on where it was, and with --from after the event named; `reset` "
      "says that "
      "some events may have been missed.");
  verb.run([options](Console& console) { return watch(console, *options); });
}

}  // namespace pawl::cli
