// docs/reference/protocol.md, rendered from the verb table, the error codes and limits.h, so that
// it cannot drift.
#include <fmt/format.h>

#include "base/limits.h"
#include "server/verbs/table.h"
#include "wire/error_code.h"

namespace pawl::server {
namespace {

constexpr std::string_view kIntroduction = R"(# The protocol

<!-- Written by pawl_protocol_page from the verb table; edit src/server/verbs, then run `pawl_protocol_page FILE`. -->

pawld speaks RESP, the protocol of Redis, in versions 2 and 3 (port 7295).
Any Redis client, and `redis-cli`, can talk to it.

- A command is an array of bulk strings, or a line of words (`"…"` and `'…'` quote).
  Commands may be pipelined; answers come in order.
- Verbs and options ignore case.
  Options follow the names in any order, each at most once.
  Numbers are decimal digits; durations are milliseconds.
- "map" is a map in RESP3, and a flat array of pairs in RESP2.
  "null" is `_` in RESP3.
  In RESP2 it is `*-1` for a lock that was not obtained and `$-1` inside a map.
- A lease is 32 lowercase hex digits.
  It is a secret: every client that knows it counts as the holder.
- A token is an integer from 1 to 9007199254740991, written without sign or leading zero.
- A command that is wrong gets an error and the connection goes on.
  A malformed or oversized frame gets an error and the connection is closed; so does a line that begins with `POST` or `Host:`.
- Where pawld has users (`auth_file`), `AUTH user secret` or `HELLO 3 AUTH user secret` comes first; before that only what "anyone" may use is answered, the rest is `-NOAUTH`.
  Each user has a role, and may have prefixes that its locks must be below ([users, roles and prefixes](auth.md)).
  Without users everyone is admin.
- After the wait of an `ACQUIRE … ASYNC` (RESP3) a push arrives: `pawl`, then `granted`, `timeout`, `cancelled` or `superseded`, the request id, and a map (the grant, or empty).
- What OBSERVE shows arrives as `pawl`, the event, its id, the lock, and a map: a push in RESP3, an array in RESP2.
  Events are `granted`, `released`, `expired`, `breaking`, `broken`, `raised`, `release_wanted` and `reset`; the map has those of `token`, `mode`, `owner`, `how` (it ended), `reason` and `at` (Unix ms) that apply.
  `raised` and `reset` concern every lock: theirs is empty, and every observer hears them.
  `release_wanted` (somebody has sent ASK) names in `owner` who asks, and in `token` the greatest token that holds the lock.
- An event is sent only when it is durable, once per connection, in the order of ids.
  An id is `incarnation-n`; n grows, with gaps, also over restarts (the journal's sequence × 65536 + the place in its batch).
  Only `release_wanted` is not stored: it may have the id of the event before it, is sent again to an observer that resumes from that id, and is unknown after a restart.
  `FROM id` tells what came after that event, as far as pawld still has it in memory; otherwise the first event is `reset`: something may have been missed, look again (INSPECT, LOCKS).
- OBSERVE, then INSPECT on the same connection leaves no gap; an event may then speak of a change that INSPECT showed already (compare tokens).
  In RESP2 a connection that observes takes only OBSERVE, UNOBSERVE, PING and QUIT.
  An observer that reads too slowly gets `-BUSY events` behind what it was sent, and is closed; it may come again with FROM.

)";

void append_command(std::string& out, const Verb& verb) {
  const std::string usage =
      verb.usage.empty() ? std::string(verb.name) : fmt::format("{} {}", verb.name, verb.usage);
  out += fmt::format("### {}\n\n{}{}.\n\n", verb.name, static_cast<char>(verb.summary.front() - 32),
                     verb.summary.substr(1));
  out += fmt::format("```\n{}\n```\n\n", usage);
  out += fmt::format("- Answers: {}\n", verb.reply);
  out += fmt::format("- Role: {}{}{}\n", to_text(verb.access),
                     verb.while_loading ? "; answered while loading" : "",
                     verb.on_reserved ? "; answered on the connections kept for renewals" : "");
  out += fmt::format("- Example: `{}`\n", verb.example);
  out += fmt::format("- Since {}\n\n", verb.since);
}

void append_group(std::string& out, std::string_view group, std::string_view title) {
  out += fmt::format("## {}\n\n", title);
  for (const Verb* verb : all_verbs()) {
    if (verb->group == group) append_command(out, *verb);
  }
}

void append_errors(std::string& out) {
  out +=
      "## Errors\n\nThe first word is stable; the rest is for people.\n\n| code | meaning "
      "|\n|---|---|\n";
  for (std::size_t i = 0; i < wire::kErrorCodes; ++i) {
    const auto code = static_cast<wire::ErrorCode>(i);
    out += fmt::format("| `-{}` | {} |\n", to_text(code), meaning(code));
  }
}

void append_limits(std::string& out) {
  const auto row = [&out](std::string_view what, std::string_view limit) {
    out += fmt::format("| {} | {} |\n", what, limit);
  };
  out +=
      "\n## Limits\n\nOut of range is an error that names the range; nothing is clamped.\n\n| what "
      "| limit "
      "|\n|---|---|\n";
  row("lock name",
      fmt::format("1 to {} bytes of UTF-8 without control characters", limits::kLockNameMax));
  row("TTL",
      fmt::format("{} ms to `max_ttl_ms` (default {} ms, at most {} ms)", limits::kTtlMin.count(),
                  limits::kTtlMaxDefault.count(), limits::kTtlMaxCeiling.count()));
  row("WAIT", fmt::format("0 to {} ms (over HTTP {} ms)", limits::kWaitMax.count(),
                          limits::kHttpWaitMax.count()));
  row("DELAY", fmt::format("0 to {} ms", limits::kDelayMax.count()));
  row("MAXHOLD", fmt::format("0 (no cap), or the TTL to {} ms", limits::kMaxHoldMax.count()));
  row("locks in one ACQUIRE", fmt::format("{}", limits::kLocksPerLease));
  row("LIMIT", fmt::format("1 to {}", limits::kHoldersMax));
  row("OWNER", fmt::format("1 to {} bytes, as a lock name", limits::kOwnerMax));
  row("META", fmt::format("{} pairs, {} bytes in all", limits::kMetaPairs, limits::kMetaBytes));
  row("REQUEST",
      fmt::format("{} to {} of `A-Z a-z 0-9 _ -`", limits::kRequestMin, limits::kRequestMax));
  row("REASON", fmt::format("1 to {} bytes, as a lock name", limits::kReasonMax));
  row("leases in one MRENEW", fmt::format("{}", limits::kRenewsPerCall));
  row("COUNT", fmt::format("1 to {} (default {})", limits::kCountMax, limits::kCountDefault));
  row("HOLDERS", fmt::format("1 to {} (default {})", limits::kCountMax, limits::kHoldersShown));
  row("one command",
      fmt::format("{} bytes, {} arguments", limits::kFrameMax, limits::kFrameArgsMax));
  row("connections", fmt::format("{}, and {} more that are kept for renewals",
                                 limits::kConnectionsMax, limits::kConnectionsReserved));
  row("connections that have not authenticated, where users exist",
      fmt::format(
          "{} more; a silent one, chosen at random, is closed to make room. Each has {} s, however "
          "much it says, and commands of at most {} bytes",
          limits::kNewcomersMax, limits::kAuthenticateTime.count() / 1000,
          limits::kNewcomerFrameMax));
  row("file descriptors",
      "where the process may open too few for all of these, the limits of connections are smaller "
      "in proportion, and the log says so at the start");
  row("waits of one connection",
      fmt::format("1, or {} with ASYNC", limits::kAsyncWaitsPerConnection));
  const auto in_all = [](std::size_t all, std::size_t per_user) {
    return fmt::format("{} in all, {} for each user (`[limits]` sets others)", all, per_user);
  };
  row("leases and waits", in_all(limits::kLeasesMax, limits::kLeasesPerUser));
  row("waits", in_all(limits::kWaitersMax, limits::kWaitersPerUser));
  row("memory of leases and waits, in bytes",
      in_all(limits::kLeaseBytesMax, limits::kLeaseBytesPerUser));
  row("events kept for FROM", fmt::format("{}, and {} bytes of names in them", limits::kEventsKept,
                                          limits::kEventBytesKept));
  row("history kept for HISTORY", fmt::format("the last {} leases that ended, of all locks "
                                              "together, in at most {} bytes; in memory, so empty "
                                              "after a restart",
                                              limits::kHistoryEpochs, limits::kHistoryBytes));
  row("connections that observe",
      fmt::format("{}, {} for each user; each up to {} prefixes", limits::kObserversMax,
                  limits::kObserversPerUser, limits::kPrefixesPerObserver));
  row("output not yet read by a client",
      fmt::format("{} bytes, and {} of all together; then it is cut", limits::kOutputBufferMax,
                  limits::kOutputTotalMax));
}

}  // namespace

std::string protocol_page() {
  std::string out(kIntroduction);
  append_group(out, "lock", "Take locks");
  append_group(out, "lease", "Keep and end leases");
  append_group(out, "inspect", "Look");
  append_group(out, "operate", "Operate");
  append_group(out, "connection", "The connection");
  append_group(out, "server", "The server");
  append_errors(out);
  append_limits(out);
  return out;
}

}  // namespace pawl::server
