#include "server/verbs/operator_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/version.h"
#include "wire/text.h"

namespace pawl::server {
namespace {

std::string_view parse_reason(wire::ArgReader& in) {
  return in.text("REASON", {1, limits::kReasonMax});
}

// --- BREAK ---------------------------------------------------------------------------------------

Refusal check_break(const Command& command, const BreakRequest& request) {
  const Session& session = command.session;
  if (!AccessControl::is_limited(session)) return std::nullopt;
  if (Refusal refusal = AccessControl::check_lock(session, request.lock)) return refusal;
  const core::HoldersPage only{.count = 1, .after = Token{request.token.value - 1}};
  return AccessControl::check_break(
      session, command.services.core.inspect(request.lock, command.now, only), request.token);
}

void log_break(const Command& command, const BreakRequest& request, bool was_live) {
  const Session& session = command.session;
  const std::string what =
      fmt::format("BREAK{} of token {} on {} by {}", request.now ? " NOW" : "", request.token.value,
                  wire::shown(request.lock), session.description());
  const std::string line = was_live
                               ? fmt::format("{}: {}", what, wire::shown(request.reason))
                               : fmt::format("{} did nothing: that token does not hold it", what);
  command.services.log.write_with(was_live ? LogLevel::kWarning : LogLevel::kInfo, line,
                                  {{"event", was_live ? "break" : "break_without_effect"},
                                   {"lock", request.lock},
                                   {"token", request.token.value},
                                   {"user", session.user_name()},
                                   {"address", session.address()},
                                   {"reason", request.reason}});
}

Served break_lease(Command& command, const BreakRequest& request) {
  if (const Refusal refusal = check_break(command, request)) return command.error(*refusal);
  const core::Reply reply = command.services.replies.ask(
      core::Break{kDirect, request.lock, request.token, request.now, request.reason}, command.now);
  const auto* done = std::get_if<core::BreakDone>(&reply.outcome);
  const bool was_live = done != nullptr && done->was_live;
  if (was_live) {
    ++command.services.telemetry.breaks;
    command.services.replies.break_notes().add(request.token, command.session.user_name(),
                                               request.reason);
  }
  log_break(command, request, was_live);
  return command.answer(reply);
}

constexpr std::array kBreakParameters{kLockInPath};
constexpr std::array kBreakAnswers{
    HttpAnswer{200, "Broken", "it will run out; with now it is over"},
    HttpAnswer{404, "Problem", "that token does not hold it (code not_held)", kProblemJson}};
constexpr HttpRoute kBreakRoute{
    .method = "POST",
    .path = "/v1/locks/{name}/break",
    .id = "break",
    .summary =
        "refuse further renewals of a lease; with now, hand its locks on at once (only guards "
        "protect then)",
    .parameters = kBreakParameters,
    .body = "BreakRequest",
    .answers = kBreakAnswers,
    .example =
        R"(-H 'Content-Type: application/json' -d '{"token":34,"reason":"host is gone"}' http://127.0.0.1:7296/v1/locks/reports%2Fnightly/break)",
};

// --- RAISE ---------------------------------------------------------------------------------------

Served raise_counter(Command& command, const RaiseRequest& request) {
  const Session& session = command.session;
  if (const Refusal refusal = AccessControl::check_whole_store(session, kRaise.name))
    return command.error(*refusal);
  const core::Reply reply = command.services.replies.ask(
      core::Raise{kDirect, request.token, request.reason}, command.now);
  const bool raised = std::holds_alternative<core::Raised>(reply.outcome);
  command.services.log.write_with(
      raised ? LogLevel::kWarning : LogLevel::kInfo,
      fmt::format("RAISE to {} by {}{}: {}", request.token.value, session.description(),
                  raised ? "" : " was refused", wire::shown(request.reason)),
      {{"event", raised ? "raise" : "raise_refused"},
       {"token", request.token.value},
       {"user", session.user_name()},
       {"address", session.address()},
       {"reason", request.reason}});
  return command.answer(reply);
}

// --- BACKUP --------------------------------------------------------------------------------------

// What was read before it in this turn is to be in it, so it begins after that is submitted.
Served back_up(Command& command, std::string_view directory) {
  if (const Refusal refusal = AccessControl::check_whole_store(command.session, kBackup.name))
    return command.error(*refusal);
  Backups& backups = command.services.backups;
  if (backups.busy())
    return command.error(wire::ErrorCode::kBusy, "backup: one is under way; one at a time");
  // A lease that is granted after the backup lives for its TTL and keeps its lock for its DELAY.
  const EngineSettings& settings = command.services.settings;
  backups.order(command.session, {std::string(directory), settings.ttl_max + settings.delay_max,
                                  command.now.wall, fmt::format("pawld {}", kVersion)});
  return Served::kOk;
}

// --- HANDOVER ------------------------------------------------------------------------------------

// Answered before it is done: once the role is given away nothing may be said about it.
Served hand_over(Command& command, NoArguments) {
  if (const Refusal refusal = AccessControl::check_whole_store(command.session, kHandover.name))
    return command.error(*refusal);
  const Services& services = command.services;
  const auto cluster = services.store.cluster();
  if (!cluster) {
    return command.error(wire::ErrorCode::kErr,
                         "this pawld shares its store with no other, so none can take over; "
                         "`pawld --store etcd` does");
  }
  const bool anyone =
      std::any_of(cluster->nodes.begin(), cluster->nodes.end(),
                  [](const store::ClusterView::Node& node) { return node.role == "standby"; });
  if (!anyone) {
    return command.error(
        wire::ErrorCode::kBusy,
        "standby: no other pawld of this cluster stands by, so nobody would serve; "
        "start one first, STATUS lists them");
  }
  services.log.warning(fmt::format("HANDOVER by {}: this pawld gives its role to another one",
                                   command.session.description()),
                       {{"event", "handover"},
                        {"user", command.session.user_name()},
                        {"address", command.session.address()},
                        {"epoch", services.load.loaded.epoch}});
  services.handover.order();
  wire::ReplyWriter reply = command.reply();
  reply.map(2);
  reply.field("epoch", services.load.loaded.epoch);
  reply.field("active", services.settings.address);
  return command.done();
}

}  // namespace

BreakRequest parse_break(wire::ArgReader& in) {
  BreakRequest request{.lock = in.lock(), .token = {}, .now = false, .reason = {}};
  while (in.more()) {
    if (in.option("TOKEN")) {
      request.token = in.token("TOKEN");
    } else if (in.option("NOW")) {
      request.now = true;
    } else if (in.option("REASON")) {
      request.reason = parse_reason(in);
    } else {
      in.refuse_rest();
    }
  }
  if (in.ok() && request.token == Token{})
    in.refuse(wire::ErrorCode::kErr, "BREAK needs TOKEN t: the token that INSPECT shows");
  if (in.ok() && request.reason.empty())
    in.refuse(wire::ErrorCode::kErr, "BREAK needs REASON text");
  return request;
}

RaiseRequest parse_raise(wire::ArgReader& in) {
  RaiseRequest request{.token = in.token("RAISE"), .reason = {}};
  if (in.option("REASON")) request.reason = parse_reason(in);
  in.refuse_rest();
  return request;
}

std::string_view parse_backup(wire::ArgReader& in) {
  const std::string_view directory = in.text("dir", {1, limits::kPathMax});
  if (in.ok() && !directory.starts_with('/'))
    in.refuse(wire::ErrorCode::kErr,
              "dir must be absolute: a path on the machine of pawld that begins with /");
  return directory;
}

// --- The rows ------------------------------------------------------------------------------------

constinit const Verb kBreak{
    .name = "BREAK",
    .arity = -6,
    .access = wire::Access::kAdmin,
    .group = "operate",
    .stores = true,
    .usage = "lock TOKEN t [NOW] REASON text",
    .summary =
        "refuse further renewals of a lease; with NOW, hand its locks on at once (only guards "
        "protect then)",
    .reply = "1; 0 when that token does not hold that lock",
    .example = "BREAK reports/nightly TOKEN 34 REASON \"host is gone\"",
    .handler = kHandler<parse_break, break_lease>,
    .http = &kBreakRoute,
};

constinit const Verb kRaise{
    .name = "RAISE",
    .arity = 4,
    .access = wire::Access::kAdmin,
    .group = "operate",
    .stores = true,
    .usage = "token REASON text",
    .summary = "move the token counter forward, after guards have seen more than this store",
    .reply = "integer: the new last token",
    .example = "RAISE 5000 REASON \"restored from a snapshot\"",
    .handler = kHandler<parse_raise, raise_counter>,
};

constinit const Verb kBackup{
    .name = "BACKUP",
    .arity = 2,
    .access = wire::Access::kBackup,
    .group = "operate",
    .usage = "dir",
    .summary =
        "copy everything that is durable into a new directory on pawld's machine (absolute "
        "path), while service goes on; this connection waits for it",
    .reply =
        "map: dir, files, bytes, records, last_token, sequence; an error leaves nothing behind",
    .example = "BACKUP /var/backups/pawl/2026-11-16T031700Z",
    .handler = kHandler<parse_backup, back_up>,
};

constinit const Verb kHandover{
    .name = "HANDOVER",
    .arity = 1,
    .access = wire::Access::kAdmin,
    .group = "operate",
    .summary =
        "give the role of the active pawld to one that stands by, at once and in order: what was "
        "asked before is finished and answered, everything later is answered -READONLY",
    .reply =
        "map: epoch that ends, active address of this pawld; it is done when STATUS shows a "
        "greater epoch",
    .example = "HANDOVER",
    .handler = kHandler<parse_nothing, hand_over>,
};

}  // namespace pawl::server
