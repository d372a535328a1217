// pawl elect: campaign, and lead until it ends; or follow who leads.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/run_request.h"
#include "cli/utf8.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"
#include "client/leader_watch.h"

namespace pawl::cli {
namespace {

using client::boot_now;

constexpr Millis kConnectTimeout{3'000};

struct ElectArguments {
  RunOptions run;
  std::string value;
  bool observe = false;

  [[nodiscard]] const std::string& name() const { return run.common.lock; }
};

// --- Campaigning ---------------------------------------------------------------------------------

Json begin(const ElectArguments& options, std::string_view state) {
  Json json;
  json.object().key("name").string(options.name()).key("state").string(state);
  return json;
}

bool announce(Console& console, const ElectArguments& options, const client::Held& held) {
  if (!console.json()) {
    return console.data(
        fmt::format("elected {} token {}\n", printable(options.name()), held.token.value));
  }
  Json json = begin(options, "elected");
  json.key("token").number(static_cast<std::int64_t>(held.token.value));
  json.key("value").string(options.value).end();
  return console.data(json);
}

// How it ended, for programs; people read stderr and the exit code.
void conclude(Console& console, const ElectArguments& options, int code) {
  if (!console.json()) return;
  Json json = begin(options, code == kExitLost ? "lost" : "resigned");
  json.end();
  console.data(json);
}

int campaign(Console& console, const ElectArguments& options) {
  RunOptions run = options.run;
  if (!options.value.empty())
    run.common.meta.push_back(fmt::format("{}={}", client::kLeaderValue, options.value));
  auto request = to_request(console, run);
  if (!request) return console.fail(request.error());
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  bool elected = false;
  request->announce = [&](const client::Held& held) {
    elected = announce(console, options, held);
    return elected;
  };
  const int code = Runner(console, std::move(*request), std::move(*endpoints)).run();
  if (elected) conclude(console, options, code);
  return code;
}

// --- Observing -----------------------------------------------------------------------------------

std::string to_line(const client::LeaderNow& leader) {
  if (!leader) return "nobody\n";
  const std::string value = !leader->value           ? " value unknown"
                            : leader->value->empty() ? ""
                                                     : " value " + printable(*leader->value);
  return fmt::format("leader {} token {}{}\n",
                     leader->owner.empty() ? "-" : printable(leader->owner), leader->token.value,
                     value);
}

Json to_json(const std::string& name, const client::LeaderNow& leader) {
  Json json;
  json.object().key("name").string(name).key("leader");
  if (!leader) {
    json.null();
  } else {
    json.object().key("token").number(static_cast<std::int64_t>(leader->token.value));
    json.key("owner").string(leader->owner).key("value");
    leader->value ? json.string(*leader->value) : json.null();
    json.end();
  }
  json.end();
  return json;
}

// One turn; what there is to tell after it.
std::vector<Result<client::LeaderNow>> turn(client::PollConnection& pawld,
                                            client::LeaderWatch& watch) {
  pawld.wait_and_turn();
  const Instant now = boot_now();
  for (const client::Completion& done : pawld.machine().take_completions()) watch.take(done, now);
  for (const client::Sighting& seen : pawld.machine().take_sightings()) watch.take(seen, now);
  pawld.flush();
  return watch.take_changes();
}

int observe(Console& console, const ElectArguments& options) {
  if (!options.value.empty() || !options.run.command.empty()) {
    return console.fail(
        {Code::kInvalid,
         "--observe does not take part in the election: it takes neither --value nor a command"});
  }
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  SystemRandom random;
  client::PollConnection pawld(std::move(*endpoints), random,
                               {.name = "pawl-elect", .auth = console.auth()}, kConnectTimeout);
  client::LeaderWatch watch(pawld.machine(), options.name(), boot_now());
  std::string trouble;
  for (;;) {
    for (const auto& change : turn(pawld, watch)) {
      if (!change && pawld.is_misfit()) return console.fail_misfit(change.error().detail);
      if (!change && !pawld.machine().greeted())
        return console.fail_unreachable(change.error().detail);
      if (!change) return console.fail(change.error());
      const bool written = console.json() ? console.data(to_json(options.name(), *change))
                                          : console.data(to_line(*change));
      if (!written) return kExitOutput;
    }
    if (!pawld.machine().greeted()) continue;
    pawld.be_patient();  // Once it was there, it is waited for.
    if (pawld.machine().trouble() != trouble) {
      trouble = pawld.machine().trouble();
      if (!trouble.empty()) console.note("pawl: " + printable(trouble) + "; trying again");
    }
  }
}

}  // namespace

void add_elect(CommandLine& line) {
  auto options = std::make_shared<ElectArguments>();
  Verb verb = line.verb("elect", "become the leader among many candidates, or print who leads",
                        Talks::kToPawld);
  verb.required("NAME", options->run.common.lock,
                "name of the election, which is the name of its lock");
  verb.text("--value", "TEXT", options->value,
            "shown to others while you lead, such as an address");
  verb.flag("--observe", options->observe,
            "do not campaign: print who leads now, then every change");
  options->run.common.declare_lease(verb);
  for (const char* option : {"--ttl", "--wait", "--no-wait", "--owner", "--max-hold", "-E"}) {
    verb.not_both("--observe", option);
  }
  verb.rest(options->run.command);
  verb.examples(
      "  pawl elect schedulers --value 10.0.0.7:8080            say when elected, stay until a "
      "signal or "
      "loss\n"
      "  pawl elect schedulers -- ./scheduler                   run it while elected, as `pawl "
      "run` does\n"
      "  pawl elect schedulers --observe                        who leads now, and every change\n"
      "  pawl elect schedulers --observe --json | jq --unbuffered .leader.value\n"
      "\n"
      "Without a command it prints `elected NAME token N` once it leads. Signals end it; it "
      "resigns then, "
      "and the "
      "next\n"
      "candidate leads at once. When the lease cannot be confirmed it ends too, with 122, a sixth "
      "of the TTL "
      "before\n"
      "anyone else can be elected: stop what you do as a leader when it ends. With a command that "
      "is done "
      "for you; "
      "for\n"
      "more about that (--on-lost, --kill-after, environment) see `pawl run`: electing is running "
      "with one "
      "lock.\n"
      "\n"
      "Exit codes: 128+N ended by signal N; 64 usage, 69 pawld unreachable, 75 not elected in "
      "time, 77 not "
      "permitted,\n"
      "122 lease lost, 124 --max-hold reached; with a command those of `pawl run`.");
  verb.run([options](Console& console) {
    return options->observe ? observe(console, *options) : campaign(console, *options);
  });
}

}  // namespace pawl::cli
