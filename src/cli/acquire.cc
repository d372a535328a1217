// pawl acquire: take locks and print the lease.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/duration.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/acquire_options.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/lock_wait.h"
#include "cli/reply.h"
#include "cli/verbs.h"
#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

struct AcquireArguments {
  AcquireOptions common;
  std::string request;
  bool exports = false;
};

Result<client::AcquireCall> to_call(const AcquireArguments& options) {
  auto call = to_call(options.common, default_owner(getppid()));
  if (!call) return call;
  call->wait = options.common.patience().value_or(limits::kWaitMax);
  call->request = options.request;
  return call;
}

std::string names(const client::AcquireCall& call) {
  std::string list;
  for (const std::string& lock : call.locks) list += (list.empty() ? "" : ", ") + printable(lock);
  return list;
}

Json to_json(const client::GrantedLease& held) {
  Json json;
  json.object().key("lease").string(to_hex(held.lease));
  json.key("token").number(static_cast<std::int64_t>(held.token.value));
  json.key("floor").number(static_cast<std::int64_t>(held.floor.value));
  json.key("slot");
  held.slot ? json.number(*held.slot) : json.null();
  json.key("ttl_ms").number(held.ttl.count()).key("waited_ms").number(held.waited.count());
  json.key("request").string(held.request);
  json.key("deadline_boottime_ns").number(held.deadline.time_since_epoch().count()).end();
  return json;
}

std::string to_lines(const client::GrantedLease& held) {
  std::string out = fmt::format("lease: {}\ntoken: {}\n", to_hex(held.lease), held.token.value);
  if (held.floor != held.token) out += fmt::format("floor: {}\n", held.floor.value);
  if (held.slot) out += fmt::format("slot: {}\n", *held.slot);
  return out;
}

// For eval. Only the names could need quoting, and they are left out.
std::string to_exports(const client::GrantedLease& held) {
  return fmt::format(
      "export PAWL_LEASE={} PAWL_TOKEN={} PAWL_TTL_MS={} PAWL_DEADLINE_BOOTTIME_NS={}\n",
      to_hex(held.lease), held.token.value, held.ttl.count(),
      held.deadline.time_since_epoch().count());
}

void advise(Console& console, const client::AcquireCall& call, const client::GrantedLease& held) {
  const auto left = std::chrono::floor<Millis>(held.deadline - client::boot_now());
  const std::string lease = to_hex(held.lease);
  console.note(fmt::format(
      "{} {} yours for {} from now. Without renewal the lease ends after its TTL of {}.",
      names(call), call.locks.size() == 1 ? "is" : "are", to_text(left), to_text(held.ttl)));
  console.note(fmt::format(
      "  use it:        send token {} with every write; a guarded resource refuses older ones",
      held.token.value));
  console.note(fmt::format("  keep it:       pawl renew {}      (every {} or so)", lease,
                           to_text(held.ttl / 3)));
  console.note(fmt::format("  release it:    pawl release {}", lease));
}

// Why it was not acquired. Best effort: by now the reason may be another.
std::string obstacle(Console& console, const client::AcquireCall& call) {
  for (const std::string& lock : call.locks) {
    const auto shown = console.ask({"INSPECT", lock});
    if (!shown || items_of(*shown, "holders").empty()) continue;
    const wire::Value& holder = items_of(*shown, "holders").front();
    return fmt::format("{} is held by {} (token {}), which expires in {} unless renewed",
                       printable(lock), owner_of(holder), text_of(holder, "token"),
                       duration_of(holder, "expires_in_ms"));
  }
  return fmt::format("{} was not free", names(call));
}

int not_acquired(Console& console, const AcquireArguments& options,
                 const client::AcquireCall& call) {
  // Not the same as a lock that somebody else has: nobody does the work. -E does not apply.
  const auto status = console.ask({"STATUS"});
  if (const auto restoring = status ? restoring_text(*status) : std::nullopt)
    return console.fail({Code::kUnavailable, "not acquired: " + *restoring});
  const std::string why = obstacle(console, call);
  const std::string hint = options.common.no_wait ? "Leave out -n to wait for it."
                                                  : "Wait longer with -w, or see `pawl show`.";
  return console.fail({Code::kBusy, fmt::format("not acquired: {}. {}", why, hint)},
                      static_cast<int>(options.common.not_acquired));
}

int acquire(Console& console, const AcquireArguments& options) {
  const auto call = to_call(options);
  if (!call) return console.fail(call.error());
  console.set_waits_for(names(*call));
  auto held = console.pawld().acquire(*call);
  // Without -w we queue again whenever pawld's limit for one wait is reached.
  while (!held && held.error().code == Code::kBusy && !options.common.patience()) {
    held = console.pawld().acquire(*call);
  }
  if (!held && held.error().code == Code::kBusy) return not_acquired(console, options, *call);
  if (!held) return console.fail(held.error());
  const bool written = console.json()    ? console.data(to_json(*held))
                       : options.exports ? console.data(to_exports(*held))
                                         : console.data(to_lines(*held));
  if (!written) {  // A lease that was not printed cannot be used or released by anyone.
    const auto released = console.pawld().release({held->lease, held->ttl});
    console.note(fmt::format("pawl: stdout cannot be written; the lease was {}",
                             released ? "released" : "possibly not released"));
    return kExitOutput;
  }
  if (!console.json()) advise(console, *call, *held);
  return kExitOk;
}

}  // namespace

void add_acquire(CommandLine& line) {
  auto options = std::make_shared<AcquireArguments>();
  Verb verb = line.verb("acquire", "take a lock (or several, all or none) and print the lease",
                        Talks::kToPawld);
  options->common.declare(verb);
  verb.text("--request", "ID", options->request,
            "request id, 22 to 64 of A-Za-z0-9_-: the same id again returns the same lease. "
            "Keep it secret, like the lease");
  verb.duration(
      "--delay", options->common.terms.delay,
      "keep the lock closed for this time if the lease expires instead of being released");
  verb.flag("--export", options->exports, "print `export PAWL_LEASE=… PAWL_TOKEN=…`, for eval");
  verb.not_both("--export", "--json");
  verb.examples(
      "  pawl acquire reports/nightly                    wait for it, print lease and token\n"
      "  pawl acquire reports/nightly -n -E 0            do not wait; exit 0 also when it is held\n"
      "  pawl acquire a --and b -t 1m -w 30s             both or neither, for a minute, waiting 30 "
      "s at most\n"
      "  lease=$(pawl acquire hello --json | jq -r .lease)\n"
      "  eval \"$(pawl acquire hello --export)\"           then: pawl renew; pawl release");
  verb.run([options](Console& console) { return acquire(console, *options); });
}

}  // namespace pawl::cli
