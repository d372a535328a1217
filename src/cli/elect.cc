// pawl elect: become the leader and stay it, or follow who leads.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/run_request.h"
#include "cli/runner.h"
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

bool announce(Console& console, const ElectArguments& options,
              const client::GrantedLease& granted) {
  if (!console.json()) {
    return console.data(
        fmt::format("elected {} token {}\n", printable(options.name()), granted.token.value));
  }
  Json json = begin(options, "elected");
  json.key("token").number(static_cast<std::int64_t>(granted.token.value));
  json.key("value").string(options.value).end();
  return console.data(json);
}

// The end, for programs; people read stderr and the exit code.
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
  request->announce = [&](const client::GrantedLease& granted) {
    elected = announce(console, options, granted);
    return elected;
  };
  std::optional<Runner> runner(std::in_place, console, std::move(*request), std::move(*endpoints));
  const int code = runner->run();
  const int signal = runner->ended_by();
  runner.reset();  // Everything is cleaned up, the signals are as they were.
  if (elected) conclude(console, options, code);
  if (is_passed_to_the_shell(signal)) end_by_signal(signal);
  return code;
}

// --- Observing -----------------------------------------------------------------------------------

std::string to_line(const client::MaybeLeader& leader) {
  if (!leader) return "nobody\n";
  const std::string value = !leader->value           ? " value unknown"
                            : leader->value->empty() ? ""
                                                     : " value " + printable(*leader->value);
  return fmt::format("leader {} token {}{}\n",
                     leader->owner.empty() ? "-" : printable(leader->owner), leader->token.value,
                     value);
}

Json to_json(const std::string& name, const client::MaybeLeader& leader) {
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

// Waits for the next input. Returns the changes that it brought.
std::vector<Result<client::MaybeLeader>> wait_for_changes(client::PollConnection& pawld,
                                                          client::LeaderWatch& watch) {
  pawld.wait_and_process();
  const Instant now = boot_now();
  for (const client::Completion& done : pawld.machine().take_completions())
    watch.on_completion(done, now);
  for (const client::ObservedEvent& event : pawld.machine().take_observed_events())
    watch.on_event(event, now);
  pawld.flush();
  return watch.take_changes();
}

int observe(Console& console, const ElectArguments& options) {
  if (!options.value.empty() || !options.run.command.empty()) {
    return console.fail({Code::kInvalid, "--observe cannot be combined with --value or a command"});
  }
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  SystemRandom random;
  client::PollConnection pawld(std::move(*endpoints), random,
                               {.name = "pawl-elect", .auth = console.auth()}, kConnectTimeout);
  client::LeaderWatch watch(pawld.machine(), options.name(), boot_now());
  std::string last_error;
  for (;;) {
    for (const auto& change : wait_for_changes(pawld, watch)) {
      if (!change && pawld.is_tls_mismatch())
        return console.fail_tls_mismatch(change.error().detail);
      if (!change && change.error().code == Code::kUnavailable && !pawld.machine().reached())
        return console.fail_unreachable(change.error().detail);
      if (!change) return console.fail(change.error());
      const bool written = console.json() ? console.data(to_json(options.name(), *change))
                                          : console.data(to_line(*change));
      if (!written) return kExitOutput;
    }
    if (!pawld.machine().reached()) continue;
    pawld.keep_retrying();  // It was reached once, so it is waited for.
    if (pawld.machine().last_error() != last_error) {
      last_error = pawld.machine().last_error();
      if (!last_error.empty()) console.note("pawl: " + printable(last_error) + "; retrying");
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
      "  pawl elect schedulers --value 10.0.0.7:8080     report the election, stay until a signal\n"
      "  pawl elect schedulers -- ./scheduler            run it while elected, as `pawl run` does\n"
      "  pawl elect schedulers --observe                 print the leader, then every change\n"
      "  pawl elect schedulers --observe --json | jq --unbuffered .leader.value\n"
      "\n"
      "Without a command it prints `elected NAME token N` once it leads. A signal ends it; then "
      "it\n"
      "resigns, and the next candidate leads at once. When the lease cannot be confirmed it ends\n"
      "with 122, a sixth of the TTL before anyone else can be elected: stop leading when it ends.\n"
      "With a command, the command is stopped for you. Electing is running with one lock: see\n"
      "`pawl run` for --on-lost, --kill-after and the environment.\n"
      "\n"
      "Exit codes: 128+N ended by signal N; 64 usage, 69 pawld unreachable, 75 not elected in "
      "time,\n"
      "77 not permitted, 122 lease lost, 124 --max-hold reached; with a command those of `pawl "
      "run`.");
  verb.run([options](Console& console) {
    return options->observe ? observe(console, *options) : campaign(console, *options);
  });
}

}  // namespace pawl::cli
