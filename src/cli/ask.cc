// pawl ask: ask the holders of a lock to let go, and wait until they have.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/text.h"
#include "cli/acquire_options.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"
#include "client/poll_connection.h"

namespace pawl::cli {
namespace {

using client::boot_now;
using client::Instant;

constexpr Millis kAskConnectTimeout{3'000};
constexpr Millis kAskAnswerTimeout{5'000};

struct AskArguments {
  std::string lock;
  std::string reason;
  std::string owner;
  Millis wait{0};  // 0: do not wait
};

// What pawld answered, and what came of it.
struct Asked {
  std::string state;
  std::int64_t holders = 0;
  std::int64_t token = 0;           // the greatest that was asked; 0: nobody was
  std::optional<bool> let_go = {};  // with --wait

  [[nodiscard]] bool held() const { return token != 0; }
};

Asked read_asked(const wire::Value& reply) {
  return {text_of(reply, "state"), integer_of(reply, "holders").value_or(0),
          integer_of(reply, "token").value_or(0)};
}

// Observes the lock, asks, and waits until none of those that were asked is left. A lease ends with
// an event; INSPECT then says which is the oldest that still holds the lock.
class AskAndWait {
 public:
  AskAndWait(std::vector<client::Endpoint> endpoints, const Auth& auth, const AskArguments& options,
             std::vector<std::string> words)
      : options_(options),
        words_(std::move(words)),
        pawld_(std::move(endpoints), random_, {.name = "pawl-ask", .auth = auth},
               kAskConnectTimeout) {}

  Result<Asked> run() {
    client::Machine& machine = pawld_.machine();
    const client::CallId observation = machine.observe({.prefix = options_.lock}, boot_now());
    for (;;) {
      pawld_.wait_and_process(until_);
      for (const client::ObservedEvent& seen : machine.take_observed_events()) on_event(seen);
      for (const client::Completion& done : machine.take_completions()) {
        if (done.call == observation)
          return std::get<Result<client::ObserveEnded>>(done.outcome).error();
        const auto& reply = std::get<Result<wire::Value>>(done.outcome);
        if (!reply) return reply.error();
        if (on_reply(*reply)) return asked_;
      }
      if (boot_now() >= until_) {
        asked_.let_go = false;
        return asked_;
      }
      pawld_.flush();
    }
  }
  [[nodiscard]] bool reached() const { return pawld_.machine().reached(); }

 private:
  void send(std::vector<std::string> words, client::CommandCall::Repeat repeat) {
    const Instant now = boot_now();
    pawld_.machine().command(
        {.words = std::move(words), .repeat = repeat, .give_up = now + kAskAnswerTimeout}, now);
    pawld_.flush();
  }
  void inspect() {
    send({"INSPECT", options_.lock, "HOLDERS", "1"}, client::CommandCall::Repeat::kHarmless);
  }
  void on_event(const client::ObservedEvent& seen) {
    if (!seen.event) {
      // Once: after a lost connection the observation begins again.
      if (until_ == client::kNever) {
        until_ = boot_now() + options_.wait;
        send(words_, client::CommandCall::Repeat::kHarmless);
      }
    } else if (asked_.held() && (seen.event->kind == wire::EventKind::kReset ||
                                 (seen.event->lock == options_.lock && !seen.event->how.empty()))) {
      inspect();
    }
  }
  // True: everything is known.
  bool on_reply(const wire::Value& reply) {
    if (asked_.state.empty()) {
      asked_ = read_asked(reply);
      if (!asked_.held()) return true;
      pawld_.keep_retrying();
      inspect();  // It may have ended between the ask and now.
      return false;
    }
    const std::vector<wire::Value>& holders = items_of(reply, "holders");
    if (!holders.empty() && integer_of(holders.front(), "token").value_or(0) <= asked_.token)
      return false;
    asked_.let_go = true;
    return true;
  }

  const AskArguments& options_;
  const std::vector<std::string> words_;
  SystemRandom random_;
  client::PollConnection pawld_;
  Instant until_ = client::kNever;  // The wait counts from the ask.
  Asked asked_;
};

int print(Console& console, const AskArguments& options, const Asked& asked) {
  const int code = asked.let_go.value_or(true) ? kExitOk : kExitNotAcquired;
  if (console.json()) {
    Json json;
    json.object().key("lock").string(options.lock).key("state").string(asked.state);
    json.key("holders").number(asked.holders).key("token");
    asked.held() ? json.number(asked.token) : json.null();
    if (asked.let_go) json.key("let_go").boolean(*asked.let_go);
    json.end();
    return console.data(json) ? code : kExitOutput;
  }
  const std::string lock = printable(options.lock);
  const std::string who =
      asked.holders == 1 ? fmt::format("the holder (token {})", asked.token)
                         : fmt::format("{} holders (up to token {})", asked.holders, asked.token);
  std::string line =
      fmt::format("asked: {} of {} will hear of it with the next renewal\n", who, lock);
  if (!asked.held()) {
    line = fmt::format("not held: nobody holds {}, so nobody was asked\n", lock);
  } else if (asked.let_go) {
    line = *asked.let_go ? fmt::format("let go: {} no longer holds {}\n", who, lock)
                         : fmt::format("still held: {} was asked and did not let go of {} in {}\n",
                                       who, lock, to_text(options.wait));
  } else if (asked.state == "already_asked") {
    line = fmt::format("already asked: {} of {} was asked within the last second\n", who, lock);
  }
  return console.data(line) ? code : kExitOutput;
}

int ask(Console& console, const AskArguments& options) {
  std::vector<std::string> words{"ASK", options.lock, "OWNER",
                                 options.owner.empty() ? default_owner(getpid()) : options.owner};
  if (!options.reason.empty()) words.insert(words.end(), {"REASON", options.reason});
  if (options.wait == Millis(0)) {
    const auto reply = console.ask(std::move(words));
    if (!reply) return console.fail(reply.error());
    return print(console, options, read_asked(*reply));
  }
  auto endpoints = client::resolve(console.targets());
  if (!endpoints) return console.fail(endpoints.error());
  console.progress("waiting for the holders to let go …");
  AskAndWait wait(std::move(*endpoints), console.auth(), options, std::move(words));
  const auto asked = wait.run();
  console.end_progress();
  if (asked) return print(console, options, *asked);
  const bool unreachable = asked.error().code == Code::kUnavailable && !wait.reached();
  return unreachable ? console.fail_unreachable(asked.error().detail) : console.fail(asked.error());
}

}  // namespace

void add_ask(CommandLine& line) {
  auto options = std::make_shared<AskArguments>();
  Verb verb = line.verb("ask", "ask the holders of a lock to let go of it", Talks::kToPawld);
  verb.required("LOCK", options->lock, "the lock that is wanted");
  verb.text("--reason", "TEXT", options->reason, "why; the holders and observers are told");
  verb.text("--owner", "TEXT", options->owner, "who asks, for people (default user@host:pid)");
  verb.duration("--wait", options->wait, "wait until they have let go, for this long at most");
  verb.examples(
      "  pawl ask reports/nightly --reason \"a deployment waits\"\n"
      "  pawl ask reports/nightly --wait 30s && echo \"let go, or not held\"\n"
      "\n"
      "Holders are told with their next renewal, at the latest a third of their TTL later, and "
      "decide\n"
      "themselves: `pawl run` prints a line, or sends its command a signal (--on-ask); programs "
      "have\n"
      "Lease::on_release_wanted. Nothing forces them; `pawl break` does. A lock is asked for at "
      "most\n"
      "once a second. Needs the role use.\n"
      "\n"
      "Exits with 0 when the holders were asked or nobody holds the lock; with --wait, 75 when it "
      "is\n"
      "still held by one that was asked.");
  verb.run([options](Console& console) { return ask(console, *options); });
}

}  // namespace pawl::cli
